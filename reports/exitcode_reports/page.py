"""What the HTML report shows, put together from the recording: plain values, ready for the template."""

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from exitcode_conformance.entry import Entry, Event
from exitcode_conformance.scenario import Scenario
from exitcode_conformance.verdict import Verdict
from exitcode_conformance.waiver import Waiver
from exitcode_reports.calibration import Calibration
from exitcode_reports.drawing import Drawing, draw
from exitcode_reports.matrix import Matrix, matrix_of
from exitcode_reports.plot import told
from exitcode_reports.recording import Recording
from exitcode_reports.results import CaseResult, Overall, case_results
from exitcode_reports.summary import GRAVITY, RequirementResult, Summary, Tally, gravest, summarise
from exitcode_reports.text_timeline import describe
from exitcode_reports.timeline import extract, text, until_complete

NEEDS_ATTENTION = (Verdict.FAIL, Verdict.ERROR, Verdict.UNKNOWN)
MOST_SHOWN = 3
"""Cases of one requirement that the attention list shows; the table of requirements has the rest."""
MOST_OPEN = 8
"""Scenarios that are unfolded from the start."""


@dataclass(frozen=True, kw_only=True)
class Segment:
    """A piece of a bar of counts, in hundredths of its width."""

    verdict: Verdict
    count: int
    x: float
    width: float


@dataclass(frozen=True, kw_only=True)
class CountBar:
    """The counts of one level."""

    tally: Tally
    segments: tuple[Segment, ...]
    total: int


@dataclass(frozen=True, kw_only=True)
class Attention:
    """A requirement that did not pass, with the first of the cases that say so."""

    requirement: RequirementResult
    shown: tuple[CaseResult, ...]
    more: int


@dataclass(frozen=True, kw_only=True)
class EventRow:
    """One entry of a scenario, abbreviated. The whole object stands in the recording under the same number."""

    seq: int
    at: float
    who: str
    verb: str
    what: str
    decides: Verdict | None


@dataclass(frozen=True, kw_only=True)
class ScenarioPage:
    """One scenario and its evidence."""

    scenario: Scenario
    told: str
    verdict: Verdict
    results: tuple[CaseResult, ...]
    passed: int
    judged: int
    """Cases that count: all but INFO."""
    drawing: Drawing | None
    duration: float
    events: tuple[EventRow, ...]
    open: bool


@dataclass(frozen=True, kw_only=True)
class Page:
    """Everything that the template needs."""

    recording: Recording
    summary: Summary
    look: str
    day: str
    bars: tuple[CountBar, ...]
    identity: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    reproduce: str
    attention: tuple[Attention, ...]
    matrix: Matrix
    verdict_counts: tuple[tuple[Verdict, int], ...]
    scenarios: tuple[ScenarioPage, ...]
    others: tuple[EventRow, ...]
    """Entries that belong to no scenario."""
    recorded: frozenset[int]
    """Numbers of all entries: what a link may lead to."""


LOOKS = {
    Overall.CONFORMANT: "pass",
    Overall.NOT_CONFORMANT: "fail",
    Overall.UNDECIDED: "unknown",
    Overall.HARNESS_FAILED: "error",
}


def page_of(recording: Recording) -> Page:
    """The page of a recording."""
    results = case_results(recording)
    summary = summarise(recording)
    counts = Counter(result.verdict for result in results)
    return Page(
        recording=recording,
        summary=summary,
        look=LOOKS[summary.overall],
        day=f"{in_utc(recording.header.started_at):%Y-%m-%d %H:%M} UTC",
        bars=tuple(_count_bar(tally) for tally in summary.tallies if tally.cases),
        identity=identity_of(recording),
        reproduce=shlex.join(recording.header.reproduce),
        attention=_attention(summary),
        matrix=matrix_of(recording.header, results),
        verdict_counts=tuple((verdict, counts[verdict]) for verdict in GRAVITY if counts[verdict]),
        scenarios=tuple(scenario_pages(recording, results)),
        others=event_rows([entry for entry in recording.entries if entry.scenario is None], deciding_of(results)),
        recorded=frozenset(entry.seq for entry in recording.entries),
    )


def _attention(summary: Summary) -> tuple[Attention, ...]:
    """What did not pass, gravest first. INFO never counts."""
    found = []
    for requirement in (one for group in summary.groups for one in group.requirements if one.level != "INFO"):
        wrong = [case for case in requirement.cases if case.verdict in NEEDS_ATTENTION]
        wrong.sort(key=lambda case: GRAVITY.index(case.verdict))
        if wrong:
            more = max(0, len(wrong) - MOST_SHOWN)
            found.append(Attention(requirement=requirement, shown=tuple(wrong[:MOST_SHOWN]), more=more))
    found.sort(key=lambda one: (GRAVITY.index(one.requirement.verdict), one.requirement.level != "MUST"))
    return tuple(found)


def in_utc(moment: datetime) -> datetime:
    """The moment in the one time zone that every report has."""
    return moment.astimezone(UTC)


def _count_bar(tally: Tally) -> CountBar:
    total = sum(tally.cases.values())
    segments = []
    x = 0.0
    order = (Verdict.PASS, *(verdict for verdict in GRAVITY if verdict is not Verdict.PASS))
    for verdict in order:
        count = tally.cases.get(verdict, 0)
        if count:
            width = 100 * count / total
            segments.append(Segment(verdict=verdict, count=count, x=round(x, 3), width=round(width, 3)))
            x += width
    return CountBar(tally=tally, segments=tuple(segments), total=total)


