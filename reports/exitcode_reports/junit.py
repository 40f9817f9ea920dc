"""JUnit XML, a pure function of the recording, as Jenkins, GitLab and their kin read it.

JUnit has four outcomes. What must turn a build red is a failure (a failed MUST) or an error (the harness failed, or a
MUST stayed unknown); what must not is skipped, with the reason: a failed SHOULD, whatever fails an unproven
requirement, and whatever was not run or is waived. A waiver that has expired or is stale is a failure, in a suite of
its own. Judging a recording takes no time, and scenarios share theirs, so the cases say 0 and the whole says how long
the run took."""

from collections.abc import Sequence
from typing import Literal
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from exitcode_conformance.entry import Entry
from exitcode_conformance.verdict import Verdict
from exitcode_conformance.waiver import WaiverState, WaiverUse
from exitcode_reports.printable import printable
from exitcode_reports.recording import Recording
from exitcode_reports.results import CaseResult
from exitcode_reports.summary import GroupResult, Summary, summarise
from exitcode_reports.text_timeline import text_timeline

LONGEST = 500
"""Characters of a single value."""
LONGEST_STORY = 2000
"""Characters of what was expected or seen, so that the time line below has its place."""
LONGEST_TEXT = 20_000
"""Characters of the text of one failure, time line and all."""

Outcome = Literal["passed", "failure", "error", "skipped"]


def outcome_of(result: CaseResult) -> Outcome:
    """What JUnit calls it."""
    must = result.is_must
    match result.verdict:
        case Verdict.PASS:
            return "passed"
        case Verdict.FAIL:
            return "failure" if must else "skipped"
        case Verdict.ERROR:
            return "skipped" if result.case.level == "INFO" or not result.proven else "error"
        case Verdict.UNKNOWN:
            return "error" if must else "skipped"
        case Verdict.NOT_SUPPORTED | Verdict.WAIVED | Verdict.NOT_RUN:
            return "skipped"


def render_junit(recording: Recording) -> str:
    """The XML document. The same recording gives the same text."""
    summary = summarise(recording)
    every = [case for group in summary.groups for one in group.requirements for case in one.cases]
    last = recording.entries[-1].time if recording.entries else 0.0
    outcomes = [outcome_of(case) for case in every]
    faulty = [use for use in summary.waivers if use.fault]
    of_the_run: list[Outcome] = ["error"] if summary.cut is not None else []
    counts = _counts([*outcomes, *_failures(faulty), *of_the_run])
    root = Element("testsuites", {"name": "exitcode-conformance", **counts, "time": f"{last:.3f}"})
    entries = _by_scenario(recording)
    for group in summary.groups:
        _suite_of_group(root, recording, summary, group, entries)
    if faulty:
        _suite_of_waivers(root, recording, summary, faulty)
    if summary.cut is not None:
        _suite_of_the_run(root, recording, summary, summary.cut)
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _counts(outcomes: Sequence[Outcome]) -> dict[str, str]:
    return {
        "tests": str(len(outcomes)),
        "failures": str(outcomes.count("failure")),
        "errors": str(outcomes.count("error")),
        "skipped": str(outcomes.count("skipped")),
    }


def _by_scenario(recording: Recording) -> dict[str, list[Entry]]:
    entries: dict[str, list[Entry]] = {}
    for entry in recording.entries:
        if entry.scenario is not None:
            entries.setdefault(entry.scenario, []).append(entry)
    return entries


def _failures(faulty: Sequence[WaiverUse]) -> list[Outcome]:
    return ["failure" for _ in faulty]


def _suite_of_group(
    root: Element, recording: Recording, summary: Summary, group: GroupResult, entries: dict[str, list[Entry]]
) -> None:
    cases = [case for requirement in group.requirements for case in requirement.cases]
    suite = _suite(root, group.name, recording, summary, [outcome_of(case) for case in cases])
    for case in cases:
        _case(suite, case, entries)
    _close(suite)


