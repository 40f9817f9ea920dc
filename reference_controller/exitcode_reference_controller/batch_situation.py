"""What is known of one of Kubernetes' own Jobs: which of its pods run, and how many have ended how.

A pod that has ended counts once, whatever becomes of it: the ledger keeps its UID.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from exitcode_reference_controller.batch_pod import (
    completion_index,
    failure_action,
    has_failed,
    is_active,
    is_ready,
    is_terminating,
)
from exitcode_reference_controller.ledger import RestartLedger
from exitcode_reference_controller.plan import Thing

FAILED, SUCCEEDED = "failed/", "succeeded/"
"""What the keys of pods that count begin with in the ledger."""


@dataclass(frozen=True, kw_only=True)
class BatchSituation:
    """A Job with everything that the rules decide on."""

    job: Thing
    now: datetime
    pods: tuple[Thing, ...]
    ledger: RestartLedger

    @property
    def spec(self) -> Mapping[str, Any]:
        """What the Job asks for."""
        spec: Mapping[str, Any] = self.job["spec"]
        return spec

    @property
    def is_indexed(self) -> bool:
        """Whether each pod has a number."""
        return self.spec.get("completionMode") == "Indexed"

    @property
    def waits_for_end(self) -> bool:
        """Whether a pod that is on its way out is neither counted nor replaced until it has ended."""
        return self.spec.get("podReplacementPolicy") == "Failed"

    @property
    def active(self) -> list[Thing]:
        """The pods that run or will."""
        return [pod for pod in self.pods if is_active(pod)]

    @property
    def terminating(self) -> int:
        """How many pods are on their way out."""
        return sum(is_terminating(pod) for pod in self.pods)

    @property
    def failed(self) -> int:
        """How many pods count against the limit."""
        return sum(key.startswith(FAILED) for key in self.ledger.replicas)

    @property
    def completed(self) -> set[int]:
        """The indexes that are done."""
        keys = (key.removeprefix(SUCCEEDED) for key in self.ledger.replicas if key.startswith(SUCCEEDED))
        return {int(key) for key in keys if key.isdecimal()} if self.is_indexed else set()

    @property
    def succeeded(self) -> int:
        """How many pods, or indexes below `completions`, are done."""
        if self.is_indexed:
            return sum(index < self.spec["completions"] for index in self.completed)
        return sum(key.startswith(SUCCEEDED) for key in self.ledger.replicas)

    @property
    def wanted(self) -> int:
        """How many pods should run."""
        parallelism, completions = int(self.spec["parallelism"]), self.spec.get("completions")
        if completions is None:
            return len(self.active) if self.succeeded else parallelism
        return max(0, min(parallelism, int(completions) - self.succeeded))

    @property
    def kubelet_restarts(self) -> int:
        """Restarts within the pods that have not ended."""
        return sum(
            int(one.get("restartCount", 0))
            for pod in self.pods
            if pod.get("status", {}).get("phase") in ("Pending", "Running")
            for field in ("initContainerStatuses", "containerStatuses")
            for one in pod["status"].get(field) or ()
        )

    @property
    def surplus(self) -> list[Thing]:
        """The pods that are not needed: those of an index that is done or taken twice, then those that have done
        least."""
        by_progress = sorted(self.active, key=lambda pod: (is_ready(pod), pod["metadata"]["creationTimestamp"]))
        useless = list[Thing]()
        if self.is_indexed:
            seen = set(self.completed)
            for pod in reversed(by_progress):
                index = completion_index(pod)
                if index is None or index in seen or index >= self.spec["completions"]:
                    useless.append(pod)
                else:
                    seen.add(index)
        needed = [pod for pod in by_progress if pod not in useless]
        return useless + needed[: max(0, len(needed) - self.wanted)]


def batch_situation(job: Thing, pods: tuple[Thing, ...], now: datetime) -> BatchSituation:
    """A Job and the pods that are its own, with every one counted that has ended. Raises BrokenLedger."""
    known = BatchSituation(job=job, now=now, pods=pods, ledger=RestartLedger.read(job))
    return replace(known, ledger=_counted(known))


def _counted(situation: BatchSituation) -> RestartLedger:
    """The ledger with each pod that has ended since it was written."""
    ledger = situation.ledger
    policy = situation.spec.get("podFailurePolicy")
    for pod in situation.pods:
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        if ledger.holds(f"{FAILED}{name}", uid):
            continue  # whatever it ends with: it has been told to end, and may be replaced by now
        if pod.get("status", {}).get("phase") == "Succeeded":
            index = completion_index(pod) if situation.is_indexed else None
            ledger = ledger.with_restart(f"{SUCCEEDED}{name if index is None else index}", uid)
        elif has_failed(pod, waits_for_end=situation.waits_for_end) and failure_action(policy, pod)[0] != "Ignore":
            ledger = ledger.with_restart(f"{FAILED}{name}", uid)
    return ledger
