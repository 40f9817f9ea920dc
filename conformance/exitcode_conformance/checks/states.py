"""STATE: what the job says of itself, and whether it is true. How it is said is the matter of `times`."""

from collections.abc import Iterator, Mapping
from itertools import pairwise

from exitcode_conformance import selection
from exitcode_conformance.checks.restarts import must_have_restarted
from exitcode_conformance.contract import Contract
from exitcode_conformance.history import DOCUMENTED_STATES, TERMINAL_STATES, History, JobVersion, Moment
from exitcode_conformance.judging import Undecided, failed, judged, passed
from exitcode_conformance.pods import Attempt, PodVersion
from exitcode_conformance.premise import (
    must_have_been_submitted,
    must_have_come_to_its_end,
    must_have_ended,
    must_have_pods,
    must_have_run,
)
from exitcode_conformance.registry import requirement
from exitcode_conformance.scenario import RunUntilStopped, Scenario, UntilAttempt
from exitcode_conformance.success_rule import deciding_replicas
from exitcode_conformance.temporal import Finding, eventually, never, seconds
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
def states_follow_the_machine(history: History, contract: Contract) -> Judgement:
    expected = "Created first, then only steps of the documented state machine"
    submitted = must_have_been_submitted(history)
    steps = list(_steps(history))
    sequence = ", ".join(name for name, _ in steps) or "no state at all"
    if steps and steps[0][0] != "Created" and not _created_came_with(steps):
        return failed(expected, f"the job's first state is {steps[0][0]}", steps[0][1].seq)
    for (before, _), (after, moment) in pairwise(s for s in steps if s[0] != "Created"):
        if after != before and after not in ALLOWED[before]:
            return failed(expected, f"{after} after {before} (all of them: {sequence})", moment.seq)
    again = [moment for name, moment in steps if name == "Created"][1:]
    if again:
        return failed(expected, f"Created once more (all of them: {sequence})", again[0].seq)
    found = next((moment for name, moment in steps if name == "Created"), None)
    finding = eventually(history, since=submitted, bound="created", found=found, missing="the job never said Created")
    judgement = judged(expected, [finding])
    return judgement.model_copy(update={"seen": f"{sequence}; {judgement.seen}"})


def _steps(history: History) -> Iterator[tuple[str, Moment]]:
    """Every documented condition each time it becomes True, in the order of the writes, and within one of the list."""
    before: set[str] = set()
    for version in history.job_versions:
        for name in version.true_conditions:
            if name not in before:
                yield name, Moment(seq=version.seq, time=version.time, what=f"the job says {name}")
        before = set(version.true_conditions)


def _created_came_with(steps: list[tuple[str, Moment]]) -> bool:
    """Whether the write that brought the first condition brought Created too."""
    return ("Created", steps[0][1].seq) in {(name, moment.seq) for name, moment in steps}


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
def restart_is_told(history: History, contract: Contract) -> Judgement:
    rounds = _rounds_expected(history.scenario)
    expected = f"Restarting and then Running, {rounds} time(s), once for each restart"
    target = history.scenario.target or ""
    must_have_restarted(history)
    sequence = ", ".join(name for name, _ in history.states)
    judgement = judged(expected, _each_told(history, target, rounds))
    return judgement.model_copy(update={"seen": f"{sequence}; {judgement.seen}"})


def _each_told(history: History, target: str, rounds: int) -> Iterator[Finding]:
    for number in range(1, rounds + 1):
        attempt, successor = history.attempt(target, number), history.attempt(target, number + 1)
        if attempt is None or attempt.ended is None or successor is None:
            raise Undecided(f"restart {number} of {target} was not seen to its end")
        yield from _told(history, attempt, successor)


def _told(history: History, attempt: Attempt, successor: Attempt) -> Iterator[Finding]:
    """Whether one restart was told. What is said only after the successor has ended too may be said of the next one."""
    assert attempt.ended is not None
    what = f"attempt {attempt.number} of {attempt.replica} ended"
    ended = Moment(seq=attempt.ended.seq, time=attempt.ended.time, what=what)
    restarting = _first_true(history, "Restarting", ended.seq)
    finding = eventually(
        history, since=ended, bound="state", found=restarting, missing="the job did not say Restarting"
    )
    yield _of_this_round(finding, restarting, successor)
    if successor.started_seq is None or successor.started_time is None:
        raise Undecided(f"restart {attempt.number} of {attempt.replica} was not seen to its end")
    what = f"attempt {successor.number} was running"
    runs = Moment(seq=successor.started_seq, time=successor.started_time, what=what)
    running = _first_true(history, "Running", restarting.seq if restarting else ended.seq)
    if restarting is not None:
        finding, runs = _running_again(history, runs, running)
        yield _while_it_ran(history, _of_this_round(finding, running, successor), runs, successor)


