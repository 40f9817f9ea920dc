"""The page of a kill matrix: a pure function of it, one file that needs nothing else and lets nothing in.

It is made as the report is, with the report's own look; see `html`."""

from dataclasses import dataclass

from exitcode_conformance.adapters import ADAPTERS
from exitcode_conformance.kinds import AdapterName
from exitcode_reports.html import environment, part, policy_for
from exitcode_reports.kill_matrix import Kill, KillMatrix, MutantResult

CELL = 9
"""Pixels of a square of the matrix: a hundred and ten of them, and the names, fit into the page."""
LEFT = 66
TOP = 152
"""Pixels for the names of requirements and of mutants."""
LOOKS = {"killed": "pass", "survived": "fail", "error": "error", "not run": "not-run", "conformant": "pass"}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A mutant that fails a requirement; or does not, though it was built for it."""

    x: int
    y: int
    look: str
    """`built` for a requirement that the mutant names, `also` for another; `missed` where it should have failed."""
    mutant: str
    title: str


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The matrix of one job API as a drawing, in pixels."""

    adapter: AdapterName
    width: int
    height: int
    columns: tuple[tuple[int, str], ...]
    rows: tuple[tuple[int, str, bool], ...]
    """Position, requirement, and whether it is unproven."""
    rules: tuple[int, ...]
    """Between two groups of requirements."""
    cells: tuple[Cell, ...]


@dataclass(frozen=True, kw_only=True)
class MutantPage:
    """One mutant with what found it."""

    result: MutantResult
    fate: str
    look: str
    kills: tuple[Kill, ...]
    """One of each requirement; that of the requirement it names first."""


def render_kill_matrix(matrix: KillMatrix) -> str:
    """The page. The same matrix gives the same page, byte for byte."""
    style = part("style.css") + part("kill-matrix.css")
    script = part("kill-matrix.js")
    return (
        environment()
        .get_template("kill-matrix.html.j2")
        .render(
            matrix=matrix,
            look=_look(matrix),
            heading=heading_of(matrix),
            sentence=sentence_of(matrix),
            adapters=tuple(ADAPTERS),
            grids=tuple(grid for adapter in ADAPTERS if (grid := _grid(matrix, adapter)).columns),
            cell=CELL,
            left=LEFT,
            top=TOP,
            mutants=tuple(_page_of(result) for result in (*matrix.reference, *matrix.mutants)),
            style=style,
            script=script,
            policy=policy_for(style, script),
        )
    )


def _look(matrix: KillMatrix) -> str:
    if matrix.harness_failed:
        return "error"
    return "fail" if not matrix.holds else "pass" if matrix.complete else "unknown"


def heading_of(matrix: KillMatrix) -> str:
    """The result in a word or two."""
    if matrix.harness_failed:
        return "Harness failed"
    if not matrix.holds:
        return "Not proven"
    return "Proven" if matrix.complete else "In part"


def sentence_of(matrix: KillMatrix) -> str:
    """The result in one sentence."""
    faulty = [result for result in matrix.mutants if result.mutant.target is not None and result.was_run]
    killed = sum(bool(result.kills) for result in faulty)
    text = f"{killed} of {len(faulty)} mutants killed in {matrix.seconds:.0f} s"
    if matrix.complete:
        proven = sum(not row.unproven for row in matrix.requirements)
        text += f"; {proven} of {len(matrix.requirements)} requirements shown to fail"
    if matrix.reference:
        text += f"; the unchanged controller fails {', '.join(matrix.reference_killed_by) or 'nothing'}"
    return f"{text}."


def fate_of(result: MutantResult) -> str:
    """What became of a mutant: a key of LOOKS."""
    if result.error is not None:
        return "error"
    if not result.was_run:
        return "not run"
    if result.mutant.target is None:
        return "survived" if result.kills else "conformant"
    return "killed" if result.kill_of(result.mutant.target) is not None else "survived"


def _page_of(result: MutantResult) -> MutantPage:
    fate = fate_of(result)
    look = "fail" if result.mutant.target is None and result.kills else LOOKS[fate]
    names = sorted(result.killed_by, key=lambda name: name != result.mutant.target)
    kills = tuple(kill for kill in map(result.kill_of, names) if kill is not None)
    return MutantPage(result=result, fate=fate, look=look, kills=kills)


def _grid(matrix: KillMatrix, adapter: AdapterName) -> Grid:
    judged = [row for row in matrix.requirements if adapter in row.killers]
    rows = {row.id: number for number, row in enumerate(judged)}
    shown = [result for result in matrix.mutants if result.was_run and result.mutant.adapter == adapter]
    cells = []
    for column, result in enumerate(shown):
        for requirement, number in rows.items():
            kill = result.kill_of(requirement)
            built = result.mutant.target == requirement
            if kill is None and (not built or result.error is not None):
                continue
            what = f"{kill.subject}: {kill.seen}" if kill else "not killed"
            cells.append(
                Cell(
                    x=LEFT + column * CELL,
                    y=TOP + number * CELL,
                    look="missed" if kill is None else "built" if built else "also",
                    mutant=result.name,
                    title=f"{requirement} × {result.name}. {what}",
                )
            )
    groups = [row.id.partition("-")[0] for row in judged]
    return Grid(
        adapter=adapter,
        width=LEFT + len(shown) * CELL + 8,
        height=TOP + len(rows) * CELL + 4,
        columns=tuple((LEFT + number * CELL, result.name) for number, result in enumerate(shown)),
        rows=tuple((TOP + rows[row.id] * CELL, row.id, adapter in row.unproven) for row in judged),
        rules=tuple(TOP + n * CELL for n in range(1, len(groups)) if groups[n] != groups[n - 1]),
        cells=tuple(cells),
    )
