"""What a job says of itself: the condition state machine, the counts of its replicas, and its two times.

Conditions are a list with the newest last, since that is what `kubectl get` prints as STATE. Running and
Restarting replace each other; a terminal condition is added once and leaves nothing but Created True beside
it. A condition's lastTransitionTime is the time of its last change of status, and of nothing else.
"""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from exitcode_reference_controller.identity import JOB_LABEL, OPERATOR_LABEL, TYPE_LABEL
from exitcode_reference_controller.job import Job
from exitcode_reference_controller.standing import Replica, Standing

TERMINAL = ("Succeeded", "Failed")
_ACTIVE_STATES = ("Running", "Restarting")


def timestamp(now: datetime) -> str:
    """A time as Kubernetes writes it: UTC, whole seconds, cut and not rounded."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_timestamp(text: str) -> datetime:
    """The time that `timestamp` wrote, or another RFC 3339 writer. Raises ValueError."""
    return datetime.fromisoformat(text)


@dataclass(kw_only=True)
class Draft:
    """A status that is being written: the only mutable value of the reconciliation."""

    kind_name: str
    now: datetime
    status: dict[str, Any]

    @property
    def conditions(self) -> list[dict[str, Any]]:
        """The conditions, the newest last."""
        conditions: list[dict[str, Any]] = self.status.setdefault("conditions", [])
        return conditions

    def says(self, condition_type: str) -> bool:
        """Whether a condition is True."""
        return any(c["type"] == condition_type and c["status"] == "True" for c in self.conditions)


class Statuses:
    """The rules by which a status is read and written."""

    def has_ended(self, status: Mapping[str, Any]) -> bool:
        """Whether a status says that its job has ended."""
        return any(c["type"] in TERMINAL and c["status"] == "True" for c in status.get("conditions") or [])

    def draft(self, kind_name: str, status: Mapping[str, Any], now: datetime) -> Draft:
        """A copy of the status to write on."""
        return Draft(kind_name=kind_name, now=now, status=copy.deepcopy(dict(status)))

    def say(self, draft: Draft, condition_type: str, message: str) -> None:
        """Makes a condition True and the newest; one that is True already stays as it is."""
        if draft.says(condition_type):
            return
        self.retract(draft, condition_type)
        time = timestamp(draft.now)
        others = [c for c in draft.conditions if c["type"] != condition_type]
        draft.status["conditions"] = [
            *others,
            {
                "type": condition_type,
                "status": "True",
                "reason": f"{draft.kind_name}{condition_type}",
                "message": message,
                "lastUpdateTime": time,
                "lastTransitionTime": time,
            },
        ]

    def retract(self, draft: Draft, becoming: str) -> None:
        """Takes back what cannot be said together with a condition that is about to become True."""
        if becoming in _ACTIVE_STATES:
            draft.status["conditions"] = [c for c in draft.conditions if c["type"] not in _ACTIVE_STATES]
        if becoming in TERMINAL:
            for condition in draft.conditions:
                if condition["type"] in _ACTIVE_STATES and condition["status"] == "True":
                    condition["status"] = "False"
                    condition["lastUpdateTime"] = condition["lastTransitionTime"] = timestamp(draft.now)

    def begin(self, draft: Draft, job_name: str) -> None:
        """Says Created, and when the job started; both once."""
        self.say(draft, "Created", f"{draft.kind_name} {job_name} is created.")
        draft.status.setdefault("startTime", timestamp(draft.now))

    def end(self, draft: Draft, condition_type: str, message: str) -> None:
        """Says Succeeded or Failed, and when; once."""
        self.say(draft, condition_type, message)
        draft.status.setdefault("completionTime", timestamp(draft.now))

    def is_running(self, replicas: Iterable[Replica]) -> bool:
        """Whether the job may say Running: all replicas run or have completed, and one at least runs."""
        standings = {replica.standing for replica in replicas}
        return Standing.RUNNING in standings and standings <= {Standing.RUNNING, Standing.SUCCEEDED}

    def count(self, draft: Draft, job: Job, replicas: Iterable[Replica], *, ended: bool) -> None:
        """Writes replicaStatuses. After the end a pod may be cleaned up, and its replica has completed
        nevertheless."""
        before = draft.status.get("replicaStatuses") or {}
        counts: dict[str, dict[str, Any]] = {
            spec.type: {"active": 0, "succeeded": 0, "failed": 0, "selector": self.selector(job, spec.type)}
            for spec in job.replica_specs
        }
        for replica in replicas:
            match replica.standing:
                case Standing.RUNNING:
                    counts[replica.spec.type]["active"] += 1
                case Standing.SUCCEEDED:
                    counts[replica.spec.type]["succeeded"] += 1
                case Standing.RETRYABLE | Standing.FAILED:
                    counts[replica.spec.type]["failed"] += 1
        if ended:
            for replica_type, count in counts.items():
                for ending in ("succeeded", "failed"):
                    count[ending] = max(count[ending], before.get(replica_type, {}).get(ending, 0))
        draft.status["replicaStatuses"] = counts

    def selector(self, job: Job, replica_type: str) -> str:
        """The label selector of a type's pods, as text."""
        labels = {OPERATOR_LABEL: job.kind.operator_name, JOB_LABEL: job.name, TYPE_LABEL: replica_type.lower()}
        return ",".join(f"{key}={value}" for key, value in labels.items())
