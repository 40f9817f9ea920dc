"""The kill matrix for a terminal: by whom each requirement was failed, by what each mutant was found, and what is
wrong with that. One line each, so that a log or a grep reads it as it is."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from exitcode_reports.kill_matrix import KillMatrix, MutantResult
from exitcode_reports.kill_page import heading_of, sentence_of
from exitcode_reports.printable import printable

LONGEST = 160
"""Characters of a sentence."""
MOST_NAMES = 4


def print_kill_matrix(matrix: KillMatrix, console: Console) -> None:
    """Print both tables, the notes, and the sentences on what does not hold."""
    for text in kill_lines(matrix):
        console.print(text, highlight=False, soft_wrap=True)


def kill_lines(matrix: KillMatrix) -> Iterator[Text]:
    """The lines, with styles that a terminal shows."""
    width = max((len(result.name) for result in matrix.mutants), default=0)
    for result in matrix.mutants:
        yield _mutant(result, width)
    if matrix.complete:
        yield Text()
        for row in matrix.requirements:
            for adapter, killers in row.killers.items():
                yield Text(f"{row.id:12}{row.level:8}{adapter:10}").append_text(_shown(killers))
    yield Text()
    for note in matrix.notes:
        yield Text(note, "dim")
    for problem in matrix.problems:
        yield Text(problem, "bold red")
    for change in matrix.changes:
        yield Text(change, "yellow" if matrix.acknowledged else "bold red")
    yield _verdict(matrix)


def _shown(killers: Sequence[str]) -> Text:
    if not killers:
        return Text("unproven", "bold yellow")
    more = f" (+{len(killers) - MOST_NAMES})" if len(killers) > MOST_NAMES else ""
    return Text(f"shown to fail by {', '.join(killers[:MOST_NAMES])}{more}")


def _mutant(result: MutantResult, width: int) -> Text:
    text = Text(f"{result.name:{width}}  ")
    if result.error is not None:
        return text.append(f"error: {_short(result.error)}", "bold magenta")
    if not result.was_run:
        return text.append(f"not run: it names {result.mutant.target}", "dim")
    target = result.mutant.target
    if target is None:
        return text.append("conformant, as it has to be", "green") if not result.kills else text.append(_kills(result))
    kill = result.kill_of(target)
    if kill is None:
        text.append("void" if result.is_void else f"not killed by {target}", "bold red")
        return text.append(f"; {_kills(result)}" if result.kills else "")
    others = [name for name in result.killed_by if name != target]
    text.append(f"killed by {target}", "green").append(f" {kill.subject}: {_short(kill.seen)}")
    return text.append(f" (and {', '.join(others)})" if others else "", "dim")


def _kills(result: MutantResult) -> str:
    return f"fails {', '.join(result.killed_by)}"


def _verdict(matrix: KillMatrix) -> Text:
    style = "bold magenta" if matrix.harness_failed else "bold red" if not matrix.holds else "bold green"
    return Text(f"{heading_of(matrix).upper()}  {sentence_of(matrix)}", style)


def _short(text: str) -> str:
    return printable(text, limit=LONGEST)
