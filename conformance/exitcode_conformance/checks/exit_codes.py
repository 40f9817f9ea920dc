"""EXIT: what a code means under restartPolicy ExitCode."""

from collections import Counter
from collections.abc import Iterator, Sequence

from exitcode_conformance import selection
from exitcode_conformance.classification import (
    Aftermath,
    aftermath,
    failed_in_time,
    not_restarted,
    observed_class,
    restarted_in_time,
)
from exitcode_conformance.contract import CodeClass, Contract, ObservedClass
from exitcode_conformance.history import History, Moment
from exitcode_conformance.job_end import comes_to
from exitcode_conformance.judging import Undecided, failed, judged, passed, unknown
from exitcode_conformance.registry import Applies, comparison, requirement
from exitcode_conformance.scenario import Scenario
from exitcode_conformance.success_rule import deciding_replicas
from exitcode_conformance.temporal import Finding, elapsed, eventually
from exitcode_conformance.verdict import Judgement, Verdict

DOCS = "Kubeflow documentation, training operator, restartPolicy ExitCode"


def _has_class(*classes: CodeClass) -> Applies:
    def applies(scenario: Scenario, contract: Contract) -> bool:
        alone = not selection.has_company(scenario)
        return alone and selection.first_class(scenario, contract) in classes

    return applies


def target_of(history: History) -> str:
    """The replica that the scenario is about."""
    target = history.scenario.target
    assert target is not None, "every requirement of this group applies to scenarios with a target only"
    return target


def _class_name(history: History, after: Aftermath) -> str | None:
    found = observed_class(history, after)
    return found.value if found else None


@requirement(
    "EXIT-01",
    "A container that exits 0 is not restarted, and its replica counts as succeeded.",
    feature="restart-policy-exit-code",
    source=DOCS,
    applies=_has_class(CodeClass.SUCCESS),
)
def success_is_final(history: History, contract: Contract) -> Judgement:
    target = target_of(history)
    expected = f"{target} exits 0, is not restarted, and replicaStatuses counts it as succeeded"
    after = aftermath(history, target)
    return judged(
        expected,
        [not_restarted(history, after), _counted(history, target, after)],
        observed_class=_class_name(history, after),
    )


def _counted(history: History, target: str, after: Aftermath) -> Finding:
    """Whether replicaStatuses counts the target beside those of its type that had succeeded before it."""
    kind = history.scenario.group_of(target).type
    of_its_type = [r for r in history.scenario.replica_names() if history.scenario.group_of(r).type == kind]
    done = [pod.phase_reached("Succeeded") for r in of_its_type for pod in history.incarnations_of(r)[:1]]
    wanted = max(1, sum(version is not None and version.seq <= after.ended.seq for version in done))
    counts = ((v, v.count(kind, "succeeded")) for v in history.job_versions if v.seq > after.ended.seq)
    counted = next(
        (
            Moment(seq=v.seq, time=v.time, what=f"replicaStatuses.{kind}.succeeded is {count}")
            for v, count in counts
            if count >= wanted
        ),
        None,
    )
    missing = f"replicaStatuses.{kind} did not count {wanted} as succeeded"
    terminal = history.terminal
    if terminal is not None and terminal[1].seq > after.ended.seq:
        # Once the job has ended, its status says what there is to say.
        return eventually(history, since=terminal[1], bound="never", found=counted, missing=missing)
    return eventually(history, since=after.ended, bound="state", found=counted, missing=missing)


@requirement(
    "EXIT-02",
    "A permanent code is not restarted, and the job fails.",
    feature="restart-policy-exit-code",
    source=DOCS,
    applies=_has_class(CodeClass.PERMANENT),
)
def permanent_is_final(history: History, contract: Contract) -> Judgement:
    return promise_kept(history, contract, CodeClass.PERMANENT)


def promise_kept(history: History, contract: Contract, *promised: CodeClass) -> Judgement:
    """Whether the target's first end was followed by what the contract promises for its code, which has to be of one of
    these classes: a runtime may show another code than the scenario was written for."""
    after = aftermath(history, target_of(history))
    found = contract.class_of(after.code)
    if found not in promised:
        raise Undecided(f"{after.ended.what}, which is {found} under {contract.id}", after.ended.seq)
    return _restarted(history, after) if found.restarts else _permanent(history, after)


