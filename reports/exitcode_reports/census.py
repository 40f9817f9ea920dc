"""A census as it was recorded: what was seen of each of the 256 codes, and what that comes to.

A recording is one of a census if its header's profile says so. Its plan has one case for each code that was asked for.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from exitcode_conformance.census import (
    FEATURE,
    NAME,
    PROFILE,
    Fit,
    census_code,
    fits,
    judge_code,
    sentence_of,
    source_of,
)
from exitcode_conformance.code_list import EVERY_CODE, list_codes
from exitcode_conformance.contract import CodeClass, Contract, ObservedClass, contract_ids, load_contract
from exitcode_conformance.entry import VerdictLine
from exitcode_conformance.frozen import Frozen
from exitcode_conformance.run_record import RunRecord
from exitcode_conformance.scenario import Scenario, outcome_code
from exitcode_conformance.verdict import Verdict
from exitcode_reports.header import ContractIdentity, Header, PlannedCase
from exitcode_reports.recording import Recording
from exitcode_reports.recording_error import RecordingError
from exitcode_reports.results import CaseResult, Overall, case_results

CLASS_WORDS: Mapping[ObservedClass, str] = {
    ObservedClass.SUCCESS: "succeeded",
    ObservedClass.PERMANENT: "job failed",
    ObservedClass.RETRYABLE: "restarted",
    ObservedClass.RESTARTED_IN_PLACE: "restarted in place",
    ObservedClass.RESTARTED_AND_FAILED: "restarted, and job failed",
    ObservedClass.IGNORED: "neither",
}
"""What was seen, in the words of every legend, and in their order."""
UNKNOWN_WORD = "not known"
UNDEFINED = CodeClass.UNDEFINED.value


class CodeResult(Frozen):
    """One of the 256 codes."""

    code: int
    promised: str
    """The class that the contract gives it; `undefined` where it gives none."""
    observed: ObservedClass | None
    """What was seen; None where it is not known, or was not asked."""
    result: CaseResult | None
    """What became of its case; None for a code that was not asked for."""

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on it; None for a code that was not asked for."""
        return self.result.verdict if self.result else None

    @property
    def is_defined(self) -> bool:
        """Whether the contract says anything of it."""
        return self.promised != UNDEFINED

    @property
    def leaves(self) -> bool:
        """Whether what was seen leaves the contract."""
        return self.verdict is Verdict.FAIL

    @property
    def word(self) -> str:
        """What was seen of a code that was asked for, in a word or two."""
        return CLASS_WORDS[self.observed] if self.observed else UNKNOWN_WORD


class Census(Frozen):
    """Everything that is said of a census."""

    header: Header
    codes: tuple[CodeResult, ...]
    """All 256, in order."""
    overall: Overall
    heading: str
    sentence: str
    notices: tuple[str, ...]
    fits: tuple[Fit, ...]
    """How far each published contract fits, the best first."""
    fit_sentences: tuple[str, ...]
    """The first names the contract that fits best."""

    @property
    def asked(self) -> tuple[CodeResult, ...]:
        """The codes that were asked for."""
        return tuple(code for code in self.codes if code.result)

    def of_class(self, observed: ObservedClass | None) -> tuple[CodeResult, ...]:
        """The codes that were asked for and showed this class; None: those of which none is known."""
        return tuple(code for code in self.asked if code.observed is observed)


def is_census(recording: Recording) -> bool:
    """Whether the recording is one of a census; all others are of certifications."""
    return recording.header.profile == PROFILE


def census_of(recording: Recording) -> Census:
    """The census that a recording holds. Raises RecordingError for one that holds none."""
    results = _by_code(recording)
    claims = recording.header.contract.claims
    codes = tuple(
        CodeResult(
            code=code,
            promised=claims.get(code, UNDEFINED),
            observed=_observed(results.get(code)),
            result=results.get(code),
        )
        for code in EVERY_CODE
    )
    asked = [code for code in codes if code.result]
    overall = census_overall([code.verdict for code in asked if code.verdict], partial=recording.partial)
    found = fits(
        {code.code: code.observed for code in asked},
        [load_contract(name) for name in contract_ids()],
        claimed=recording.header.contract.id,
    )
    return Census(
        header=recording.header,
        codes=codes,
        overall=overall,
        heading=_heading(overall, asked),
        sentence=_sentence(recording.header, overall, asked),
        notices=_notices(recording, asked),
        fits=found,
        fit_sentences=fit_sentences(found),
    )


