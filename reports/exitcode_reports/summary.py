"""The verdict in one glance, in words: the heading, the sentence and the counts that every report opens with."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from exitcode_conformance.entry import Action
from exitcode_conformance.frozen import Frozen
from exitcode_conformance.verdict import Verdict
from exitcode_conformance.waiver import WaiverState, WaiverUse
from exitcode_reports.calibration import Calibration
from exitcode_reports.evidence import TimeEvidence, time_evidence
from exitcode_reports.header import Header, Level
from exitcode_reports.recording import Recording
from exitcode_reports.results import CaseResult, Overall, case_results, overall_of, waiver_uses

GRAVITY = (
    Verdict.FAIL,
    Verdict.ERROR,
    Verdict.UNKNOWN,
    Verdict.NOT_RUN,
    Verdict.WAIVED,
    Verdict.PASS,
    Verdict.NOT_SUPPORTED,
)
"""The verdicts, the one that a whole is known by first: one failure makes a requirement a failed one,
and one that is waived keeps it from being met."""

LEVELS: tuple[Level, ...] = ("MUST", "SHOULD", "INFO")
HEADINGS = {
    Overall.CONFORMANT: "Conformant",
    Overall.NOT_CONFORMANT: "Not conformant",
    Overall.UNDECIDED: "Undecided",
    Overall.HARNESS_FAILED: "Harness failed",
}
GROUP_TITLES = {
    "EXIT": "what a code means",
    "RESTART": "how a restart is done",
    "STATE": "what the job says of itself",
    "LIMIT": "where restarts and jobs end",
    "CLEAN": "what is removed",
    "IDENT": "names, labels, owners, environment",
    "EVENT": "what the operator tells in events",
    "INV": "what holds in every history",
}


class RequirementResult(Frozen):
    """One requirement and all its cases."""

    id: str
    level: Level
    feature: str
    sentence: str
    source: str
    verdict: Verdict
    """The gravest of its cases'."""
    counts: dict[Verdict, int]
    cases: tuple[CaseResult, ...]
    shown_to_fail: tuple[str, ...] = ()
    """The broken controllers that it was shown to fail on."""
    proven: bool = True
    """One that is not does not count. Where it is not supported there is nothing to prove."""
    evidence: tuple[TimeEvidence, ...] = ()
    """What its verdicts about time rest on."""


class GroupResult(Frozen):
    """The requirements whose ids begin alike."""

    name: str
    title: str
    requirements: tuple[RequirementResult, ...]


class Tally(Frozen):
    """The counts of one level."""

    level: Level
    cases: dict[Verdict, int]
    requirements: dict[Verdict, int]


class Summary(Frozen):
    """What a report opens with."""

    overall: Overall
    heading: str
    sentence: str
    cut: str | None
    """Why the recording has no end, where it has none."""
    notices: tuple[str, ...]
    alarms: frozenset[str]
    """Those of the notices that nobody may overlook."""
    waivers: tuple[WaiverUse, ...]
    waived: int
    """Cases that failed and are waived."""
    tallies: tuple[Tally, ...]
    groups: tuple[GroupResult, ...]


