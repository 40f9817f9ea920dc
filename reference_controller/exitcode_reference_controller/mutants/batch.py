"""Faults of a controller of Kubernetes' own Jobs.

Most of them see a Job otherwise than it is: a field that a controller does not heed, or takes for something else, is
another one to it. Some faults are none that such a controller can have, since the API server of Kubernetes 1.34 refuses
them: a Job takes no end back and has no second one, and no count of it falls, but that of an Indexed Job's successes.
"""

import dataclasses
import zlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar

from exitcode_reference_controller.batch_job import BatchReconciler, condition
from exitcode_reference_controller.batch_pod import completion_index, has_failed, is_active, when_ended
from exitcode_reference_controller.batch_situation import SUCCEEDED, BatchSituation
from exitcode_reference_controller.kinds import Kind
from exitcode_reference_controller.ledger import RestartLedger
from exitcode_reference_controller.mutants.exit_codes import Panic
from exitcode_reference_controller.mutants.registry import BATCH_KINDS, Variant, batch_variant, register
from exitcode_reference_controller.mutants.slow import BEYOND, WITHIN
from exitcode_reference_controller.plan import Create, Observed, Plan, Thing
from exitcode_reference_controller.slowness import Slowness, nothing
from exitcode_reference_controller.status import parse_timestamp, timestamp

_ENDS = ("Failed", "Complete")
_UNLIMITED = 2**31 - 1


class _SeesOtherwise(BatchReconciler):
    """Takes some fields of a Job's spec for others."""

    def reconcile(self, kind: Kind, observed: Observed) -> Plan:
        spec = {**observed.job["spec"], **self.seen(observed)}
        return super().reconcile(kind, dataclasses.replace(observed, job={**observed.job, "spec": spec}))

    def seen(self, observed: Observed) -> Mapping[str, Any]:
        """Field → what it is taken for."""
        raise NotImplementedError


class _KnowsOtherRules(_SeesOtherwise):
    """Takes the rules of the podFailurePolicy for others."""

    def seen(self, observed: Observed) -> Mapping[str, Any]:
        policy = observed.job["spec"].get("podFailurePolicy")
        if policy is None:
            return {}
        rules = [self.rule(rule, observed) for rule in policy["rules"]]
        return {"podFailurePolicy": {**policy, "rules": [rule for rule in rules if rule is not None]}}

    def rule(self, rule: Thing, observed: Observed) -> Thing | None:
        """What a rule is taken for; None: for none at all."""
        raise NotImplementedError


# ---- exit codes ------------------------------------------------------------------------------------------------------


@batch_variant(
    "batch-sibling-hides-failure",
    "Looks for FailJob only when no pod runs any more, so that a sibling that runs on hides a permanent failure.",
)
class SiblingHidesFailure(_KnowsOtherRules):
    def rule(self, rule: Thing, observed: Observed) -> Thing | None:
        return None if rule["action"] == "FailJob" and any(map(is_active, observed.pods)) else rule


@batch_variant(
    "batch-half-rolled-out", "A new version, to which Ignore means FailJob, is rolled out to half the Jobs by name."
)
class HalfRolledOut(_KnowsOtherRules):
    def rule(self, rule: Thing, observed: Observed) -> Thing | None:
        chosen = zlib.crc32(observed.job["metadata"]["name"].encode()) % 2 == 0
        return {**rule, "action": "FailJob"} if chosen else rule


@batch_variant(
    "batch-any-container-decides",
    "Leaves containerName out of account, so that a sidecar's code fails the Job.",
)
class AnyContainerDecides(_KnowsOtherRules):
    def rule(self, rule: Thing, observed: Observed) -> Thing | None:  # noqa: ARG002
        codes = rule.get("onExitCodes")
        return rule if codes is None else {**rule, "onExitCodes": {**codes, "containerName": None}}


@batch_variant(
    "batch-message-decides",
    "Takes a termination message for a verdict of the program, and fails the Job whatever the code.",
)
class MessageDecides(_KnowsOtherRules):
    def rule(self, rule: Thing, observed: Observed) -> Thing | None:
        return {**rule, "action": "FailJob"} if any(map(_has_message, observed.pods)) else rule