def census_overall(verdicts: Collection[Verdict], *, partial: bool) -> Overall:
    """What a census comes to. One code that leaves the contract is proof; otherwise a fault of the harness comes before
    what is not known, which here counts for undefined codes too: a census is to tell them all."""
    found = set(verdicts)
    if Verdict.FAIL in found:
        return Overall.NOT_CONFORMANT
    if Verdict.ERROR in found:
        return Overall.HARNESS_FAILED
    return Overall.UNDECIDED if partial or found != {Verdict.PASS} else Overall.CONFORMANT


def planned_code(scenario: Scenario, contract: Contract) -> PlannedCase:
    """The case of a code, as the recording's header has it."""
    code = census_code(scenario)
    return PlannedCase(
        requirement=NAME,
        subject=f"exit{code}",
        scenarios=(scenario.id,),
        level="INFO" if contract.class_of(code) is CodeClass.UNDEFINED else "MUST",
        feature=FEATURE,
        sentence=sentence_of(code, contract),
        source=source_of(code, contract),
    )


def judged_again(recording: Recording, contract: Contract) -> Recording:
    """The same census under this contract, judged by the rules of this version."""
    codes = _by_code(recording)
    header = recording.header
    record = RunRecord(scenarios=header.scenarios, timeouts=header.timeouts, entries=recording.entries)
    last = recording.entries[-1] if recording.entries else None
    lines = []
    for number, (code, result) in enumerate(codes.items(), start=last.seq + 1 if last else 1):
        judgement = judge_code(record.history(result.case.scenarios[0]), contract.class_of(code))
        lines.append(
            VerdictLine(
                seq=number,
                time=last.time if last else 0,
                requirement=NAME,
                subject=result.case.subject,
                scenarios=result.case.scenarios,
                **judgement.model_dump(),
            )
        )
    plan = tuple(planned_code(header.scenarios[result.case.scenarios[0]], contract) for result in codes.values())
    changed = header.model_copy(update={"contract": ContractIdentity.of(contract), "plan": plan})
    return recording.model_copy(update={"header": changed, "verdicts": tuple(lines)})


def fit_sentences(found: Sequence[Fit]) -> tuple[str, ...]:
    """One sentence for each contract; the first names the one that fits best."""
    if not any(fit.agreeing or fit.differing for fit in found):
        return ("No published contract can be compared: of no code that one of them defines is the class known.",)
    best, others = found[0], found[1:]
    alike = [fit for fit in others if fit.share == best.share and fit.defined == best.defined]
    if alike:
        names = " and ".join(fit.name for fit in (best, *alike))
        return (f"The published contracts {names} fit equally well.", *(f"{f.name}: {_agreement(f)}." for f in found))
    first = f"The published contract that fits best is {best.name}: {_agreement(best)}."
    return (first, *(f"{fit.name}: {_agreement(fit)}." for fit in others))


def _agreement(fit: Fit) -> str:
    if not fit.defined:
        return "it defines none of the codes that were asked for"
    if len(fit.agreeing) == fit.defined:
        return f"all {fit.defined} codes that it defines agree" if fit.defined > 1 else "the code it defines agrees"
    parts = [f"{len(fit.agreeing)} of the {_several(fit.defined)} that it defines agree"]
    if fit.differing:
        parts.append(f"{list_codes(fit.differing)} {'does' if len(fit.differing) == 1 else 'do'} not")
    if fit.unknown:
        parts.append(f"{list_codes(fit.unknown)} {'is' if len(fit.unknown) == 1 else 'are'} not known")
    return "; ".join(parts)


def _by_code(recording: Recording) -> dict[int, CaseResult]:
    if not is_census(recording):
        raise RecordingError(
            f"{recording.path} is the recording of a certification, not of a census.",
            "See it with `exitcode-conformance report`, or give the recording of a census.",
        )
    found: dict[int, CaseResult] = {}
    for result in case_results(recording):
        code = _code_of(recording.header, result)
        if code is None or code in found:
            problem = f"{recording.path} is no census: its case {result.name} is not the one case of a code."
            raise RecordingError(problem, "Take the census again.")
        found[code] = result
    return found


