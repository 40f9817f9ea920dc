"""What one of Kubernetes' own Jobs (batch/v1) needs now: pure, in the order of kube-controller-manager 1.34.

A Job that has ended is only removed when its time has come. Otherwise what fails it goes before what completes it,
and both go before its pods: it says FailureTarget or SuccessCriteriaMet first, and Failed or Complete once no pod of it
runs any more. Pods that have ended are left where they are.

Left out: suspend (such a Job is left alone), backoffLimitPerIndex and successPolicy, and the finalizer
`batch.kubernetes.io/job-tracking`, with status.uncountedTerminatedPods. In its place the UIDs of the pods that count
are kept in the ledger, so that none counts twice; a pod that has gone before its end was seen does not count here.
"""

import copy
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from exitcode_reference_controller.batch_pod import (
    completion_index,
    failure_action,
    has_failed,
    indexes_text,
    is_active,
    is_owned,
    is_ready,
    is_terminating,
    pod_manifest,
    when_ended,
)
from exitcode_reference_controller.batch_situation import BatchSituation, batch_situation
from exitcode_reference_controller.kinds import BATCH_JOB, Kind
from exitcode_reference_controller.ledger import RestartLedger
from exitcode_reference_controller.plan import Action, Announcement, Create, Delete, DeleteJob, Observed, Plan, Thing
from exitcode_reference_controller.status import parse_timestamp, timestamp

LONGEST_BACKOFF_S = 600.0
_TARGETS = {"FailureTarget": "Failed", "SuccessCriteriaMet": "Complete"}


def condition(status: Mapping[str, Any], *kinds: str) -> Mapping[str, Any] | None:
    """The first condition of these types that is True."""
    said = {one["type"]: one for one in status.get("conditions") or () if one["status"] == "True"}
    return next((said[kind] for kind in kinds if kind in said), None)


class BatchReconciler:
    """The behaviour of the Job controller. `backoff` in seconds is the delay after the first failure; each further one
    doubles it. What the broken variants override has no underscore."""

    def __init__(self, *, backoff: float) -> None:
        self._backoff = backoff

    def admits_pods(self, status: Thing) -> bool:
        """Whether pods may still be created for a Job of this status."""
        return condition(status, *_TARGETS, *_TARGETS.values()) is None

    def is_told(self, reason: str) -> bool:  # noqa: ARG002
        """The controller records each event of its own."""
        return True

    def reconcile(self, kind: Kind, observed: Observed) -> Plan:  # noqa: ARG002
        """What is to be done for the Job as it is observed. Raises BrokenLedger."""
        job, status = observed.job, observed.job.get("status") or {}
        spec = job["spec"]
        manager = spec.get("managedBy") or BATCH_JOB.manager
        if "deletionTimestamp" in job["metadata"] or spec.get("suspend") or manager != BATCH_JOB.manager:
            return Plan(status=status)
        if condition(status, *_TARGETS.values()):
            return _expire(job, status, observed.now)
        situation = self.situation(observed)
        draft = copy.deepcopy(dict(status))
        draft.setdefault("startTime", timestamp(observed.now))
        plan = self._advance(situation, draft)
        wake_at = observed.now if plan.actions or plan.status != status else plan.wake_at
        changed = situation.ledger if situation.ledger != RestartLedger.read(job) else None
        return Plan(
            ledger=changed, status=draft, actions=plan.actions, announcements=plan.announcements, wake_at=wake_at
        )

    def situation(self, observed: Observed) -> BatchSituation:
        """The Job with its pods, those counted that have ended. Raises BrokenLedger."""
        pods = tuple(pod for pod in observed.pods if self.owns(observed.job, pod))
        return batch_situation(observed.job, pods, observed.now)

    def owns(self, job: Thing, pod: Thing) -> bool:
        """Whether a pod that names the Job is the Job's."""
        return is_owned(job, pod)

    def pod(self, situation: BatchSituation, index: int | None) -> Thing:
        """A new pod; `index` None: it has no number."""
        return pod_manifest(situation.job, index)

    def is_done(self, situation: BatchSituation) -> bool:
        """Whether as many pods have succeeded as have to."""
        done, completions = situation.succeeded, situation.spec.get("completions")
        return done > 0 and not situation.active if completions is None else done >= completions

    def _advance(self, situation: BatchSituation, draft: dict[str, Any]) -> Plan:
        """One step of a Job that has not ended."""
        said: tuple[Announcement, ...] = ()
        actions: tuple[Action, ...] = ()
        wake_at = None
        target = condition(draft, *_TARGETS)
        if target is None and (reached := self._ending(situation, draft)) is not None:
            _say(draft, situation.now, *reached)
            actions = tuple(_deletions(situation.active))
        elif target is None:
            actions, wake_at = self._manage(situation)
            wake_at = min((one for one in (wake_at, _deadline(situation, draft)) if one), default=None)
        elif situation.active or situation.terminating:
            actions = tuple(_deletions(situation.active))
        else:
            ending = _TARGETS[target["type"]]
            _say(draft, situation.now, ending, target["reason"], target["message"])
            said = (_announcement(situation.job, ending, target),)
            if ending == "Complete":
                draft["completionTime"] = timestamp(situation.now)
        _count(draft, situation)
        return Plan(status=draft, actions=actions, announcements=said, wake_at=wake_at)

    def _manage(self, situation: BatchSituation) -> tuple[tuple[Action, ...], datetime | None]:
        """Too many pods are deleted; too few are created, once the time to back off is over."""
        if situation.surplus:
            return tuple(_deletions(situation.surplus)), None
        leaving = situation.terminating if situation.waits_for_end else 0
        missing = situation.wanted - len(situation.active) - leaving
        if missing <= 0:
            return (), None
        due = self._due(situation)
        if due is not None and due > situation.now:
            return (), due
        if not situation.is_indexed:
            return tuple(Create(manifest=self.pod(situation, None)) for _ in range(missing)), None
        taken = {completion_index(pod) for pod in situation.pods if is_active(pod) or (leaving and is_terminating(pod))}
        free = (i for i in range(situation.spec["completions"]) if i not in taken and i not in situation.completed)
        chosen = [index for index, _ in zip(free, range(missing), strict=False)]
        return tuple(Create(manifest=self.pod(situation, index)) for index in chosen), None

    def _due(self, situation: BatchSituation) -> datetime | None:
        """When the next pod may be created: later with each failure since the last success."""
        ended = sorted(
            (when_ended(pod), has_failed(pod, waits_for_end=situation.waits_for_end))
            for pod in situation.pods
            if not is_active(pod)
        )
        failures = [moment for moment, failed in ended if failed]
        success = max((moment for moment, failed in ended if not failed), default=None)
        recent = [moment for moment in failures if success is None or moment > success]
        if not recent:
            return None
        delay = min(self._backoff * 2.0 ** min(len(recent) - 1, 30), LONGEST_BACKOFF_S)
        return recent[-1] + timedelta(seconds=delay)

    def _ending(self, situation: BatchSituation, draft: Mapping[str, Any]) -> tuple[str, str, str] | None:
        """How the Job is about to end, as type, reason and message of a condition; None if it is not."""
        spec = situation.spec
        for pod in situation.pods:
            if has_failed(pod, waits_for_end=True):
                action, message = failure_action(spec.get("podFailurePolicy"), pod)
                if action == "FailJob":
                    return "FailureTarget", "PodFailurePolicy", message
        limit = spec["backoffLimit"]
        restarts_count = spec["template"]["spec"].get("restartPolicy") == "OnFailure"
        if situation.failed > limit or (restarts_count and situation.kubelet_restarts >= max(limit, 1)):
            return "FailureTarget", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        deadline = _deadline(situation, draft)
        if deadline is not None and situation.now >= deadline:
            return "FailureTarget", "DeadlineExceeded", "Job was active longer than specified deadline"
        if self.is_done(situation):
            return "SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods"
        return None


