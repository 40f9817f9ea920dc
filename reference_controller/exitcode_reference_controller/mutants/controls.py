"""The subjects by which the suite itself is controlled: one that is right, one that does nothing, one that always
restarts."""

from exitcode_reference_controller.job import Job, ReplicaSpec
from exitcode_reference_controller.kinds import JobKind
from exitcode_reference_controller.mutants.registry import BATCH_KINDS, TRAINING_KINDS, Variant, register, variant
from exitcode_reference_controller.plan import Observed, Plan
from exitcode_reference_controller.reconcile import Reconciler

register(Variant(name="reference", sentence="The reference behaviour.", kinds=(*TRAINING_KINDS, *BATCH_KINDS)))


@variant("null", "Watches, and does nothing at all.")
class DoesNothing(Reconciler):
    """The control subject that no requirement may pass on by accident."""

    def reconcile(self, kind: JobKind, observed: Observed) -> Plan:  # noqa: ARG002
        """Wants nothing done."""
        return Plan(status=observed.job.get("status") or {})


@variant("always-restart", "Replaces every failed pod, whatever its exit code and whatever its replica's policy.")
class AlwaysRestarts(Reconciler):
    """The control subject to which every exit code is retryable."""

    def is_restarted(self, job: Job, spec: ReplicaSpec, code: int | None) -> bool:  # noqa: ARG002
        """Yes."""
        return True
