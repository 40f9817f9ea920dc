"""STATE-02 and STATE-06: what a job says while its replicas run, and while the kubelet restarts them."""

from collections.abc import Iterator
from dataclasses import dataclass

from exitcode_conformance import selection
from exitcode_conformance.contract import Contract
from exitcode_conformance.history import History, Moment
from exitcode_conformance.judging import Undecided, judged
from exitcode_conformance.pods import PodVersion
from exitcode_conformance.premise import must_have_run
from exitcode_conformance.registry import requirement
from exitcode_conformance.scenario import RunUntilStopped, Scenario, UntilAttempt
from exitcode_conformance.temporal import Finding, eventually, never, seconds
from exitcode_conformance.verdict import Judgement

API = "training-operator API, JobCondition and JobStatus"


def _all_run_at_last(scenario: Scenario, contract: Contract) -> bool:
    """Scenarios that wait for the job to say Running while every replica does nothing but run. A kubelet restarts at
    once, so that what a container is to do next may be told too late: those that are about that are left out."""
    waits = any(isinstance(step, UntilAttempt) and step.job_running for step in scenario.steps)
    last = [scenario.outcomes.get(r, (RunUntilStopped(),))[-1] for r in scenario.replica_names()]
    in_place = selection.target_policy(scenario) in ("Always", "OnFailure")
    runs = all(isinstance(outcome, RunUntilStopped) for outcome in last)
    return waits and runs and not in_place and scenario.manifest is None


@requirement(
    "STATE-02",
    "A job with all replicas running says Running.",
    feature="job-conditions",
    source=API,
    applies=_all_run_at_last,
)
def running_is_told(history: History, contract: Contract) -> Judgement:
    expected = "each time that all replicas run for a while, the job says Running"
    must_have_run(history)
    findings = list(filter(None, (_told_in(history, period) for period in _periods(history))))
    if not findings:
        raise Undecided("there was no time long enough at which all replicas ran")
    return judged(expected, findings)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Period:
    """A time at which all replicas run. `end` is None where it lasts to the end of the observation."""

    begin: Moment
    end: Moment | None


def _told_in(history: History, period: _Period) -> Finding | None:
    """Whether the job said Running in the period; None where it was too short to say that it did not."""
    before = [version for version in history.job_versions if version.seq <= period.begin.seq]
    if before and before[-1].is_true("Running"):
        version = before[-1]
        seen = f"the job said Running when {period.begin.what}"
        return Finding(holds=True, seen=seen, deciding=(version.seq, period.begin.seq))
    until = period.end.seq if period.end else history.end.seq
    versions = (v for v in history.job_versions if period.begin.seq < v.seq <= until and v.is_true("Running"))
    told = next(versions, None)
    found = Moment(seq=told.seq, time=told.time, what="the job says Running") if told is not None else None
    lasted = (period.end or history.end).time - period.begin.time
    if found is None and lasted < seconds(history, "state"):
        return None
    return eventually(history, since=period.begin, bound="state", found=found, missing="the job did not say Running")


def _periods(history: History) -> Iterator[_Period]:
    """Every time at which all replicas run, up to the job's end or its deletion."""
    ends = [m for m in (history.terminal[1] if history.terminal else None, history.job_deletion) if m is not None]
    last = min(ends, key=lambda moment: moment.seq, default=None)
    replicas = set(history.scenario.replica_names())
    versions = sorted(
        ((v, pod.replica) for pod in history.incarnations if pod.replica in replicas for v in pod.versions),
        key=lambda found: found[0].seq,
    )
    running: set[str] = set()
    begin: Moment | None = None
    for version, replica in versions:
        if replica is None or (last is not None and version.seq > last.seq):
            continue
        moment = Moment(seq=version.seq, time=version.time, what="all replicas ran")
        (running.add if _runs(history, version) else running.discard)(replica)
        if running == replicas:
            begin = begin or moment
        elif begin is not None:
            yield _Period(begin=begin, end=moment)
            begin = None
    if begin is not None:
        yield _Period(begin=begin, end=last)


def _runs(history: History, version: PodVersion) -> bool:
    status = version.container_status(history.kind.container) or {}
    going = version.verb == "DELETED" or bool(version.object["metadata"].get("deletionTimestamp"))
    return version.phase == "Running" and "running" in (status.get("state") or {}) and not going


def _kubelet_restarts(scenario: Scenario, contract: Contract) -> bool:
    policy, codes = selection.target_policy(scenario), selection.script_codes(scenario)
    return bool(codes) and codes[0] is not None and (policy == "Always" or (policy == "OnFailure" and codes[0] != 0))


@requirement(
    "STATE-06",
    "Restarts by the kubelet do not make the job say Restarting.",
    level="SHOULD",
    feature="job-conditions",
    source=f"{API}: Restarting is a job whose replicas its controller restarts",
    applies=_kubelet_restarts,
)
def restart_in_place_is_not_told(history: History, contract: Contract) -> Judgement:
    expected = "the job never says Restarting: nothing but the kubelet restarts its container"
    must_have_run(history)
    restarts = [a for a in history.attempts(history.scenario.target or "") if a.in_place]
    if not restarts:
        raise Undecided("no restart in place was seen")
    own = [failure for pod, failure in history.own_failures if pod.failed_by_itself is not None]
    said = history.first_state("Restarting")
    if said is not None and any(failure.seq < said.seq for failure in own):
        raise Undecided("a pod failed as a whole before that, which is for the operator to restart", said.seq)
    first = restarts[0]
    since = Moment(seq=first.created_seq, time=first.created_time, what=f"{first.replica} was started again in place")
    return judged(expected, [never(history, since=since, offence=said)])
