"""How the clocks stood before the first scenario, and how long an answer and news of a change took: in words.

No verdict compares the clocks of two machines: all times of a recording are of the harness's own clock. But an operator
may count a deadline by another clock than it was written by, and news that comes late shortens every bound.
"""

from collections.abc import Sequence
from math import ceil
from typing import Any, Final, Self

from pydantic import ValidationError

from exitcode_conformance.entry import Action, Entry
from exitcode_conformance.frozen import Frozen
from exitcode_conformance.temporal import CLUSTERS_WORK
from exitcode_conformance.timeouts import Timeouts

ACTION: Final = "calibration"
FAIR: Final = 5
"""A bound of which more than one in so many parts may be the cluster's own delay proves little."""
REACTED_TO: Final = 2
"""So for the time that a container runs before it ends: the harness has to see it, and to say what comes next."""
COUNTED_BY_CLOCKS: Final = ("terminal", "removal", "never")
"""Bounds on what follows a deadline or a time to live, which an operator may count by another machine's clock."""
LARGEST_SCALE: Final = 100


class Offset(Frozen):
    """How far another clock is ahead of a first one, in seconds: nothing outside of these bounds fits what was seen."""

    at_least: float
    at_most: float

    @property
    def certain(self) -> float:
        """How far the clocks are apart at least."""
        return max(0.0, self.at_least, -self.at_most)

    @property
    def told(self) -> str:
        """The bounds, for a table."""
        return f"{self.at_least:+.1f} to {self.at_most:+.1f} s"


class Delays(Frozen):
    """Delays that were measured, in seconds."""

    count: int
    median: float
    maximum: float

    @property
    def told(self) -> str:
        """The numbers, for a table."""
        return f"median {self.median * 1000:.0f} ms, maximum {self.maximum * 1000:.0f} ms of {self.count}"


class Calibration(Frozen):
    """What was measured. None where it could not be."""

    server: Offset | None = None
    """Of the API server's clock against this machine's."""
    node: Offset | None = None
    """Of the clock of the node that ran the image trial against the API server's."""
    round_trip: Delays | None = None
    """Of a request that reads one object."""
    watch: Delays | None = None
    """From the moment at which a write is sent to its event in a watch."""
    problem: str | None = None
    """Why something is missing."""

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Self | None:
        """The one that was recorded; None in recordings of earlier versions, and where nothing can be made of it."""
        found = next((e.detail for e in entries if isinstance(e, Action) and e.action == ACTION), None)
        try:
            return None if found is None else cls.model_validate(found)
        except ValidationError:
            return None

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        """Name and value of everything that was measured, for a table."""
        found = {
            "server clock": self.server and f"{self.server.told} ahead of the harness",
            "node clock": self.node and f"{self.node.told} ahead of the server",
            "round trip": self.round_trip and self.round_trip.told,
            "write to watch": self.watch and self.watch.told,
            "not measured": self.problem,
        }
        return tuple((name, value) for name, value in found.items() if value)

    def warnings(self, timeouts: Timeouts, reproduce: Sequence[str]) -> tuple[str, ...]:
        """What is doubtful under these durations, and what to do about it, as sentences."""
        return tuple(filter(None, (self._slow(timeouts, reproduce), self._apart(timeouts))))

    def _slow(self, timeouts: Timeouts, reproduce: Sequence[str]) -> str | None:
        if self.round_trip is None or self.watch is None:
            return None
        reaction = self.round_trip.maximum + self.watch.maximum
        parts = {name: REACTED_TO if name == "dwell" else FAIR for name in _bounds(timeouts)}
        lacking = {name: reaction * parts[name] / value for name, value in _bounds(timeouts).items()}
        doubtful = [name for name, times in lacking.items() if times > 1]
        if not doubtful:
            return None
        scale = min(LARGEST_SCALE, ceil(max(lacking.values()) * _scale_of(reproduce)))
        return (
            f"News of a change takes up to {self.watch.maximum:.2f} s here and an answer up to "
            f"{self.round_trip.maximum:.2f} s: {_listed(doubtful)} may be too short to tell a slow cluster from a slow "
            f"operator. Run with --timeout-scale {scale}."
        )

    def _apart(self, timeouts: Timeouts) -> str | None:
        apart = {
            "this machine and the API server": self.server.certain if self.server else 0.0,
            "the API server and the node": self.node.certain if self.node else 0.0,
        }
        who, certain = max(apart.items(), key=lambda pair: pair[1])
        doubtful = [name for name in COUNTED_BY_CLOCKS if certain * FAIR > getattr(timeouts, name)]
        if not doubtful:
            return None
        return (
            f"The clocks of {who} are at least {certain:.1f} s apart. No verdict compares clocks, but an operator that "
            "counts a deadline or a time to live by another one's may be early or late by as much: "
            f"{_listed(doubtful)} may be wrong there. Set the clocks (NTP) and run again."
        )


def _bounds(timeouts: Timeouts) -> dict[str, float]:
    """The durations that news of a change has to fit into. What the cluster alone does is held against nobody."""
    left_out = {*CLUSTERS_WORK, "witness", "scenario"}
    values: dict[str, Any] = timeouts.model_dump()
    return {name: float(value) for name, value in values.items() if name not in left_out}


def _scale_of(reproduce: Sequence[str]) -> float:
    """The factor on all durations that a run was started with."""
    words = list(reproduce)
    try:
        return float(words[words.index("--timeout-scale") + 1])
    except (ValueError, IndexError):
        return 1.0


def _listed(names: Sequence[str]) -> str:
    shown = [f"`{name}`" for name in names]
    return " and ".join(part for part in (", ".join(shown[:-1]), shown[-1]) if part)
