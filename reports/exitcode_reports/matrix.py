"""Exit code × job kind × replica type: what the contract promises and what the operator was seen to do."""

from collections.abc import Iterable

from exitcode_conformance.frozen import Frozen
from exitcode_conformance.kinds import KINDS
from exitcode_conformance.scenario import Scenario, SignalOutcome, outcome_code
from exitcode_conformance.verdict import Verdict
from exitcode_reports.header import Header
from exitcode_reports.results import CaseResult
from exitcode_reports.summary import gravest


class Sighting(Frozen):
    """What one scenario showed of a code."""

    scenario: str
    requirement: str
    signal: str | None
    """The signal that the container died of, None where it returned the code itself."""
    observed: str | None
    verdict: Verdict
    seen: str


class Cell(Frozen):
    """One code in one replica type of one kind."""

    verdict: Verdict
    sightings: tuple[Sighting, ...]


class Row(Frozen):
    """One exit code."""

    code: int
    signal: str | None
    expected: str
    """The class that the contract promises; `undefined` where it promises none."""
    cells: tuple[Cell | None, ...]


class Matrix(Frozen):
    """`columns` are (kind, replica type); each row has a cell, or None, for each of them."""

    columns: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]


def matrix_of(header: Header, results: Iterable[CaseResult]) -> Matrix:
    """The matrix over every case about one replica under restartPolicy ExitCode, of the requirements whose checks
    tell the class that they saw."""
    results = tuple(results)
    telling = {result.case.requirement for result in results if result.line and result.line.observed_class}
    found: dict[tuple[int, str, str], list[Sighting]] = {}
    for result in results:
        scenario = _about_one_replica(header, result) if result.case.requirement in telling else None
        if scenario is None or scenario.target is None:
            continue
        outcome = scenario.outcome_of(scenario.target, 1)
        code = outcome_code(outcome)
        if code is not None:
            signal = outcome.signal if isinstance(outcome, SignalOutcome) else None
            place = (code, scenario.kind, scenario.group_of(scenario.target).type)
            found.setdefault(place, []).append(_sighting(scenario.id, signal, result))
    columns = tuple(sorted({(kind, replica) for _, kind, replica in found}, key=_column_order))
    rows = (_row(header, code, columns, found) for code in sorted({code for code, _, _ in found}))
    return Matrix(columns=columns, rows=tuple(rows))


def _column_order(column: tuple[str, str]) -> tuple[int, int, str, str]:
    """Kinds and replica types that we know in the order in which we know them, then the others by name."""
    kind, replica = column
    known = tuple(KINDS)
    types = KINDS[kind].replica_types if kind in KINDS else ()
    kind_number = known.index(kind) if kind in known else len(known)
    return kind_number, types.index(replica) if replica in types else len(types), kind, replica


def _about_one_replica(header: Header, result: CaseResult) -> Scenario | None:
    if len(result.case.scenarios) != 1:
        return None
    scenario = header.scenarios.get(result.case.scenarios[0])
    if scenario is None or scenario.target is None:
        return None
    return scenario if scenario.group_of(scenario.target).restart_policy == "ExitCode" else None


def _sighting(scenario: str, signal: str | None, result: CaseResult) -> Sighting:
    return Sighting(
        scenario=scenario,
        requirement=result.case.requirement,
        signal=signal,
        observed=result.line.observed_class if result.line else None,
        verdict=result.verdict,
        seen=result.seen,
    )


def _row(
    header: Header,
    code: int,
    columns: tuple[tuple[str, str], ...],
    found: dict[tuple[int, str, str], list[Sighting]],
) -> Row:
    cells: list[Cell | None] = []
    signals = set()
    for kind, replica in columns:
        sightings = found.get((code, kind, replica))
        if sightings is None:
            cells.append(None)
            continue
        signals |= {sighting.signal for sighting in sightings if sighting.signal}
        verdict = gravest(sighting.verdict for sighting in sightings)
        cells.append(Cell(verdict=verdict, sightings=tuple(sightings)))
    expected = header.contract.claims.get(code, "undefined")
    return Row(code=code, signal=min(signals, default=None), expected=expected, cells=tuple(cells))
