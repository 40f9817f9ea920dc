"""How a controller is slow on purpose: which part of a plan is held back, and for how long.

A delay holds up one job and nothing else: no worker waits for it, and what is done once it is over is planned anew,
so that slowness is the only difference.
"""

import dataclasses
import threading
import time
from collections.abc import Callable, Hashable
from typing import Any

from exitcode_reference_controller.ledger import RestartLedger
from exitcode_reference_controller.plan import Action, Create, Delete, Plan, Thing
from exitcode_reference_controller.status import TERMINAL

Early = Callable[[Thing, Plan], Plan]
"""(job as observed, plan) → what of the plan is done at once; the plan itself if nothing is held back."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Slowness:
    """What is done late, and how late after it was first wanted."""

    seconds: float
    early: Early


class Pace:
    """Holds plans back. Each key in one hand at a time, as the work queue has it; otherwise thread-safe."""

    def __init__(self, slowness: Slowness) -> None:
        self._slowness = slowness
        self._lock = threading.Lock()
        self._due: dict[Hashable, float] = {}

    def apply(self, key: Hashable, job: Thing, plan: Plan) -> tuple[Plan, float | None]:
        """What is to be done now, and in how many seconds to look again if something is held back."""
        early = self._slowness.early(job, plan)
        now = time.monotonic()
        with self._lock:
            if early == plan:
                self._due.pop(key, None)
                return plan, None
            left = self._due.setdefault(key, now + self._slowness.seconds) - now
            if left > 0:
                return early, left
            del self._due[key]
            return plan, None

    def forget(self, key: Hashable) -> None:
        """Says that what the key stood for is gone."""
        with self._lock:
            self._due.pop(key, None)


def nothing(job: Thing, plan: Plan) -> Plan:
    """Holds back everything that would be done."""
    if plan.ledger is None and not plan.actions and plan.status == _status(job):
        return plan
    return Plan(status=_status(job), wake_at=plan.wake_at)


def all_but_creation(job: Thing, plan: Plan) -> Plan:
    """Holds back everything of a job that says nothing yet."""
    return plan if _status(job).get("conditions") else nothing(job, plan)


def all_but_state(job: Thing, plan: Plan) -> Plan:
    """Holds back what a job says between its creation and its end."""
    if not _status(job).get("conditions") or _has_ended(plan.status):
        return plan
    return dataclasses.replace(plan, status=_status(job))


def all_but_replacement(job: Thing, plan: Plan) -> Plan:
    """Holds back the pods of replicas that have been restarted."""
    restarted = {f"{job['metadata']['name']}-{replica}" for replica in RestartLedger.read(job).replicas}

    def is_replacement(action: Action) -> bool:
        manifest = action.manifest if isinstance(action, Create) else None
        return manifest is not None and manifest["kind"] == "Pod" and manifest["metadata"]["name"] in restarted

    return dataclasses.replace(plan, actions=tuple(a for a in plan.actions if not is_replacement(a)))


def all_but_ending(job: Thing, plan: Plan) -> Plan:
    """Holds back the end."""
    return nothing(job, plan) if _has_ended(plan.status) and not _has_ended(_status(job)) else plan


def all_but_cleaning(job: Thing, plan: Plan) -> Plan:  # noqa: ARG001 - one signature for all of them
    """Holds back the deletions that follow the end."""
    if not _has_ended(plan.status):
        return plan
    return dataclasses.replace(plan, actions=tuple(a for a in plan.actions if not isinstance(a, Delete)))


def _status(job: Thing) -> Thing:
    status: dict[str, Any] = job.get("status") or {}
    return status


def _has_ended(status: Thing) -> bool:
    return any(c["type"] in TERMINAL and c["status"] == "True" for c in status.get("conditions") or [])
