"""Faults in the conditions: what a job says of itself, when, and what else it says at the same time."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from exitcode_reference_controller.job import Job
from exitcode_reference_controller.kinds import JobKind
from exitcode_reference_controller.mutants.registry import variant
from exitcode_reference_controller.plan import Announcement, Observed, Plan
from exitcode_reference_controller.reconcile import Reconciler, Situation
from exitcode_reference_controller.standing import Replica, Standing
from exitcode_reference_controller.status import TERMINAL, Draft, timestamp


@variant(
    "created-never-said", "Begins with the pods and never says Created, as a controller without an add handler does."
)
class CreatedNeverSaid(Reconciler):
    def begin(self, draft: Draft, job_name: str) -> None:  # noqa: ARG002
        draft.status.setdefault("startTime", timestamp(draft.now))


@variant("running-never-said", "Never says Running, since it waits for a readiness that no container reports.")
class RunningNeverSaid(Reconciler):
    def is_running(self, replicas: Iterable[Replica]) -> bool:  # noqa: ARG002
        return False


@variant("restarting-never-shown", "Restarts in silence: the job says Running all the time.")
class RestartingNeverShown(Reconciler):
    def say(self, draft: Draft, condition_type: str, message: str) -> None:
        if condition_type != "Restarting":
            super().say(draft, condition_type, message)


@variant("restarting-for-good", "Says Restarting until the job ends, since nobody says Running once more.")
class RestartingForGood(Reconciler):
    def say(self, draft: Draft, condition_type: str, message: str) -> None:
        if not (condition_type == "Running" and draft.says("Restarting")):
            super().say(draft, condition_type, message)


@variant(
    "permanent-says-restarting",
    "Says Restarting for every failure under ExitCode, so that a permanent one leaves the job Restarting for ever"
    " (kubeflow/trainer issue 2044).",
)
class PermanentSaysRestarting(Reconciler):
    def advance(self, draft: Draft, situation: Situation) -> Plan:
        plan = super().advance(draft, situation)
        held = situation.standing(Standing.FAILED)
        if not self.has_ended(plan.status) and any(r.spec.restart_policy == "ExitCode" for r in held):
            self.say(draft, "Restarting", f"{draft.kind_name} {situation.job.name} is restarting.")
        return plan

    def fatal(self, situation: Situation) -> tuple[Replica, ...]:
        return tuple(r for r in super().fatal(situation) if r.spec.restart_policy != "ExitCode")


@variant(
    "kubelet-restart-says-restarting",
    "Says Restarting once a container was restarted in place, and does not come back.",
)
class KubeletRestartSaysRestarting(Reconciler):
    def advance(self, draft: Draft, situation: Situation) -> Plan:
        plan = super().advance(draft, situation)
        if self.kubelet_restarts(situation.replicas) and not self.has_ended(plan.status):
            self.say(draft, "Restarting", f"{draft.kind_name} {situation.job.name} is restarting.")
        return plan

    def is_running(self, replicas: Iterable[Replica]) -> bool:
        known = tuple(replicas)
        return not self.kubelet_restarts(known) and super().is_running(known)


# ---- what is said together -------------------------------------------------------------------------------------------


@variant(
    "running-beside-restarting", "Adds Restarting and leaves Running True, as one that only ever appends conditions."
)
class RunningBesideRestarting(Reconciler):
    def retract(self, draft: Draft, becoming: str) -> None:
        if becoming != "Restarting":
            super().retract(draft, becoming)


@variant("restarting-beside-failed", "Takes Running back when the job ends and forgets Restarting.")
class RestartingBesideFailed(Reconciler):
    def retract(self, draft: Draft, becoming: str) -> None:
        if becoming not in TERMINAL or not draft.says("Restarting"):
            super().retract(draft, becoming)


@variant(
    "running-beside-terminal", "Adds Succeeded or Failed and leaves Running True, so that both states are the job's."
)
class RunningBesideTerminal(Reconciler):
    def retract(self, draft: Draft, becoming: str) -> None:
        if becoming not in TERMINAL or not draft.says("Running"):
            super().retract(draft, becoming)


@variant(
    "failed-then-running",
    "Says Running after Failed as long as a sibling runs, since an ended job is looked at like any.",
)
class FailedThenRunning(Reconciler):
    def settle(self, draft: Draft, situation: Situation, said: tuple[Announcement, ...]) -> Plan:
        plan = super().settle(draft, situation, said)
        ended_before = self.has_ended(situation.observed.job.get("status") or {})
        if ended_before and draft.says("Failed") and situation.standing(Standing.RUNNING):
            self.say(draft, "Running", f"{draft.kind_name} {situation.job.name} is running.")
        return plan


@variant("failed-becomes-succeeded", "Lets a late success of the deciding replica turn Failed into Succeeded.")
class FailedBecomesSucceeded(Reconciler):
    def settle(self, draft: Draft, situation: Situation, said: tuple[Announcement, ...]) -> Plan:
        plan = super().settle(draft, situation, said)
        if draft.says("Failed") and self.is_successful(situation):
            draft.status["conditions"] = [c for c in draft.conditions if c["type"] != "Failed"]
            self.say(draft, "Succeeded", f"{draft.kind_name} {situation.job.name} successfully completed.")
        return plan


@variant(
    "succeeded-and-failed", "Says Succeeded beside Failed when the deciding replica ends well after another failed."
)
class SucceededAndFailed(Reconciler):
    def settle(self, draft: Draft, situation: Situation, said: tuple[Announcement, ...]) -> Plan:
        plan = super().settle(draft, situation, said)
        if draft.says("Failed") and self.is_successful(situation):
            self.say(draft, "Succeeded", f"{draft.kind_name} {situation.job.name} successfully completed.")
        elif draft.says("Succeeded") and self.fatal(situation):
            self.say(draft, "Failed", f"{draft.kind_name} {situation.job.name} has failed.")
        return plan


# ---- how a condition is written --------------------------------------------------------------------------------------


@variant("newest-condition-first", "Puts the newest condition first, so that the STATE column shows the oldest one.")
class NewestConditionFirst(Reconciler):
    def say(self, draft: Draft, condition_type: str, message: str) -> None:
        if not draft.says(condition_type):
            super().say(draft, condition_type, message)
            draft.status["conditions"] = [draft.conditions[-1], *draft.conditions[:-1]]

    def ending(self, draft: Draft, observed: Any) -> Announcement:
        turned = Draft(kind_name=draft.kind_name, now=draft.now, status={"conditions": draft.conditions[::-1]})
        return super().ending(turned, observed)


@variant(
    "transition-time-kept",
    "Sets Running to False at the end and leaves its lastTransitionTime as it was.",
)
class TransitionTimeKept(Reconciler):
    def retract(self, draft: Draft, becoming: str) -> None:
        times = {c["type"]: c["lastTransitionTime"] for c in draft.conditions}
        super().retract(draft, becoming)
        for condition in draft.conditions:
            condition["lastTransitionTime"] = times[condition["type"]]


@variant("condition-repeated", "Appends a condition again each time it becomes True, as a log and not as a state.")
class ConditionRepeated(Reconciler):
    def retract(self, draft: Draft, becoming: str) -> None:
        if becoming in TERMINAL:
            super().retract(draft, becoming)
            return
        for condition in draft.conditions:
            if condition["type"] in ("Running", "Restarting") and condition["status"] == "True":
                condition["status"] = "False"
                condition["lastUpdateTime"] = condition["lastTransitionTime"] = timestamp(draft.now)

    def say(self, draft: Draft, condition_type: str, message: str) -> None:
        earlier = [] if draft.says(condition_type) else [c for c in draft.conditions if c["type"] == condition_type]
        super().say(draft, condition_type, message)
        draft.status["conditions"] = [*earlier, *draft.conditions]


# ---- the counts ------------------------------------------------------------------------------------------------------


@variant(
    "replica-statuses-stale", "Writes replicaStatuses only when a condition changes, so that they lag behind the pods."
)
class ReplicaStatusesStale(Reconciler):
    def reconcile(self, kind: JobKind, observed: Observed) -> Plan:
        plan = super().reconcile(kind, observed)
        before = observed.job.get("status") or {}
        if "replicaStatuses" not in before or plan.status.get("conditions") != before.get("conditions"):
            return plan
        return dataclasses.replace(plan, status={**plan.status, "replicaStatuses": before["replicaStatuses"]})


@variant("replica-statuses-doubled", "Adds to the counts of the last pass in place of beginning at zero.")
class ReplicaStatusesDoubled(Reconciler):
    def count(self, draft: Draft, job: Job, replicas: Iterable[Replica], *, ended: bool) -> None:
        super().count(draft, job, replicas, ended=ended)
        counts: Mapping[str, dict[str, Any]] = draft.status["replicaStatuses"]
        for count in counts.values():
            for field in ("active", "succeeded", "failed"):
                count[field] *= 2  # a sum over every pass would never come to rest


@variant(
    "succeeded-count-falls", "Counts only the pods that are still there, so that cleaning up takes successes back."
)
class SucceededCountFalls(Reconciler):
    def count(self, draft: Draft, job: Job, replicas: Iterable[Replica], *, ended: bool) -> None:  # noqa: ARG002
        super().count(draft, job, replicas, ended=False)
