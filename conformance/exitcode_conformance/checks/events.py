"""EVENT: what the operator tells in Kubernetes events. None of it is a MUST: events are for people."""

import re
from collections.abc import Iterator
from dataclasses import replace

from exitcode_conformance import selection
from exitcode_conformance.checks.times import seconds_of
from exitcode_conformance.contract import Contract
from exitcode_conformance.entry import Event
from exitcode_conformance.history import History, Moment
from exitcode_conformance.judging import Undecided, failed, judged, passed
from exitcode_conformance.premise import must_have_ended, must_have_pods, must_have_seen_all
from exitcode_conformance.registry import requirement
from exitcode_conformance.scenario import Scenario, TouchJob
from exitcode_conformance.temporal import Finding, eventually, seconds
from exitcode_conformance.verdict import Judgement

SOURCE = "training-operator, the events of all releases"
OVERWRITTEN = "SettedPodTemplateRestartPolicy"
DOCUMENTED_REASONS = ("ExitedWithCode", "SuccessfulCreatePod", "SuccessfulDeletePod", OVERWRITTEN)
"""Those that a requirement asks for by name."""
EACH_REPLICA = 8
"""How many events may still come for each replica once its job has ended: it is counted, cleaned up, told of,
and what happened before may be told late."""
LATE = 0.25
"""By which part of the bound `state` events may come late and still show that what is missing was not recorded."""


def _message(event: Event) -> str:
    return str(event.object.get("message", ""))


def _names(event: Event, name: str) -> bool:
    """Whether an event's message has the name, and not as a part of a longer one."""
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", _message(event)) is not None


def _moment(event: Event) -> Moment:
    return Moment(seq=event.seq, time=event.time, what=f"the event {event.object.get('reason')} was recorded")


def _count(event: Event) -> int:
    """How often the event has happened, as its last version has it."""
    series = event.object.get("series") or {}
    return max(1, int(event.object.get("count") or 0), int(series.get("count") or 0))


def _told(history: History, since: Moment, found: Moment | None, missing: str) -> Finding:
    """Whether something was told. When does not matter: events are recorded beside the operator's work, and whoever
    records many is late with all of them. So one that is missing may still come as long as others are late."""
    if found is not None:
        return Finding(holds=True, seen=found.what, deciding=(since.seq, found.seq))
    finding = eventually(history, since=since, bound="state", found=None, missing=missing)
    late = _lateness(history)
    if finding.holds is False and late > LATE * seconds(history, "state"):
        seen = f"{missing}, but others came {late:.0f} s late: it may still come"
        return replace(finding, holds=None, seen=seen)
    return finding


def _lateness(history: History) -> float:
    """By how many seconds more than the promptest of the operator's events the last one came."""
    lags = []
    for event in history.job_events:
        told = event.object.get("lastTimestamp") or event.object.get("firstTimestamp") or event.object.get("eventTime")
        moment = seconds_of(told)
        if moment is not None:
            lags.append(event.time - moment)
    return lags[-1] - min(lags) if lags else 0.0


def _said(history: History, reason: str) -> Iterator[Event]:
    """The events about the job of a documented reason, whatever the operator calls it."""
    called = history.kind.reason(reason)
    return (event for event in history.job_events if event.object.get("reason") == called)


def _ends_with_code(scenario: Scenario, contract: Contract) -> bool:
    codes = selection.script_codes(scenario)
    return selection.target_policy(scenario) == "ExitCode" and bool(codes) and bool(codes[0])


@requirement(
    "EVENT-01",
    "An event ExitedWithCode names the pod that failed, and its code.",
    level="SHOULD",
    feature="events",
    source=SOURCE,
    applies=_ends_with_code,
)
def code_is_told(history: History, contract: Contract) -> Judgement:
    must_have_seen_all(history, "events")
    target = history.scenario.target or ""
    attempt, end, ended = must_have_ended(history, target)
    name = f"{history.job_name}-{target}"
    expected = f"an event {history.kind.reason('ExitedWithCode')} about the job that names {name} and {end.code}"
    told = (e for e in _said(history, "ExitedWithCode") if _names(e, name) and _names(e, str(end.code)))
    found = next((_moment(event) for event in told), None)
    missing = f"no event tells that attempt {attempt.number} ended with {end.code}"
    return judged(expected, [_told(history, ended, found, missing)])


