"""The verdicts for a terminal: a table by requirement, what did not pass, and the sentence that counts.

Where the output is not a terminal there are no boxes and no colours, so that a log or a grep reads it as it is."""

from collections.abc import Iterable
from pathlib import Path

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from exitcode_conformance.verdict import Verdict
from exitcode_reports.printable import printable
from exitcode_reports.recording import Recording
from exitcode_reports.results import CaseResult, Overall
from exitcode_reports.summary import GRAVITY, RequirementResult, Summary, summarise

MOST_CASES = 3
"""Cases of one requirement that did not pass and are told one by one."""
MOST_REQUIREMENTS = 8
"""Requirements of which cases are told."""
STYLES = {
    Verdict.PASS: "green",
    Verdict.FAIL: "bold red",
    Verdict.ERROR: "bold magenta",
    Verdict.UNKNOWN: "yellow",
    Verdict.NOT_RUN: "dim",
    Verdict.WAIVED: "dim",
    Verdict.NOT_SUPPORTED: "dim",
}
HEADING_STYLES = {
    Overall.CONFORMANT: "bold green",
    Overall.NOT_CONFORMANT: "bold red",
    Overall.UNDECIDED: "bold yellow",
    Overall.HARNESS_FAILED: "bold magenta",
}
WRONG = (Verdict.FAIL, Verdict.ERROR, Verdict.UNKNOWN)


def print_result(recording: Recording, console: Console, report: Path) -> None:
    """What a run prints at its end: the verdicts, if any were given, and where the report is."""
    if recording.verdicts:
        print_verdicts(recording, console)
    else:
        console.print("No case was judged.")
    console.print(f"report: {report}", markup=False, highlight=False, soft_wrap=True)


def print_verdicts(recording: Recording, console: Console) -> None:
    """Print the table, the cases that did not pass, the notices and the sentence."""
    summary = summarise(recording)
    if console.is_terminal:
        console.print(verdict_table(summary))
    else:
        console.print(plain_verdicts(summary), markup=False, highlight=False, soft_wrap=True)


def verdict_table(summary: Summary) -> RenderableType:
    """For a terminal."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("requirement", no_wrap=True)
    table.add_column("level", no_wrap=True)
    table.add_column("what it says", ratio=1)
    table.add_column("verdict", no_wrap=True)
    table.add_column("cases", no_wrap=True)
    for requirement in _requirements(summary):
        counts = Text(" ").join(
            Text(f"{number} {verdict}", STYLES[verdict]) for verdict, number in requirement.counts.items()
        )
        style = STYLES[requirement.verdict]
        table.add_row(
            Text(_fit(requirement.id), style),
            Text(requirement.level),
            Text(_fit(requirement.sentence), "dim" if requirement.verdict is Verdict.PASS else ""),
            Text(f"{requirement.verdict}{_unproven(requirement)}", style),
            counts,
        )
    parts: list[RenderableType] = [table]
    for result in _told(summary):
        parts.append(Text(f"{result.verdict}  {_fit(result.name)}", STYLES[result.verdict]))
        parts.append(Padding(Text(f"expected  {_fit(result.expected)}\nseen      {_fit(result.seen)}"), (0, 0, 1, 4)))
    if more := _untold(summary):
        parts.append(Text(f"not shown here: {more}\n", "dim"))
    parts += [Text(_fit(notice), "yellow") for notice in summary.notices]
    heading = Text(summary.heading.upper(), HEADING_STYLES[summary.overall])
    parts.append(Text.assemble(heading, "  ", _fit(summary.sentence)))
    parts.append(Text(_tallies(summary), "dim"))
    return Group(*parts)


def plain_verdicts(summary: Summary) -> str:
    """For a log: the same without boxes and colours, one requirement a line."""
    requirements = _requirements(summary)
    width = max((len(one.id) for one in requirements), default=0)
    lines = [
        f"{_fit(one.id):<{width}}  {one.level:<6}  {one.verdict:<13}  "
        + ", ".join(f"{number} {verdict}" for verdict, number in one.counts.items())
        + _unproven(one)
        for one in requirements
    ]
    for result in _told(summary):
        lines += ["", f"{result.verdict}: {_fit(result.name)}"]
        lines += [f"  expected: {_fit(result.expected)}", f"  seen:     {_fit(result.seen)}"]
    if more := _untold(summary):
        lines += ["", f"not shown here: {more}"]
    lines += ["", *(_fit(notice) for notice in summary.notices)]
    lines += [f"{summary.heading.upper()}: {_fit(summary.sentence)}", _tallies(summary)]
    return "\n".join(lines)


def _requirements(summary: Summary) -> list[RequirementResult]:
    return [requirement for group in summary.groups for requirement in group.requirements]


def _unproven(requirement: RequirementResult) -> str:
    return "" if requirement.proven else " (unproven: not counted)"


def _wrong(requirement: RequirementResult) -> list[CaseResult]:
    """The cases of a requirement that did not pass, gravest first."""
    found = [result for result in requirement.cases if result.verdict in WRONG]
    return sorted(found, key=lambda result: GRAVITY.index(result.verdict))


def _to_tell(summary: Summary) -> list[RequirementResult]:
    """The requirements with something to tell, gravest first. INFO never counts."""
    found = [one for one in _requirements(summary) if one.level != "INFO" and _wrong(one)]
    return sorted(found, key=lambda one: (GRAVITY.index(one.verdict), one.level != "MUST"))


def _told(summary: Summary) -> list[CaseResult]:
    """The cases that are shown one by one."""
    return [case for one in _to_tell(summary)[:MOST_REQUIREMENTS] for case in _wrong(one)[:MOST_CASES]]


def _untold(summary: Summary) -> str:
    """How many cases of which requirements did not pass either, as a part of a sentence; empty for none."""
    shown = {case.name for case in _told(summary)}
    hidden = {one.id: [c for c in _wrong(one) if c.name not in shown] for one in _to_tell(summary)}
    return ", ".join(f"{len(cases)} of {_fit(name)}" for name, cases in hidden.items() if cases)


def _tallies(summary: Summary) -> str:
    return "; ".join(_tally(tally.level, tally.cases.items()) for tally in summary.tallies if tally.cases)


def _tally(level: str, counts: Iterable[tuple[Verdict, int]]) -> str:
    return f"{level}: " + ", ".join(f"{number} {verdict}" for verdict, number in counts)


def _fit(text: str) -> str:
    return printable(text, limit=400)
