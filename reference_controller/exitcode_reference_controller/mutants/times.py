"""Faults in startTime and completionTime."""

from exitcode_reference_controller.mutants.registry import variant
from exitcode_reference_controller.plan import Announcement, Plan
from exitcode_reference_controller.reconcile import Reconciler, Situation
from exitcode_reference_controller.standing import Standing
from exitcode_reference_controller.status import Draft, timestamp


@variant("completion-time-missing", "Sets completionTime for Succeeded only, so that a failed job never has one.")
class CompletionTimeMissing(Reconciler):
    def end(self, draft: Draft, condition_type: str, message: str) -> None:
        super().end(draft, condition_type, message)
        if condition_type == "Failed":
            del draft.status["completionTime"]


@variant("completion-time-early", "Sets completionTime when the first replica has completed, while the job goes on.")
class CompletionTimeEarly(Reconciler):
    def advance(self, draft: Draft, situation: Situation) -> Plan:
        if situation.standing(Standing.SUCCEEDED):
            draft.status.setdefault("completionTime", timestamp(draft.now))
        return super().advance(draft, situation)


@variant("completion-time-rewritten", "Sets completionTime anew whenever the counts of an ended job change.")
class CompletionTimeRewritten(Reconciler):
    def settle(self, draft: Draft, situation: Situation, said: tuple[Announcement, ...]) -> Plan:
        plan = super().settle(draft, situation, said)
        before = situation.observed.job.get("status") or {}
        if self.has_ended(before) and before.get("replicaStatuses") != draft.status["replicaStatuses"]:
            draft.status["completionTime"] = timestamp(draft.now)
        return plan


@variant("start-time-rewritten", "Sets startTime anew at each restart, which also moves the deadline.")
class StartTimeRewritten(Reconciler):
    def advance(self, draft: Draft, situation: Situation) -> Plan:
        if self.victims(situation):
            draft.status["startTime"] = timestamp(draft.now)
        return super().advance(draft, situation)
