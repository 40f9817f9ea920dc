"""LIMIT: what ends a job, or removes it, that no exit code asks for."""

from collections.abc import Iterator
from dataclasses import replace

from exitcode_conformance import selection
from exitcode_conformance.classification import aftermath, restarted_in_time
from exitcode_conformance.contract import Contract
from exitcode_conformance.history import History, Moment
from exitcode_conformance.job_end import comes_to
from exitcode_conformance.judging import Undecided, failed, judged
from exitcode_conformance.premise import must_have_been_submitted, must_have_pods, must_have_run
from exitcode_conformance.registry import requirement
from exitcode_conformance.scenario import Scenario
from exitcode_conformance.temporal import Finding, eventually, held_up_at
from exitcode_conformance.verdict import Judgement

RUN_POLICY = "training-operator API, RunPolicy"
EARLY = 2.0
"""Seconds by which an operator may seem to be early: times in a status are cut to whole seconds, and seen a moment
after they were written."""


def _limits_restarts_in_place(scenario: Scenario, contract: Contract) -> bool:
    return "backoffLimit" in scenario.run_policy and selection.target_policy(scenario) == "OnFailure"


@requirement(
    "LIMIT-01",
    "backoffLimit with OnFailure: the job fails once the restarts reach the limit.",
    feature="backoff-limit",
    source=f"{RUN_POLICY}.backoffLimit: number of retries before the job is marked failed",
    applies=_limits_restarts_in_place,
)
def limit_ends_restarts_in_place(history: History, contract: Contract) -> Judgement:
    limit = max(int(history.scenario.run_policy["backoffLimit"]), 1)
    expected = f"the job becomes Failed once its pods together were restarted {limit} time(s), and not before"
    must_have_pods(history)
    attempts = [a for r in history.scenario.replica_names() for a in history.attempts(r) if a.in_place]
    restarts = sorted(attempts, key=lambda attempt: attempt.created_seq)
    terminal = history.terminal
    seen = [a for a in restarts if terminal is None or a.created_seq < terminal[1].seq]
    if terminal is not None and (terminal[0] == "Succeeded" or len(seen) < limit):
        unasked = history.unscripted_failure(terminal[1].seq)
        if unasked is not None:
            raise Undecided(f"{unasked.what}, which nobody asked for", unasked.seq)
        return failed(expected, f"{terminal[1].what} after {len(seen)} restart(s)", terminal[1].seq)
    if len(seen) < limit:
        raise Undecided(f"only {len(seen)} restart(s) were seen", history.end.seq)
    last = seen[limit - 1]
    reached = Moment(seq=last.created_seq, time=last.created_time, what=f"the pods had been restarted {limit} time(s)")
    found = terminal[1] if terminal else None
    missing = f"the job did not become Failed; {len(seen)} restart(s) were seen"
    return judged(expected, [eventually(history, since=reached, bound="terminal", found=found, missing=missing)])


def _limits_replacements(scenario: Scenario, contract: Contract) -> bool:
    limited = "backoffLimit" in scenario.run_policy and scenario.manifest is None
    return limited and selection.expects_restart(scenario, contract)


@requirement(
    "LIMIT-02",
    "backoffLimit bounds the restarts of ExitCode replicas too.",
    level="SHOULD",
    feature="backoff-limit",
    source=f"{RUN_POLICY}.backoffLimit: number of retries before the job is marked failed; no policy is excepted",
    profile="extended",
    applies=_limits_replacements,
)
def limit_ends_replacements(history: History, contract: Contract) -> Judgement:
    limit = int(history.scenario.run_policy["backoffLimit"])
    target = history.scenario.target or ""
    expected = f"at most {limit} restart(s) of {target}, and then the job becomes Failed"
    must_have_run(history)
    attempts = history.attempts(target)
    if not attempts:
        raise Undecided(f"{target} was never created")
    seen = f"{len(attempts) - 1} restart(s) were seen"
    if len(attempts) - 1 > limit:
        return failed(expected, seen, *(attempt.created_seq for attempt in attempts))
    last = aftermath(history, target, len(attempts))
    finding = comes_to(history, "Failed", since=last.ended)
    return judged(expected, [replace(finding, seen=f"{seen}; {finding.seen}")])


def _has_a_deadline(scenario: Scenario, contract: Contract) -> bool:
    return "activeDeadlineSeconds" in scenario.run_policy


