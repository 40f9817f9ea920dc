"""INV: what holds in every history of every scenario.

The other invariants of the catalogue are requirements of their own: STATE-05, STATE-07, IDENT-03, STATE-12.
"""

from dataclasses import replace

from exitcode_conformance import selection
from exitcode_conformance.contract import Contract
from exitcode_conformance.history import History, Moment
from exitcode_conformance.judging import Undecided, failed, judged, passed
from exitcode_conformance.pods import Incarnation
from exitcode_conformance.premise import (
    must_have_been_submitted,
    must_have_come_to_its_end,
    must_have_pods,
    must_have_run,
)
from exitcode_conformance.registry import requirement
from exitcode_conformance.scenario import Scenario
from exitcode_conformance.temporal import elapsed, eventually, first_creation_after, never
from exitcode_conformance.verdict import Judgement

SOURCE = "requirements of the suite: invariants of every history"


@requirement(
    "INV-03",
    "No pod is created after the job's terminal condition, nor after its deletion.",
    feature="job-conditions",
    source=SOURCE,
    applies=selection.everything,
)
def no_pod_after_the_end(history: History, contract: Contract) -> Judgement:
    expected = "no pod is created after the job is terminal or deleted"
    must_have_pods(history)
    removed = history.job_removal
    terminal = history.terminal[1] if history.terminal else None
    if terminal is not None and (removed is None or terminal.seq < removed.seq):
        late = next((p for p in history.incarnations if p.created.seq > terminal.seq), None)
        if late is not None:
            # The operator itself has said that the job is over, so it cannot have been too early for it to know.
            seen = f"{late.name} was created {elapsed(terminal.time, late.created.time):.1f} s after {terminal.what}"
            return failed(expected, seen, terminal.seq, late.created.seq)
    if removed is not None:
        late_pod = first_creation_after(history, removed, "pods")
        if late_pod is not None:
            return judged(expected, [late_pod])
    must_have_come_to_its_end(history, contract)
    ends = [moment for moment in (terminal, removed) if moment is not None]
    if not ends:
        return passed(expected, "the job neither ended nor was deleted while it was observed", history.end.seq)
    return judged(expected, [never(history, since=min(ends, key=lambda m: m.seq), offence=None)])


@requirement(
    "INV-04",
    "One live pod at most for each index; its UID changes only for a pod that failed or was deleted from outside.",
    feature="identity",
    source=SOURCE,
    applies=selection.everything,
)
def one_live_pod_each(history: History, contract: Contract) -> Judgement:
    expected = "a new pod of an index appears only after the one before it had failed, and none is alive beside it"
    pods = must_have_pods(history)
    last: dict[str, Incarnation] = {}
    open_ones: list[str] = []
    for pod in pods:
        replica = pod.replica or pod.name
        before = last.get(replica)
        last[replica] = pod
        if before is None:
            continue
        lines = (before.created.seq, pod.created.seq)
        if before.not_live is None or before.not_live > pod.created.seq:
            return failed(expected, f"{pod.name}: two pods of {replica} alive at one time", *lines)
        failure = before.failed_by_itself
        if failure is not None and failure.seq < pod.created.seq:
            continue
        removed = before.uid in history.removed_by_harness
        if removed or before.was_disrupted or _went_with_the_job(history, before):
            open_ones.append(f"{before.name} was deleted from outside")
            continue
        return failed(expected, f"{pod.name} took the place of a pod that had not failed", *lines)
    seen = "; ".join([f"{len(pods)} pod(s) for {len(last)} replica(s)", *open_ones])
    return passed(expected, seen, pods[-1].created.seq)


def _went_with_the_job(history: History, pod: Incarnation) -> bool:
    """Whether the pod was deleted after the harness had deleted the job: what comes then is the matter of INV-03."""
    asked, deletion = pod.deletion_asked, history.job_deletion
    return asked is not None and deletion is not None and asked.seq > deletion.seq


def _limits_the_kubelet(scenario: Scenario, contract: Contract) -> bool:
    in_place = any(g.restart_policy in ("OnFailure", "Always") for g in scenario.groups)
    return "backoffLimit" in scenario.run_policy and in_place


