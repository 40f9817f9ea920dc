"""STATE-07 and STATE-12: the times in a job's status, and the form of its conditions."""

import re
from collections.abc import Mapping, Set
from datetime import datetime
from typing import Any

from exitcode_conformance import selection
from exitcode_conformance.checks.states import API
from exitcode_conformance.contract import Contract
from exitcode_conformance.history import DOCUMENTED_STATES, History, JobVersion, Moment
from exitcode_conformance.judging import failed, judged, passed
from exitcode_conformance.premise import must_have_come_to_its_end, must_have_run, must_have_status
from exitcode_conformance.registry import requirement
from exitcode_conformance.success_rule import deciding_replicas
from exitcode_conformance.temporal import Finding, elapsed, eventually
from exitcode_conformance.verdict import Judgement

RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
STATUSES = ("True", "False", "Unknown")
RESOLUTION = 1.0
"""Seconds; times are cut to whole ones, so that two that differ by more than this are of two moments."""


def _time(value: object) -> datetime | None:
    if not isinstance(value, str) or not RFC_3339.fullmatch(value):
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


def seconds_of(value: object) -> float | None:
    """A time of Kubernetes as seconds since the epoch; None for what is none."""
    found = _time(value)
    return found.timestamp() if found is not None else None


def _seconds_between(one: object, other: object) -> float:
    """From one time to the other; 0 where one of them is none."""
    first, second = _time(one), _time(other)
    return (second - first).total_seconds() if first is not None and second is not None else 0.0


@requirement(
    "STATE-07",
    "completionTime is set exactly when the job is terminal, once; startTime once, never after completionTime.",
    feature="job-conditions",
    source=f"{API}: neither is guaranteed to be set in one operation with a condition",
    applies=selection.everything,
)
def times_are_set_once(history: History, contract: Contract) -> Judgement:
    expected = "completionTime if and only if terminal; neither it nor startTime ever changes; startTime not later"
    must_have_run(history)
    first: dict[str, tuple[object, Moment]] = {}
    for version in history.job_versions:
        for name in ("startTime", "completionTime"):
            value = version.status.get(name)
            if name in first and value != first[name][0]:
                return failed(expected, f"{name} changed from {first[name][0]} to {value}", version.seq)
            if name not in first and value is not None:
                first[name] = (value, Moment(seq=version.seq, time=version.time, what=f"{name} was written"))
    for name, (value, moment) in first.items():
        if _time(value) is None:
            return failed(expected, f"{name} is {value!r}, which is no time", moment.seq)
    start, end = (first[name][0] if name in first else None for name in ("startTime", "completionTime"))
    if _seconds_between(start, end) < 0:
        return failed(expected, f"startTime {start} is after completionTime {end}", history.job_versions[-1].seq)
    written = {name: moment for name, (_, moment) in first.items()}
    findings = _set_with_the_end(history, written)
    if findings:
        return judged(expected, findings)
    must_have_come_to_its_end(history, contract)
    # A startTime may come with the end (see `_set_with_the_end`), which a job that goes on has not come to.
    seen = f"startTime {start}, no completionTime; the job was not terminal while it was observed"
    return passed(expected, seen, history.job_versions[-1].seq)


def _set_with_the_end(history: History, written: Mapping[str, Moment]) -> list[Finding]:
    """Whether the times and the end came together: in one write or in two that follow each other, in either order."""
    started, completed = written.get("startTime"), written.get("completionTime")
    if history.terminal is None:
        missing = "the job did not become terminal"
        since = completed
        return [eventually(history, since=since, bound="never", found=None, missing=missing)] if since else []
    ended = history.terminal[1]
    findings = [
        eventually(history, since=ended, bound="never", found=found, missing=f"no {name} was written")
        for name, found in (("startTime", started), ("completionTime", completed))
    ]
    if completed is not None and completed.seq < ended.seq:
        findings.append(_completed_early(history, completed, ended))
    return findings


def _completed_early(history: History, completed: Moment, ended: Moment) -> Finding:
    """A completionTime before the terminal condition: it belongs into the write right before it, and into that one only
    when the end was decided already."""
    statuses: list[Mapping[str, Any]] = []
    for version in history.job_versions:
        if completed.seq <= version.seq < ended.seq and (not statuses or version.status != statuses[-1]):
            statuses.append(version.status)
    return Finding(
        holds=len(statuses) == 1 and _was_decided(history, completed.seq),
        seen=f"completionTime was written {elapsed(completed.time, ended.time):.1f} s before {ended.what}",
        deciding=(completed.seq, ended.seq),
    )