def _has_message(pod: Thing) -> bool:
    states = (one.get("state") or {} for one in pod.get("status", {}).get("containerStatuses") or ())
    return any((state.get("terminated") or {}).get("message") for state in states)


# ---- restarts --------------------------------------------------------------------------------------------------------


@batch_variant(
    "batch-completed-index-restarted",
    "Begins the whole Job anew when a pod of it is replaced, so that indexes that are done are run again.",
)
class CompletedIndexRestarted(BatchReconciler):
    def situation(self, observed: Observed) -> BatchSituation:
        failures = [when_ended(pod) for pod in observed.pods if has_failed(pod, waits_for_end=True)]
        if not failures:
            return super().situation(observed)
        pods = tuple(pod for pod in observed.pods if is_active(pod) or when_ended(pod) >= max(failures))
        situation = super().situation(dataclasses.replace(observed, pods=pods))
        uids = {pod["metadata"]["uid"] for pod in pods}
        kept = {
            key: entry
            for key, entry in situation.ledger.replicas.items()
            if not key.startswith(SUCCEEDED) or entry.pod_uid in uids
        }
        return dataclasses.replace(situation, ledger=RestartLedger(replicas=kept))


@batch_variant(
    "batch-index-lost-on-restart", "Tells the first pod of an index its JOB_COMPLETION_INDEX, and its replacement none."
)
class IndexLostOnRestart(BatchReconciler):
    def pod(self, situation: BatchSituation, index: int | None) -> Thing:
        pod = super().pod(situation, index)
        if index is None or index not in map(completion_index, situation.pods):
            return pod
        containers = [
            {**one, "env": [entry for entry in one["env"] if entry["name"] != "JOB_COMPLETION_INDEX"]}
            for one in pod["spec"]["containers"]
        ]
        return {**pod, "spec": {**pod["spec"], "containers": containers}}


@batch_variant(
    "batch-pods-never-restart", "Gives every pod restartPolicy Never, and makes up for what a kubelet would restart."
)
class PodsNeverRestart(_SeesOtherwise):
    def seen(self, observed: Observed) -> Mapping[str, Any]:
        template = observed.job["spec"]["template"]
        return {"template": {**template, "spec": {**template["spec"], "restartPolicy": "Never"}}}


# ---- limits ----------------------------------------------------------------------------------------------------------


@batch_variant("batch-backoff-ignored", "Accepts backoffLimit and tries again for ever.")
class BackoffIgnored(_SeesOtherwise):
    def seen(self, observed: Observed) -> Mapping[str, Any]:  # noqa: ARG002
        return {"backoffLimit": _UNLIMITED}


@batch_variant(
    "batch-timers-lost",
    "Loses its timers, so that deadline and time to live wait for an event, as the deadline did in Kubernetes 1.24.0"
    " (kubernetes/kubernetes issue 110239).",
)
class TimersLost(BatchReconciler):
    def reconcile(self, kind: Kind, observed: Observed) -> Plan:
        plan = super().reconcile(kind, observed)
        is_timer = plan.wake_at is not None and plan.wake_at > observed.now
        return dataclasses.replace(plan, wake_at=None) if is_timer else plan


@batch_variant(
    "batch-finished-job-removed", "Takes a Job without a time to live for one whose time is over at its end."
)
class FinishedJobRemoved(_SeesOtherwise):
    def seen(self, observed: Observed) -> Mapping[str, Any]:
        return {"ttlSecondsAfterFinished": observed.job["spec"].get("ttlSecondsAfterFinished") or 0}


# ---- success ---------------------------------------------------------------------------------------------------------


@batch_variant(
    "batch-one-success-more", "Compares with > where >= is meant: runs a pod more than completions asks for."
)
class OneSuccessMore(_SeesOtherwise):
    def seen(self, observed: Observed) -> Mapping[str, Any]:
        return {"completions": observed.job["spec"]["completions"] + 1}