@requirement(
    "INV-05",
    "Restarts in place never exceed the declared backoffLimit.",
    feature="backoff-limit",
    source=SOURCE,
    applies=_limits_the_kubelet,
)
def restarts_stay_in_the_limit(history: History, contract: Contract) -> Judgement:
    limit = int(history.scenario.run_policy["backoffLimit"])
    expected = f"at most {limit} restarts in place in all pods together before the job ends"
    must_have_pods(history)
    counted, exceeded = _restarts_before_the_end(history, limit)
    if exceeded is not None:
        # The kubelet may be faster than an operator that is about to end the job; it is not so for long.
        ended = history.terminal[1] if history.terminal else None
        missing = "the job went on"
        finding = eventually(history, since=exceeded, bound="terminal", found=ended, missing=missing)
        seen = f"{exceeded.what}; {finding.seen}"
        return judged(expected, [replace(finding, holds=None if finding.holds else finding.holds, seen=seen)])
    if counted == 0:
        raise Undecided("no restart was seen")
    so_far = " before the job ended" if history.terminal else ""
    return passed(expected, f"{counted} restart(s){so_far}", history.end.seq)


def _restarts_before_the_end(history: History, limit: int) -> tuple[int, Moment | None]:
    """How many restarts in place there were before the job was terminal, and when they became too many. What a kubelet
    does with pods that outlive their job is no restart of the job."""
    end = history.terminal[1].seq if history.terminal else None
    versions = sorted((v for pod in history.incarnations for v in pod.versions), key=lambda v: v.seq)
    counts: dict[str, int] = {}
    total = 0
    for version in versions:
        if end is not None and version.seq > end:
            break
        statuses = (version.object.get("status") or {}).get("containerStatuses") or []
        counts[str(version.object["metadata"]["uid"])] = sum(int(s.get("restartCount") or 0) for s in statuses)
        total = max(total, sum(counts.values()))
        if total > limit:
            return total, Moment(seq=version.seq, time=version.time, what=f"{total} restarts in place")
    return total, None


@requirement(
    "INV-06",
    "replicaStatuses.succeeded never falls.",
    feature="job-conditions",
    source=SOURCE,
    applies=selection.everything,
)
def succeeded_never_falls(history: History, contract: Contract) -> Judgement:
    expected = "succeeded of every replica type only grows, whatever becomes of the pods that it counts"
    must_have_run(history)
    if not any(version.replica_statuses for version in history.job_versions):
        raise Undecided("the operator never wrote replicaStatuses")
    highest: dict[str, tuple[int, int]] = {}
    for version in history.job_versions:
        # A type that is left out counts none, like a number that is.
        for kind in dict.fromkeys((*highest, *version.replica_statuses)):
            now = version.count(kind, "succeeded")
            before, line = highest.get(kind, (0, version.seq))
            if now < before:
                return failed(expected, f"succeeded of {kind} fell from {before} to {now}", line, version.seq)
            if now > before:
                highest[kind] = (now, version.seq)
    seen = ", ".join(f"{kind} {count}" for kind, (count, _) in highest.items()) or "nothing succeeded"
    return passed(expected, seen, history.job_versions[-1].seq)


@requirement(
    "INV-08",
    "The operator's process does not restart.",
    feature="operator-process",
    source=SOURCE,
    applies=selection.everything,
)
def operator_stays_up(history: History, contract: Contract) -> Judgement:
    expected = "the operator's process runs through the whole scenario"
    submitted = must_have_been_submitted(history)
    if not any(a.action == "operator-started" for a in history.run_actions):
        raise Undecided("the harness did not see the operator's process")
    for action in history.run_actions:
        # A process of the harness that has ended stays so; a container is started again.
        for_good = "status" in action.detail
        during = action.seq <= history.end.seq and (for_good or action.seq >= submitted.seq)
        if action.action == "operator-exited" and during:
            return failed(expected, f"the operator: {action.detail.get('how', 'it ended')}", action.seq)
    return passed(expected, "it ran all the time", submitted.seq, history.end.seq)


@requirement(
    "INV-10",
    "The job itself stays until its deletion is asked for, or its time to live is over.",
    feature="job-conditions",
    source=f"{SOURCE}; Kubeflow API, runPolicy: without ttlSecondsAfterFinished a finished job is kept",
    applies=selection.everything,
)
def job_stays(history: History, contract: Contract) -> Judgement:
    expected = "the job is not removed unless somebody asks for it, or ttlSecondsAfterFinished has passed"
    submitted = must_have_been_submitted(history)
    must_have_pods(history)
    removed, asked = history.job_removal, history.job_deletion
    if removed is not None:
        if asked is not None and asked.seq < removed.seq:
            return passed(expected, f"{removed.what} after its deletion was asked for", asked.seq, removed.seq)
        if "ttlSecondsAfterFinished" in history.scenario.run_policy and history.terminal is not None:
            seen = f"{removed.what} after {history.terminal[1].what}: it had a time to live"
            return passed(expected, seen, history.terminal[1].seq, removed.seq)
    since = history.terminal[1] if history.terminal is not None else submitted
    return judged(expected, [never(history, since=since, offence=removed, absent="no removal of the job")])
