"""RESTART: how a restart is done, by the operator under ExitCode and by the kubelet under the other policies."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from exitcode_conformance import selection
from exitcode_conformance.classification import Aftermath, aftermath, failed_in_time, not_restarted
from exitcode_conformance.contract import Contract
from exitcode_conformance.history import History, Moment
from exitcode_conformance.judging import Undecided, failed, judged, passed
from exitcode_conformance.pods import Incarnation, labels_of
from exitcode_conformance.premise import must_have_pods
from exitcode_conformance.registry import Applies, requirement
from exitcode_conformance.scenario import RestartPolicy, Scenario
from exitcode_conformance.temporal import Finding, never
from exitcode_conformance.verdict import Judgement

DOCS = "Kubeflow documentation, training operator, restartPolicy"
KUBELET = "Kubernetes documentation, pod lifecycle, container restart policy"
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where admission mounts the service account's token."""


def operator_restarts(history: History) -> Iterator[tuple[Incarnation, Incarnation]]:
    """Pairs of a pod and the pod that took its place, for every replica under ExitCode."""
    for replica in history.scenario.replica_names():
        if history.scenario.group_of(replica).restart_policy == "ExitCode":
            pods = history.incarnations_of(replica)
            yield from pairwise(pods)


def _of_all(history: History) -> list[tuple[Incarnation, Incarnation]]:
    """All restarts that the operator was seen to make. One that is wrong decides, whether or not the target's own was
    seen."""
    must_have_pods(history)
    return list(operator_restarts(history))


def must_have_restarted(history: History) -> list[tuple[Incarnation, Incarnation]]:
    """At least one restart of the target by the operator was seen. All restarts are given, those of others too."""
    pairs = _of_all(history)
    target = history.scenario.target
    if not any(old.replica == target for old, _ in pairs):
        raise Undecided(f"no pod was ever created in place of the failed one of {target}")
    return pairs


def _born(pod: Incarnation) -> Moment:
    return Moment(seq=pod.created.seq, time=pod.created.time, what=f"{pod.name} was created again")


@requirement(
    "RESTART-01",
    "Under ExitCode the operator deletes the failed pod and creates a new one: same name, type and index, new UID, "
    "restartCount 0.",
    feature="restart-policy-exit-code",
    source=DOCS,
    applies=selection.expects_restart,
)
def restart_is_a_new_pod(history: History, contract: Contract) -> Judgement:
    expected = "each restart is a new pod of the same name with restartCount 0, after the old one was deleted"
    target = history.scenario.target or ""
    in_place = next((a for a in history.attempts(target) if a.in_place), None)
    if in_place is not None:
        return failed(expected, f"{target} was started again in place, in the pod it had", in_place.created_seq)
    lines: list[int] = []
    for old, new in _of_all(history):
        lines += [old.created.seq, new.created.seq]
        if new.name != old.name:
            return failed(expected, f"{old.name} was followed by a pod named {new.name}", *lines[-2:])
        if new.restart_count() != 0:
            return failed(expected, f"{new.name} has restartCount {new.restart_count()}", *lines[-2:])
        if old.deletion_asked is None:
            return failed(expected, f"the failed pod {old.name} was never deleted", *lines[-2:])
    pairs = must_have_restarted(history)
    return passed(expected, f"{len(pairs)} restart(s), each a new pod of the same name", *lines)


@requirement(
    "RESTART-02",
    "The old pod is gone before the new one exists; never two live pods of one index.",
    feature="restart-policy-exit-code",
    source=DOCS,
    applies=selection.expects_restart,
)
def old_pod_goes_first(history: History, contract: Contract) -> Judgement:
    expected = "the removal of each failed pod is seen before the creation of its replacement"
    lines: list[int] = []
    for old, new in _of_all(history):
        gone = old.deleted
        if gone is None or gone.seq > new.created.seq:
            return failed(
                expected, f"{new.name} was created while the old pod was still there", old.created.seq, new.created.seq
            )
        lines += [gone.seq, new.created.seq]
    pairs = must_have_restarted(history)
    return passed(expected, f"{len(pairs)} restart(s), in that order each", *lines)


