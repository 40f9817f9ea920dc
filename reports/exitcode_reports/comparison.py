"""Recordings side by side: what each says of every case, of every exit code and of every delay, and where they differ.

A pure function of the recordings. It certifies nothing: rows of every level count, and a case that a recording does not
have is absent from it, which is never a pass."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Literal, TypeVar

from exitcode_conformance import SUITE_VERSION
from exitcode_conformance.frozen import Frozen
from exitcode_conformance.verdict import Verdict
from exitcode_reports.evidence import TimeEvidence
from exitcode_reports.header import Header, Level
from exitcode_reports.html import anchor_of
from exitcode_reports.matrix import Row as MatrixRow
from exitcode_reports.matrix import matrix_of
from exitcode_reports.recording import Recording
from exitcode_reports.results import CaseResult
from exitcode_reports.summary import RequirementResult, Summary, count_verdicts, group_rank, summarise

FORMAT: Literal[1] = 1
"""The version of comparison.json: keys may come without a new one, none goes or changes its meaning."""
ABSENT: Literal["absent"] = "absent"
"""In place of a verdict: the recording does not have the case."""
MOST_NAMES = 6
"""Contradictory requirements that the sentence names."""
UNRUN = (Verdict.NOT_RUN, Verdict.NOT_SUPPORTED)
"""Verdicts on what nobody looked at."""

_Found = TypeVar("_Found")


class Likeness(StrEnum):
    """How the recordings agree on a case, or do not."""

    SAME = "same"
    """One verdict, and one class of the exit code."""
    ANOTHER_ROUTE = "another-route"
    """One verdict, but another class of the exit code was observed: both passed, and one restarted in place."""
    CHANGED = "changed"
    """Verdicts differ, and those that decide do not contradict each other."""
    CONTRADICTORY = "contradictory"
    """One recording passed, another failed."""


class Outcome(IntEnum):
    """What the comparison comes to; the values are the exit statuses of the command."""

    ALIKE = 0
    CONTRADICTORY = 1
    UNDECIDED = 2


HEADINGS: Mapping[Outcome, str] = {
    Outcome.ALIKE: "Alike",
    Outcome.CONTRADICTORY: "Contradictory",
    Outcome.UNDECIDED: "Undecided",
}


SENTENCE_WORDS: Mapping[Likeness, str] = {
    Likeness.CONTRADICTORY: "contradictory",
    Likeness.CHANGED: "changed",
    Likeness.ANOTHER_ROUTE: "the same by another route",
    Likeness.SAME: "the same",
}


@dataclass(frozen=True, kw_only=True)
class Side:
    """A recording that is to be compared."""

    recording: Recording
    path: str
    """Its file, as the user names it."""
    page: str | None
    """The relative URL of its own report; None where it has none."""
    judged_again: bool
    """Its verdicts are not those of the file."""


class Column(Frozen):
    """One recording."""

    label: str
    """Operator, contract and cluster, told apart from every other label."""
    operator: str
    version: str
    contract: str
    cluster: str
    profile: str
    run_id: str
    started_at: datetime
    suite_version: str
    path: str
    page: str | None
    partial: bool
    judged_again: bool
    overall: str
    """What the recording comes to by itself."""
    verdicts: dict[Verdict, int]


class Cell(Frozen):
    """What one recording says of a case."""

    verdict: Verdict | Literal["absent"]
    observed_class: str | None = None
    seen: str = ""
    line: int | None = None
    """Of the verdict in the recording's file; None where there is none, or where it was judged again."""
    page: str | None = None
    """The relative URL of the evidence in the recording's own report."""


class CaseRow(Frozen):
    """One case; a cell for each recording."""

    subject: str
    likeness: Likeness
    cells: tuple[Cell, ...]

    @property
    def was_looked_at(self) -> bool:
        """Whether any of the recordings ran it."""
        return any(cell.verdict != ABSENT and cell.verdict not in UNRUN for cell in self.cells)


class RequirementRows(Frozen):
    """One requirement and its cases."""

    id: str
    level: Level
    sentence: str
    counts: dict[Likeness, int]
    cases: tuple[CaseRow, ...]


class CodeCell(Frozen):
    """What one recording shows of an exit code, where restartPolicy is ExitCode."""

    promised: str
    """The class that its contract gives the code; `undefined` where it gives none."""
    classes: dict[str, int]
    """Observed class → scenarios that showed it."""
    undecided: int
    """Scenarios that showed none."""


class CodeRow(Frozen):
    """One exit code; a cell, or none, for each recording."""

    code: int
    differs: bool
    """Two recordings showed other classes."""
    cells: tuple[CodeCell | None, ...]


class DelayRow(Frozen):
    """What a requirement waits for by one bound; the delays, or none, of each recording."""

    requirement: str
    bound: str
    cells: tuple[TimeEvidence | None, ...]


