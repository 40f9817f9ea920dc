"""What a reconciliation sees, and what it wants done: plain values between the pure core and the
controller."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from exitcode_reference_controller.ledger import RestartLedger

Thing = Mapping[str, Any]
"""An object as the API server sent it. It belongs to the cache: nobody may write on it."""


@dataclass(frozen=True, kw_only=True)
class Observed:
    """One job and all that is known of what it owns."""

    job: Thing
    pods: tuple[Thing, ...]
    services: tuple[Thing, ...]
    now: datetime
    rejection: str | None = None
    """Why the API server has called one of the job's pods or services invalid, None if it has not."""


@dataclass(frozen=True, kw_only=True)
class Announcement:
    """An event to be recorded about the job, once for each key in the life of the job."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    key: str


@dataclass(frozen=True, kw_only=True)
class Create:
    """Create a pod or service."""

    manifest: Thing


@dataclass(frozen=True, kw_only=True)
class Delete:
    """Delete this very pod or service; another one of its name is left alone."""

    resource: Literal["pods", "services"]
    name: str
    uid: str


@dataclass(frozen=True, kw_only=True)
class DeleteJob:
    """Delete the job itself, and by its owner references all that it owns."""


Action = Create | Delete | DeleteJob


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is to be done, in this order: the ledger, the status, the actions. The controller stops at the
    first of them that fails and plans anew, so each has to be right when nothing after it happens."""

    ledger: RestartLedger | None = None
    """The ledger to be written, None if it stays as it is."""
    status: Thing
    """The whole status as it should be; often it is that already."""
    actions: tuple[Action, ...] = ()
    announcements: tuple[Announcement, ...] = ()
    wake_at: datetime | None = field(default=None)
    """When to look again though nothing has happened."""
