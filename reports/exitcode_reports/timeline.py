"""What a person wants to see of a scenario's entries: the states of the job, and the lives of its pods.

It reads the objects as a cluster sent them and takes nothing for granted: a key that is missing, or that
holds something else than it should, is passed over."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from exitcode_conformance.adapters.batch import INDEX
from exitcode_conformance.entry import Action, Entry, Event
from exitcode_conformance.frozen import Frozen
from exitcode_conformance.kinds import KINDS, kinds_of

MarkKind = Literal["started", "exited", "restarted", "deleting", "deleted"]


class StateSpan(Frozen):
    """The job says `state` from `start` to `end` (seconds of the run)."""

    state: str
    start: float
    end: float
    seq: int
    """The event that began it."""


class Mark(Frozen):
    """Something that happened to one pod."""

    kind: MarkKind
    time: float
    seq: int
    code: int | None = None
    reason: str | None = None


class PodLife(Frozen):
    """One incarnation of a pod: everything between the first and the last that was seen of one UID."""

    name: str
    replica: str
    """`worker-0`, or the pod's whole name where it does not follow the job's."""
    uid: str
    start: float
    end: float
    """When it was deleted, or when the recording of the scenario ends."""
    gone: bool
    phases: tuple[StateSpan, ...]
    marks: tuple[Mark, ...]
    restarts: int


class Timeline(Frozen):
    """The drawing's data."""

    start: float
    end: float
    job: str | None
    states: tuple[StateSpan, ...]
    job_deleted: float | None
    lives: tuple[PodLife, ...]

    def replicas(self) -> dict[str, tuple[PodLife, ...]]:
        """Replica → its incarnations, in order of birth."""
        rows: dict[str, list[PodLife]] = {}
        for life in sorted(self.lives, key=lambda life: (_natural(life.replica), life.start)):
            rows.setdefault(life.replica, []).append(life)
        return {replica: tuple(lives) for replica, lives in rows.items()}


def extract(entries: Iterable[Entry], *, job: str | None = None) -> Timeline:
    """The time line of a scenario's entries. `job` is the job's name, by default that of the first object of
    a resource that ends in `jobs`."""
    entries = tuple(entries)
    events = [entry for entry in entries if isinstance(entry, Event)]
    start = entries[0].time if entries else 0.0
    end = entries[-1].time if entries else 0.0
    jobs = [event for event in events if is_job(event)]
    if job is None and jobs:
        job = text(jobs[0].object, "metadata", "name")
    own = [event for event in jobs if text(event.object, "metadata", "name") == job]
    states, deleted = _states(own, end)
    pods: dict[str, list[Event]] = {}
    for event in events:
        if event.resource == "pods":
            pods.setdefault(text(event.object, "metadata", "uid") or "?", []).append(event)
    lives = tuple(_life(uid, seen, job, end) for uid, seen in pods.items())
    return Timeline(start=start, end=end, job=job, states=states, job_deleted=deleted, lives=lives)


def until_complete(entries: Sequence[Entry]) -> Sequence[Entry]:
    """The entries up to the harness's `complete`: what it does later is tidying, and no part of the history."""
    for number, entry in enumerate(entries):
        if isinstance(entry, Action) and entry.action == "complete":
            return entries[: number + 1]
    return entries


def is_job(event: Event) -> bool:
    """Whether the event is about a training job."""
    return event.resource.endswith("jobs")


def value(item: Any, *keys: str) -> Any:
    """What stands under the keys, None where anything on the way is not as it should be."""
    for key in keys:
        if not isinstance(item, dict):
            return None
        item = item.get(key)
    return item


def text(item: Any, *keys: str) -> str | None:
    """The string under the keys, None where there is none."""
    found = value(item, *keys)
    return found if isinstance(found, str) else None


def whole(item: Any, *keys: str) -> int | None:
    """The whole number under the keys, None where there is none."""
    found = value(item, *keys)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def mapping(item: Any, *keys: str) -> dict[str, Any]:
    """The object under the keys, an empty one where there is none."""
    found = value(item, *keys)
    return found if isinstance(found, dict) else {}


def items(item: Any, *keys: str) -> list[dict[str, Any]]:
    """The objects of the list under the keys."""
    found = value(item, *keys)
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def job_state(job: dict[str, Any]) -> str:
    """The state that the job says of itself: its last condition that is True; `New` before there is one."""
    held = [c for c in items(job, "status", "conditions") if text(c, "status") == "True"]
    said = (text(held[-1], "type") if held else None) or "New"
    kind = KINDS.get(text(job, "kind") or "")
    return (kind.documented(said) if kind else said) or said


