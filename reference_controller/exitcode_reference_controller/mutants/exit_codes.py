"""Faults in what an exit code means: single codes, ranges, the wrong container, and what should play no part."""

import dataclasses
import zlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar

from exitcode_reference_controller.job import Job, ReplicaSpec
from exitcode_reference_controller.ledger import RestartLedger
from exitcode_reference_controller.mutants.registry import variant
from exitcode_reference_controller.plan import Plan, Thing
from exitcode_reference_controller.reconcile import Reconciler, Situation
from exitcode_reference_controller.standing import Replica, Standing
from exitcode_reference_controller.status import Draft


class _Reclassifies(Reconciler):
    """Some codes have another class than the contract gives them."""

    retried: ClassVar[Mapping[int, bool]]

    def is_retryable(self, code: int) -> bool:
        return self.retried.get(code, super().is_retryable(code))


@variant("general-error-retried", "Takes exit code 1 for a passing fault, as a back-off that retries any error does.")
class GeneralErrorRetried(_Reclassifies):
    retried = {1: True}


@variant("not-found-retried", "Retries 127, as if the missing command could still arrive in the image.")
class NotFoundRetried(_Reclassifies):
    retried = {127: True}


@variant("exit-argument-retried", "Counts 128 among the signals: the range of the Go API type's comment, 128 to 255.")
class ExitArgumentRetried(_Reclassifies):
    retried = {128: True}


@variant("segfault-retried", "Retries 139, since every code of a signal is put down to the infrastructure.")
class SegfaultRetried(_Reclassifies):
    retried = {139: True}


@variant("sigkill-permanent", "Takes 137 for the job's own excess of memory, and gives up.")
class SigkillPermanent(_Reclassifies):
    retried = {137: False}


@variant("sigterm-permanent", "Takes 143 for a wish to stop, so that a drained node ends the job.")
class SigtermPermanent(_Reclassifies):
    retried = {143: False}


@variant("sigint-permanent", "Takes 130 for a person's Ctrl-C, and gives up.")
class SigintPermanent(_Reclassifies):
    retried = {130: False}


@variant("user-code-permanent", "Forgets the user's own retryable code 138, as a table of infrastructure signals does.")
class UserCodePermanent(_Reclassifies):
    retried = {138: False}


@variant(
    "class-by-range", "Retries every code from 128 up: the Go API type's comment in place of the documented table."
)
class ClassByRange(Reconciler):
    def is_retryable(self, code: int) -> bool:
        return code >= 128


@variant("half-rolled-out", "A new table, by which signals are permanent, is rolled out to half the jobs by name.")
class HalfRolledOut(Reconciler):
    def is_restarted(self, job: Job, spec: ReplicaSpec, code: int | None) -> bool:
        chosen = zlib.crc32(job.name.encode()) % 2 == 0
        return super().is_restarted(job, spec, code) and not (chosen and spec.restart_policy == "ExitCode")


@variant(
    "only-workers-retried", "Knows exit codes for workers only, so that a lost leader or parameter server is final."
)
class OnlyWorkersRetried(Reconciler):
    def is_restarted(self, job: Job, spec: ReplicaSpec, code: int | None) -> bool:
        other = spec.restart_policy == "ExitCode" and spec.type != "Worker"
        return not other and super().is_restarted(job, spec, code)


@variant(
    "kinds-disagree", "Each kind's controller has a copy of the table, and the PyTorchJob's one was never changed."
)
class KindsDisagree(Reconciler):
    def is_restarted(self, job: Job, spec: ReplicaSpec, code: int | None) -> bool:
        if job.kind.name == "PyTorchJob" and spec.restart_policy == "ExitCode":
            return code is not None and code >= 128
        return super().is_restarted(job, spec, code)


# ---- whose code ------------------------------------------------------------------------------------------------------


def _code(status: Mapping[str, Any]) -> int | None:
    terminated = (status.get("state") or {}).get("terminated")
    return int(terminated["exitCode"]) if terminated else None


def _statuses(pod: Thing) -> list[Mapping[str, Any]]:
    return pod.get("status", {}).get("containerStatuses") or []


@variant(
    "first-container-decides",
    "Reads containerStatuses[0], which is the training container until a sidecar sorts first.",
)
class FirstContainerDecides(Reconciler):
    def training_code(self, job: Job, pod: Thing) -> int | None:  # noqa: ARG002
        return next((_code(status) for status in _statuses(pod)), None)


