"""Faults in what makes a job succeed."""

from exitcode_reference_controller.mutants.registry import variant
from exitcode_reference_controller.reconcile import Reconciler, Situation
from exitcode_reference_controller.standing import Replica, Standing


def _workers(situation: Situation) -> tuple[Replica, ...]:
    return tuple(replica for replica in situation.replicas if replica.spec.type == "Worker")


@variant("any-worker-succeeds", "Lets the first worker that completes decide, whichever it is.")
class AnyWorkerSucceeds(Reconciler):
    def is_successful(self, situation: Situation) -> bool:
        if situation.job.leaders:
            return super().is_successful(situation)
        return any(replica.standing is Standing.SUCCEEDED for replica in _workers(situation))


@variant("leader-ignored", "Lets the workers decide although there is a chief or master.")
class LeaderIgnored(Reconciler):
    def deciding(self, situation: Situation) -> tuple[Replica, ...]:
        return _workers(situation) or super().deciding(situation)


@variant(
    "everybody-has-to-complete", "Waits for all replicas, so that a parameter server that runs on holds the job up."
)
class EverybodyHasToComplete(Reconciler):
    def deciding(self, situation: Situation) -> tuple[Replica, ...]:
        servers = (replica for replica in situation.replicas if replica.spec.type == "PS")
        return (*super().deciding(situation), *servers)


@variant("parameter-server-ends-job", "Takes a parameter server that exits 0 for the end of the training.")
class ParameterServerEndsJob(Reconciler):
    def is_successful(self, situation: Situation) -> bool:
        done = (r.spec.type for r in situation.standing(Standing.SUCCEEDED))
        return "PS" in done or super().is_successful(situation)


@variant("success-policy-ignored", "Does not know successPolicy AllWorkers: worker 0 always decides.")
class SuccessPolicyIgnored(Reconciler):
    def deciding(self, situation: Situation) -> tuple[Replica, ...]:
        return _workers(situation)[:1] if situation.job.all_workers else super().deciding(situation)


@variant(
    "first-worker-never-enough", "Waits for all workers of a TFJob though its default policy asks for worker 0 only."
)
class FirstWorkerNeverEnough(Reconciler):
    def deciding(self, situation: Situation) -> tuple[Replica, ...]:
        return super().deciding(situation) if situation.job.leaders else _workers(situation)