@requirement(
    "EVENT-02",
    "SuccessfulCreatePod and SuccessfulDeletePod tell of every pod that the operator creates, and of every one that it "
    "deletes for a restart.",
    level="SHOULD",
    feature="events",
    source=SOURCE,
    applies=selection.expects_restart,
)
def pods_are_told(history: History, contract: Contract) -> Judgement:
    pods = must_have_pods(history)
    must_have_seen_all(history, "events")
    names = sorted({pod.name for pod in pods})
    made = {name: sum(pod.name == name for pod in pods) for name in names}
    expected = "as many events as there were pods created and, for restarts, deleted"
    findings = []
    for name in names:
        for reason, wanted in (("SuccessfulCreatePod", made[name]), ("SuccessfulDeletePod", made[name] - 1)):
            told = [event for event in _said(history, reason) if _names(event, name)]
            counts = {str(event.metadata.get("uid")): _count(event) for event in told}
            last = max((p.created for p in pods if p.name == name), key=lambda version: version.seq)
            since = Moment(seq=last.seq, time=last.time, what=f"the last pod {name} was created")
            enough = sum(counts.values()) >= wanted
            if wanted == 0:
                continue
            found = _moment(told[-1]) if enough else None
            missing = f"{sum(counts.values())} of {wanted} events {history.kind.reason(reason)} name {name}"
            findings.append(_told(history, since, found, missing))
    if len(pods) == len(names):
        findings.append(Finding(holds=None, seen="no pod was replaced: no deletion for a restart was to be told"))
    judgement = judged(expected, findings)
    if not all(finding.holds for finding in findings):
        return judgement
    seen = f"each of {len(pods)} creations and {len(pods) - len(names)} deletions for a restart is told of"
    return judgement.model_copy(update={"seen": seen})


@requirement(
    "EVENT-03",
    "An event of type Warning tells that a restart begins.",
    level="SHOULD",
    feature="events",
    source=SOURCE,
    applies=selection.expects_restart,
)
def restart_is_warned_of(history: History, contract: Contract) -> Judgement:
    must_have_seen_all(history, "events")
    expected = "an event of type Warning about the job whose reason speaks of a restart"
    _, _, ended = must_have_ended(history, history.scenario.target or "")
    if history.attempt(history.scenario.target or "", 2) is None:
        raise Undecided("the target was never restarted", ended.seq)
    warnings = (e for e in history.job_events if e.object.get("type") == "Warning")
    overwritten = history.kind.reason(OVERWRITTEN)  # which speaks of a policy
    told = (e for e in warnings if e.object.get("reason") != overwritten)
    found = next((_moment(e) for e in told if "restart" in str(e.object.get("reason", "")).lower()), None)
    missing = "no warning of a restart was recorded"
    return judged(expected, [_told(history, ended, found, missing)])


def _has_template_policy(scenario: Scenario, contract: Contract) -> bool:
    return any(group.template_restart_policy is not None for group in scenario.groups)


@requirement(
    "EVENT-04",
    "SettedPodTemplateRestartPolicy tells that the template's restartPolicy is overwritten.",
    level="SHOULD",
    feature="events",
    source=SOURCE,
    profile="extended",
    applies=_has_template_policy,
)
def overwriting_is_told(history: History, contract: Contract) -> Judgement:
    pods = must_have_pods(history)
    must_have_seen_all(history, "events")
    since = Moment(seq=pods[0].created.seq, time=pods[0].created.time, what=f"{pods[0].name} was created")
    found = next((_moment(event) for event in _said(history, OVERWRITTEN)), None)
    missing = "no event tells of it"
    finding = _told(history, since, found, missing)
    return judged(f"an event {history.kind.reason(OVERWRITTEN)} about the job", [finding])


def _is_looked_at_again(scenario: Scenario, contract: Contract) -> bool:
    return any(isinstance(step, TouchJob) for step in scenario.steps)


@requirement(
    "EVENT-05",
    "There is no storm of events: a finished job that is looked at again and again gets no new ones.",
    level="SHOULD",
    feature="events",
    source="Kubernetes API conventions, events: they tell of what has happened, not of what is looked at",
    profile="extended",
    applies=_is_looked_at_again,
)
def events_are_bounded(history: History, contract: Contract) -> Judgement:
    must_have_seen_all(history, "events")
    times = sum(step.times for step in history.scenario.steps if isinstance(step, TouchJob))
    touched = history.action("touch-job")
    if touched is None or history.terminal is None:
        raise Undecided("the job was not changed after its end")
    bound = EACH_REPLICA * history.scenario.pod_count()
    expected = f"at most {bound} new events about the job, however often it is looked at after its end"
    before: dict[str, int] = {}
    after: dict[str, int] = {}
    for event in history.job_events:
        counts = before if event.seq < touched.seq else after
        counts[str(event.metadata.get("uid"))] = _count(event)
    fresh = sum(count - before.get(uid, 0) for uid, count in after.items())
    seen = f"{fresh} new event(s) after it was changed {times} times"
    if fresh > bound:
        return failed(expected, seen, touched.seq, history.end.seq)
    if history.witness(touched.time, history.end.time) is None:
        return judged(expected, [Finding(holds=None, seen=f"{seen}, but nothing shows that the operator was alive")])
    return passed(expected, seen, touched.seq, history.end.seq)