def _deadline(situation: BatchSituation, draft: Mapping[str, Any]) -> datetime | None:
    seconds = situation.spec.get("activeDeadlineSeconds")
    return None if seconds is None else parse_timestamp(draft["startTime"]) + timedelta(seconds=seconds)


def _deletions(pods: list[Thing]) -> Iterator[Action]:
    for pod in pods:
        yield Delete(resource="pods", name=pod["metadata"]["name"], uid=pod["metadata"]["uid"])


def _say(draft: dict[str, Any], now: datetime, kind: str, reason: str, message: str) -> None:
    moment = timestamp(now)
    said = {"type": kind, "status": "True", "lastProbeTime": moment, "lastTransitionTime": moment}
    draft["conditions"] = [*draft.get("conditions", []), {**said, "reason": reason, "message": message}]


def _count(draft: dict[str, Any], situation: BatchSituation) -> None:
    """Zeros are left out where the API server leaves them out."""
    counts = {"active": len(situation.active), "succeeded": situation.succeeded, "failed": situation.failed}
    for field, number in counts.items():
        draft.pop(field, None)
        if number:
            draft[field] = number
    draft["ready"] = sum(is_ready(pod) for pod in situation.active)
    draft["terminating"] = situation.terminating
    if situation.completed:
        draft["completedIndexes"] = indexes_text(situation.completed)


def _announcement(job: Thing, ending: str, target: Mapping[str, Any]) -> Announcement:
    key = str(job["metadata"]["uid"])
    if ending == "Complete":
        return Announcement(type="Normal", reason="Completed", message="Job completed", key=key)
    return Announcement(type="Warning", reason=target["reason"], message=target["message"], key=key)


def _expire(job: Thing, status: Thing, now: datetime) -> Plan:
    """Removes a Job that has ended when its time to live is over."""
    seconds = job["spec"].get("ttlSecondsAfterFinished")
    ended = condition(status, *_TARGETS.values())
    if seconds is None or ended is None:
        return Plan(status=status)
    expiry = parse_timestamp(ended["lastTransitionTime"]) + timedelta(seconds=seconds)
    if now >= expiry:
        return Plan(status=status, actions=(DeleteJob(),))
    return Plan(status=status, wake_at=expiry)