def _running_again(history: History, runs: Moment, running: Moment | None) -> tuple[Finding, Moment]:
    """Whether the job said Running again, and from when on it had to: Running is said of all replicas, so not before
    the others are up again as well, where something has become of them too."""
    missing = "the job did not say Running again"
    finding = eventually(history, since=runs, bound="state", found=running, missing=missing)
    if finding.holds is not False:
        return finding, runs
    up = _all_up(history, runs)
    if up is None:
        seen = f"{finding.seen}, but the other replicas were not all up for as long"
        return Finding(holds=None, seen=seen, deciding=finding.deciding), runs
    if up.seq == runs.seq:
        return finding, runs
    return eventually(history, since=up, bound="state", found=running, missing=missing), up


def _all_up(history: History, since: Moment) -> Moment | None:
    """From which moment on all replicas were running or had succeeded, for as long as the operator has to say so or to
    the end of the observation; None if they never were."""
    up: dict[str, bool] = {}
    begin: Moment | None = None
    for version, replica in _pod_versions(history):
        going = version.verb == "DELETED" or bool(version.object["metadata"].get("deletionTimestamp"))
        up[replica] = version.phase == "Succeeded" or (version.phase == "Running" and not going)
        if version.seq < since.seq:
            continue
        if not all(up.get(name, False) for name in history.scenario.replica_names()):
            if begin is not None and version.time - begin.time >= seconds(history, "state"):
                return begin
            begin = None
        elif begin is None:
            what = since.what if version.seq == since.seq else f"{replica} was up too"
            begin = Moment(seq=version.seq, time=version.time, what=what)
    return begin


def _pod_versions(history: History) -> list[tuple[PodVersion, str]]:
    """Every version of the pods of the job's replicas, in the order in which they came, each with its replica."""
    names = history.scenario.replica_names()
    found = [(v, pod.replica) for pod in history.incarnations if pod.replica in names for v in pod.versions]
    return sorted(((v, r) for v, r in found if r is not None), key=lambda one: one[0].seq)


def _of_this_round(finding: Finding, found: Moment | None, successor: Attempt) -> Finding:
    if found is None or successor.ended is None or found.seq < successor.ended.seq:
        return finding
    seen = f"{found.what} only after attempt {successor.number} had ended too"
    return Finding(holds=None, seen=seen, deciding=(*finding.deciding, successor.ended.seq))


def _while_it_ran(history: History, finding: Finding, runs: Moment, successor: Attempt) -> Finding:
    """The finding, unless the successor ended before the operator had to have said that the job runs again."""
    ended = successor.ended
    if finding.holds is not False or ended is None or ended.time - runs.time >= seconds(history, "state"):
        return finding
    seen = f"{finding.seen}, but it had ended by then too"
    return Finding(holds=None, seen=seen, deciding=(*finding.deciding, ended.seq))


def _first_true(history: History, name: str, since: int) -> Moment | None:
    """The first write after line `since` in which the condition is True."""
    version = next((v for v in history.job_versions if v.seq > since and v.is_true(name)), None)
    return Moment(seq=version.seq, time=version.time, what=f"the job says {name}") if version else None


@requirement(
    "STATE-04",
    "Running and Restarting are never both True.",
    feature="job-conditions",
    source=API,
    applies=selection.everything,
)
def running_excludes_restarting(history: History, contract: Contract) -> Judgement:
    expected = "no version of the job has both Running and Restarting True"
    must_have_run(history)
    for version in history.job_versions:
        if version.is_true("Running") and version.is_true("Restarting"):
            return failed(expected, "both are True", version.seq)
    if all(version.state in (None, "Created") for version in history.job_versions) and _all_started(history):
        raise Undecided("every replica ran, but the job never said more than Created", history.job_versions[-1].seq)
    return passed(expected, f"none of {len(history.job_versions)} versions has", history.job_versions[-1].seq)