@variant("any-container-decides", "Takes the worst code of all containers, so that a sidecar's crash decides.")
class AnyContainerDecides(Reconciler):
    def training_code(self, job: Job, pod: Thing) -> int | None:  # noqa: ARG002
        return max((code for status in _statuses(pod) if (code := _code(status)) is not None), default=None)


@variant("termination-message-decides", "Takes a termination message for the program's own verdict, which is final.")
class TerminationMessageDecides(Reconciler):
    def training_code(self, job: Job, pod: Thing) -> int | None:
        for status in _statuses(pod):
            terminated = (status.get("state") or {}).get("terminated") or {}
            if status.get("name") == job.kind.container and terminated.get("message"):
                return 1
        return super().training_code(job, pod)


class Panic(BaseException):
    """What ends the whole process, as an unrecovered panic does in Go."""


@variant("panics-without-code", "Reads the state of a container that never began, and the whole operator dies of it.")
class PanicsWithoutCode(Reconciler):
    def training_code(self, job: Job, pod: Thing) -> int | None:
        code = super().training_code(job, pod)
        if code is None and pod.get("status", {}).get("phase") == "Failed":
            raise Panic("the state of a container that never began")
        return code


# ---- which others play a part ----------------------------------------------------------------------------------------


class _FailsOnRetryable(Reconciler):
    """Some retryable failures fail the job."""

    def fatal(self, situation: Situation) -> tuple[Replica, ...]:
        more = tuple(r for r in situation.standing(Standing.RETRYABLE) if self.is_final(situation, r))
        return (*super().fatal(situation), *more)

    def is_final(self, situation: Situation, replica: Replica) -> bool:
        raise NotImplementedError


@variant(
    "running-sibling-fails-job",
    "Fails the job on a retryable code while a sibling runs, since Running hides that a restart is under way"
    " (kubeflow/trainer issue 1560 suspects it).",
)
class RunningSiblingFailsJob(_FailsOnRetryable):
    def is_final(self, situation: Situation, replica: Replica) -> bool:  # noqa: ARG002
        return bool(situation.standing(Standing.RUNNING))


@variant("completed-sibling-fails-job", "Thinks no restart worth it once a sibling has succeeded, and fails the job.")
class CompletedSiblingFailsJob(_FailsOnRetryable):
    def is_final(self, situation: Situation, replica: Replica) -> bool:  # noqa: ARG002
        return bool(situation.standing(Standing.SUCCEEDED))


@variant("second-retry-fails", "Restarts a replica once; a second retryable failure of it is taken for permanent.")
class SecondRetryFails(_FailsOnRetryable):
    def is_final(self, situation: Situation, replica: Replica) -> bool:
        ledger = situation.ledger
        return replica.key in ledger.replicas and not ledger.holds(replica.key, replica.pod_uid)


@variant(
    "restart-outweighs-failure",
    "Looks at failures of one moment together, and restarts the job if one is retryable, though another is permanent.",
)
class RestartOutweighsFailure(Reconciler):
    moment = timedelta(seconds=1)

    def __init__(self) -> None:
        self._retryable: dict[str, datetime] = {}
        self._permanent: dict[str, datetime] = {}
        """UID of a job → when a failure of this class was seen of it: the last one, and the first one."""

    def advance(self, draft: Draft, situation: Situation) -> Plan:
        if situation.standing(Standing.RETRYABLE):
            self._retryable[situation.job.uid] = draft.now
        plan = super().advance(draft, situation)
        seen = self._permanent.get(situation.job.uid)
        waits = seen is not None and draft.now < seen + self.moment
        return dataclasses.replace(plan, wake_at=seen + self.moment) if seen and waits else plan

    def failure(self, situation: Situation, intended: RestartLedger, draft: Draft) -> str | None:
        found = super().failure(situation, intended, draft)
        if found is None or not self.fatal(situation):
            return found
        seen = self._permanent.setdefault(situation.job.uid, draft.now)
        rival = self._retryable.get(situation.job.uid)
        outweighed = rival is not None and abs(rival - seen) < self.moment
        return None if outweighed or draft.now - seen < self.moment else found


@variant("success-restarted", "Replaces every ExitCode pod that has ended, code 0 included, as a ReplicaSet does.")
class SuccessRestarted(Reconciler):
    def standing(self, job: Job, spec: ReplicaSpec, pod: Thing | None) -> Standing:
        found = super().standing(job, spec, pod)
        again = found is Standing.SUCCEEDED and spec.restart_policy == "ExitCode"
        return Standing.RETRYABLE if again else found