class Comparison(Frozen):
    """Everything that is said of the recordings together; comparison.json."""

    format: Literal[1] = FORMAT
    suite_version: str = SUITE_VERSION
    exit_status: Outcome
    heading: str
    sentence: str
    notices: tuple[str, ...]
    counts: dict[Likeness, int]
    recordings: tuple[Column, ...]
    requirements: tuple[RequirementRows, ...]
    codes: tuple[CodeRow, ...]
    delays: tuple[DelayRow, ...]


def compare(sides: Sequence[Side]) -> Comparison:
    """The comparison of two recordings or more, each with the verdicts that stand in it."""
    summaries = [summarise(side.recording) for side in sides]
    found = [_by_id(summary) for summary in summaries]
    requirements = tuple(_requirements(sides, found))
    counts = _added(row.counts for row in requirements)
    decided = any(cell.verdict in (Verdict.PASS, Verdict.FAIL) for cell in _cells(requirements))
    outcome = _outcome(counts) if decided else Outcome.UNDECIDED
    return Comparison(
        exit_status=outcome,
        heading=HEADINGS[outcome],
        sentence=_sentence(requirements, counts, decided=decided),
        notices=tuple(_notices(sides)),
        counts=counts,
        recordings=tuple(_columns(sides, summaries, found)),
        requirements=requirements,
        codes=tuple(_codes(sides, found)),
        delays=tuple(_delays(found)),
    )


def likeness_of(cells: Iterable[Cell]) -> Likeness:
    """How these cells of one case agree."""
    cells = tuple(cells)
    verdicts = {cell.verdict for cell in cells}
    if {Verdict.PASS, Verdict.FAIL} <= verdicts:
        return Likeness.CONTRADICTORY
    if len(verdicts) > 1:
        return Likeness.CHANGED
    return Likeness.SAME if len({cell.observed_class for cell in cells}) == 1 else Likeness.ANOTHER_ROUTE


_Results = Mapping[str, RequirementResult]
"""What became of each requirement in one recording."""


def _by_id(summary: Summary) -> _Results:
    return {requirement.id: requirement for group in summary.groups for requirement in group.requirements}


def _cases_of(results: _Results) -> Iterator[CaseResult]:
    return (case for requirement in results.values() for case in requirement.cases)


def _requirements(sides: Sequence[Side], found: Sequence[_Results]) -> Iterator[RequirementRows]:
    """Every requirement of any of them, in the order of every report."""
    first = {name: one for results in reversed(found) for name, one in results.items()}
    for name in sorted(first, key=lambda name: (group_rank(first[name].cases[0].group), name)):
        here = [
            {case.case.subject: case for case in (results[name].cases if name in results else ())} for results in found
        ]
        rows = []
        for subject in dict.fromkeys(subject for cases in here for subject in cases):
            cells = tuple(_cell(side, cases.get(subject)) for side, cases in zip(sides, here, strict=True))
            rows.append(CaseRow(subject=subject, likeness=likeness_of(cells), cells=cells))
        yield RequirementRows(
            id=name,
            level=first[name].level,
            sentence=first[name].sentence,
            counts=_counted(row.likeness for row in rows),
            cases=tuple(rows),
        )


def _cell(side: Side, result: CaseResult | None) -> Cell:
    if result is None:
        return Cell(verdict=ABSENT)
    line = result.line
    anchor = anchor_of(result.case, side.recording.header)
    return Cell(
        verdict=result.verdict,
        observed_class=line.observed_class if line else None,
        seen=result.seen,
        line=line.seq + 1 if line and not side.judged_again else None,
        page=f"{side.page}#{anchor}" if side.page else None,
    )


def _cells(requirements: Iterable[RequirementRows]) -> Iterator[Cell]:
    return (cell for requirement in requirements for row in requirement.cases for cell in row.cells)


def _counted(found: Iterable[Likeness]) -> dict[Likeness, int]:
    counts = Counter(found)
    return {likeness: counts[likeness] for likeness in Likeness}


def _added(counts: Iterable[Mapping[Likeness, int]]) -> dict[Likeness, int]:
    return _counted(likeness for one in counts for likeness, number in one.items() for _ in range(number))


def _outcome(counts: Mapping[Likeness, int]) -> Outcome:
    if counts[Likeness.CONTRADICTORY]:
        return Outcome.CONTRADICTORY
    return Outcome.UNDECIDED if counts[Likeness.CHANGED] else Outcome.ALIKE


