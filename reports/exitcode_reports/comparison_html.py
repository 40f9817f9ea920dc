"""The page of a comparison: a pure function of it, one file that needs nothing else and lets nothing in.

It is made as the report is, with the report's own look and filters; see `html`. Its only links lead to the reports of
the recordings, where those have one."""

from collections.abc import Mapping

from exitcode_conformance.contract import ObservedClass
from exitcode_conformance.verdict import Verdict
from exitcode_reports.census import CLASS_WORDS
from exitcode_reports.comparison import ABSENT, CaseRow, CodeCell, Comparison, Likeness, Outcome, RequirementRows
from exitcode_reports.html import environment, part, policy_for

WORDS: Mapping[Likeness, str] = {
    Likeness.SAME: "same",
    Likeness.ANOTHER_ROUTE: "another route",
    Likeness.CHANGED: "changed",
    Likeness.CONTRADICTORY: "contradictory",
}
GRAVITY = (Likeness.CONTRADICTORY, Likeness.CHANGED, Likeness.ANOTHER_ROUTE, Likeness.SAME)
HERO: Mapping[Outcome, Verdict] = {
    Outcome.ALIKE: Verdict.PASS,
    Outcome.CONTRADICTORY: Verdict.FAIL,
    Outcome.UNDECIDED: Verdict.UNKNOWN,
}
MOST_OPEN = 8
"""Requirements that are unfolded from the start: those with a contradiction."""


def render_comparison(comparison: Comparison) -> str:
    """The page. The same comparison gives the same page, byte for byte."""
    style = part("style.css") + part("classes.css") + part("comparison.css")
    script = part("script.js")
    contradictory = [one.id for one in comparison.requirements if one.counts[Likeness.CONTRADICTORY]]
    return (
        environment()
        .get_template("comparison.html.j2")
        .render(
            c=comparison,
            hero=HERO[comparison.exit_status],
            words=WORDS,
            gravity=GRAVITY,
            gravest=gravest_of,
            opened=contradictory[:MOST_OPEN],
            levels=tuple(dict.fromkeys(one.level for one in comparison.requirements)),
            rows=_rows,
            told=told_class,
            absent=ABSENT,
            differing=sum(row.differs for row in comparison.codes),
            classes=_classes,
            style=style,
            script=script,
            policy=policy_for(style, script),
        )
    )


def told_class(name: str) -> str:
    """An observed class in words; one that this version does not know as the recording has it."""
    return CLASS_WORDS[ObservedClass(name)] if name in CLASS_WORDS else name


def gravest_of(requirement: RequirementRows) -> Likeness:
    """What the cases of a requirement come to."""
    return next((one for one in GRAVITY if requirement.counts[one]), Likeness.SAME)


def _rows(requirement: RequirementRows) -> tuple[CaseRow, ...]:
    """The cases, those that differ first."""
    return tuple(sorted(requirement.cases, key=lambda row: GRAVITY.index(row.likeness)))


def _classes(cell: CodeCell) -> tuple[tuple[str, str, int], ...]:
    """Name for the style, words, and number of scenarios of each class that was observed."""
    found = [
        (name if name in CLASS_WORDS else "unknown", told_class(name), number) for name, number in cell.classes.items()
    ]
    return (*found, *([("unknown", "undecided", cell.undecided)] if cell.undecided else []))