def _permanent(history: History, after: Aftermath) -> Judgement:
    expected = f"{target_of(history)} ends with {after.code}, is not restarted, and the job becomes Failed"
    findings = [not_restarted(history, after), failed_in_time(history, after)]
    return judged(expected, findings, observed_class=_class_name(history, after))


def _restarted(history: History, after: Aftermath) -> Judgement:
    expected = f"{target_of(history)} ends with {after.code}, is restarted, and the job does not fail because of it"
    fate = Finding(holds=True, seen="the job did not fail because of it")
    if after.failed is not None:
        fate = Finding(
            holds=False,
            seen=f"the job became Failed {elapsed(after.ended.time, after.failed.time):.1f} s after {after.ended.what}",
            deciding=(after.ended.seq, after.failed.seq),
        )
    findings = [restarted_in_time(history, after), fate]
    return judged(expected, findings, observed_class=_class_name(history, after))


@requirement(
    "EXIT-03",
    "A retryable code is restarted, and the job does not fail because of it.",
    feature="restart-policy-exit-code",
    source=DOCS,
    applies=_has_class(CodeClass.RETRYABLE),
)
def retryable_is_restarted(history: History, contract: Contract) -> Judgement:
    return promise_kept(history, contract, CodeClass.RETRYABLE)


@requirement(
    "EXIT-04",
    "138, the code reserved for the user's own retryable errors, is restarted.",
    feature="restart-policy-exit-code",
    source=DOCS,
    applies=_has_class(CodeClass.USER_RETRYABLE),
)
def user_retryable_is_restarted(history: History, contract: Contract) -> Judgement:
    return promise_kept(history, contract, CodeClass.USER_RETRYABLE)


def _compared(histories: Sequence[History], what: str) -> Judgement:
    """Whether all histories show one class for the first end of their target.

    A command that is not there ends with another code in another runtime. Where the others end with this one, it says
    nothing of them, and is left out.
    """
    expected = f"one class for {what} in all {len(histories)} scenarios"
    open_ones: list[str] = []
    ends: list[tuple[History, Aftermath]] = []
    for history in histories:
        try:
            ends.append((history, aftermath(history, target_of(history))))
        except Undecided as undecided:
            open_ones.append(f"{history.scenario.id}: {undecided.why}")
    code = next(iter(Counter(after.code for _, after in ends).most_common(1)), (None, 0))[0]
    others = [f"{history.scenario.id} ended with {after.code}" for history, after in ends if after.code != code]
    shown: dict[ObservedClass, str] = {}
    lines: list[int] = []
    for history, after in ends:
        if after.code != code:
            continue
        found = observed_class(history, after)
        if found is None:
            open_ones.append(f"{history.scenario.id}: the class is not certain")
        else:
            shown.setdefault(found, history.scenario.id)
            lines.append(after.ended.seq)
    if len(shown) > 1:
        return failed(expected, ", ".join(f"{found} in {name}" for found, name in shown.items()), *lines)
    if others and len(lines) < 2:
        open_ones += others
    if open_ones:
        return unknown(expected, "; ".join(open_ones[:3]), *lines)
    return passed(expected, "; ".join((f"{next(iter(shown))} in all of them", *others)), *lines)


def _is_plain(scenario: Scenario) -> bool:
    """A scenario about one code of one replica under ExitCode."""
    return (
        selection.target_policy(scenario) == "ExitCode"
        and selection.is_ordinary(scenario)
        and bool(scenario.outcomes.get(scenario.target or ""))
        and selection.script_codes(scenario)[0] is not None
    )


def _by_code(scenario: Scenario, contract: Contract) -> str | None:
    if not _is_plain(scenario) or selection.first_class(scenario, contract) is CodeClass.UNDEFINED:
        return None
    return selection.outcome_name(scenario.outcomes[scenario.target or ""][0])


@comparison(
    "EXIT-06",
    "The class of a code is the same for every replica type and index of a kind, and for every kind.",
    feature="restart-policy-exit-code",
    source=f"{DOCS}: the table names no type and no kind",
    group_by=_by_code,
)
def same_class_everywhere(histories: Sequence[History], contract: Contract) -> Judgement:
    return _compared(histories, "the same code of any replica of any kind")


def _by_replica_type(scenario: Scenario, contract: Contract) -> str | None:
    if _by_code(scenario, contract) is None or scenario.target is None:
        return None
    # What the code comes of is the matter of EXIT-09.
    code = selection.script_codes(scenario)[0]
    return f"{scenario.kind.lower()}-{scenario.target.rpartition('-')[0]}-{code}"