def _sentence(requirements: Sequence[RequirementRows], counts: Mapping[Likeness, int], *, decided: bool) -> str:
    total = sum(counts.values())
    if not decided:
        return f"No recording passed or failed any of {total} cases: there is nothing to compare."
    parts = []
    for likeness, words in SENTENCE_WORDS.items():
        names = [requirement.id for requirement in requirements if requirement.counts[likeness]]
        if names and likeness is Likeness.CONTRADICTORY:
            more = f" and {len(names) - MOST_NAMES} more requirements" if len(names) > MOST_NAMES else ""
            words += f" ({', '.join(names[:MOST_NAMES])}{more})"
        if names:
            parts.append(f"{counts[likeness]} {words}")
    return f"{total} cases: {', '.join(parts)}."


def _notices(sides: Sequence[Side]) -> Iterator[str]:
    heads = [side.recording.header for side in sides]
    for number, side in enumerate(sides, start=1):
        if side.recording.partial:
            yield f"Recording {number} is partial: what is missing of it counts as not run."
    contracts = dict.fromkeys((head.contract.id, head.contract.version, head.contract.digest) for head in heads)
    if len(contracts) > 1:
        named = ", ".join(dict.fromkeys(f"{name} {version}" for name, version, _ in contracts))
        yield (
            f"They are judged by different contracts ({named}): a case that only one of them asks for is absent from "
            "the others. --contract ID judges all by one."
        )
    profiles = dict.fromkeys(head.profile for head in heads)
    if len(profiles) > 1:
        yield f"They are of different profiles ({', '.join(profiles)}): what only one has is absent from others."
    versions = dict.fromkeys(head.suite_version for head in heads)
    if len(versions) > 1:
        yield (
            f"They are judged by different versions of exitcode-conformance ({', '.join(versions)}): a difference may "
            "be one of the suite. --contract ID judges all with this one."
        )


def _columns(sides: Sequence[Side], summaries: Sequence[Summary], found: Sequence[_Results]) -> Iterator[Column]:
    labels = [_label(side.recording.header) for side in sides]
    times = Counter(labels)
    for side, summary, results, label in zip(sides, summaries, found, labels, strict=True):
        head = side.recording.header
        yield Column(
            label=label if times[label] == 1 else f"{label} · {side.path}",
            operator=head.operator.name,
            version=head.operator.version,
            contract=f"{head.contract.id} {head.contract.version}",
            cluster=_cluster(head),
            profile=head.profile,
            run_id=head.run_id,
            started_at=head.started_at,
            suite_version=head.suite_version,
            path=side.path,
            page=side.page,
            partial=side.recording.partial,
            judged_again=side.judged_again,
            overall=summary.heading,
            verdicts=count_verdicts(case.verdict for case in _cases_of(results)),
        )


def _label(head: Header) -> str:
    contract = f"{head.contract.id} {head.contract.version}"
    return f"{head.operator.name} {head.operator.version} × {contract} · {_cluster(head)}"


def _cluster(head: Header) -> str:
    return f"{head.cluster.type} {head.cluster.server_version}"


def _codes(sides: Sequence[Side], found: Sequence[_Results]) -> Iterator[CodeRow]:
    seen: list[dict[int, CodeCell]] = []
    for side, results in zip(sides, found, strict=True):
        looked_at = [case for case in _cases_of(results) if case.verdict not in UNRUN]
        rows = matrix_of(side.recording.header, looked_at).rows
        seen.append({row.code: _code_cell(row) for row in rows})
    for code, cells in _side_by_side(seen):
        shown = {tuple(sorted(cell.classes)) for cell in cells if cell and cell.classes}
        yield CodeRow(code=code, differs=len(shown) > 1, cells=cells)


def _code_cell(row: MatrixRow) -> CodeCell:
    shown: dict[str, set[str]] = {}
    for sighting in (sighting for cell in row.cells if cell for sighting in cell.sightings):
        shown.setdefault(sighting.scenario, set()).update([sighting.observed] if sighting.observed else [])
    classes = Counter(name for names in shown.values() for name in names)
    undecided = sum(not names for names in shown.values())
    return CodeCell(promised=row.expected, classes=dict(sorted(classes.items())), undecided=undecided)


def _delays(found: Sequence[_Results]) -> Iterator[DelayRow]:
    delays = [
        {
            (requirement.id, evidence.bound): evidence
            for requirement in results.values()
            for evidence in requirement.evidence
            if evidence.kind == "eventually"
        }
        for results in found
    ]
    for (requirement, bound), cells in _side_by_side(delays):
        yield DelayRow(requirement=requirement, bound=bound, cells=cells)


_Key = TypeVar("_Key", int, tuple[str, str])


def _side_by_side(found: Sequence[Mapping[_Key, _Found]]) -> Iterator[tuple[_Key, tuple[_Found | None, ...]]]:
    """Every key of any of the recordings, in order, with what each of them has."""
    for key in sorted({key for one in found for key in one}):
        yield key, tuple(one.get(key) for one in found)