def _code_of(header: Header, result: CaseResult) -> int | None:
    scenarios = [header.scenarios.get(name) for name in result.case.scenarios]
    scenario = scenarios[0] if len(scenarios) == 1 else None
    if result.case.requirement != NAME or scenario is None or scenario.target is None:
        return None
    return outcome_code(scenario.outcome_of(scenario.target, 1))


def _observed(result: CaseResult | None) -> ObservedClass | None:
    name = result.line.observed_class if result and result.line else None
    return ObservedClass(name) if name in set(ObservedClass) else None


def _heading(overall: Overall, asked: Sequence[CodeResult]) -> str:
    leaving = sum(code.leaves for code in asked)
    match overall:
        case Overall.NOT_CONFORMANT:
            return f"{_several(leaving)} {'leaves' if leaving == 1 else 'leave'} the contract"
        case Overall.CONFORMANT:
            return "No code leaves the contract"
        case Overall.UNDECIDED:
            return "Undecided"
        case Overall.HARNESS_FAILED:
            return "Harness failed"


def _sentence(header: Header, overall: Overall, asked: Sequence[CodeResult]) -> str:
    operator = f"{header.operator.name} {header.operator.version}"
    contract = f"{header.contract.id} {header.contract.version}"
    if overall is Overall.CONFORMANT:
        return _kept(operator, contract, asked)
    defined = sum(code.is_defined for code in asked)
    leaving = [code.code for code in asked if code.leaves]
    faults = [code.code for code in asked if code.verdict is Verdict.ERROR]
    missing = [code.code for code in asked if code.verdict in (Verdict.UNKNOWN, Verdict.NOT_RUN)]
    parts = []
    if leaving:
        parts.append(
            f"{operator} does otherwise than {contract} says about {len(leaving)} of the {_several(defined)} that it "
            f"defines: {list_codes(leaving)}"
        )
    if faults:
        parts.append(f"The harness failed in the {_jobs(faults)}")
    if missing:
        parts.append(f"The evidence is too weak in the {_jobs(missing)}")
    return ". ".join(parts or ["No code was seen"]) + "."


def _kept(operator: str, contract: str, asked: Sequence[CodeResult]) -> str:
    defined = sum(code.is_defined for code in asked)
    others = len(asked) - defined
    if not defined:
        return f"{contract} defines none of the codes that were asked for: whatever {operator} does keeps it."
    all_of_them = f"all {defined} codes" if defined > 1 else "the one code"
    rest = f"; what was seen of {_several(others)} that it does not define is recorded" if others else ""
    return f"{operator} does what {contract} says about {all_of_them} that it defines{rest}."


def _jobs(codes: Sequence[int]) -> str:
    return f"job{'s' if len(codes) > 1 else ''} of {_several(len(codes))}: {list_codes(codes)}"


def _notices(recording: Recording, asked: Sequence[CodeResult]) -> tuple[str, ...]:
    notices = []
    if recording.partial:
        notices.append(
            "This recording is partial: the census was cut short or is still going on. What is missing is not known."
        )
    if len(asked) < len(EVERY_CODE):
        notices.append(f"Only {_several(len(asked))} of {len(EVERY_CODE)} were asked for.")
    where = ""
    if recording.header.cluster.type == "embedded":
        where = " It was taken on the embedded cluster, which imitates Kubernetes."
    notices.append(f"A census shows one job for each code and certifies nothing.{where}")
    return tuple(notices)


def _several(number: int) -> str:
    return f"{number} code" if number == 1 else f"{number} codes"


def class_counts(census: Census) -> tuple[tuple[ObservedClass | None, int], ...]:
    """How many codes showed each class, without those that none showed; None for what is not known."""
    counts = Counter(code.observed for code in census.asked)
    order: Iterable[ObservedClass | None] = (*CLASS_WORDS, None)
    return tuple((observed, counts[observed]) for observed in order if counts[observed])