def gravest(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict that all of these together come to; not-run for none."""
    found = set(verdicts)
    return next((verdict for verdict in GRAVITY if verdict in found), Verdict.NOT_RUN)


def summarise(recording: Recording) -> Summary:
    """Everything that is said of the recording as a whole."""
    results = case_results(recording)
    waivers = waiver_uses(recording.header, results)
    overall = overall_of(results, partial=recording.partial, waivers=waivers)
    groups = _groups(results, recording.header)
    requirements = [requirement for group in groups for requirement in group.requirements]
    counting = [one for one in requirements if one.proven]
    cut = _cut(recording)
    waived = sum(result.verdict is Verdict.WAIVED for result in results)
    faults = tuple(use.fault for use in waivers if use.fault)
    return Summary(
        overall=overall,
        heading=HEADINGS[overall],
        sentence=_sentence(recording.header, overall, counting, waivers, partial=recording.partial),
        cut=cut,
        notices=(
            *([cut] if cut else []),
            *_embedded(recording),
            *_doubts(recording),
            *_counted_waivers(waivers, waived),
            *faults,
            *_unproven(requirements),
        ),
        alarms=frozenset((*([cut] if cut else []), *faults)),
        waivers=waivers,
        waived=waived,
        tallies=tuple(
            Tally(
                level=level,
                cases=count_verdicts(case.verdict for one in counting if one.level == level for case in one.cases),
                requirements=count_verdicts(one.verdict for one in counting if one.level == level),
            )
            for level in LEVELS
        ),
        groups=groups,
    )


def group_rank(name: str) -> tuple[int, str]:
    """Where a group of requirements stands in every report: those that we know in our order, then others by name."""
    known = tuple(GROUP_TITLES)
    return (known.index(name) if name in known else len(known)), name


def count_verdicts(verdicts: Iterable[Verdict]) -> dict[Verdict, int]:
    """How often each verdict is there, the gravest first."""
    found = Counter(verdicts)
    return {verdict: found[verdict] for verdict in GRAVITY if found[verdict]}


def _groups(results: Sequence[CaseResult], header: Header) -> tuple[GroupResult, ...]:
    groups: dict[str, dict[str, list[CaseResult]]] = {}
    for result in results:
        groups.setdefault(result.group, {}).setdefault(result.case.requirement, []).append(result)
    return tuple(
        GroupResult(
            name=name,
            title=GROUP_TITLES.get(name, ""),
            requirements=tuple(_requirement(cases, header) for _, cases in sorted(groups[name].items())),
        )
        for name in sorted(groups, key=group_rank)
    )


def _requirement(cases: Sequence[CaseResult], header: Header) -> RequirementResult:
    case = cases[0].case
    is_judged = case.level != "INFO" and any(one.verdict is not Verdict.NOT_SUPPORTED for one in cases)
    return RequirementResult(
        id=case.requirement,
        level=case.level,
        feature=case.feature,
        sentence=case.sentence,
        source=case.source,
        verdict=gravest(result.verdict for result in cases),
        counts=count_verdicts(result.verdict for result in cases),
        cases=tuple(cases),
        shown_to_fail=(header.shown_to_fail or {}).get(case.requirement, ()),
        proven=not is_judged or header.is_proven(case.requirement),
        evidence=time_evidence((result.line for result in cases if result.line), header.timeouts),
    )


def _sentence(
    header: Header,
    overall: Overall,
    requirements: Sequence[RequirementResult],
    waivers: Sequence[WaiverUse],
    *,
    partial: bool,
) -> str:
    operator = f"{header.operator.name} {header.operator.version}"
    contract = f"{header.contract.id} {header.contract.version}"
    must = [one for one in requirements if one.level == "MUST"]
    if overall is Overall.CONFORMANT:
        met = [one for one in must if one.verdict is Verdict.PASS]
        cases = sum(one.counts[Verdict.PASS] for one in met)
        waived = [one.id for one in must if one.counts.get(Verdict.WAIVED)]
        be = "is" if len(waived) == 1 else "are"
        rest = f"{_listed(waived)} failed and {be} waived" if waived else "none failed"
        return (
            f"{operator} meets {_several(len(met), 'MUST requirement')} of contract {contract} "
            f"in {_several(cases, 'case')}; {rest}."
        )
    if overall is Overall.NOT_CONFORMANT:
        broken = [one.id for one in must if one.verdict is Verdict.FAIL]
        faulty = [use.waiver.name for use in waivers if use.fault]
        are = "has expired or is" if len(faulty) == 1 else "have expired or are"
        if not broken:
            return f"{operator} fails by its waivers alone, of which {len(faulty)} {are} stale: {_listed(faulty)}."
        more = f" {_several(len(faulty), 'waiver')} {are} stale: {_listed(faulty)}." if faulty else ""
        return (
            f"{operator} breaks {_several(len(broken), 'MUST requirement')} of contract {contract}: {_listed(broken)}."
            + more
        )
    if overall is Overall.HARNESS_FAILED:
        errors = sum(one.counts.get(Verdict.ERROR, 0) for one in requirements if one.level != "INFO")
        return f"The harness failed in {_several(errors, 'case')}, so the run says nothing of {operator}."
    return _undecided(operator, must, partial=partial)


def _undecided(operator: str, must: Sequence[RequirementResult], *, partial: bool) -> str:
    unknown = sum(one.counts.get(Verdict.UNKNOWN, 0) for one in must)
    unrun = sum(one.counts.get(Verdict.NOT_RUN, 0) for one in must)
    reasons = []
    if unknown:
        reasons.append(f"the evidence is too weak in {_several(unknown, 'MUST case')}")
    if unrun:
        reasons.append(f"{_several(unrun, 'MUST case')} {'was' if unrun == 1 else 'were'} not run")
    if partial:
        reasons.append("the recording is partial")
    if not any(one.counts.get(Verdict.PASS) for one in must):
        reasons.append("no MUST was judged")
    return f"Nothing is decided about {operator}: {_joined(reasons)}."


def _cut(recording: Recording) -> str | None:
    if not recording.partial:
        return None
    lines = 1 + len(recording.entries) + len(recording.verdicts)
    # Those of a scenario concern its own cases only.
    failures = (e for e in recording.entries if isinstance(e, Action) and e.action == "harness-error")
    of_the_run = next((failure.detail for failure in failures if failure.scenario is None), None)
    why = "the run was cut short or is still going on"
    if of_the_run is not None:
        why = f"the harness failed ({of_the_run.get('problem', '')} {of_the_run.get('advice', '')})"
    return (
        f"This recording is partial: it ends after line {lines} without a footer, because {why}. What is missing "
        "counts as not run."
    )


def _embedded(recording: Recording) -> Iterator[str]:
    if recording.header.cluster.type == "embedded":
        yield "Run on the embedded cluster, which imitates Kubernetes: no certification is claimed from it."


def _doubts(recording: Recording) -> tuple[str, ...]:
    measured = Calibration.of(recording.entries)
    return measured.warnings(recording.header.timeouts, recording.header.reproduce) if measured else ()


def _counted_waivers(waivers: Sequence[WaiverUse], cases: int) -> Iterator[str]:
    if waivers:
        states = Counter(use.state for use in waivers)
        counts = ", ".join(f"{states[state]} {state.value.replace('-', ' ')}" for state in WaiverState if states[state])
        failed = f"{_several(cases, 'failed case')} {'is' if cases == 1 else 'are'} waived"
        yield f"{_several(len(waivers), 'waiver')} ({counts}): {failed}."


def _unproven(requirements: Iterable[RequirementResult]) -> Iterator[str]:
    names = [one.id for one in requirements if not one.proven]
    if names:
        what = f"{_several(len(names), 'requirement')} {'is' if len(names) == 1 else 'are'} unproven, and not counted"
        yield f"{what}: no broken controller is known to fail {_listed(names)}."


def _joined(parts: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)


def _several(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _listed(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
