"""A waiver: a failure that is known, and accepted for a time by somebody who is named.

What a waiver costs is trust, so it has an owner and an end, and one that waives nothing any more is not left standing.
"""

from collections.abc import Iterable
from datetime import date
from enum import StrEnum
from fnmatch import fnmatchcase

from exitcode_conformance.frozen import Frozen
from exitcode_conformance.verdict import Verdict


class Waiver(Frozen):
    """A failure that is known and accepted for a time. Reports show it, with its owner."""

    requirement: str
    scenarios: str = "*"
    """Which scenarios, as a shell pattern of what stands in the brackets of the test id."""
    reason: str
    owner: str
    link: str | None = None
    expires: date
    """The last day on which it holds, in UTC: that of the run's start counts."""

    @property
    def name(self) -> str:
        """`STATE-09[tfjob-others0-*]`: the test ids that it names."""
        return f"{self.requirement}[{self.scenarios}]"

    def names(self, requirement: str, subject: str) -> bool:
        """Whether a case is one of its own."""
        return requirement == self.requirement and fnmatchcase(subject, self.scenarios)

    def holds_on(self, day: date) -> bool:
        """Whether it is not over yet."""
        return day <= self.expires


class WaiverState(StrEnum):
    """What a run finds a waiver to be."""

    IN_FORCE = "in-force"
    """It waives a failure, or may still have one to waive."""
    EXPIRED = "expired"
    STALE = "stale"
    """There is nothing for it to waive."""


class WaiverUse(Frozen):
    """A waiver, and what became of it in a run."""

    waiver: Waiver
    state: WaiverState
    waived: int
    """Cases that failed and are waived by it."""
    passed: int
    """Cases that it names and that pass."""

    @property
    def fault(self) -> str | None:
        """Why the run fails by it, as a sentence with what to do; None where it does not."""
        who = f"The waiver of {self.waiver.name} by {self.waiver.owner}"
        if self.state is WaiverState.EXPIRED:
            return f"{who} has expired: its last day was {self.waiver.expires}. It waives nothing; remove or renew it."
        if self.state is WaiverState.STALE and self.passed:
            those = "the only case" if self.passed == 1 else f"all {self.passed} cases"
            return f"{who}, until {self.waiver.expires}, is stale: {those} that it names passed. Remove it."
        if self.state is WaiverState.STALE:
            return (
                f"{who}, until {self.waiver.expires}, is stale: no case of the plan has such a name. "
                "Correct or remove it."
            )
        return None


def waiver_of(waivers: Iterable[Waiver], requirement: str, subject: str, day: date) -> Waiver | None:
    """The first waiver that names a case and is not over on that day."""
    return next((one for one in waivers if one.names(requirement, subject) and one.holds_on(day)), None)


def use_of(waiver: Waiver, verdicts: Iterable[tuple[str, str, Verdict]], day: date, *, elsewhere: bool) -> WaiverUse:
    """What became of a waiver in a run that began on that day, of which these are the cases: requirement, subject and
    verdict. `elsewhere`: the operator has cases of that name which are not in this run's plan.

    It is stale if everything that it names was judged and passed, or if it names nothing at all. As long as a case was
    not run, is undecided, or is elsewhere, nobody knows.
    """
    named = [verdict for requirement, subject, verdict in verdicts if waiver.names(requirement, subject)]
    judged = [verdict for verdict in named if verdict is not Verdict.NOT_SUPPORTED]
    state = WaiverState.IN_FORCE
    if not waiver.holds_on(day):
        state = WaiverState.EXPIRED
    elif not named:
        state = WaiverState.IN_FORCE if elsewhere else WaiverState.STALE
    elif judged and not elsewhere and all(verdict is Verdict.PASS for verdict in judged):
        state = WaiverState.STALE
    return WaiverUse(
        waiver=waiver,
        state=state,
        waived=named.count(Verdict.WAIVED) if state is WaiverState.IN_FORCE else 0,
        passed=named.count(Verdict.PASS),
    )
