"""What ends a job, or removes it, that no exit code asks for: backoffLimit, activeDeadlineSeconds, TTL.

backoffLimit bounds two things that are counted apart. Restarts in place are the kubelet's and cannot be
prevented: the job fails once their sum over the pods of Always and OnFailure replicas reaches the limit (with
limit 0, at the first). Restarts of ExitCode replicas are the controller's own: as many as the limit are made,
and the failure that would need one more fails the job.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from exitcode_reference_controller.job import Job
from exitcode_reference_controller.ledger import RestartLedger
from exitcode_reference_controller.standing import Replica
from exitcode_reference_controller.status import parse_timestamp

_RESOLUTION = timedelta(seconds=1)
"""Times in a status are cut to whole seconds; a bound that is waited out this much longer is never cut
short."""


class Limits:
    """The rules of runPolicy's bounds."""

    def kubelet_limit_reached(self, job: Job, replicas: Iterable[Replica]) -> bool:
        """Whether restarts in place have used the backoffLimit up."""
        limit = job.run_policy.backoff_limit
        return limit is not None and self.kubelet_restarts(replicas) >= max(limit, 1)

    def kubelet_restarts(self, replicas: Iterable[Replica]) -> int:
        """Restarts in place, of all containers of all pods."""
        return sum(
            status.get("restartCount", 0)
            for replica in replicas
            if replica.pod is not None and replica.spec.restart_policy in ("Always", "OnFailure")
            for status in replica.pod.get("status", {}).get("containerStatuses") or []
        )

    def restarts_exhausted(self, job: Job, ledger: RestartLedger) -> bool:
        """Whether the restarts that the ledger counts, those now intended among them, are more than
        allowed."""
        limit = job.run_policy.backoff_limit
        return limit is not None and ledger.total > limit

    def deadline(self, job: Job, status: Mapping[str, Any]) -> datetime | None:
        """When the job has to be ended, None if it may run for ever."""
        bound = job.run_policy.active_deadline
        if bound is None or "startTime" not in status:
            return None
        return parse_timestamp(status["startTime"]) + timedelta(seconds=bound) + _RESOLUTION

    def expiry(self, job: Job, status: Mapping[str, Any]) -> datetime | None:
        """When a finished job has to be deleted, None if it stays."""
        bound = job.run_policy.ttl_after_finished
        if bound is None or "completionTime" not in status:
            return None
        return parse_timestamp(status["completionTime"]) + timedelta(seconds=bound) + _RESOLUTION
