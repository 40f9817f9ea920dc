"""What proves that an operator was alive: something that nobody else does, for a job of the kind in question."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from exitcode_conformance.entry import Event
from exitcode_conformance.kinds import BY_PLURAL


@dataclass(frozen=True, kw_only=True, slots=True)
class Witness:
    """Something the operator did to an object of another scenario: proof that it was alive."""

    seq: int
    time: float
    scenario: str | None
    kind: str | None
    """Of the job that it was done for; None if that does not show."""
    what: str


def kind_of_job(event: Event) -> str | None:
    """The kind of the job that an object is, or that owns it; None if it shows neither."""
    if event.resource in BY_PLURAL:
        return BY_PLURAL[event.resource].name
    owners = event.metadata.get("ownerReferences")
    found = [o for o in owners if isinstance(o, Mapping) and o.get("controller")] if isinstance(owners, list) else []
    return str(found[0].get("kind")) if found else None


def operator_act(event: Event, previous: Mapping[str, Any] | None) -> str | None:
    """What an event proves that the operator did, None if somebody else may have done it.

    Only writes that nobody but an operator makes count: a pod or service of a job created, a job's status changed.
    `previous` is the object's last known version.
    """
    if event.resource in ("pods", "services") and event.verb == "ADDED":
        return f"created {event.resource[:-1]} {event.metadata.get('name')}"
    if event.resource in BY_PLURAL and event.verb == "MODIFIED":
        before = (previous or {}).get("status")
        if event.object.get("status") != before:
            return f"wrote the status of {event.metadata.get('name')}"
    return None