def identity_of(recording: Recording) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """Cards of the head of the page: title, and rows of name and value."""
    head, footer = recording.header, recording.footer
    operator, contract, cluster = head.operator, head.contract, head.cluster
    measured = Calibration.of(recording.entries)
    starts = {"process": "as a process of the run", "manifests": "from manifests", "none": "was running already"}
    rows = {
        "Operator": (
            ("name", f"{operator.name} {operator.version}"),
            ("project", operator.project),
            ("home", operator.url or ""),
            ("started", starts[operator.start]),
            ("kinds", ", ".join(operator.kinds)),
            ("claims", ", ".join(operator.features)),
            ("waivers", "; ".join(told_waiver(waiver) for waiver in head.waivers)),
        ),
        "Contract": (
            ("name", f"{contract.id} {contract.version}"),
            ("profile", head.profile),
            ("codes", f"{len(contract.claims)} defined"),
            ("no code", contract.no_code or "undefined"),
            ("digest", contract.digest[:16]),
        ),
        "Cluster": (
            ("kind", cluster.type),
            ("address", cluster.address),
            ("server", cluster.server_version),
            ("nodes", ", ".join(cluster.nodes)),
            ("note", cluster.note or ""),
            ("namespace", head.namespace),
            *(measured.rows if measured else ()),
        ),
        "Run": (
            ("id", head.run_id),
            ("started", f"{in_utc(head.started_at):%Y-%m-%d %H:%M:%S} UTC"),
            ("finished", f"{in_utc(footer.finished_at):%Y-%m-%d %H:%M:%S} UTC" if footer else "not seen"),
            ("suite", f"exitcode-conformance {head.suite_version}"),
            ("sealed", footer.sha256[:16] if footer else "no: partial"),
        ),
    }
    return tuple((title, tuple(row for row in found if row[1])) for title, found in rows.items())


def told_waiver(waiver: Waiver) -> str:
    """All that there is to know of a waiver, in a line."""
    link = f" ({waiver.link})" if waiver.link else ""
    return f"{waiver.name} until {waiver.expires} by {waiver.owner}: {waiver.reason}{link}"


def scenario_pages(recording: Recording, results: Sequence[CaseResult]) -> Iterable[ScenarioPage]:
    """Every scenario of the recording, with what was recorded of it and the results that rest on that."""
    entries: dict[str, list[Entry]] = {}
    for entry in recording.entries:
        if entry.scenario is not None:
            entries.setdefault(entry.scenario, []).append(entry)
    looking: dict[str, list[CaseResult]] = {}
    for result in results:
        for name in dict.fromkeys(result.case.scenarios):
            looking.setdefault(name, []).append(result)
    opened = 0
    for name, scenario in recording.header.scenarios.items():
        page = _scenario_page(scenario, entries.get(name, ()), looking.get(name, ()), may_open=opened < MOST_OPEN)
        opened += page.open
        yield page


def _scenario_page(
    scenario: Scenario, entries: Sequence[Entry], results: Sequence[CaseResult], *, may_open: bool
) -> ScenarioPage:
    deciding = deciding_of(results)
    counted = [result.verdict for result in results if result.case.level != "INFO"]
    verdict = gravest(counted)
    shown = until_complete(entries)
    timeline = extract(shown)
    return ScenarioPage(
        scenario=scenario,
        told=told(scenario),
        verdict=verdict,
        results=tuple(sorted(results, key=lambda result: GRAVITY.index(result.verdict))),
        passed=sum(one is Verdict.PASS for one in counted),
        judged=len(counted),
        drawing=draw(timeline, shown, deciding) if shown else None,
        duration=timeline.end - timeline.start,
        events=event_rows(entries, deciding),
        open=may_open and verdict in NEEDS_ATTENTION,
    )


def deciding_of(results: Iterable[CaseResult]) -> dict[int, dict[str, Verdict]]:
    """Number of an entry → requirement that rests on it → its gravest verdict."""
    deciding: dict[int, dict[str, Verdict]] = {}
    for result in results:
        for seq in result.line.deciding if result.line else ():
            named = deciding.setdefault(seq, {})
            requirement = result.case.requirement
            named[requirement] = gravest((result.verdict, named.get(requirement, result.verdict)))
    return deciding


def event_rows(entries: Sequence[Entry], deciding: dict[int, dict[str, Verdict]]) -> tuple[EventRow, ...]:
    """The entries as a reader sees them; `deciding` is what `deciding_of` finds."""
    rows = []
    seen: dict[tuple[str, str], dict[str, object]] = {}
    for entry in entries:
        before, verb = None, ""
        if isinstance(entry, Event):
            uid = text(entry.object, "metadata", "uid") or text(entry.object, "metadata", "name") or "?"
            before, verb = seen.get((entry.resource, uid)), entry.verb
            seen[(entry.resource, uid)] = entry.object
        who, what = describe(entry, before)
        named = deciding.get(entry.seq)
        rows.append(
            EventRow(
                seq=entry.seq,
                at=entry.time - entries[0].time,
                who=who,
                verb=verb,
                what=what.removeprefix("appeared, "),
                decides=gravest(named.values()) if named else None,
            )
        )
    return tuple(rows)