def _touched(history: History, replica: str, since: int) -> Moment | None:
    """The first sign after line `since` that a replica which had no reason to restart was interfered with. Raises
    Undecided if it had one, a failure of its own that no script asked for, or if it was never created."""
    limit = _end_of_restarts(history)
    pods = history.incarnations_of(replica)
    if not pods:
        raise Undecided(f"{replica} was never created")
    signs = [_born(pod) for pod in pods[1:]]
    for pod in pods:
        asked = pod.deletion_asked
        if asked is not None:
            signs.append(Moment(seq=asked.seq, time=asked.time, what=f"{pod.name} was deleted"))
    if history.scenario.group_of(replica).restart_policy == "ExitCode":
        for attempt in history.attempts(replica):
            if attempt.in_place:
                what = f"{replica} was started again in place"
                signs.append(Moment(seq=attempt.created_seq, time=attempt.created_time, what=what))
    signs = [s for s in signs if s.seq > since and (limit is None or s.seq < limit)]
    first = min(signs, key=lambda s: s.seq, default=None)
    own = [moment for pod, moment in history.own_failures if pod.replica == replica]
    if first is not None and (any(m.seq < first.seq for m in own) or any(pod.was_disrupted for pod in pods)):
        raise Undecided(f"{replica} had a failure of its own, or was taken away by the cluster", first.seq)
    return first


def _end_of_restarts(history: History) -> int | None:
    """The line from which on what happens to pods is the ending of the job and no restart: its deletion; or, where the
    job became terminal, the last end of a container before that. An operator may clean up before it says so."""
    lines = [history.job_deletion.seq] if history.job_deletion else []
    if history.terminal is not None:
        terminal = history.terminal[1].seq
        ends = [a.ended for r in history.scenario.replica_names() for a in history.attempts(r) if a.ended is not None]
        lines.append(max((e.seq for e in ends if e.seq < terminal and not e.stopped), default=terminal))
    return min(lines, default=None)


def _has_siblings(scenario: Scenario, contract: Contract) -> bool:
    return selection.expects_restart(scenario, contract) and scenario.pod_count() > 1


@requirement(
    "RESTART-03",
    "A restart leaves the other replicas alone: same UIDs, same restartCounts.",
    feature="restart-policy-exit-code",
    source=DOCS,
    applies=_has_siblings,
)
def siblings_are_left_alone(history: History, contract: Contract) -> Judgement:
    expected = "no other replica's pod is deleted, replaced or restarted because of it"
    after = aftermath(history, history.scenario.target or "")
    if after.restarted is None:
        raise Undecided("the target was never restarted", after.ended.seq)
    return judged(expected, _each_left_alone(history, after))


def _each_left_alone(history: History, after: Aftermath) -> Iterator[Finding]:
    for replica in history.scenario.replica_names():
        if replica == history.scenario.target:
            continue
        try:
            offence = _touched(history, replica, after.ended.seq)
        except Undecided as undecided:
            yield undecided.finding
        else:
            yield never(history, since=after.ended, offence=offence, until=after.restarted)


@requirement(
    "RESTART-04",
    "Pods of an ExitCode replica have pod restartPolicy Never; of any other policy, that policy.",
    feature="restart-policy-exit-code",
    source=f"{DOCS}; training-operator, the function that sets the pod's restart policy",
    applies=selection.everything,
)
def pod_policy_is_right(history: History, contract: Contract) -> Judgement:
    expected = "spec.restartPolicy of every pod is Never under ExitCode, else the replica's own"
    pods = [p for p in must_have_pods(history) if p.replica in history.scenario.replica_names()]
    if not pods:
        raise Undecided("no pod stands for a replica of the job")
    for pod in pods:
        assert pod.replica is not None
        policy = history.scenario.group_of(pod.replica).restart_policy
        wanted = "Never" if policy == "ExitCode" else policy
        seen = pod.first["spec"].get("restartPolicy")
        if seen != wanted:
            return failed(expected, f"{pod.name} has restartPolicy {seen}, its replica {policy}", pod.created.seq)
    return passed(expected, f"{len(pods)} pod(s), all right", *(p.created.seq for p in pods[:3]))