def replica_of(pod: dict[str, Any], job: str | None) -> str:
    """`<type>-<index>` by the pod's name, else by its labels, else the pod's whole name; of a Job of batch/v1 by the
    completion index."""
    name = text(pod, "metadata", "name") or "?"
    owners = items(pod, "metadata", "ownerReferences")
    if any(text(owner, "kind") in kinds_of("batch") for owner in owners):
        found = (text(pod, "metadata", where, INDEX) for where in ("annotations", "labels"))
        return f"worker-{next(filter(None, found), '0')}"
    if job and name.startswith(f"{job}-"):
        return name.removeprefix(f"{job}-")
    labels = mapping(pod, "metadata", "labels")
    kind = next((v for k, v in labels.items() if k.endswith("replica-type")), None)
    index = next((v for k, v in labels.items() if k.endswith("replica-index")), None)
    return f"{kind.lower()}-{index}" if isinstance(kind, str) and isinstance(index, str) else name


def _natural(replica: str) -> tuple[str, int, str]:
    kind, _, index = replica.rpartition("-")
    return (kind, int(index), "") if index.isdecimal() and len(index) < 9 else (replica, 0, index)


def _states(events: list[Event], end: float) -> tuple[tuple[StateSpan, ...], float | None]:
    spans: list[StateSpan] = []
    deleted: float | None = None
    for event in events:
        if event.verb == "DELETED":
            deleted = event.time
            break
        state = job_state(event.object)
        if not spans or spans[-1].state != state:
            spans.append(StateSpan(state=state, start=event.time, end=event.time, seq=event.seq))
    return _closed(spans, end if deleted is None else deleted), deleted


def _closed(spans: list[StateSpan], end: float) -> tuple[StateSpan, ...]:
    """The spans with each one's end where the next begins."""
    ends = [*(span.start for span in spans[1:]), end]
    # Without a span there is one end too many.
    return tuple(span.model_copy(update={"end": until}) for span, until in zip(spans, ends, strict=False))


def _life(uid: str, events: list[Event], job: str | None, end: float) -> PodLife:
    phases: list[StateSpan] = []
    marks: list[Mark] = []
    before: dict[str, Any] = {}
    gone = events[-1].verb == "DELETED"
    for event in events:
        phase = text(event.object, "status", "phase") or "Pending"
        if (not phases or phases[-1].state != phase) and event.verb != "DELETED":
            phases.append(StateSpan(state=phase, start=event.time, end=event.time, seq=event.seq))
        marks += _marks(before, event)
        before = event.object
    until = events[-1].time if gone else end
    last = events[-1].object
    return PodLife(
        name=text(last, "metadata", "name") or "?",
        replica=replica_of(last, job),
        uid=uid,
        start=events[0].time,
        end=until,
        gone=gone,
        phases=_closed(phases, until),
        marks=tuple(marks),
        restarts=max((whole(c, "restartCount") or 0 for c in _containers(last)), default=0),
    )


def _containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return items(pod, "status", "containerStatuses")


def _marks(before: dict[str, Any], event: Event) -> list[Mark]:
    """What this event tells that the one before it did not."""
    marks = []
    earlier = {text(c, "name"): c for c in _containers(before)}
    for container in _containers(event.object):
        old = earlier.get(text(container, "name"), {})
        ended, was_ended = _terminated(container), _terminated(old)
        if ended is not None and ended != was_ended:
            code, reason = whole(ended, "exitCode"), text(ended, "reason")
            marks.append(Mark(kind="exited", time=event.time, seq=event.seq, code=code, reason=reason))
        running, was_running = value(container, "state", "running"), value(old, "state", "running")
        if isinstance(running, dict) and running != was_running:
            again = (whole(container, "restartCount") or 0) > 0
            marks.append(Mark(kind="restarted" if again else "started", time=event.time, seq=event.seq))
    deleting = text(event.object, "metadata", "deletionTimestamp")
    if event.verb == "DELETED":
        marks.append(Mark(kind="deleted", time=event.time, seq=event.seq))
    elif deleting and not text(before, "metadata", "deletionTimestamp"):
        marks.append(Mark(kind="deleting", time=event.time, seq=event.seq))
    return marks


def _terminated(container: dict[str, Any]) -> dict[str, Any] | None:
    """The latest end of the container: now, or, where it runs or waits again, the one before."""
    for key in ("state", "lastState"):
        found = value(container, key, "terminated")
        if isinstance(found, dict):
            return found
    return None