def _suite_of_waivers(root: Element, recording: Recording, summary: Summary, faulty: Sequence[WaiverUse]) -> None:
    """The run fails by these, whatever the cases say: so must whoever reads nothing but this file."""
    suite = _suite(root, "WAIVERS", recording, summary, _failures(faulty))
    for number, use in enumerate(faulty, start=1):
        name = {"classname": "exitcode_conformance.WAIVERS", "name": _text(f"{number} {use.waiver.name}")}
        case = SubElement(suite, "testcase", {**name, "time": "0.000"})
        SubElement(case, "failure", {"message": _text(use.fault or ""), "type": use.state.value})
    _close(suite)


def _suite_of_the_run(root: Element, recording: Recording, summary: Summary, cut: str) -> None:
    """A run that did not come to its end is no green build, however little was judged by then."""
    suite = _suite(root, "RUN", recording, summary, ["error"])
    name = {"classname": "exitcode_conformance.RUN", "name": "the run came to its end"}
    case = SubElement(suite, "testcase", {**name, "time": "0.000"})
    SubElement(case, "error", {"message": _text(cut), "type": "partial"}).text = _text(cut)
    _close(suite)


def _suite(root: Element, name: str, recording: Recording, summary: Summary, outcomes: Sequence[Outcome]) -> Element:
    suite = SubElement(
        root,
        "testsuite",
        {
            "name": _text(name),
            "package": "exitcode_conformance",
            "id": str(len(root)),
            "timestamp": f"{recording.header.started_at:%Y-%m-%dT%H:%M:%S}",
            "hostname": _text(recording.header.cluster.type),
            **_counts(outcomes),
            "time": "0.000",
        },
    )
    properties = SubElement(suite, "properties")
    for key, value in _properties(recording, summary):
        SubElement(properties, "property", {"name": key, "value": _text(value)})
    return suite


def _close(suite: Element) -> None:
    # Some readers demand both, even when there is nothing to say.
    SubElement(suite, "system-out")
    SubElement(suite, "system-err")


def _properties(recording: Recording, summary: Summary) -> tuple[tuple[str, str], ...]:
    header = recording.header
    states = [use.state for use in summary.waivers]
    return (
        ("operator", f"{header.operator.name} {header.operator.version}"),
        ("operator.project", header.operator.project),
        ("cluster", header.cluster.address),
        ("cluster.server", header.cluster.server_version),
        ("contract", f"{header.contract.id} {header.contract.version}"),
        ("contract.digest", header.contract.digest),
        ("profile", header.profile),
        ("run", header.run_id),
        ("suite", header.suite_version),
        ("partial", "yes" if recording.partial else "no"),
        ("waivers", str(len(states))),
        *((f"waivers.{state.value}", str(states.count(state))) for state in WaiverState),
        ("waivers.cases", str(summary.waived)),
    )


def _case(suite: Element, result: CaseResult, entries: dict[str, list[Entry]]) -> None:
    case = SubElement(
        suite,
        "testcase",
        {
            "classname": _text(f"exitcode_conformance.{result.group}"),
            "name": _text(result.name),
            "time": "0.000",
        },
    )
    outcome = outcome_of(result)
    if outcome == "passed":
        return
    level = result.case.level if result.proven else f"unproven {result.case.level}"
    message = f"{level} {result.verdict}: {result.seen}"
    attributes = {"message": _text(message)}
    if outcome == "skipped":
        SubElement(case, "skipped", attributes)
        return
    detail = SubElement(case, outcome, attributes | {"type": str(result.verdict)})
    detail.text = printable(failure_text(result, entries), limit=LONGEST_TEXT, lines=True)


def failure_text(result: CaseResult, entries: dict[str, list[Entry]]) -> str:
    """What a person needs to see of a case that went wrong; `entries` are those of each scenario."""
    parts = [
        f"{result.case.requirement} ({result.case.level}): {result.case.sentence}",
        f"Source:   {result.case.source}",
        f"Expected: {printable(result.expected, limit=LONGEST_STORY)}",
        f"Seen:     {printable(result.seen, limit=LONGEST_STORY)}",
    ]
    deciding = result.line.deciding if result.line else ()
    for scenario in result.case.scenarios:
        own = entries.get(scenario, [])
        if len(result.case.scenarios) == 1 or any(entry.seq in deciding for entry in own):
            parts += ["", f"{scenario}:", text_timeline(own, deciding)]
    return "\n".join(parts)


def _text(value: str) -> str:
    """The value without what XML 1.0 does not allow."""
    return printable(value, limit=LONGEST)
