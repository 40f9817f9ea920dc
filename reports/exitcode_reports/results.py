"""The plan and the verdicts side by side: what became of every case, and what the whole comes to."""

from collections.abc import Iterable, Sequence
from enum import IntEnum

from exitcode_conformance.entry import VerdictLine
from exitcode_conformance.frozen import Frozen
from exitcode_conformance.verdict import Verdict
from exitcode_conformance.waiver import WaiverUse, use_of
from exitcode_reports.header import Header, PlannedCase
from exitcode_reports.recording import Recording


class Overall(IntEnum):
    """What the run comes to; the values are the exit statuses of the command."""

    CONFORMANT = 0
    NOT_CONFORMANT = 1
    UNDECIDED = 2
    HARNESS_FAILED = 3


class CaseResult(Frozen):
    """One planned case and what became of it."""

    case: PlannedCase
    verdict: Verdict
    line: VerdictLine | None
    """None where the recording has no verdict on it."""
    proven: bool = True
    """Whether the requirement is known to be able to fail; one that is not does not count."""

    @property
    def is_must(self) -> bool:
        """Whether it decides."""
        return self.case.level == "MUST" and self.proven

    @property
    def name(self) -> str:
        """The case as the test id spells it."""
        return f"{self.case.requirement}[{self.case.subject}]"

    @property
    def group(self) -> str:
        """The group of the requirement: `EXIT` for EXIT-03."""
        return self.case.requirement.rpartition("-")[0] or self.case.requirement

    @property
    def expected(self) -> str:
        """What had to happen, in the check's words or, unjudged, in the requirement's."""
        return self.line.expected if self.line else self.case.sentence

    @property
    def seen(self) -> str:
        """What did happen, or why nothing was looked at."""
        if self.line:
            return self.line.seen
        return self.case.reason or "The recording has no verdict on it."


def case_results(recording: Recording) -> tuple[CaseResult, ...]:
    """Every case of the plan, in the order of the plan."""
    lines = {(line.requirement, line.subject): line for line in recording.verdicts}
    results = []
    for case in recording.header.plan:
        line = lines.get((case.requirement, case.subject))
        if line is not None:
            verdict = Verdict(line.verdict)
        else:
            verdict = Verdict.NOT_RUN if case.planned == "run" else Verdict(case.planned)
        proven = recording.header.is_proven(case.requirement)
        results.append(CaseResult(case=case, verdict=verdict, line=line, proven=proven))
    return tuple(results)


def waiver_uses(header: Header, results: Sequence[CaseResult]) -> tuple[WaiverUse, ...]:
    """What became of every waiver of a run of which these are the results."""
    verdicts = [(result.case.requirement, result.case.subject, result.verdict) for result in results]
    return tuple(use_of(waiver, verdicts, header.day, elsewhere=waiver.elsewhere) for waiver in header.waivers)


def overall_of(results: Iterable[CaseResult], *, partial: bool, waivers: Iterable[WaiverUse] = ()) -> Overall:
    """What the results come to. One failed MUST is proof, whatever else is missing, and so is a waiver that has expired
    or is stale; otherwise an error of the harness comes before what is undecided. SHOULD counts only where the harness
    failed; INFO never does, nor does what is unproven."""
    counting = [result for result in results if result.case.level != "INFO" and result.proven]
    must = {result.verdict for result in counting if result.is_must}
    if Verdict.FAIL in must or any(use.fault for use in waivers):
        return Overall.NOT_CONFORMANT
    if any(result.verdict is Verdict.ERROR for result in counting):
        return Overall.HARNESS_FAILED
    if partial or Verdict.PASS not in must or must & {Verdict.UNKNOWN, Verdict.NOT_RUN}:
        return Overall.UNDECIDED
    return Overall.CONFORMANT


def overall(recording: Recording) -> Overall:
    """What the recording comes to."""
    results = case_results(recording)
    return overall_of(results, partial=recording.partial, waivers=waiver_uses(recording.header, results))