def _under(policy: RestartPolicy) -> Applies:
    def applies(scenario: Scenario, contract: Contract) -> bool:
        codes = selection.script_codes(scenario)
        unlimited = "backoffLimit" not in scenario.run_policy
        return selection.target_policy(scenario) == policy and unlimited and bool(codes) and codes[0] is not None

    return applies


def _restarted_in_place(history: History) -> tuple[str, list[Finding]]:
    """The restart itself is the kubelet's work: that it is late says nothing of the operator. What the operator can do
    is to ask for another policy, to take the pod away, or to fail the job."""
    after = aftermath(history, history.scenario.target or "")
    expected = f"{after.attempt.replica} ends with {after.code} and is started again in the same pod, restartCount 1"
    pod = next(i for i in history.incarnations_of(after.attempt.replica) if i.uid == after.attempt.uid)
    findings: list[Finding] = []
    if pod.was_disrupted:
        raise Undecided(f"{pod.name} was taken away by the cluster", after.ended.seq)
    if after.failed is not None:
        seen = f"the job became Failed after {after.ended.what}"
        findings.append(Finding(holds=False, seen=seen, deciding=(after.ended.seq, after.failed.seq)))
    if after.successor is None:
        end = pod.finished or pod.deletion_asked
        if end is not None:
            seen = f"{pod.name} was not started again: it is {end.phase if pod.finished else 'deleted'}"
            findings.append(Finding(holds=False, seen=seen, deciding=(after.ended.seq, end.seq)))
        else:
            seen = f"the kubelet has not started {pod.name} again, and its pod is still there"
            findings.append(Finding(holds=None, seen=seen, deciding=(after.ended.seq, history.end.seq)))
    elif not after.successor.in_place:
        seen = f"{after.attempt.replica} got a new pod instead of a restart in place"
        findings.append(Finding(holds=False, seen=seen, deciding=(after.ended.seq, after.successor.created_seq)))
    else:
        what = f"{pod.name} was started again in place"
        findings.append(Finding(holds=True, seen=what, deciding=(after.ended.seq, after.successor.created_seq)))
    return expected, findings


@requirement(
    "RESTART-05",
    "Under Always the kubelet restarts the container in place after any exit, 0 included: same UID, restartCount "
    "grows.",
    feature="restart-policy-always",
    source=KUBELET,
    applies=_under("Always"),
)
def always_restarts_in_place(history: History, contract: Contract) -> Judgement:
    expected, findings = _restarted_in_place(history)
    return judged(expected, findings)


@requirement(
    "RESTART-06",
    "Under OnFailure the kubelet restarts the container in place after a code other than 0, and not after 0.",
    feature="restart-policy-on-failure",
    source=KUBELET,
    applies=_under("OnFailure"),
)
def on_failure_restarts_in_place(history: History, contract: Contract) -> Judgement:
    if selection.script_codes(history.scenario)[0] == 0:
        after = aftermath(history, history.scenario.target or "")
        return judged(f"{after.attempt.replica} exits 0 and is not started again", [not_restarted(history, after)])
    expected, findings = _restarted_in_place(history)
    return judged(expected, findings)


def _fails_under_never(scenario: Scenario, contract: Contract) -> bool:
    return _under("Never")(scenario, contract) and selection.script_codes(scenario)[0] != 0


@requirement(
    "RESTART-07",
    "Under Never a failed container is not restarted, and the job fails.",
    feature="restart-policy-never",
    source=f"{KUBELET}; {DOCS}",
    applies=_fails_under_never,
)
def never_is_never(history: History, contract: Contract) -> Judgement:
    after = aftermath(history, history.scenario.target or "")
    expected = f"{after.attempt.replica} ends with {after.code}, is not restarted, and the job becomes Failed"
    return judged(expected, [not_restarted(history, after), failed_in_time(history, after)])


