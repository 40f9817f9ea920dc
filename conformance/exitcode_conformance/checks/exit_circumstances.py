"""EXIT under other circumstances than that one container of one replica ends with a documented code."""

from collections.abc import Mapping
from typing import Any

from exitcode_conformance import selection
from exitcode_conformance.checks.exit_codes import DOCS, promise_kept, target_of
from exitcode_conformance.classification import aftermath, sighting
from exitcode_conformance.container import SIDECAR
from exitcode_conformance.contract import CodeClass, Contract
from exitcode_conformance.history import History, Moment
from exitcode_conformance.job_end import comes_to
from exitcode_conformance.judging import Undecided, judged, passed, unknown
from exitcode_conformance.pods import Incarnation, PodVersion
from exitcode_conformance.premise import must_have_ended, must_have_pods
from exitcode_conformance.registry import requirement
from exitcode_conformance.scenario import RemovePod, Scenario, outcome_code
from exitcode_conformance.temporal import Finding, elapsed, eventually, never
from exitcode_conformance.verdict import Judgement

RECORDED = "recorded, not judged"
DEFINED = (CodeClass.PERMANENT, CodeClass.RETRYABLE, CodeClass.USER_RETRYABLE)


def _is_undefined(scenario: Scenario, contract: Contract) -> bool:
    ordinary = selection.is_ordinary(scenario)
    return ordinary and selection.first_class(scenario, contract) is CodeClass.UNDEFINED


@requirement(
    "EXIT-05",
    "The class shown by each code that the contract leaves undefined.",
    level="INFO",
    feature="restart-policy-exit-code",
    source=f"{DOCS}: other codes are undefined, and no behaviour is guaranteed",
    profile="extended",
    applies=_is_undefined,
)
def undefined_code_is_recorded(history: History, contract: Contract) -> Judgement:
    after = aftermath(history, target_of(history))
    shown = sighting(history, after)
    if shown.observed is None:
        return unknown(RECORDED, f"{after.code}: {shown.seen}", *shown.deciding)
    seen = f"{after.code} is {shown.observed}: {shown.seen}"
    return passed(RECORDED, seen, *shown.deciding, observed_class=shown.observed.value)


def _has_a_sidecar(scenario: Scenario, contract: Contract) -> bool:
    beside = scenario.target is not None and scenario.group_of(scenario.target).sidecar is not None
    return beside and selection.first_class(scenario, contract) in DEFINED


@requirement(
    "EXIT-08",
    "Only the training container's code counts; a sidecar's does not.",
    feature="restart-policy-exit-code",
    source=f"{DOCS}: the code of the container named as the kind's training container",
    profile="extended",
    applies=_has_a_sidecar,
)
def sidecar_does_not_count(history: History, contract: Contract) -> Judgement:
    _must_show_the_sidecars_code(history)
    return promise_kept(history, contract, *DEFINED)


def _must_show_the_sidecars_code(history: History) -> None:
    """The sidecar of the target's first pod ended as it was told to. Raises Undecided otherwise."""
    target = target_of(history)
    sidecar = history.scenario.group_of(target).sidecar
    pods = history.incarnations_of(target)
    ends = [_terminated(version.container_status(SIDECAR)) for pod in pods[:1] for version in pod.versions]
    if sidecar is None or not any(end is not None and end.get("exitCode") == sidecar.code for end in ends):
        raise Undecided(f"the sidecar of {target} was not seen to end as it was told to")


