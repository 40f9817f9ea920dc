"""A comparison for a terminal: which recordings, where they differ, the exit codes, the delays, and the sentence.

One line for each thing, so that a log or a grep reads it as it is."""

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from exitcode_conformance.contract import ObservedClass
from exitcode_conformance.verdict import Verdict
from exitcode_reports.census import CLASS_WORDS
from exitcode_reports.census_map import STYLES as CLASS_STYLES
from exitcode_reports.comparison import ABSENT, CaseRow, Cell, CodeCell, Comparison, Likeness, Outcome
from exitcode_reports.comparison_html import GRAVITY, WORDS, told_class
from exitcode_reports.evidence import TimeEvidence
from exitcode_reports.printable import printable
from exitcode_reports.verdict_table import STYLES as VERDICT_STYLES

LONGEST = 300
"""Characters of a name or a sentence."""
RESTART_BOUNDS = ("restart", "kubelet_restart")
"""The delays that are shown unless all are asked for."""
STYLES: Mapping[Likeness, str] = {
    Likeness.SAME: "green",
    Likeness.ANOTHER_ROUTE: "cyan",
    Likeness.CHANGED: "yellow",
    Likeness.CONTRADICTORY: "bold red",
}
HEADING_STYLES: Mapping[Outcome, str] = {
    Outcome.ALIKE: "bold green",
    Outcome.CONTRADICTORY: "bold red",
    Outcome.UNDECIDED: "bold yellow",
}
_GAP = 2


def print_comparison(comparison: Comparison, console: Console, *, everything: bool = False) -> None:
    """Print the tables, the notices and the sentence. Unless `everything` is asked for, only what differs."""
    for line in comparison_lines(comparison, everything=everything):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def comparison_lines(comparison: Comparison, *, everything: bool) -> Iterator[Text]:
    """Everything that is printed, line by line."""
    for number, one in enumerate(comparison.recordings, start=1):
        yield Text.assemble((f"{number}  ", "bold"), _fit(one.label), (f"  {one.overall.lower()}", "dim"))
    for table in (
        _requirements(comparison, everything=everything),
        _cases(comparison, everything=everything),
        _codes(comparison, everything=everything),
        _delays(comparison, everything=everything),
    ):
        if len(table) > 1:
            yield Text()
            yield from _aligned(table)
    yield Text()
    untold = sum(not _is_told(row) and row.likeness is not Likeness.SAME for row in _rows(comparison))
    if untold and not everything:
        yield Text(f"not shown here: {untold} changed that no recording has run (--all shows them)", "dim")
    for notice in comparison.notices:
        yield Text(_fit(notice), "yellow")
    heading = Text(comparison.heading.upper(), HEADING_STYLES[comparison.exit_status])
    yield Text.assemble(heading, ": ", _fit(comparison.sentence))


_Table = Sequence[Sequence[Text]]
"""The head, then the rows."""


def _requirements(comparison: Comparison, *, everything: bool) -> _Table:
    table = [_head("requirement", "cases", *(WORDS[likeness] for likeness in GRAVITY))]
    for one in comparison.requirements:
        differs = one.counts[Likeness.SAME] < len(one.cases)
        if differs or everything:
            numbers = (Text(str(one.counts[name]), STYLES[name] if one.counts[name] else "dim") for name in GRAVITY)
            table.append([Text(_fit(one.id)), Text(str(len(one.cases))), *numbers])
    total = sum(comparison.counts.values())
    table.append([Text("all"), Text(str(total)), *(Text(str(comparison.counts[name])) for name in GRAVITY)])
    return table


def _rows(comparison: Comparison) -> Iterator[CaseRow]:
    return (row for requirement in comparison.requirements for row in requirement.cases)


def _is_told(row: CaseRow) -> bool:
    """Whether a row says anything of the operators: it differs, and somebody ran it."""
    return row.likeness is not Likeness.SAME and row.was_looked_at


def _cases(comparison: Comparison, *, everything: bool) -> _Table:
    table = [_head("case", *_numbers(comparison), "")]
    for one in comparison.requirements:
        for row in one.cases:
            if everything or _is_told(row):
                # The route is told where it makes the difference, or may explain it.
                cells = (_verdict(cell, route=row.likeness is not Likeness.SAME) for cell in row.cells)
                name = Text(_fit(f"{one.id}[{row.subject}]"))
                table.append([name, *cells, Text(WORDS[row.likeness], STYLES[row.likeness])])
    return table


def _codes(comparison: Comparison, *, everything: bool) -> _Table:
    table = [_head("exit code", *_numbers(comparison))]
    for row in comparison.codes:
        if row.differs or everything:
            table.append([Text(str(row.code)), *map(_classes, row.cells)])
    return table


def _delays(comparison: Comparison, *, everything: bool) -> _Table:
    table = [_head("delay", "bound", *_numbers(comparison))]
    for row in comparison.delays:
        if everything or row.bound in RESTART_BOUNDS:
            table.append([Text(_fit(row.requirement)), Text(_fit(row.bound)), *map(_delay, row.cells)])
    return table


def _head(*names: str) -> list[Text]:
    return [Text(name, "bold") for name in names]


def _numbers(comparison: Comparison) -> tuple[str, ...]:
    return tuple(str(number) for number in range(1, len(comparison.recordings) + 1))


def _verdict(cell: Cell, *, route: bool) -> Text:
    style = VERDICT_STYLES[cell.verdict] if isinstance(cell.verdict, Verdict) else "dim"
    text = Text(ABSENT if cell.verdict == ABSENT else cell.verdict.value, style)
    if route and cell.observed_class is not None:
        text.append(f" ({_fit(told_class(cell.observed_class))})", _class_style(cell.observed_class))
    return text


def _classes(cell: CodeCell | None) -> Text:
    if cell is None:
        return Text("not seen", "dim")
    found = [Text(f"{number} {_fit(told_class(name))}", _class_style(name)) for name, number in cell.classes.items()]
    if cell.undecided:
        found.append(Text(f"{cell.undecided} undecided", "dim"))
    return Text(", ").join(found)


def _class_style(name: str) -> str:
    return CLASS_STYLES[ObservedClass(name)] if name in CLASS_WORDS else ""


def _delay(cell: TimeEvidence | None) -> Text:
    if cell is None:
        return Text("not waited for", "dim")
    trials = f"{cell.trials} {'trial' if cell.trials == 1 else 'trials'}, bound {cell.limit:g} s"
    if cell.median is None or cell.longest is None:
        return Text(f"none came ({trials})", "bold red" if cell.failed else "dim")
    text = Text(f"median {cell.median:.2f} s, maximum {cell.longest:.2f} s ({trials})")
    return text.append(f", {cell.failed} late or never", "bold red") if cell.failed else text


def _aligned(table: _Table) -> Iterator[Text]:
    widths = [max(row[column].cell_len for row in table) for column in range(len(table[0]))]
    for row in table:
        line = Text()
        for cell, width in zip(row, widths, strict=True):
            line.append_text(cell).append(" " * (width - cell.cell_len + _GAP))
        line.rstrip()
        yield line


def _fit(text: str) -> str:
    return printable(text, limit=LONGEST)
