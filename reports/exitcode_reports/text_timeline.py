"""A scenario's time line as plain text: what a failed test prints, and what Allure gets as an attachment."""

from collections.abc import Collection, Iterable
from typing import Any

from exitcode_conformance.entry import Action, Entry, Event
from exitcode_reports.printable import printable
from exitcode_reports.timeline import is_job, items, job_state, mapping, text, until_complete, value, whole

AROUND = 6
"""How many lines are shown before and after each deciding one."""


def text_timeline(entries: Iterable[Entry], deciding: Collection[int] = (), *, around: int | None = AROUND) -> str:
    """One line an entry: seconds since the first, the number in the recording, who, and what. Deciding ones
    are marked with `>`. Of the others only `around` on each side of a deciding one are shown, and where there
    is none the last; `around=None` shows all. Entries that tell a person nothing new are left out."""
    rows = _rows(until_complete(tuple(entries)), frozenset(deciding))
    if not rows:
        return "(nothing was recorded)"
    start = rows[0][0].time
    shown = _shown([entry.seq in deciding for entry, _, _ in rows], around)
    width = max(len(who) for number, (_, who, _) in enumerate(rows) if number in shown)
    digits = len(str(rows[-1][0].seq))
    lines = []
    previous = -1
    for number in sorted(shown):
        if number != previous + 1:
            lines.append(f"  … {number - previous - 1} more …")
        entry, who, what = rows[number]
        mark = ">" if entry.seq in deciding else " "
        lines.append(f"{mark} {entry.time - start:8.3f} s  #{entry.seq:<{digits}}  {who:<{width}}  {what}")
        previous = number
    if previous + 1 < len(rows):
        lines.append(f"  … {len(rows) - previous - 1} more …")
    return "\n".join(lines)


def describe(entry: Entry, before: dict[str, Any] | None = None) -> tuple[str, str]:
    """Who and what, as printable text. `before` is the object as it was seen last, None if it was not."""
    if isinstance(entry, Action):
        detail = ", ".join(f"{key} {_shown_value(item)}" for key, item in entry.detail.items())
        return "harness", _clean(f"{entry.action} {detail}".strip())
    name = text(entry.object, "metadata", "name") or "?"
    if entry.resource == "events":
        about = text(entry.object, "involvedObject", "name") or "?"
        reason, message = text(entry.object, "reason") or "?", text(entry.object, "message") or ""
        return _clean(f"event/{about}"), _clean(f"{reason}: {message}")
    who = _clean(f"{_SINGULAR.get(entry.resource, entry.resource.removesuffix('s'))}/{name}")
    if entry.verb == "DELETED":
        return who, "deleted"
    change = "appeared, " if before is None else ""
    if entry.resource == "pods":
        return who, _clean(change + _pod(entry.object))
    if is_job(entry):
        return who, _clean(change + _job(entry.object))
    return who, (change or "changed").removesuffix(", ")


_SINGULAR = {"services": "service", "pods": "pod"}


def _rows(entries: Iterable[Entry], deciding: frozenset[int]) -> list[tuple[Entry, str, str]]:
    rows: list[tuple[Entry, str, str]] = []
    seen: dict[tuple[str, str], tuple[dict[str, Any], str]] = {}
    for entry in entries:
        if not isinstance(entry, Event):
            rows.append((entry, *describe(entry)))
            continue
        uid = text(entry.object, "metadata", "uid") or text(entry.object, "metadata", "name") or "?"
        before, told = seen.get((entry.resource, uid), (None, ""))
        who, what = describe(entry, before)
        if before is None or what != told or entry.seq in deciding:
            rows.append((entry, who, what))
        seen[(entry.resource, uid)] = (entry.object, what.removeprefix("appeared, "))
    return rows


def _shown(deciding: list[bool], around: int | None) -> set[int]:
    if around is None:
        return set(range(len(deciding)))
    centres = [number for number, decides in enumerate(deciding) if decides]
    if not centres:
        return set(range(max(0, len(deciding) - 2 * around - 1), len(deciding)))
    return {n for c in centres for n in range(c - around, c + around + 1) if 0 <= n < len(deciding)}


def _job(job: dict[str, Any]) -> str:
    said = [job_state(job)]
    for kind, status in sorted(mapping(job, "status", "replicaStatuses").items()):
        counts = [f"{whole(status, key)} {key}" for key in ("active", "succeeded", "failed") if whole(status, key)]
        if counts:
            said.append(f"{kind} {' '.join(counts)}")
    if text(job, "metadata", "deletionTimestamp"):
        said.append("being deleted")
    return ", ".join(said)


def _pod(pod: dict[str, Any]) -> str:
    said = [text(pod, "status", "phase") or "Pending"]
    if text(pod, "status", "reason"):
        said.append(text(pod, "status", "reason") or "")
    containers = items(pod, "status", "containerStatuses")
    for container in containers:
        name = f"{text(container, 'name')} " if len(containers) > 1 else ""
        said.append(name + _container(container))
    if text(pod, "metadata", "deletionTimestamp"):
        said.append("being deleted")
    uid = text(pod, "metadata", "uid")
    return ", ".join(said) + (f" (uid {uid[:8]})" if uid else "")


def _container(container: dict[str, Any]) -> str:
    restarts = whole(container, "restartCount") or 0
    suffix = f", {restarts} restarts in place" if restarts else ""
    ended = value(container, "state", "terminated")
    if isinstance(ended, dict):
        return f"exit code {whole(ended, 'exitCode')} {text(ended, 'reason') or ''}".rstrip() + suffix
    last = whole(container, "lastState", "terminated", "exitCode")
    after = f" after exit code {last}" if last is not None else ""
    if isinstance(value(container, "state", "running"), dict):
        return f"container running{after}{suffix}"
    return f"waiting {text(container, 'state', 'waiting', 'reason') or ''}".rstrip() + after + suffix


def _shown_value(item: Any) -> str:
    return item if isinstance(item, str) else repr(item)


def _clean(line: str) -> str:
    return printable(line, limit=200)