@requirement(
    "LIMIT-03",
    "activeDeadlineSeconds ends the job in time, with nobody touching the object.",
    feature="active-deadline",
    source=f"{RUN_POLICY}.activeDeadlineSeconds: relative to startTime; the job is failed when it is over",
    profile="extended",
    applies=_has_a_deadline,
)
def deadline_ends_the_job(history: History, contract: Contract) -> Judgement:
    limit = int(history.scenario.run_policy["activeDeadlineSeconds"])
    expected = f"the job becomes Failed {limit} s after its start"
    must_have_run(history)
    # One that is written late, with the end perhaps, is that of a job that had started when it got its first pod.
    starts = [(v.seq, v.time) for v in history.job_versions if v.status.get("startTime")]
    line, time = min(starts[:1] + [(p.created.seq, p.created.time) for p in history.incarnations[:1]])
    due = Moment(seq=line, time=time + limit, what=f"the {limit} s since its start were over")
    terminal = history.terminal
    if terminal is not None:
        unasked = history.unscripted_failure(terminal[1].seq)
        if unasked is not None:
            raise Undecided(f"{unasked.what}, which nobody asked for", unasked.seq)
        if terminal[0] == "Succeeded":
            return failed(expected, terminal[1].what, terminal[1].seq)
    found = terminal[1] if terminal else None
    missing = "the job did not become Failed"
    in_time = eventually(history, since=due, bound="terminal", found=found, missing=missing)
    return judged(expected, [_not_early(history, due, limit, found) or in_time])


def _not_early(history: History, due: Moment, limit: int, found: Moment | None) -> Finding | None:
    """What is to be said of something that came before its time, which is so many seconds after something else; None
    if it did not. Where that was recorded late, the time is over sooner than it seems."""
    if found is None or found.time >= due.time - EARLY:
        return None
    early, late = due.time - found.time, held_up_at(history, due.time - limit)
    seen = f"{found.what}, {early:.1f} s before {due.what}"
    if late >= early - EARLY:
        seen += f", which may have begun {late:.1f} s sooner than it was told: the machine was too slow to tell"
        return Finding(holds=None, seen=seen, deciding=(due.seq, found.seq))
    return Finding(holds=False, seen=seen, deciding=(due.seq, found.seq))


def _has_a_time_to_live(scenario: Scenario, contract: Contract) -> bool:
    return "ttlSecondsAfterFinished" in scenario.run_policy


@requirement(
    "LIMIT-04",
    "ttlSecondsAfterFinished removes the job in time, with nobody touching the object.",
    feature="ttl-after-finished",
    source=f"{RUN_POLICY}.ttlSecondsAfterFinished: the job is cleaned up so long after it has finished",
    profile="extended",
    applies=_has_a_time_to_live,
)
def job_is_removed_in_time(history: History, contract: Contract) -> Judgement:
    limit = int(history.scenario.run_policy["ttlSecondsAfterFinished"])
    expected = f"the job is deleted {limit} s after its end"
    must_have_been_submitted(history)
    asked = next(
        (v for v in history.job_versions if v.verb == "DELETED" or v.object["metadata"].get("deletionTimestamp")), None
    )
    terminal = history.terminal
    if terminal is None:
        if asked is not None:
            return failed(expected, "the job was deleted before it had ended", asked.seq)
        raise Undecided("the job never became Succeeded or Failed", history.end.seq)
    found = Moment(seq=asked.seq, time=asked.time, what="the job was deleted") if asked is not None else None
    what = f"the {limit} s since the job's end were over"
    due = Moment(seq=terminal[1].seq, time=terminal[1].time + limit, what=what)
    missing = "the job was not deleted"
    in_time = eventually(history, since=due, bound="removal", found=found, missing=missing)
    return judged(expected, [_not_early(history, due, limit, found) or in_time])


def _fails_again_and_again(scenario: Scenario, contract: Contract) -> bool:
    unlimited = "backoffLimit" not in scenario.run_policy and scenario.manifest is None
    under_exit_code = selection.target_policy(scenario) == "ExitCode"
    return unlimited and under_exit_code and selection.retryable_runs(scenario, contract) > 1


@requirement(
    "LIMIT-05",
    "Without a backoffLimit, retryable failures go on being restarted.",
    feature="restart-policy-exit-code",
    source=f"{RUN_POLICY}.backoffLimit: optional, and no default is applied",
    applies=_fails_again_and_again,
)
def restarts_go_on(history: History, contract: Contract) -> Judgement:
    target = history.scenario.target or ""
    runs = selection.retryable_runs(history.scenario, contract)
    expected = f"each of the {runs} retryable failures of {target} in a row is restarted, and the job does not fail"
    return judged(expected, _each_restarted(history, target, runs))


def _each_restarted(history: History, target: str, runs: int) -> Iterator[Finding]:
    for number in range(1, runs + 1):
        after = aftermath(history, target, number)
        yield restarted_in_time(history, after)
        if after.failed is not None:
            seen = f"the job became Failed after retryable failure {number} in a row"
            yield Finding(holds=False, seen=seen, deciding=(after.ended.seq, after.failed.seq))
        if after.successor is None or after.failed is not None:
            return
