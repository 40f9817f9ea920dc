"""How each replica stands: what its pod says of it, and what an exit code means under the replica's policy.

What the contract leaves undefined is decided here, and in these words:
- A code that the documented table does not name takes the class that the Go API type's comment gives: 1 to
  127 permanent, 128 to 255 retryable. Where the two disagree (128, 139) the table wins.
- A failed pod without a code of its training container (evicted, refused by the node, failed init container)
  is not restarted under ExitCode and Never: nothing says that another attempt would end differently. Under
  Always and OnFailure, where the kubelet restarts containers and a pod only fails as a whole, it is replaced:
  the policy itself promises another attempt.
- A pod that is being deleted is not judged at all, whatever its containers did on the way out; it is
  replaced.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from exitcode_reference_controller.identity import Identity
from exitcode_reference_controller.job import Job, ReplicaSpec

PERMANENT_CODES = frozenset({1, 2, 126, 127, 128, 139})
RETRYABLE_CODES = frozenset({130, 137, 138, 143})
"""The table of the Kubeflow documentation, "Exit code" under "Restart policy"; 138 is the user's own."""
_FIRST_UNDEFINED_RETRYABLE = 128


class Standing(StrEnum):
    """How a replica stands."""

    MISSING = "missing"
    LEAVING = "leaving"
    """Its pod is being deleted."""
    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    RETRYABLE = "retryable"
    """Failed, to be restarted by the controller."""
    FAILED = "failed"
    """Failed, not to be restarted by anybody."""


@dataclass(frozen=True, kw_only=True)
class Replica:
    """One replica: what it should be, and what it is."""

    spec: ReplicaSpec
    index: int
    key: str
    """`worker-0`: type in lower case and index."""
    name: str
    pod: Mapping[str, Any] | None
    standing: Standing

    @property
    def pod_uid(self) -> str:
        """UID of the pod; empty if there is none."""
        return str(self.pod["metadata"]["uid"]) if self.pod else ""


class Standings(Identity):
    """The rules by which a replica's standing is found."""

    def survey(self, job: Job, pods: Mapping[str, Mapping[str, Any]]) -> tuple[Replica, ...]:
        """Every replica that the job wants, with the pod of its name."""
        replicas = []
        for spec in job.replica_specs:
            for index in range(spec.replicas):
                name = self.replica_name(job, spec.type, index)
                pod = pods.get(name)
                replicas.append(
                    Replica(
                        spec=spec,
                        index=index,
                        key=f"{spec.type.lower()}-{index}",
                        name=name,
                        pod=pod,
                        standing=self.standing(job, spec, pod),
                    )
                )
        return tuple(replicas)

    def standing(self, job: Job, spec: ReplicaSpec, pod: Mapping[str, Any] | None) -> Standing:
        """What the pod says of its replica."""
        if pod is None:
            return Standing.MISSING
        if "deletionTimestamp" in pod["metadata"]:
            return Standing.LEAVING
        match pod.get("status", {}).get("phase"):
            case "Running":
                return Standing.RUNNING
            case "Succeeded":
                return Standing.SUCCEEDED
            case "Failed":
                restart = self.is_restarted(job, spec, self.training_code(job, pod))
                return Standing.RETRYABLE if restart else Standing.FAILED
            case _:
                return Standing.PENDING

    def training_code(self, job: Job, pod: Mapping[str, Any]) -> int | None:
        """The exit code of the training container, None if it has not ended or never began."""
        for status in pod.get("status", {}).get("containerStatuses") or []:
            if status.get("name") == job.kind.container:
                terminated = (status.get("state") or {}).get("terminated")
                return int(terminated["exitCode"]) if terminated else None
        return None

    def is_restarted(self, job: Job, spec: ReplicaSpec, code: int | None) -> bool:
        """Whether the controller replaces a failed pod."""
        match spec.restart_policy:
            case "ExitCode":
                return job.kind.restarts_by_exit_code and code is not None and self.is_retryable(code)
            case "Always" | "OnFailure":
                return True
            case "Never":
                return False

    def is_retryable(self, code: int) -> bool:
        """The class of an exit code under restartPolicy ExitCode."""
        if code in PERMANENT_CODES:
            return False
        return code in RETRYABLE_CODES or code >= _FIRST_UNDEFINED_RETRYABLE