def _terminated(status: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = ((status or {}).get("state") or {}).get("terminated")
    return found


def _has_a_message(scenario: Scenario, contract: Contract) -> bool:
    told = scenario.target is not None and scenario.group_of(scenario.target).message is not None
    return told and selection.first_class(scenario, contract) in DEFINED


@requirement(
    "EXIT-10",
    "A termination message, or none, changes nothing.",
    feature="restart-policy-exit-code",
    source=f"{DOCS}: the table speaks of the code alone",
    profile="extended",
    applies=_has_a_message,
)
def message_changes_nothing(history: History, contract: Contract) -> Judgement:
    target = target_of(history)
    message = history.scenario.group_of(target).message or ""
    statuses = [v.container_status(history.kind.container) for p in history.incarnations_of(target) for v in p.versions]
    if not any(message in str((_terminated(status) or {}).get("message", "")) for status in statuses):
        raise Undecided(f"no end of {target} was seen with the message {message!r}")
    return promise_kept(history, contract, *DEFINED)


def _fails_twice(scenario: Scenario, contract: Contract) -> bool:
    return _rival(scenario, contract) is not None


def _rival(scenario: Scenario, contract: Contract) -> str | None:
    """The replica that fails with a retryable code at the moment at which the target fails with a permanent one."""
    if scenario.target is None or selection.first_class(scenario, contract) is not CodeClass.PERMANENT:
        return None
    dwell = getattr(scenario.outcome_of(scenario.target, 1), "dwell", None)
    others = (r for r in scenario.outcomes if r != scenario.target)
    for replica in (r for r in others if scenario.group_of(r).restart_policy == "ExitCode"):
        outcome = scenario.outcome_of(replica, 1)
        code = outcome_code(outcome)
        is_retryable = code is not None and contract.class_of(code).restarts
        if is_retryable and getattr(outcome, "dwell", None) == dwell:
            return replica
    return None


@requirement(
    "EXIT-11",
    "Permanent and retryable failures at the same moment: the job fails, and stays failed.",
    feature="restart-policy-exit-code",
    source=f"{DOCS}: a permanent error is not restarted; a restart of another replica does not mend it",
    profile="extended",
    applies=_fails_twice,
)
def permanent_outweighs_retryable(history: History, contract: Contract) -> Judgement:
    target, rival = target_of(history), _rival(history.scenario, contract)
    assert rival is not None, "it applies to scenarios with two that fail"
    _, end, ended = must_have_ended(history, target)
    _, other, _ = must_have_ended(history, rival)
    expected = f"{target} ends with {end.code} and {rival} with {other.code}; the job becomes Failed, and stays so"
    failure = history.first_state("Failed")
    findings = [comes_to(history, "Failed", since=ended)]
    if failure is not None:
        later = next((m for name, m in history.states if m.seq > failure.seq and name != "Failed"), None)
        findings.append(never(history, since=failure, offence=later))
    return judged(expected, findings)


def _fails_without_code(scenario: Scenario, contract: Contract) -> bool:
    found = scenario.target is not None and scenario.group_of(scenario.target).fails_without_code
    return found and selection.target_policy(scenario) == "ExitCode"


@requirement(
    "EXIT-13",
    "What is made of a failure that has no exit code.",
    level="INFO",
    feature="restart-policy-exit-code",
    source=f"{DOCS}: it speaks of codes only; no published contract defines a failure without one",
    profile="extended",
    applies=_fails_without_code,
)
def failure_without_code_is_recorded(history: History, contract: Contract) -> Judgement:
    pod, failed = _first_failure(history)
    return _recorded(history, pod, Moment(seq=failed.seq, time=failed.time, what=f"{pod.name} failed without a code"))


def _first_failure(history: History) -> tuple[Incarnation, PodVersion]:
    must_have_pods(history)
    pod = next(iter(history.incarnations_of(target_of(history))), None)
    failed = pod.failed_by_itself if pod is not None else None
    if pod is None or failed is None:
        raise Undecided(f"no pod of {target_of(history)} was seen to fail by itself")
    return pod, failed


def _recorded(history: History, pod: Incarnation, since: Moment) -> Judgement:
    """What came after a pod had failed: another pod, the end of the job, or nothing."""
    pods = history.incarnations_of(target_of(history))
    signs = [Moment(seq=p.created.seq, time=p.created.time, what=f"{p.name} was created again") for p in pods[1:2]]
    if history.terminal is not None:
        signs.append(history.terminal[1])
    seen = [f"{sign.what}, {elapsed(since.time, sign.time):.1f} s later" for sign in signs]
    if not seen and never(history, since=since, offence=None).holds is None:
        return unknown(RECORDED, f"{since.what}; nothing followed, but too little was observed", since.seq)
    told = "; ".join(seen) or "nothing followed"
    return passed(RECORDED, f"{since.what}: {told}", since.seq, *(sign.seq for sign in signs))


def _loses_a_pod(scenario: Scenario, contract: Contract) -> bool:
    removed = {step.replica for step in scenario.steps if isinstance(step, RemovePod)}
    return removed == {scenario.target} and selection.target_policy(scenario) == "ExitCode"


@requirement(
    "EXIT-14",
    "A pod that is deleted or evicted from outside is replaced, and does not fail the job.",
    level="SHOULD",
    feature="restart-policy-exit-code",
    source=f"{DOCS}: retryable errors are those of the infrastructure; Kubernetes documentation, disruptions",
    profile="extended",
    applies=_loses_a_pod,
)
def lost_pod_is_replaced(history: History, contract: Contract) -> Judgement:
    target = target_of(history)
    expected = f"{target} gets another pod once the old one is gone, and the job goes on"
    pods = must_have_pods(history)
    old = next((pod for pod in pods if pod.uid in history.removed_by_harness), None)
    if old is None:
        raise Undecided(f"the scenario never came to the point of removing a pod of {target}")
    asked = history.removed_by_harness[old.uid]
    unasked = history.unscripted_failure(history.end.seq)
    if unasked is not None:
        raise Undecided(f"{unasked.what}, which nobody asked for", unasked.seq)
    terminal = history.terminal
    findings = [never(history, since=asked, offence=terminal[1] if terminal else None)]
    gone = old.deleted
    later = [pod for pod in history.incarnations_of(target) if pod.created.seq > old.created.seq]
    found = None
    if later:
        born = later[0].created
        found = Moment(seq=born.seq, time=born.time, what=f"{later[0].name} was created again")
    if gone is None and found is None:
        seen = f"the node has not removed {old.name}"
        findings.append(Finding(holds=None, seen=seen, deciding=(asked.seq, history.end.seq)))
    else:
        since = Moment(seq=gone.seq, time=gone.time, what=f"{old.name} was removed") if gone is not None else asked
        missing = f"{target} got no other pod"
        findings.append(eventually(history, since=since, bound="restart", found=found, missing=missing))
    return judged(expected, findings)


def _succeeds_beside_a_failure(scenario: Scenario, contract: Contract) -> bool:
    beside = scenario.target is not None and scenario.group_of(scenario.target).sidecar_fails
    return beside and selection.first_class(scenario, contract) is CodeClass.SUCCESS


@requirement(
    "EXIT-15",
    "What is made of a training container that exits 0 beside a sidecar that fails.",
    level="INFO",
    feature="restart-policy-exit-code",
    source=f"{DOCS}: no text covers it; the pod's phase is Failed, and its training container has succeeded",
    profile="extended",
    applies=_succeeds_beside_a_failure,
)
def success_beside_a_failure_is_recorded(history: History, contract: Contract) -> Judgement:
    _must_show_the_sidecars_code(history)
    _, _, ended = must_have_ended(history, target_of(history))
    pod, failed = _first_failure(history)
    what = f"{pod.name} failed although {ended.what}"
    return _recorded(history, pod, Moment(seq=failed.seq, time=failed.time, what=what))
