"""From a case and its histories to a judgement.

Pure: the same recording gives the same verdicts wherever it is read.
"""

from collections.abc import Callable, Sequence

from exitcode_conformance.contract import Contract
from exitcode_conformance.history import History
from exitcode_conformance.judging import Undecided
from exitcode_conformance.plan import Case
from exitcode_conformance.requirements import REQUIREMENTS
from exitcode_conformance.verdict import Judgement, Verdict


def judge(case: Case, histories: Sequence[History], contract: Contract) -> Judgement:
    """The judgement on a case. `histories` are those of its scenarios, in their order. Its deciding numbers are lines
    of the recording."""
    requirement = REQUIREMENTS[case.requirement]

    def check() -> Judgement:
        if requirement.check is not None:
            return requirement.check(histories[0], contract)
        assert requirement.compare is not None, f"{requirement.id} has neither a check nor a comparison"
        return requirement.compare(histories, contract)

    return judge_by(check, requirement.sentence, histories)


def judge_by(check: Callable[[], Judgement], sentence: str, histories: Sequence[History]) -> Judgement:
    """The judgement that a check comes to, or why it comes to none; `sentence` says what is expected in that case. Its
    deciding numbers are lines of the recording."""
    judgement = _judge_by(check, sentence, histories)
    lines = {number: line for history in histories for number, line in history.lines.items()}
    deciding = tuple(sorted(lines.get(number, number) for number in judgement.deciding))
    return judgement.model_copy(update={"deciding": deciding})


def _judge_by(check: Callable[[], Judgement], sentence: str, histories: Sequence[History]) -> Judgement:
    early = _harness_failure(sentence, histories)
    if early is not None:
        return early
    try:
        return check()
    except Undecided as undecided:
        return Judgement(
            verdict=Verdict.UNKNOWN,
            expected=sentence,
            seen=undecided.why,
            deciding=tuple(undecided.deciding),
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        # A check that stumbles over an object has judged nothing: the harness failed, and says where.
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        where = f" ({trace.tb_frame.f_code.co_qualname}, line {trace.tb_lineno})" if trace else ""
        return Judgement(
            verdict=Verdict.ERROR,
            expected=sentence,
            seen=f"the check could not read what was recorded: {type(error).__name__}: {error}{where}",
        )


def _harness_failure(expected: str, histories: Sequence[History]) -> Judgement | None:
    for history in histories:
        failure = history.action("harness-error")
        if failure is not None:
            return Judgement(
                verdict=Verdict.ERROR,
                expected=expected,
                seen=f"{history.scenario.id}: {failure.detail.get('problem', 'the harness failed')}",
                deciding=(failure.seq,),
            )
    for history in histories:
        if not history.entries:
            return Judgement(verdict=Verdict.NOT_RUN, expected=expected, seen=f"{history.scenario.id} was not run")
        if not history.is_complete:
            return Judgement(
                verdict=Verdict.UNKNOWN, expected=expected, seen=f"{history.scenario.id} was cut short", deciding=()
            )
    return None
