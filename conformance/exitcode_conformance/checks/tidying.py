"""CLEAN-01 to CLEAN-04: what becomes of the pods and services of a job that has ended."""

from exitcode_conformance.cleaning_rule import (
    clean_pod_policy,
    has_finished,
    has_to_go,
    pods_at_end,
    service_of,
    service_removal,
)
from exitcode_conformance.contract import Contract
from exitcode_conformance.history import History, Moment
from exitcode_conformance.judging import Undecided, judged
from exitcode_conformance.pods import Incarnation
from exitcode_conformance.premise import must_have_pods, must_have_seen_all
from exitcode_conformance.registry import requirement
from exitcode_conformance.scenario import Scenario, UntilCleaned
from exitcode_conformance.success_rule import deciders_succeed
from exitcode_conformance.temporal import Finding, eventually, never
from exitcode_conformance.verdict import Judgement

SOURCE = "training-operator API, RunPolicy.cleanPodPolicy: which pods are deleted when the job has finished"


def _names_a_policy(scenario: Scenario) -> bool:
    waits = any(isinstance(step, UntilCleaned) for step in scenario.steps)
    return waits and "cleanPodPolicy" in scenario.run_policy


def _cleans_after_success(scenario: Scenario, contract: Contract) -> bool:
    return _names_a_policy(scenario) and deciders_succeed(scenario)


def _cleans_after_failure(scenario: Scenario, contract: Contract) -> bool:
    return _names_a_policy(scenario) and not deciders_succeed(scenario)


@requirement(
    "CLEAN-01",
    "None, Running and All do what they say after success, with running, pending and finished pods present.",
    feature="clean-pod-policy",
    source=f"{SOURCE}; its controllers: a pod that is pending would run later, and counts as running",
    profile="extended",
    applies=_cleans_after_success,
)
def success_is_cleaned_up(history: History, contract: Contract) -> Judgement:
    return _cleaned_up(history, "Succeeded")


@requirement(
    "CLEAN-02",
    "The same after failure, whatever made the job fail.",
    feature="clean-pod-policy",
    source=f"{SOURCE}; no way to fail is excepted",
    profile="extended",
    applies=_cleans_after_failure,
)
def failure_is_cleaned_up(history: History, contract: Contract) -> Judgement:
    return _cleaned_up(history, "Failed")


def _has_no_policy(scenario: Scenario, contract: Contract) -> bool:
    waits = any(isinstance(step, UntilCleaned) for step in scenario.steps)
    return waits and "cleanPodPolicy" not in scenario.run_policy


@requirement(
    "CLEAN-04",
    "The default is the one that the operator's description declares.",
    feature="clean-pod-policy",
    source="the operator's description; training-operator: Running for a TFJob up to 1.5, None for every kind since",
    profile="extended",
    applies=_has_no_policy,
)
def default_is_as_declared(history: History, contract: Contract) -> Judgement:
    return _cleaned_up(history, "Succeeded" if deciders_succeed(history.scenario) else "Failed")


def _cleaned_up(history: History, wanted: str) -> Judgement:
    """Whether the pods that there were at the job's end went and stayed as the policy says."""
    policy = clean_pod_policy(history)
    if policy is None:
        raise Undecided("the operator's description declares no default for cleanPodPolicy")
    pods, end, missing_ones = _must_have_ended(history, wanted)
    going = [pod for pod in pods if has_to_go(policy, pod)]
    staying = [pod for pod in pods if not has_to_go(policy, pod)]
    parts = [f"{', '.join(p.name for p in some)} {what}" for some, what in ((going, "go"), (staying, "stay")) if some]
    expected = f"cleanPodPolicy {policy}: {'; '.join(parts)}"
    findings = []
    for pod in going:
        asked = pod.deletion_asked
        found = Moment(seq=asked.seq, time=asked.time, what=f"{pod.name} was deleted") if asked else None
        missing = f"{pod.name}, which was {_stand(pod)}, was not deleted"
        findings.append(eventually(history, since=end, bound="removal", found=found, missing=missing))
    for pod in staying:
        asked = pod.deletion_asked
        what = f"{pod.name}, which was {_stand(pod)}, was deleted"
        offence = Moment(seq=asked.seq, time=asked.time, what=what) if asked else None
        findings.append(never(history, since=end, offence=offence))
    if missing_ones:
        seen = f"there was no pod of {', '.join(missing_ones)} when the job ended"
        findings.append(Finding(holds=None, seen=seen, deciding=(end.seq,)))
    return judged(expected, findings)


def _stand(pod: Incarnation) -> str:
    if has_finished(pod):
        return "finished"
    return "running" if pod.phase_reached("Running") else "pending"


def _must_have_ended(history: History, wanted: str) -> tuple[tuple[Incarnation, ...], Moment, list[str]]:
    """The pods that there were when the job ended, the moment of that, and the replicas of which there was none. Raises
    Undecided if it did not end as it should."""
    must_have_pods(history)
    terminal = history.terminal
    if terminal is None or terminal[0] != wanted:
        raise Undecided(f"the job never became {wanted}", history.end.seq)
    unasked = history.unscripted_failure(terminal[1].seq)
    if unasked is not None:
        raise Undecided(f"{unasked.what}, which nobody asked for", unasked.seq)
    pods = pods_at_end(history)
    missing = [r for r in history.scenario.replica_names() if r not in {pod.replica for pod in pods}]
    return pods, terminal[1], missing


def _removes_something(scenario: Scenario, contract: Contract) -> bool:
    return _names_a_policy(scenario) and scenario.run_policy["cleanPodPolicy"] != "None"


@requirement(
    "CLEAN-03",
    "Services go with their pods.",
    feature="services",
    source="training-operator: the service of a pod's name is deleted with the pod",
    profile="extended",
    applies=_removes_something,
)
def services_go_too(history: History, contract: Contract) -> Judgement:
    expected = "the service of each pod that is cleaned up is deleted as well"
    must_have_pods(history)
    must_have_seen_all(history, "services")
    terminal = history.terminal
    if terminal is None:
        raise Undecided("the job never became Succeeded or Failed", history.end.seq)
    gone = [pod for pod in pods_at_end(history) if pod.deletion_asked is not None]
    findings: list[Finding] = []
    for pod in gone:
        asked, service = pod.deletion_asked, service_of(history, pod)
        if service is None or asked is None:
            continue
        since = Moment(seq=asked.seq, time=asked.time, what=f"{pod.name} was deleted")
        missing = f"service {pod.name} was not deleted"
        findings.append(
            eventually(
                history,
                since=max(since, terminal[1], key=lambda moment: moment.seq),
                bound="removal",
                found=service_removal(history, service),
                missing=missing,
            )
        )
    if not findings:
        raise Undecided("no pod that has a service was cleaned up", terminal[1].seq)
    return judged(expected, findings)