def _was_decided(history: History, line: int) -> bool:
    """Whether by that line containers had ended that may be the reason for the job's end."""
    assert history.terminal is not None
    replicas = history.scenario.replica_names()
    ended = {
        replica: [a.ended.code for a in history.attempts(replica) if a.ended is not None and a.ended.seq < line]
        for replica in replicas
    }
    if "activeDeadlineSeconds" in history.scenario.run_policy:
        return True  # the clock decided
    if history.terminal[0] == "Succeeded":
        return all(0 in ended[replica] for replica in deciding_replicas(history.scenario))
    if any(failure.seq < line for pod, failure in history.own_failures if pod.replica in _of_several(history)):
        return True
    started = {r: sum(a.created_seq < line for a in history.attempts(r)) for r in replicas}
    unlimited = "backoffLimit" not in history.scenario.run_policy
    return any(any(codes) and (started[r] == len(codes) or not unlimited) for r, codes in ended.items())


def _of_several(history: History) -> list[str]:
    """Replicas whose pods may fail although their training container did not."""
    groups = [g for g in history.scenario.groups if g.fails_without_code or g.sidecar_fails]
    return [r for r in history.scenario.replica_names() if history.scenario.group_of(r) in groups]


@requirement(
    "STATE-12",
    "Conditions are well formed: unique types, status True, False or Unknown, lastTransitionTime moves exactly when "
    "status changes.",
    feature="job-conditions",
    source=f"{API}; Kubernetes API conventions, typical status properties",
    applies=selection.everything,
)
def conditions_are_well_formed(history: History, contract: Contract) -> Judgement:
    expected = "unique types, status True/False/Unknown, lastTransitionTime moves exactly with status"
    must_have_status(history)
    before: dict[str, Mapping[str, Any]] = {}
    for version in history.job_versions:
        problem = _malformed(version)
        if problem is None:
            now = {str(c["type"]): c for c in version.conditions}
            problem = _wrongly_moved(before, now, documented=_documented(version))
            before = now
        if problem is not None:
            return failed(expected, problem, version.seq)
    return passed(expected, f"{len(history.job_versions)} versions, all well formed", history.job_versions[-1].seq)


def _malformed(version: JobVersion) -> str | None:
    raw = version.status.get("conditions")
    if raw is not None and (not isinstance(raw, list) or len(raw) != len(version.conditions)):
        return "conditions is not a list of objects"
    types = [c.get("type") for c in version.conditions]
    for condition, name in zip(version.conditions, types, strict=True):
        if not isinstance(name, str) or not name:
            return f"a condition has type {name!r}"
        if types.count(name) > 1:
            return f"two conditions of type {name}"
        if condition.get("status") not in STATUSES:
            return f"{name} has status {condition.get('status')!r}"
        if _time(condition.get("lastTransitionTime")) is None:
            return f"{name} has lastTransitionTime {condition.get('lastTransitionTime')!r}"
    return None


def _documented(version: JobVersion) -> frozenset[str]:
    """What the operator calls those of its conditions that tell the job's state."""
    called = (str(condition["type"]) for condition in version.conditions)
    return frozenset(name for name in called if version.kind.documented(name) in DOCUMENTED_STATES)


def _wrongly_moved(
    before: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]], *, documented: Set[str]
) -> str | None:
    """What is wrong with the times of two versions that follow each other; `documented` are the types that tell the
    job's state.

    A status that changes twice within a second keeps its time; so an unmoved one is wrong only if the same write says
    of another state that it came, or went, later than that.
    """
    turned = [n for n in documented if n not in before or before[n]["status"] != now[n]["status"]]
    new = [now[name]["lastTransitionTime"] for name in turned]
    for name in before.keys() & now.keys():
        old, moved = before[name]["lastTransitionTime"], now[name]["lastTransitionTime"]
        changed = before[name]["status"] != now[name]["status"]
        if not changed and old != moved:
            return f"lastTransitionTime of {name} moved, its status did not"
        if changed and _seconds_between(old, moved) < 0:
            return f"lastTransitionTime of {name} went back"
        if changed and any(old == moved and _seconds_between(moved, time) > RESOLUTION for time in new):
            return f"lastTransitionTime of {name} did not move, its status did"
    return None
