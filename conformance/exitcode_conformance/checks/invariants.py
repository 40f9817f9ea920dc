"""INV: what holds in every history of every scenario. The other invariants are STATE-05, STATE-07, IDENT-03, STATE-12."""

from exitcode_conformance import selection
from exitcode_conformance.contract import Contract
from exitcode_conformance.history import History, Moment
from exitcode_conformance.judging import Undecided, failed, judged, passed
from exitcode_conformance.pods import Incarnation
from exitcode_conformance.premise import must_have_been_submitted, must_have_pods, must_have_status
from exitcode_conformance.registry import requirement
from exitcode_conformance.scenario import Scenario
from exitcode_conformance.temporal import never
from exitcode_conformance.verdict import Judgement

SOURCE = "requirements of the suite: invariants of every history"


@requirement(
    "INV-03",
    "No pod is created after the job's terminal condition, nor after its deletion.",
    feature="job-conditions",
    source=SOURCE,
    applies=selection.everything,
)
def no_pod_after_the_end(history: History, contract: Contract) -> Judgement:  # noqa: ARG001 - every check has it
    expected = "no pod is created after the job is terminal or deleted"
    must_have_pods(history)
    removed = next((v for v in history.job_versions if v.verb == "DELETED"), None)
    ends = [history.terminal[1]] if history.terminal else []
    if removed is not None:
        ends.append(Moment(seq=removed.seq, time=removed.time, what="the job was removed"))
    if not ends:
        return passed(expected, "the job neither ended nor was deleted while it was observed", history.end.seq)
    end = min(ends, key=lambda m: m.seq)
    late = next((p for p in history.incarnations if p.created.seq > end.seq), None)
    offence = Moment(seq=late.created.seq, time=late.created.time, what=f"{late.name} was created") if late else None
    return judged(expected, [never(history, since=end, offence=offence)])


@requirement(
    "INV-04",
    "One live pod at most for each index; its UID changes only for a pod that failed or was deleted from outside.",
    feature="identity",
    source=SOURCE,
    applies=selection.everything,
)
def one_live_pod_each(history: History, contract: Contract) -> Judgement:  # noqa: ARG001 - every check has it
    expected = "a new pod of an index appears only after the one before it had failed, and none is alive beside it"
    pods = must_have_pods(history)
    last: dict[str, Incarnation] = {}
    for pod in pods:
        replica = pod.replica or pod.name
        before = last.get(replica)
        if before is not None:
            if before.not_live is None or before.not_live > pod.created.seq:
                return failed(
                    expected,
                    f"{pod.name}: two pods of {replica} alive at one time",
                    before.created.seq,
                    pod.created.seq,
                )
            failure = before.phase_reached("Failed")
            if failure is None or failure.seq > pod.created.seq:
                return failed(
                    expected,
                    f"{pod.name} took the place of a pod that had not failed",
                    before.created.seq,
                    pod.created.seq,
                )
        last[replica] = pod
    return passed(expected, f"{len(pods)} pod(s) for {len(last)} replica(s)", pods[-1].created.seq)


def _limits_the_kubelet(scenario: Scenario, contract: Contract) -> bool:  # noqa: ARG001
    in_place = any(g.restart_policy in ("OnFailure", "Always") for g in scenario.groups)
    return "backoffLimit" in scenario.run_policy and in_place


@requirement(
    "INV-05",
    "Restarts in place never exceed the declared backoffLimit.",
    feature="backoff-limit",
    source=SOURCE,
    applies=_limits_the_kubelet,
)
def restarts_stay_in_the_limit(history: History, contract: Contract) -> Judgement:  # noqa: ARG001
    limit = int(history.scenario.run_policy["backoffLimit"])
    expected = f"at most {limit} restarts in place in all pods together"
    pods = must_have_pods(history)
    counted = sum(p.restart_count() for p in pods)
    if counted > limit:
        return failed(expected, f"{counted} restarts", pods[-1].versions[-1].seq)
    if counted == 0:
        raise Undecided("no restart was seen")
    return passed(expected, f"{counted} restart(s)", pods[-1].versions[-1].seq)


@requirement(
    "INV-06",
    "replicaStatuses.succeeded never falls.",
    feature="job-conditions",
    source=SOURCE,
    applies=selection.everything,
)
def succeeded_never_falls(history: History, contract: Contract) -> Judgement:  # noqa: ARG001 - every check has it
    expected = "succeeded of every replica type only grows"
    must_have_status(history)
    highest: dict[str, tuple[int, int]] = {}
    for version in history.job_versions:
        for kind, counts in version.replica_statuses.items():
            now = int((counts or {}).get("succeeded") or 0)
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
def operator_stays_up(history: History, contract: Contract) -> Judgement:  # noqa: ARG001 - every check has it
    expected = "the operator's process runs through the whole scenario"
    submitted = must_have_been_submitted(history)
    if not any(a.action == "operator-started" for a in history.run_actions):
        raise Undecided("the harness did not see the operator's process")
    for action in history.run_actions:
        if action.action == "operator-exited" and submitted.seq <= action.seq <= history.end.seq:
            return failed(expected, f"it ended with {action.detail.get('exit_code')}", action.seq)
    return passed(expected, "it ran all the time", submitted.seq, history.end.seq)
