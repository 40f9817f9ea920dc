"""How a check puts its findings together into one judgement. A fail beats an unknown, an unknown beats a pass."""

from collections.abc import Iterable

from exitcode_conformance.temporal import Finding
from exitcode_conformance.verdict import Judgement, Trial, Verdict


class Undecided(Exception):
    """The premise of a requirement was not reached, or is not certain: nothing can be said of the operator."""

    def __init__(self, why: str, *deciding: int) -> None:
        super().__init__(why)
        self.why = why
        self.deciding = deciding

    @property
    def finding(self) -> Finding:
        """What it says of one part of a requirement, where the other parts may still be broken."""
        return Finding(holds=None, seen=self.why, deciding=self.deciding)


def passed(expected: str, seen: str, *deciding: int, observed_class: str | None = None) -> Judgement:
    """The requirement is met."""
    return Judgement(
        verdict=Verdict.PASS, expected=expected, seen=seen, deciding=deciding, observed_class=observed_class
    )


def failed(expected: str, seen: str, *deciding: int, observed_class: str | None = None) -> Judgement:
    """The requirement is not met, and the deciding events show it."""
    return Judgement(
        verdict=Verdict.FAIL, expected=expected, seen=seen, deciding=deciding, observed_class=observed_class
    )


def unknown(expected: str, seen: str, *deciding: int, observed_class: str | None = None) -> Judgement:
    """The evidence is too weak for either."""
    return Judgement(
        verdict=Verdict.UNKNOWN, expected=expected, seen=seen, deciding=deciding, observed_class=observed_class
    )


def judged(expected: str, findings: Iterable[Finding], *, observed_class: str | None = None) -> Judgement:
    """One judgement of several findings, all of which have to hold. Findings that are made one after the other may end
    with Undecided; that is raised unless one before it already fails."""
    found: list[Finding] = []
    try:
        for finding in findings:
            found.append(finding)
    except Undecided:
        if all(finding.holds is not False for finding in found):
            raise
    deciding, verdict = found, Verdict.PASS
    for holds, wrong in ((False, Verdict.FAIL), (None, Verdict.UNKNOWN)):
        some = [f for f in found if f.holds is holds]
        if some:
            deciding, verdict = some, wrong
            break
    return Judgement(
        verdict=verdict,
        expected=expected,
        seen="; ".join(dict.fromkeys(f.seen for f in deciding)),
        deciding=tuple(sorted({line for f in deciding for line in f.deciding})),
        observed_class=observed_class,
        trials=tuple(_trial(f) for f in found if f.bound is not None),
    )


def _trial(finding: Finding) -> Trial:
    assert finding.bound is not None
    return Trial(
        kind="never" if finding.absence else "eventually",
        bound=finding.bound,
        holds=finding.holds,
        delay=None if finding.delay is None else round(finding.delay, 3),
    )
