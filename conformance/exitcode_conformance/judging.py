"""How a check puts its findings together into one judgement. A fail beats an unknown, an unknown beats a pass."""

from collections.abc import Iterable

from exitcode_conformance.temporal import Finding
from exitcode_conformance.verdict import Judgement, Verdict


class Undecided(Exception):
    """The premise of a requirement was not reached, or is not certain: nothing can be said of the operator."""

    def __init__(self, why: str, *deciding: int) -> None:
        super().__init__(why)
        self.why = why
        self.deciding = deciding


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
    """One judgement of several findings, all of which have to hold."""
    found = list(findings)
    for holds, verdict in ((False, failed), (None, unknown)):
        some = [f for f in found if f.holds is holds]
        if some:
            deciding = sorted({line for f in some for line in f.deciding})
            return verdict(expected, "; ".join(f.seen for f in some), *deciding, observed_class=observed_class)
    deciding = sorted({line for f in found for line in f.deciding})
    return passed(expected, "; ".join(f.seen for f in found), *deciding, observed_class=observed_class)