def _all_started(history: History) -> bool:
    replicas = history.scenario.replica_names()
    return all(any(a.started_seq is not None for a in history.attempts(replica)) for replica in replicas)


def _comparable(version: JobVersion) -> list[tuple[str, str, str]]:
    """The documented conditions without what is only said of them; the order of the list says nothing."""
    return sorted(
        (str(c.get("type")), str(c.get("status")), str(c.get("lastTransitionTime")))
        for c in version.conditions
        if version.kind.documented(str(c.get("type"))) in DOCUMENTED_STATES
    )


@requirement(
    "STATE-05",
    "At most one terminal condition is ever True; once it is, no condition changes any more, and nothing but Created "
    "is True beside it.",
    feature="job-conditions",
    source=f"{API}: Succeeded and Failed are final",
    applies=selection.everything,
)
def terminal_is_final(history: History, contract: Contract) -> Judgement:
    expected = "one terminal condition at most; then no condition changes, and only Created is True beside it"
    must_have_run(history)
    final: JobVersion | None = None
    for version in history.job_versions:
        true = version.true_conditions
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
    must_have_come_to_its_end(history, contract)
    if final is None:
        return passed(expected, "the job was not terminal while it was observed", history.end.seq)
    since = Moment(seq=final.seq, time=final.time, what=f"the job says {final.state}")
    return judged(expected, [never(history, since=since, offence=None, absent=f"{final.state}, and unchanged")])


def _decides(scenario: Scenario, contract: Contract) -> bool:
    """Scenarios in which replicas end with 0 by their script and nothing ends with another code."""
    codes = [selection.outcome_name(o) for script in scenario.outcomes.values() for o in script]
    others_fail = any(g.sidecar_fails or g.fails_without_code for g in scenario.groups)
    decided = bool(codes) and all(c in ("exit0", "run") for c in codes) and "exit0" in codes
    return decided and not others_fail and not _always(scenario)


def _always(scenario: Scenario) -> bool:
    return any(g.restart_policy == "Always" for g in scenario.groups)


@requirement(
    "STATE-09",
    "The job succeeds by the documented success rule of its kind, and not before.",
    feature="success-policy",
    source="Kubeflow documentation and API: chief or master decides; without one, worker 0 or all workers",
    applies=_decides,
)
def success_rule_holds(history: History, contract: Contract) -> Judgement:
    deciders = deciding_replicas(history.scenario)
    expected = f"Succeeded once {' and '.join(deciders)} ended with 0, and not before"
    must_have_pods(history)
    unasked = history.unscripted_failure(history.terminal[1].seq if history.terminal else history.end.seq)
    if unasked is not None:
        raise Undecided(f"{unasked.what}, which nobody asked for", unasked.seq)
    scripted = all(not isinstance(history.scenario.outcome_of(r, 1), RunUntilStopped) for r in deciders)
    succeeded = history.first_state("Succeeded")
    wrong = history.first_state("Failed")
    if wrong is not None:
        return failed(expected, "the job became Failed, and no container had failed", wrong.seq)
    if not scripted:
        return judged(expected, [_not_yet(history, succeeded)])
    ends: list[Moment] = []
    for replica in deciders:
        attempt = history.attempt(replica, 1)
        unended = attempt is None or attempt.ended is None or attempt.ended.stopped
        if succeeded is not None and unended:
            return failed(expected, f"the job succeeded although {replica} had not ended", succeeded.seq)
        ends.append(must_have_ended(history, replica)[2])
    last = max(ends, key=lambda moment: moment.seq)
    if succeeded is not None and succeeded.seq < last.seq:
        return failed(expected, f"the job succeeded before {last.what}", succeeded.seq, last.seq)
    finding = eventually(
        history, since=last, bound="terminal", found=succeeded, missing="the job did not become Succeeded"
    )
    return judged(expected, [finding])


def _not_yet(history: History, succeeded: Moment | None) -> Finding:
    """Replicas that do not decide have ended; the job has to go on."""
    if succeeded is not None:
        seen = f"{succeeded.what}, and nobody who decides had ended"
        return Finding(holds=False, seen=seen, deciding=(succeeded.seq,))
    ends = [must_have_ended(history, replica)[2] for replica in history.scenario.outcomes]
    return never(history, since=max(ends, key=lambda m: m.seq), offence=None)
