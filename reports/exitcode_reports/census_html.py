"""The page of a census: a pure function from its recording to one file that needs nothing else and lets nothing in.

It is made as the report is, with the report's own look; see `html`."""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from exitcode_conformance.code_list import list_codes
from exitcode_conformance.contract import ObservedClass
from exitcode_conformance.verdict import Verdict
from exitcode_reports.census import CLASS_WORDS, UNKNOWN_WORD, Census, CodeResult, census_of, class_counts
from exitcode_reports.html import MOST_LINKS, STATES, environment, part, policy_for
from exitcode_reports.page import (
    LOOKS,
    NEEDS_ATTENTION,
    ScenarioPage,
    deciding_of,
    event_rows,
    identity_of,
    in_utc,
    scenario_pages,
)
from exitcode_reports.recording import Recording
from exitcode_reports.results import case_results

NOT_ASKED = "not-asked"
UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """One class of the bar of counts, in hundredths of its width, and the codes that showed it."""

    look: str
    word: str
    count: int
    x: float
    width: float
    codes: str


def render_census(recording: Recording) -> str:
    """The page. The same recording gives the same page, byte for byte. Raises RecordingError for what is no census."""
    census = census_of(recording)
    others = [entry for entry in recording.entries if entry.scenario is None]
    style = part("style.css") + part("classes.css") + part("census.css")
    script = part("census.js")
    return (
        environment()
        .get_template("census.html.j2")
        .render(
            census=census,
            head=recording.header,
            recording=recording,
            look=LOOKS[census.overall],
            day=f"{in_utc(recording.header.started_at):%Y-%m-%d %H:%M} UTC",
            stretches=_stretches(census),
            wanting=_wanting(census),
            lists={fit.name: _lists(fit.agreeing, fit.differing, fit.unknown) for fit in census.fits},
            pages=_pages(recording, census),
            others=event_rows(others, deciding_of(case_results(recording))),
            recorded=frozenset(entry.seq for entry in recording.entries),
            identity=identity_of(recording),
            reproduce=shlex.join(recording.header.reproduce),
            kind=_look,
            aloud=_aloud,
            loud=NEEDS_ATTENTION,
            states=STATES,
            most_links=MOST_LINKS,
            style=style,
            script=script,
            policy=policy_for(style, script),
        )
    )


def _look(code: CodeResult) -> str:
    """The name of what was seen of a code, as the style knows it."""
    return NOT_ASKED if code.result is None else _look_of(code.observed)


def _look_of(observed: ObservedClass | None) -> str:
    return observed.value if observed else UNKNOWN


def _aloud(code: CodeResult) -> str:
    """A code of the map for those who do not see it."""
    if code.result is None:
        return f"{code.code}: not asked for"
    leaves = ", leaves the contract" if code.leaves else ""
    return f"{code.code}: seen {code.word}, promised {code.promised}{leaves}"


def _stretches(census: Census) -> tuple[Stretch, ...]:
    found = []
    x = 0.0
    for observed, count in class_counts(census):
        width = 100 * count / len(census.asked)
        found.append(
            Stretch(
                look=_look_of(observed),
                word=CLASS_WORDS[observed] if observed else UNKNOWN_WORD,
                count=count,
                x=round(x, 3),
                width=round(width, 3),
                codes=list_codes(code.code for code in census.of_class(observed)),
            )
        )
        x += width
    return tuple(found)


def _wanting(census: Census) -> tuple[CodeResult, ...]:
    """What leaves the contract, then what the harness failed in, then what is not known."""
    order = (Verdict.FAIL, Verdict.ERROR, Verdict.UNKNOWN, Verdict.NOT_RUN)
    found = [code for code in census.asked if code.verdict in order]
    return tuple(sorted(found, key=lambda code: (order.index(code.verdict or Verdict.NOT_RUN), code.code)))


def _lists(*parts: Iterable[int]) -> tuple[str, ...]:
    return tuple(list_codes(codes) for codes in parts)


def _pages(recording: Recording, census: Census) -> tuple[tuple[CodeResult, ScenarioPage], ...]:
    """Each code that was asked for, with what was recorded of its job."""
    pages = {page.scenario.id: page for page in scenario_pages(recording, case_results(recording))}
    return tuple((code, pages[code.result.case.scenarios[0]]) for code in census.asked if code.result)
