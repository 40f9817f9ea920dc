"""The verdicts, and what a check hands over with one: what was expected, what was seen, which events decided."""

from enum import StrEnum
from typing import Literal

from exitcode_conformance.frozen import Frozen


class Verdict(StrEnum):
    """The seven things that can be said of a requirement in a scenario."""

    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"
    """The evidence is too weak: too slow, order not determined, no witness, premise not reached."""
    NOT_SUPPORTED = "not-supported"
    """The operator does not claim the feature."""
    WAIVED = "waived"
    NOT_RUN = "not-run"
    ERROR = "error"
    """The harness failed, not the operator."""


class Trial(Frozen):
    """One question about time that a judgement answers: what the report's numbers of delays and windows are made of."""

    kind: Literal["eventually", "never"]
    bound: str
    """The name of the duration in `Timeouts`: the bound, or the window."""
    holds: bool | None
    """None where the evidence decided nothing."""
    delay: float | None = None
    """Seconds until what was waited for came; None where it did not, and for an absence."""


class Judgement(Frozen):
    """A check's answer. Sentences are for a person; `deciding` are sequence numbers of the recording."""

    verdict: Verdict
    expected: str
    seen: str
    deciding: tuple[int, ...] = ()
    observed_class: str | None = None
    """For a check on an exit code: the class that the operator showed (see `classes.ObservedClass`)."""
    trials: tuple[Trial, ...] = ()
    """Every question about time that it rests on."""


class Judged(Frozen):
    """A judgement with the text that a failing test shows: requirement, expected, seen, time line."""

    judgement: Judgement
    text: str
