"""Faults in cleanPodPolicy."""

import dataclasses
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, ClassVar

from exitcode_reference_controller.job import CleanPodPolicy, Job
from exitcode_reference_controller.mutants.registry import variant
from exitcode_reference_controller.plan import Action, Announcement, Delete, DeleteJob, Plan, Thing
from exitcode_reference_controller.reconcile import Reconciler, Situation
from exitcode_reference_controller.status import Draft, parse_timestamp


def _under(situation: Situation, policy: CleanPodPolicy) -> Situation:
    """The same under another cleanPodPolicy."""
    job = situation.job
    changed = dataclasses.replace(job, run_policy=dataclasses.replace(job.run_policy, clean_pod_policy=policy))
    return dataclasses.replace(situation, job=changed)


class _CleansOtherwise(Reconciler):
    """One policy is taken for another."""

    meant: ClassVar[CleanPodPolicy]
    taken_for: ClassVar[CleanPodPolicy]

    def cleaning(self, situation: Situation) -> Iterable[Action]:
        wrong = situation.job.run_policy.clean_pod_policy == self.meant
        return super().cleaning(_under(situation, self.taken_for) if wrong else situation)


@variant("clean-none-as-all", "Takes None for no policy at all, and removes every pod.")
class CleanNoneAsAll(_CleansOtherwise):
    meant = "None"
    taken_for = "All"


@variant("clean-running-as-all", "Removes finished pods under Running too, and their logs with them.")
class CleanRunningAsAll(_CleansOtherwise):
    meant = "Running"
    taken_for = "All"


@variant("clean-running-as-none", "Leaves running pods to run on under Running, and to hold their resources.")
class CleanRunningAsNone(_CleansOtherwise):
    meant = "Running"
    taken_for = "None"


@variant("clean-all-as-running", "Leaves finished pods under All.")
class CleanAllAsRunning(_CleansOtherwise):
    meant = "All"
    taken_for = "Running"


@variant(
    "clean-default-running",
    "Takes Running for the default, as the TFJob controller did up to 1.5, though None is declared.",
)
class CleanDefaultRunning(Reconciler):
    def cleaning(self, situation: Situation) -> Iterable[Action]:
        told = (situation.observed.job["spec"].get("runPolicy") or {}).get("cleanPodPolicy")
        return super().cleaning(situation if told else _under(situation, "Running"))


@variant(
    "clean-spares-pending", "Takes Running by the letter: a pod that is still pending stays, and runs after the end."
)
class CleanSparesPending(Reconciler):
    def is_kept(self, job: Job, pod: Thing) -> bool:
        pending = pod.get("status", {}).get("phase", "Pending") == "Pending"
        return super().is_kept(job, pod) or (job.run_policy.clean_pod_policy == "Running" and pending)


@variant("clean-after-success-only", "Cleans up after success only; a failed job's pods stay, whatever the policy.")
class CleanAfterSuccessOnly(Reconciler):
    def settle(self, draft: Draft, situation: Situation, said: tuple[Announcement, ...]) -> Plan:
        plan = super().settle(draft, situation, said)
        kept = tuple(action for action in plan.actions if isinstance(action, DeleteJob))
        return dataclasses.replace(plan, actions=kept) if draft.says("Failed") else plan


@variant(
    "clean-not-after-limit", "Returns as soon as a limit or deadline has failed the job, before anything is cleaned up."
)
class CleanNotAfterLimit(Reconciler):
    def cleaning(self, situation: Situation) -> Iterable[Action]:
        return super().cleaning(situation) if self.fatal(situation) or self.is_successful(situation) else ()


@variant("services-leaked", "Removes the pods and leaves their services.")
class ServicesLeaked(Reconciler):
    def cleaning(self, situation: Situation) -> Iterable[Action]:
        return (a for a in super().cleaning(situation) if not (isinstance(a, Delete) and a.resource == "services"))


@variant("finished-job-removed", "Takes a job without a time to live for one whose time is over as soon as it ends.")
class FinishedJobRemoved(Reconciler):
    def expiry(self, job: Job, status: Mapping[str, Any]) -> datetime | None:
        finished = status.get("completionTime")
        return super().expiry(job, status) or (parse_timestamp(finished) if finished else None)