def _comparable(pod: Incarnation) -> Mapping[str, Any]:
    """What the operator wrote into a pod; without what the API server, the scheduler and admission add to each."""
    metadata = pod.first["metadata"]
    spec = {k: v for k, v in pod.first["spec"].items() if k not in ("nodeName", "tolerations")}
    spec["volumes"] = _named([v for v in spec.get("volumes") or [] if not _is_token_volume(v)])
    for group in ("containers", "initContainers"):
        if group in spec:
            spec[group] = [_comparable_container(c) for c in spec[group] or []]
    owners = [{k: o.get(k) for k in ("uid", "kind", "controller")} for o in metadata.get("ownerReferences") or []]
    owners.sort(key=lambda owner: str(owner["uid"]))
    return {"labels": labels_of(pod.first), "ownerReferences": owners, "spec": spec}


def _comparable_container(container: Mapping[str, Any]) -> Mapping[str, Any]:
    mounts = [m for m in container.get("volumeMounts") or [] if m.get("mountPath") != TOKEN_PATH]
    variables = {name: _comparable_variable(v) for name, v in _named(container.get("env") or []).items()}
    return {**container, "volumeMounts": mounts, "env": variables}


def _comparable_variable(variable: Mapping[str, Any]) -> Any:
    """A value such as TF_CONFIG may be written in another order and say the same."""
    value = str(variable.get("value") or "")
    try:
        return json.loads(value) if value.startswith("{") else variable
    except ValueError:
        return variable


def _named(items: list[Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    """A list whose order says nothing, by the names in it."""
    return {str(item["name"]): item for item in items}


def _is_token_volume(volume: Mapping[str, Any]) -> bool:
    """Whether admission added the volume for the service account's token; its name is another one in each pod."""
    sources = (volume.get("projected") or {}).get("sources") or []
    return "-token-" in str(volume.get("name")) or any("serviceAccountToken" in source for source in sources)


@requirement(
    "RESTART-08",
    "The replacement carries the same labels, owner, spec and cluster environment as the first pod.",
    feature="restart-policy-exit-code",
    source=DOCS,
    applies=selection.expects_restart,
)
def replacement_is_the_same(history: History, contract: Contract) -> Judgement:
    expected = "labels, ownerReferences and spec of each replacement equal those of the pod before it"
    for old, new in _of_all(history):
        before, now = _comparable(old), _comparable(new)
        different = [part for part in before if before[part] != now[part]]
        if different:
            return failed(
                expected,
                f"{', '.join(different)} of {new.name} changed in the restart",
                old.created.seq,
                new.created.seq,
            )
    pairs = must_have_restarted(history)
    return passed(expected, f"{len(pairs)} replacement(s), all equal", *(new.created.seq for _, new in pairs))


def _has_finished_sibling(scenario: Scenario, contract: Contract) -> bool:
    return selection.expects_restart(scenario, contract) and bool(_finished_siblings(scenario))


def _finished_siblings(scenario: Scenario) -> list[str]:
    """Replicas that are scripted to exit 0 in their first attempt, and not to be started again by the kubelet."""
    return [
        replica
        for replica, script in scenario.outcomes.items()
        if replica != scenario.target
        and selection.outcome_name(script[0]) == "exit0"
        and scenario.group_of(replica).restart_policy != "Always"
    ]


@requirement(
    "RESTART-10",
    "A replica that has completed is not run again because a sibling restarts.",
    feature="restart-policy-exit-code",
    source=DOCS,
    applies=_has_finished_sibling,
)
def finished_stays_finished(history: History, contract: Contract) -> Judgement:
    expected = "the replicas that had succeeded keep their pods, or at least get no new ones"
    pairs = [(o, n) for o, n in must_have_restarted(history) if n.replica == history.scenario.target]
    return judged(expected, _each_kept(history, [new for _, new in pairs]))


def _each_kept(history: History, restarts: Sequence[Incarnation]) -> Iterator[Finding]:
    for sibling in _finished_siblings(history.scenario):
        pods = history.incarnations_of(sibling)
        done = pods[0].phase_reached("Succeeded") if pods else None
        later = [new for new in restarts if done is not None and new.created.seq > done.seq]
        if done is None or not later:
            yield Undecided(f"no restart was seen after {sibling} had succeeded").finding
            continue
        offence = _born(pods[1]) if len(pods) > 1 else None
        since = Moment(seq=done.seq, time=done.time, what=f"{sibling} had succeeded")
        yield never(history, since=since, offence=offence, until=_born(later[0]))