@batch_variant("batch-one-success-less", "Ends a Job as complete when all of its pods but one have succeeded.")
class OneSuccessLess(BatchReconciler):
    def is_done(self, situation: BatchSituation) -> bool:
        return situation.succeeded >= max(1, int(situation.spec["completions"]) - 1)


# ---- owner -----------------------------------------------------------------------------------------------------------


@batch_variant("batch-owner-missing", "Finds its pods by label and sets no owner, so that they outlive the Job.")
class OwnerMissing(BatchReconciler):
    _label: ClassVar[str] = "batch.kubernetes.io/controller-uid"

    def pod(self, situation: BatchSituation, index: int | None) -> Thing:
        pod = super().pod(situation, index)
        owned = {key: value for key, value in pod["metadata"].items() if key != "ownerReferences"}
        return {**pod, "metadata": owned}

    def owns(self, job: Thing, pod: Thing) -> bool:
        return bool((pod["metadata"].get("labels") or {}).get(self._label) == job["metadata"]["uid"])


# ---- the end ---------------------------------------------------------------------------------------------------------


@batch_variant(
    "batch-pod-after-the-end", "Replaces a failed pod once its back-off is over, even if the Job has ended by then."
)
class PodAfterTheEnd(BatchReconciler):
    def reconcile(self, kind: Kind, observed: Observed) -> Plan:
        plan = super().reconcile(kind, observed)
        if condition(plan.status, "Failed") is None or plan.status != observed.job.get("status"):
            return plan
        situation = self.situation(observed)
        failed = next((pod for pod in situation.pods if has_failed(pod, waits_for_end=True)), None)
        if failed is None or len(situation.pods) > situation.spec["completions"]:
            return plan
        return dataclasses.replace(plan, actions=(Create(manifest=self.pod(situation, completion_index(failed))),))

    def admits_pods(self, status: Thing) -> bool:  # noqa: ARG002
        return True


@batch_variant("batch-end-rewritten", "Writes the time of the end anew when it looks again at a Job that has ended.")
class EndRewritten(BatchReconciler):
    def reconcile(self, kind: Kind, observed: Observed) -> Plan:
        plan = super().reconcile(kind, observed)
        end = condition(observed.job.get("status") or {}, *_ENDS)
        if end is None or end["lastTransitionTime"] != end["lastProbeTime"]:
            return plan
        due = parse_timestamp(end["lastProbeTime"]) + timedelta(seconds=2)
        if observed.now < due:
            return dataclasses.replace(plan, wake_at=due)
        conditions = [
            {**one, "lastTransitionTime": timestamp(observed.now)} if one["type"] in _ENDS else one
            for one in plan.status["conditions"]
        ]
        return dataclasses.replace(plan, status={**plan.status, "conditions": conditions})


@batch_variant(
    "batch-panics-after-failure",
    "Takes for granted that a Job that has ended has a completionTime, and the whole operator dies of one that failed"
    " (juicedata/juicefs-csi-driver pull request 913).",
)
class PanicsAfterFailure(BatchReconciler):
    def reconcile(self, kind: Kind, observed: Observed) -> Plan:
        status = observed.job.get("status") or {}
        if condition(status, *_ENDS) and "completionTime" not in status:
            raise Panic("a Job has ended and has no completionTime")
        return super().reconcile(kind, observed)


# ---- right and slow --------------------------------------------------------------------------------------------------


def _everything(job: Thing, plan: Plan) -> Plan:
    """Holds back everything; what a Job's plan wants looked at again at once, too."""
    held = nothing(job, plan)
    return plan if held == plan else dataclasses.replace(held, wake_at=None)


register(
    Variant(
        name="batch-slow-within-bounds",
        sentence=f"Waits {WITHIN:.0f} s before it does anything for a Job; no fault.",
        kinds=BATCH_KINDS,
        slowness=Slowness(seconds=WITHIN, early=_everything),
    )
)


@batch_variant(
    "batch-slow-beyond-restart", "Backs off for longer than the bound for a restart after the first failure."
)
class SlowBeyondRestart(BatchReconciler):
    def __init__(self, *, backoff: float) -> None:
        super().__init__(backoff=max(backoff, BEYOND))
