"""STATE-08: replicaStatuses, held to the pods once nothing changes any more."""

from dataclasses import dataclass

from exitcode_conformance import selection
from exitcode_conformance.contract import Contract
from exitcode_conformance.history import History, JobVersion, Moment
from exitcode_conformance.judging import Undecided, judged
from exitcode_conformance.pods import Incarnation, PodVersion
from exitcode_conformance.premise import must_have_run
from exitcode_conformance.registry import requirement
from exitcode_conformance.scenario import Scenario, outcome_code
from exitcode_conformance.temporal import eventually
from exitcode_conformance.verdict import Judgement

KINDS_OF_COUNT = ("active", "succeeded", "failed")


def _comes_to_rest(scenario: Scenario, contract: Contract) -> bool:
    """Scenarios after which nothing moves: no foreign manifest, no job that goes, no two failures at one moment."""
    failing = [r for r, script in scenario.outcomes.items() if any(outcome_code(o) for o in script)]
    return scenario.manifest is None and not selection.deletes_the_job(scenario, contract) and len(failing) < 2


@requirement(
    "STATE-08",
    "At quiescence replicaStatuses agree with the pods.",
    feature="job-conditions",
    source="training-operator API, ReplicaStatus: the number of actively running pods, and of those that reached phase "
    "Succeeded, and Failed",
    applies=_comes_to_rest,
)
def counts_are_true(history: History, contract: Contract) -> Judgement:
    must_have_run(history)
    if not any(version.replica_statuses for version in history.job_versions):
        raise Undecided("the operator never wrote replicaStatuses")
    types = tuple(group.type for group in history.scenario.groups)
    allowed = {kind: _allowed(history, kind) for kind in types}
    expected = "; ".join(f"{kind}: {allowed[kind].told()}" for kind in types)
    since = _last_change(history)
    last = history.job_versions[-1]
    wrong = [f"replicaStatuses.{k}.{n} is {c}" for k in types for n, c in _wrong(last, k, allowed[k])]
    found: Moment | None = None
    for version in reversed(history.job_versions):
        if any(True for kind in types for _ in _wrong(version, kind, allowed[kind])):
            break
        found = Moment(seq=version.seq, time=version.time, what="replicaStatuses agreed with the pods")
    finding = eventually(history, since=since, bound="state", found=found, missing=", ".join(wrong))
    return judged(expected, [finding])


@dataclass(frozen=True, kw_only=True, slots=True)
class _Allowed:
    """What a type's counts may be: the least and the most of each."""

    active: tuple[int, int]
    succeeded: tuple[int, int]
    failed: tuple[int, int]

    def told(self) -> str:
        """`active 1, succeeded 0, failed 0 to 1`."""
        words = []
        for name in KINDS_OF_COUNT:
            least, most = getattr(self, name)
            words.append(f"{name} {least}" if least == most else f"{name} {least} to {most}")
        return ", ".join(words)


def _wrong(version: JobVersion, kind: str, allowed: _Allowed) -> list[tuple[str, int]]:
    counts = {name: version.count(kind, name) for name in KINDS_OF_COUNT}
    return [(n, c) for n, c in counts.items() if not getattr(allowed, n)[0] <= c <= getattr(allowed, n)[1]]


def _allowed(history: History, kind: str) -> _Allowed:
    """While the job goes on the counts are those of the pods there are. Once it has ended nobody has to count any more:
    they may stand as they were at the end, or follow the pods, or count what still ran in a job that succeeded as
    succeeded with it, which training operators do."""
    replicas = [r for r in history.scenario.replica_names() if history.scenario.group_of(r).type == kind]
    pods = [pod for r in replicas for pod in history.incarnations_of(r)]
    current = [found[-1] for r in replicas if (found := history.incarnations_of(r))]
    end = history.end.seq
    running = [_stand(pod, end) == "running" for pod in current].count(True)
    leaving = [_stand(pod, end) == "leaving" for pod in current].count(True)
    succeeded = [_stand(pod, end) == "Succeeded" for pod in current].count(True)
    failed = [_stand(pod, end) == "Failed" for pod in current].count(True)
    ever_failed = sum(pod.phase_reached("Failed") is not None for pod in pods)
    if history.terminal is None:
        return _Allowed(
            active=(running, running + leaving),
            succeeded=(succeeded, succeeded + leaving),
            failed=(failed, ever_failed + leaving),
        )
    state, ended = history.terminal
    ran = max(sum(_stand(pod, line) == "running" for pod in pods) for line in _lines_until(pods, ended.seq))
    had_succeeded = sum(_stand(pod, ended.seq) == "Succeeded" for pod in pods)
    ever_succeeded = sum(pod.phase_reached("Succeeded") is not None for pod in pods)
    most = max(ever_succeeded, had_succeeded + ran) if state == "Succeeded" else ever_succeeded
    # What had failed by itself when the job became Failed is the reason for it, and has been counted.
    reason = sum(_stand(pod, ended.seq) == "Failed" for pod in current)
    return _Allowed(
        active=(0, max(ran, running) + leaving),
        succeeded=(had_succeeded, most),
        failed=(reason if state == "Failed" else 0, ever_failed),
    )


def _lines_until(pods: list[Incarnation], last: int) -> list[int]:
    """The lines up to the job's end at which pods changed: an operator may count, clean up, and only then say that the
    job has ended."""
    return [last, *(version.seq for pod in pods for version in pod.versions if version.seq < last)]


def _stand(pod: Incarnation, line: int) -> str | None:
    """How a pod stood at a line: `running`, `leaving`, `Succeeded`, `Failed`; None if it was pending or not there."""
    version = _version_at(pod, line)
    if version is None or version.verb == "DELETED":
        return None
    if version.object["metadata"].get("deletionTimestamp"):
        return "leaving"
    return {"Running": "running", "Succeeded": "Succeeded", "Failed": "Failed"}.get(version.phase)


def _version_at(pod: Incarnation, line: int) -> PodVersion | None:
    return next((v for v in reversed(pod.versions) if v.seq <= line), None)


def _last_change(history: History) -> Moment:
    """The last change of a pod's standing, or the job's end if that is later."""
    moments = [history.terminal[1]] if history.terminal else []
    for pod in history.incarnations:
        before: str | None = ""
        for version in pod.versions:
            now = _stand(pod, version.seq)
            if now != before:
                what = f"{pod.name} was {now or 'gone or pending'}"
                moments.append(Moment(seq=version.seq, time=version.time, what=what))
            before = now
    if not moments:
        raise Undecided("the operator never created a pod for the job")
    return max(moments, key=lambda moment: moment.seq)
