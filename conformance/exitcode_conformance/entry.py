"""The lines of a recording that a history is made of: watch events, and what the harness did itself."""

from typing import Any, Literal

from exitcode_conformance.frozen import Frozen
from exitcode_conformance.verdict import Trial

WatchVerb = Literal["ADDED", "MODIFIED", "DELETED"]


class Event(Frozen):
    """One watch event. Its order is the order of arrival; within one resource that is the API server's order."""

    type: Literal["event"] = "event"
    seq: int
    """Number of the line within the recording, from 1, without gaps over events, actions and verdicts."""
    time: float
    """Seconds since the run began, on the monotonic clock of the harness."""
    scenario: str | None
    """The scenario that the object belongs to; None if it belongs to none (another job of the namespace)."""
    resource: str
    """Plural resource name: `pods`, `services`, `events`, or that of a job kind such as `tfjobs`."""
    verb: WatchVerb
    object: dict[str, Any]
    """The object as the API server sent it, without metadata.managedFields."""

    @property
    def metadata(self) -> dict[str, Any]:
        """The object's metadata; empty in a recording that somebody else wrote and that has none."""
        found = self.object.get("metadata")
        return found if isinstance(found, dict) else {}


class Action(Frozen):
    """Something the harness (not the operator) did or noticed."""

    type: Literal["action"] = "action"
    seq: int
    time: float
    scenario: str | None
    """The scenario it was done for; None for what concerns the whole run (operator started, exited)."""
    action: Literal[
        "submit",
        "set-outcome",
        "step-reached",
        "step-timed-out",
        "delete-job",
        "remove-pod",
        "touch-job",
        "restart-operator",
        "table",
        "settled",
        "complete",
        "remove-job",
        "witness-submitted",
        "operator-started",
        "operator-exited",
        "calibration",
        "canary",
        "nonsense",
        "watch-gap",
        "held-up",
        "starved",
        "harness-error",
    ]
    detail: dict[str, Any] = {}
    """`delete-job` is the scenario's own, `remove-job` only tidies up after `complete`. `step-reached` and
    `step-timed-out` say which step; `remove-pod` which `pod` by its `uid` and `how`; `table` what the API server would
    have `kubectl get` print of the job: `resource_version` and `cells` (column → text), or `problem`; `watch-gap` which
    resource: events of it may be missing; `calibration` how far clocks were apart, and how long answers and news of a
    change took; `canary` in how many seconds the first job of all succeeded, or the `problem`; `nonsense` what the
    `answer` to a `job` was that makes no sense; `held-up` for how many seconds up to this moment the harness or the API
    server was too slow to be fair to anybody; `starved` for how many seconds of the last second or so the operator's
    and the embedded cluster's processes were ready to run and had no processor."""


Entry = Event | Action


class VerdictLine(Frozen):
    """A verdict as the recording keeps it."""

    type: Literal["verdict"] = "verdict"
    seq: int
    time: float
    requirement: str
    subject: str
    """What stands in the brackets of the test id: a scenario's id, or the name of a comparison of several."""
    scenarios: tuple[str, ...]
    verdict: str
    """A value of `verdict.Verdict`."""
    expected: str
    seen: str
    deciding: tuple[int, ...] = ()
    observed_class: str | None = None
    trials: tuple[Trial, ...] = ()
    """Every question about time that the verdict rests on; none in recordings of earlier versions."""
