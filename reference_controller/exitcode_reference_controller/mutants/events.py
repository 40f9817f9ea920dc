"""Faults in what is announced."""

import dataclasses
from collections.abc import Iterable
from datetime import timedelta

from exitcode_reference_controller.kinds import JobKind
from exitcode_reference_controller.mutants.registry import variant
from exitcode_reference_controller.plan import Announcement, Create, Observed, Plan
from exitcode_reference_controller.reconcile import Reconciler, Situation

_AGAIN = timedelta(milliseconds=500)


@variant("event-storm", "Records an event at each pass, and looks at every job again and again, ended ones too.")
class EventStorm(Reconciler):
    def reconcile(self, kind: JobKind, observed: Observed) -> Plan:
        plan = super().reconcile(kind, observed)
        said = Announcement(
            type="Normal",
            reason="Reconciled",
            message=f"{kind.name} {observed.job['metadata']['name']} was reconciled.",
            key=observed.now.isoformat(),
        )
        again = observed.now + _AGAIN
        return dataclasses.replace(
            plan,
            announcements=(*plan.announcements, said),
            wake_at=again if plan.wake_at is None else min(plan.wake_at, again),
        )


@variant("exit-event-missing", "Says nowhere which code a pod ended with.")
class ExitEventMissing(Reconciler):
    def exits(self, situation: Situation) -> Iterable[Announcement]:  # noqa: ARG002
        return ()


@variant("exit-event-without-code", "Tells that a pod has ended, and not with which code.")
class ExitEventWithoutCode(Reconciler):
    def exits(self, situation: Situation) -> Iterable[Announcement]:
        for said in super().exits(situation):
            yield dataclasses.replace(said, message=said.message.partition(" exited")[0] + " exited")


@variant("pod-events-missing", "Creates and deletes pods and services without an event of it.")
class PodEventsMissing(Reconciler):
    def is_told(self, reason: str) -> bool:
        return not reason.startswith("Successful")


@variant("restart-event-missing", "Begins a restart without a warning.")
class RestartEventMissing(Reconciler):
    def reconcile(self, kind: JobKind, observed: Observed) -> Plan:
        plan = super().reconcile(kind, observed)
        said = tuple(entry for entry in plan.announcements if entry.reason != f"{kind.name}Restarting")
        return dataclasses.replace(plan, announcements=said)


@variant("template-policy-event-missing", "Overwrites the template's restartPolicy without saying so.")
class TemplatePolicyEventMissing(Reconciler):
    def overruled(self, situation: Situation, creations: Iterable[Create]) -> Iterable[Announcement]:  # noqa: ARG002
        return ()