@comparison(
    "EXIT-07",
    "The class of a code does not depend on what the siblings do.",
    feature="restart-policy-exit-code",
    source=f"{DOCS}: the table speaks of the container's code alone",
    group_by=_by_replica_type,
)
def same_class_whatever_siblings_do(histories: Sequence[History], contract: Contract) -> Judgement:
    judgement = _compared(histories, "the same code of the same replica type, whatever the siblings do")
    beside = [history for history in histories if history.scenario.pod_count() > 1]
    up = [history for history in beside if _siblings_were_up(history)]
    if judgement.verdict is not Verdict.PASS or not beside:
        return judgement
    if not up:
        why = "in no scenario were all siblings seen up when the replica ended"
        return unknown(judgement.expected, why, *judgement.deciding)
    seen = f"{judgement.seen}; in {len(up)} of {len(beside)} with siblings all of these were seen up when it ended"
    return passed(judgement.expected, seen, *judgement.deciding)


def _siblings_were_up(history: History) -> bool:
    """Whether every sibling had been seen running by the end of the target: an operator that minds them could."""
    ended = aftermath(history, target_of(history)).ended
    siblings = [replica for replica in history.scenario.running_replicas() if replica != history.scenario.target]
    seen = [pod.phase_reached("Running") for replica in siblings for pod in history.incarnations_of(replica)[:1]]
    return len(seen) == len(siblings) and all(version is not None and version.seq < ended.seq for version in seen)


def _by_place_and_code(scenario: Scenario, contract: Contract) -> str | None:
    # Only what the code comes of may differ: where a sibling ends first, there is nothing to compare with.
    if _by_code(scenario, contract) is None or scenario.target is None or scenario.outcomes.keys() != {scenario.target}:
        return None
    code = selection.script_codes(scenario)[0]
    if code is None or code < 129:
        return None
    return f"{scenario.kind.lower()}-{scenario.target}-{code}-{selection.topology(scenario)}"


@comparison(
    "EXIT-09",
    "A code that comes of a real signal is treated as the same code returned by exit.",
    feature="restart-policy-exit-code",
    source="POSIX shell: a command ended by signal n shows 128+n; the kubelet reports that number",
    group_by=_by_place_and_code,
)
def signal_is_as_good_as_code(histories: Sequence[History], contract: Contract) -> Judgement:
    return _compared(histories, "a code of exit and of a signal")


def _is_sequence(scenario: Scenario, contract: Contract) -> bool:
    codes = selection.script_codes(scenario)
    if selection.target_policy(scenario) != "ExitCode" or len(codes) < 2 or scenario.manifest is not None:
        return False
    last = codes[-1]
    if last is None or selection.retryable_runs(scenario, contract) != len(codes) - 1:
        return False
    if contract.class_of(last) is CodeClass.PERMANENT:
        return True
    return last == 0 and deciding_replicas(scenario) == (scenario.target,)


@requirement(
    "EXIT-12",
    "Retryable codes and then 0 end in success after exactly that many restarts; and then a permanent one, in failure.",
    feature="restart-policy-exit-code",
    source=f"{DOCS}: each code is judged by itself",
    applies=_is_sequence,
)
def sequence_is_followed(history: History, contract: Contract) -> Judgement:
    target = target_of(history)
    codes = selection.script_codes(history.scenario)
    wanted = "Succeeded" if codes[-1] == 0 else "Failed"
    in_order, restarts = ", ".join(map(str, codes)), len(codes) - 1
    expected = f"{target} ends with {in_order} in this order; then the job is {wanted}, after {restarts} restart(s)"
    return judged(expected, _each_in_its_turn(history, target, len(codes), wanted))


def _each_in_its_turn(history: History, target: str, attempts: int, wanted: str) -> Iterator[Finding]:
    for number in range(1, attempts):
        after = aftermath(history, target, number)
        yield restarted_in_time(history, after)
        next_end = after.successor.ended if after.successor is not None else None
        too_early = after.failed is not None and (next_end is None or after.failed.seq < next_end.seq)
        if after.successor is None or too_early:
            yield Finding(
                holds=False if too_early else None,
                seen=f"the sequence broke off after attempt {number}",
                deciding=(after.ended.seq, *((after.failed.seq,) if after.failed is not None else ())),
            )
            return
    last = aftermath(history, target, attempts)
    yield not_restarted(history, last)
    yield comes_to(history, wanted, since=last.ended)
