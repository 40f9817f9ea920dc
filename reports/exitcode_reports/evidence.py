"""What a requirement's verdicts about time rest on: how often something was waited for and how long it took, and how
often its absence was watched, and for how long."""

from collections.abc import Iterable
from statistics import median
from typing import Literal

from exitcode_conformance.entry import VerdictLine
from exitcode_conformance.frozen import Frozen
from exitcode_conformance.timeouts import Timeouts
from exitcode_conformance.verdict import Trial


class TimeEvidence(Frozen):
    """All trials of one requirement that ask about one duration. Times are in seconds."""

    kind: Literal["eventually", "never"]
    bound: str
    limit: float
    """The bound; for an absence, the window."""
    trials: int
    median: float | None = None
    """Of the delays that were observed; None for an absence."""
    longest: float | None = None
    failed: int = 0
    """Trials in which it came too late or never; for an absence, in which it came."""
    undecided: int = 0

    @property
    def told(self) -> str:
        """The numbers as a sentence."""
        parts = [f"{self.trials} {'trial' if self.trials == 1 else 'trials'}"]
        if self.median is not None and self.longest is not None:
            parts += [f"median {self.median:.2f} s", f"maximum {self.longest:.2f} s"]
        if self.failed:
            parts.append(f"{self.failed} {'seen' if self.kind == 'never' else 'late or never'}")
        if self.undecided:
            parts.append(f"{self.undecided} undecided")
        if self.kind == "never":
            return f"Absence: {', '.join(parts)}; window {self.limit:g} s."
        return f"Delay `{self.bound}`: {', '.join(parts)}; bound {self.limit:g} s."


def time_evidence(lines: Iterable[VerdictLine], timeouts: Timeouts) -> tuple[TimeEvidence, ...]:
    """The evidence of some verdicts, for each duration that they ask about, delays first."""
    found: dict[tuple[Literal["eventually", "never"], str], list[Trial]] = {}
    for line in lines:
        for trial in line.trials:
            found.setdefault((trial.kind, trial.bound), []).append(trial)
    durations = timeouts.model_dump()
    return tuple(
        _evidence(kind, bound, trials, float(durations[bound]))
        for (kind, bound), trials in sorted(found.items())
        if bound in durations
    )


def _evidence(kind: Literal["eventually", "never"], bound: str, trials: list[Trial], limit: float) -> TimeEvidence:
    delays = [trial.delay for trial in trials if trial.delay is not None]
    return TimeEvidence(
        kind=kind,
        bound=bound,
        limit=limit,
        trials=len(trials),
        median=median(delays) if delays else None,
        longest=max(delays, default=None),
        failed=sum(trial.holds is False for trial in trials),
        undecided=sum(trial.holds is None for trial in trials),
    )
