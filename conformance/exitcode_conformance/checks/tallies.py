"""RESTART-09 and RESTART-11: how soon replicas are restarted, by whom, and how often."""

from exitcode_conformance import selection
from exitcode_conformance.checks.restarts import must_have_restarted
from exitcode_conformance.classification import aftermath, restarted_in_time
from exitcode_conformance.contract import Contract
from exitcode_conformance.history import History
from exitcode_conformance.judging import Undecided, judged, passed
from exitcode_conformance.premise import must_have_pods
from exitcode_conformance.registry import requirement
from exitcode_conformance.scenario import Scenario
from exitcode_conformance.temporal import Finding, seconds
from exitcode_conformance.verdict import Judgement

SOURCE = "Kubeflow documentation, training operator, restartPolicy"


@requirement(
    "RESTART-09",
    "The replacement is created within the bound `restart`.",
    level="SHOULD",
    feature="restart-policy-exit-code",
    source=f"{SOURCE}; no text names a bound: it is the suite's own",
    applies=selection.expects_restart,
)
def replacement_is_in_time(history: History, contract: Contract) -> Judgement:
    expected = f"each replacement is created at most {seconds(history, 'restart'):g} s (`restart`) after the failure"
    target = history.scenario.target or ""
    must_have_restarted(history)
    findings: list[Finding] = []
    for attempt in history.attempts(target)[:-1]:
        try:
            findings.append(restarted_in_time(history, aftermath(history, target, attempt.number)))
        except Undecided:
            continue  # it did not end as its script asked for
    if not findings:
        raise Undecided(f"no attempt of {target} that was restarted had ended as its script asked for")
    return judged(expected, findings)


def _has_target(scenario: Scenario, contract: Contract) -> bool:
    return scenario.target is not None


@requirement(
    "RESTART-11",
    "Who restarted what, and how often: the kubelet or the operator.",
    level="INFO",
    feature="job-conditions",
    source=f"{SOURCE}: the policies differ in who restarts",
    applies=_has_target,
)
def restarts_are_counted(history: History, contract: Contract) -> Judgement:
    must_have_pods(history)
    told, lines = [], []
    for replica in history.scenario.replica_names():
        again = [a for a in history.attempts(replica) if a.number > 1]
        in_place = sum(a.in_place for a in again)
        if again:
            told.append(f"{replica}: {len(again) - in_place} by the operator, {in_place} by the kubelet")
            lines += [a.created_seq for a in again]
    return passed("recorded, not judged", "; ".join(told) or "no replica was restarted", *lines)
