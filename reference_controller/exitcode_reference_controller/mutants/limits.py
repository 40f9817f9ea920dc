"""Faults in backoffLimit, activeDeadlineSeconds and ttlSecondsAfterFinished."""

import dataclasses
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from exitcode_reference_controller.job import Job
from exitcode_reference_controller.ledger import RestartLedger
from exitcode_reference_controller.mutants.registry import variant
from exitcode_reference_controller.plan import Announcement, Observed, Plan
from exitcode_reference_controller.reconcile import Reconciler, Situation
from exitcode_reference_controller.standing import Replica
from exitcode_reference_controller.status import Draft


@variant(
    "backoff-ignores-exit-code",
    "Counts restartCount only, which a new pod begins at 0: no limit under ExitCode (kubeflow/common"
    " issue 167, kubeflow/trainer issue 2045).",
)
class BackoffIgnoresExitCode(Reconciler):
    def restarts_exhausted(self, job: Job, ledger: RestartLedger) -> bool:  # noqa: ARG002
        return False


@variant("backoff-ignores-kubelet", "Counts its own restarts only, so that a container may crash for ever in place.")
class BackoffIgnoresKubelet(Reconciler):
    def kubelet_limit_reached(self, job: Job, replicas: Iterable[Replica]) -> bool:  # noqa: ARG002
        return False


@variant(
    "backoff-off-by-one", "Compares with >= where > is meant, or the other way round: one restart more than allowed."
)
class BackoffOffByOne(Reconciler):
    def restarts_exhausted(self, job: Job, ledger: RestartLedger) -> bool:
        limit = job.run_policy.backoff_limit
        return limit is not None and ledger.total > limit + 1

    def kubelet_limit_reached(self, job: Job, replicas: Iterable[Replica]) -> bool:
        limit = job.run_policy.backoff_limit
        return limit is not None and self.kubelet_restarts(replicas) >= max(limit, 1) + 1


@variant(
    "backoff-per-pod",
    "Holds the limit against each replica alone, so that a job of n replicas restarts n times as often.",
)
class BackoffPerPod(Reconciler):
    def restarts_exhausted(self, job: Job, ledger: RestartLedger) -> bool:
        limit = job.run_policy.backoff_limit
        return limit is not None and any(restarts.count > limit for restarts in ledger.replicas.values())

    def kubelet_limit_reached(self, job: Job, replicas: Iterable[Replica]) -> bool:
        return any(super(BackoffPerPod, self).kubelet_limit_reached(job, (replica,)) for replica in replicas)


@variant(
    "backoff-forgotten",
    "Keeps the count in memory, as kubeflow/common keeps it in its work queue: a restart of the operator forgets it.",
)
class BackoffForgotten(Reconciler):
    def __init__(self) -> None:
        self._ledgers: dict[str, RestartLedger] = {}

    def ledger(self, observed: Observed) -> RestartLedger:
        return self._ledgers.get(observed.job["metadata"]["uid"], RestartLedger())

    def ledger_to_write(self, situation: Situation, ledger: RestartLedger) -> RestartLedger | None:
        self._ledgers[situation.job.uid] = ledger
        return None


@variant("backoff-by-default", "Applies a limit of its own, one restart, to jobs that set none.")
class BackoffByDefault(Reconciler):
    def restarts_exhausted(self, job: Job, ledger: RestartLedger) -> bool:
        unlimited = job.run_policy.backoff_limit is None
        return ledger.total > 1 if unlimited else super().restarts_exhausted(job, ledger)


@variant("deadline-on-events-only", "Looks at the deadline whenever something happens, and sets no timer for it.")
class DeadlineOnEventsOnly(Reconciler):
    def advance(self, draft: Draft, situation: Situation) -> Plan:
        plan = super().advance(draft, situation)
        return plan if self.has_ended(plan.status) else dataclasses.replace(plan, wake_at=None)


@variant("deadline-ignored", "Accepts activeDeadlineSeconds and does nothing about it.")
class DeadlineIgnored(Reconciler):
    def deadline(self, job: Job, status: Mapping[str, Any]) -> datetime | None:  # noqa: ARG002
        return None


@variant("ttl-never", "Accepts ttlSecondsAfterFinished and never removes the job.")
class TtlNever(Reconciler):
    def expiry(self, job: Job, status: Mapping[str, Any]) -> datetime | None:  # noqa: ARG002
        return None


@variant(
    "ttl-on-events-only",
    "Puts the TTL's timer into a queue that nobody empties, so that the job stays until it is touched"
    " (the training operator after its move to controller-runtime, kubeflow/trainer issue 1533).",
)
class TtlOnEventsOnly(Reconciler):
    def settle(self, draft: Draft, situation: Situation, said: tuple[Announcement, ...]) -> Plan:
        return dataclasses.replace(super().settle(draft, situation, said), wake_at=None)
