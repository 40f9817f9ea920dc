"""STATE: what the job says of itself, and whether it is well formed and true."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from exitcode_conformance import selection
from exitcode_conformance.checks.restarts import must_have_restarted
from exitcode_conformance.contract import Contract
from exitcode_conformance.history import TERMINAL_STATES, History, JobVersion, Moment
from exitcode_conformance.judging import Undecided, failed, judged, passed
from exitcode_conformance.premise import must_have_been_submitted, must_have_status
from exitcode_conformance.registry import requirement
from exitcode_conformance.scenario import RunUntilStopped, Scenario, UntilAttempt
from exitcode_conformance.success_rule import deciding_replicas
from exitcode_conformance.temporal import Finding, eventually, never
from exitcode_conformance.verdict import Judgement

API = "training-operator API, JobCondition and JobStatus"

ALLOWED: Mapping[str, frozenset[str]] = {
    "Created": frozenset({"Running", "Restarting", "Suspended", "Succeeded", "Failed"}),
    "Running": frozenset({"Restarting", "Suspended", "Succeeded", "Failed"}),
    "Restarting": frozenset({"Running", "Suspended", "Succeeded", "Failed"}),
    "Suspended": frozenset({"Running", "Restarting", "Succeeded", "Failed"}),
    "Succeeded": frozenset(),
    "Failed": frozenset(),
}
"""The documented state machine: from each state, those that may follow it."""


@requirement(
    "STATE-01",
    "Conditions change only along the documented state machine; Created comes first.",
    feature="job-conditions",
    source=API,
    applies=selection.everything,
)
def states_follow_the_machine(history: History, contract: Contract) -> Judgement:  # noqa: ARG001 - every check has it
    expected = "Created first, then only steps of the documented state machine"
    submitted = must_have_been_submitted(history)
    states = history.states
    sequence = ", ".join(name for name, _ in states) or "no state at all"
    if states and states[0][0] != "Created" and not _created_came_with(history):
        return failed(expected, f"the job's first state is {states[0][0]}", states[0][1].seq)
    for (before, _), (after, moment) in zip(states, states[1:], strict=False):
        if after not in ALLOWED.get(before, frozenset()):
            return failed(expected, f"{after} after {before} (all of them: {sequence})", moment.seq)
    found = states[0][1] if states else None
    finding = eventually(history, since=submitted, bound="created", found=found, missing="the job never said Created")
    judgement = judged(expected, [finding])
    return judgement.model_copy(update={"seen": f"{sequence}; {judgement.seen}"})


def _created_came_with(history: History) -> bool:
    """Whether the version that showed the first state holds Created beside it: both were written in one update."""
    first = next(v for v in history.job_versions if v.state is not None)
    return first.is_true("Created")


def _rounds_expected(scenario: Scenario) -> int:
    """How many restarts are followed by an attempt that lasts until the job has said Running again."""
    waits = [
        s for s in scenario.steps if isinstance(s, UntilAttempt) and s.job_running and s.replica == scenario.target
    ]
    return max((s.attempt - 1 for s in waits), default=0)


def _says_restarting(scenario: Scenario, contract: Contract) -> bool:
    return selection.expects_restart(scenario, contract) and _rounds_expected(scenario) > 0


@requirement(
    "STATE-03",
    "A restart made by the operator makes the job say Restarting, and Running again afterwards.",
    feature="job-conditions",
    source=API,
    applies=_says_restarting,
)
def restart_is_told(history: History, contract: Contract) -> Judgement:  # noqa: ARG001 - every check has it
    rounds = _rounds_expected(history.scenario)
    expected = f"Restarting and then Running, {rounds} time(s), once for each restart"
    target = history.scenario.target or ""
    must_have_restarted(history)
    findings: list[Finding] = []
    line = 0
    for number in range(1, rounds + 1):
        attempt, successor = history.attempt(target, number), history.attempt(target, number + 1)
        if attempt is None or attempt.ended is None or successor is None or successor.started_time is None:
            raise Undecided(f"restart {number} of {target} was not seen to its end")
        assert successor.started_seq is not None
        ended = Moment(seq=attempt.ended.seq, time=attempt.ended.time, what=f"attempt {number} of {target} ended")
        restarting = history.first_state("Restarting", since=max(line, ended.seq + 1))
        findings.append(
            eventually(history, since=ended, bound="state", found=restarting, missing="the job did not say Restarting")
        )
        runs = Moment(seq=successor.started_seq, time=successor.started_time, what=f"attempt {number + 1} was running")
        after = restarting.seq if restarting else ended.seq
        running = history.first_state("Running", since=after + 1)
        findings.append(
            eventually(history, since=runs, bound="state", found=running, missing="the job did not say Running again")
        )
        line = running.seq if running else after
    sequence = ", ".join(name for name, _ in history.states)
    judgement = judged(expected, findings)
    return judgement.model_copy(update={"seen": f"{sequence}; {judgement.seen}"})


@requirement(
    "STATE-04",
    "Running and Restarting are never both True.",
    feature="job-conditions",
    source=API,
    applies=selection.everything,
)
def running_excludes_restarting(history: History, contract: Contract) -> Judgement:  # noqa: ARG001
    expected = "no version of the job has both Running and Restarting True"
    must_have_status(history)
    for version in history.job_versions:
        if version.is_true("Running") and version.is_true("Restarting"):
            return failed(expected, "both are True", version.seq)
    return passed(expected, f"none of {len(history.job_versions)} versions has", history.job_versions[-1].seq)


def _comparable(version: JobVersion) -> list[tuple[Any, ...]]:
    return [(c.get("type"), c.get("status"), c.get("lastTransitionTime")) for c in version.conditions]


@requirement(
    "STATE-05",
    "At most one terminal condition is ever True; once it is, no condition changes any more, and nothing but Created is "
    "True beside it.",
    feature="job-conditions",
    source=f"{API}: Succeeded and Failed are final",
    applies=selection.everything,
)
def terminal_is_final(history: History, contract: Contract) -> Judgement:  # noqa: ARG001 - every check has it
    expected = "one terminal condition at most; then no condition changes, and only Created is True beside it"
    must_have_status(history)
    final: JobVersion | None = None
    for version in history.job_versions:
        true = [str(c.get("type")) for c in version.conditions if c.get("status") == "True"]
        ends = [name for name in true if name in TERMINAL_STATES]
        if len(ends) > 1:
            return failed(expected, f"{' and '.join(ends)} are both True", version.seq)
        if final is not None and _comparable(version) != _comparable(final):
            return failed(expected, f"conditions changed after the job was {final.state}", final.seq, version.seq)
        if ends:
            beside = [name for name in true if name not in (*TERMINAL_STATES, "Created")]
            if beside:
                return failed(expected, f"{', '.join(beside)} is True beside {ends[0]}", version.seq)
            final = final or version
    if final is None:
        return passed(expected, "the job was not terminal while it was observed", history.end.seq)
    return passed(expected, f"{final.state}, and unchanged to the end", final.seq, history.end.seq)


def _time(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


@requirement(
    "STATE-07",
    "completionTime is set exactly when the job is terminal, once; startTime once, never after completionTime.",
    feature="job-conditions",
    source=API,
    applies=selection.everything,
)
def times_are_set_once(history: History, contract: Contract) -> Judgement:  # noqa: ARG001 - every check has it
    expected = "completionTime if and only if terminal; neither it nor startTime ever changes; startTime not later"
    must_have_status(history)
    kept: dict[str, str] = {}
    for version in history.job_versions:
        for name in ("startTime", "completionTime"):
            value = version.status.get(name)
            if name in kept and value != kept[name]:
                return failed(expected, f"{name} changed from {kept[name]} to {value}", version.seq)
            if value is not None:
                kept[name] = value
        terminal = version.state in TERMINAL_STATES
        if terminal != ("completionTime" in kept):
            what = "terminal without a completionTime" if terminal else "not terminal, but has a completionTime"
            return failed(expected, f"the job is {what}", version.seq)
        if terminal and "startTime" not in kept:
            return failed(expected, "the job is terminal without ever having had a startTime", version.seq)
    start, end = _time(kept.get("startTime")), _time(kept.get("completionTime"))
    if start is not None and end is not None and start > end:
        return failed(expected, f"startTime {start} is after completionTime {end}", history.job_versions[-1].seq)
    seen = ", ".join(f"{name} {value}" for name, value in kept.items()) or "neither was set"
    return passed(expected, seen, history.job_versions[-1].seq)


def _decides(scenario: Scenario, contract: Contract) -> bool:  # noqa: ARG001 - the signature of every selection
    """Scenarios in which replicas end with 0 by their script and nothing ends with another code."""
    codes = [selection.outcome_name(o) for script in scenario.outcomes.values() for o in script]
    return bool(codes) and all(c in ("exit0", "run") for c in codes) and "exit0" in codes and not _always(scenario)


def _always(scenario: Scenario) -> bool:
    return any(g.restart_policy == "Always" for g in scenario.groups)


@requirement(
    "STATE-09",
    "The job succeeds by the documented success rule of its kind, and not before.",
    feature="success-policy",
    source="Kubeflow documentation and API: chief or master decides; without one, worker 0 or all workers",
    applies=_decides,
)
def success_rule_holds(history: History, contract: Contract) -> Judgement:  # noqa: ARG001 - every check has it
    deciders = deciding_replicas(history.scenario)
    expected = f"Succeeded once {' and '.join(deciders)} ended with 0, and not before"
    must_have_been_submitted(history)
    scripted = all(not isinstance(history.scenario.outcome_of(r, 1), RunUntilStopped) for r in deciders)
    succeeded = history.first_state("Succeeded")
    wrong = history.first_state("Failed")
    if wrong is not None:
        return failed(expected, "the job became Failed, and no container had failed", wrong.seq)
    ends = [(r, history.attempt(r, 1)) for r in deciders]
    if not scripted:
        return judged(expected, [_not_yet(history, succeeded)])
    last: Moment | None = None
    for replica, attempt in ends:
        if attempt is None or attempt.ended is None:
            if succeeded is not None:
                return failed(expected, f"the job succeeded although {replica} had not ended", succeeded.seq)
            raise Undecided(f"{replica} was never seen to end")
        moment = Moment(
            seq=attempt.ended.seq, time=attempt.ended.time, what=f"{replica} ended with {attempt.ended.code}"
        )
        last = moment if last is None or moment.seq > last.seq else last
    assert last is not None
    if succeeded is not None and succeeded.seq < last.seq:
        return failed(expected, f"the job succeeded before {last.what}", succeeded.seq, last.seq)
    finding = eventually(
        history, since=last, bound="terminal", found=succeeded, missing="the job did not become Succeeded"
    )
    return judged(expected, [finding])


def _not_yet(history: History, succeeded: Moment | None) -> Finding:
    """Replicas that do not decide have ended; the job has to go on."""
    ended = [
        Moment(seq=a.ended.seq, time=a.ended.time, what=f"{a.replica} ended with {a.ended.code}")
        for replica in history.scenario.outcomes
        for a in history.attempts(replica)
        if a.ended is not None
    ]
    if not ended:
        raise Undecided("no replica was seen to end")
    return never(history, since=max(ended, key=lambda m: m.seq), offence=succeeded)


@requirement(
    "STATE-12",
    "Conditions are well formed: unique types, status True, False or Unknown, lastTransitionTime moves exactly when status "
    "changes.",
    feature="job-conditions",
    source=f"{API}; Kubernetes API conventions, typical status properties",
    applies=selection.everything,
)
def conditions_are_well_formed(history: History, contract: Contract) -> Judgement:  # noqa: ARG001
    expected = "unique types, status True/False/Unknown, lastTransitionTime moves exactly with status"
    must_have_status(history)
    before: dict[str, tuple[str, str]] = {}
    for version in history.job_versions:
        now: dict[str, tuple[str, str]] = {}
        for condition in version.conditions:
            name, status = str(condition.get("type")), str(condition.get("status"))
            moved = str(condition.get("lastTransitionTime"))
            if name in now:
                return failed(expected, f"two conditions of type {name}", version.seq)
            if status not in ("True", "False", "Unknown"):
                return failed(expected, f"{name} has status {status!r}", version.seq)
            if _time(condition.get("lastTransitionTime")) is None:
                return failed(expected, f"{name} has lastTransitionTime {moved!r}", version.seq)
            old = before.get(name)
            if old is not None and old[0] == status and old[1] != moved:
                return failed(expected, f"lastTransitionTime of {name} moved, its status did not", version.seq)
            # Times have a resolution of one second: a status that changes twice within one may keep its time.
            if old is not None and old[0] != status and _earlier(moved, old[1]):
                return failed(expected, f"lastTransitionTime of {name} went back", version.seq)
            now[name] = (status, moved)
        before = now
    return passed(expected, f"{len(history.job_versions)} versions, all well formed", history.job_versions[-1].seq)


def _earlier(one: str, other: str) -> bool:
    first, second = _time(one), _time(other)
    return first is not None and second is not None and first < second
