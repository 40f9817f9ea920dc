"""The one table of named durations. Whoever waits, waits for something, and at most one of these."""

from typing import Literal, Self

from pydantic import Field

from exitcode_conformance.frozen import Frozen

ClusterSpeed = Literal["embedded", "real"]


class Timeouts(Frozen):
    """Named durations, all in seconds. The defaults are those of the embedded cluster."""

    dwell: float = Field(default=0.5, gt=0)
    """One unit of the time a scenario's container runs before it ends. The contract does not bound it; it has to be
    long enough for Running to be seen (a kubelet looks at its containers once a second)."""
    created: float = Field(default=10, gt=0)
    """From the submission of a job to its Created condition. Not in any contract; generous."""
    running: float = Field(default=20, gt=0)
    """From a pod's creation to its container running. The cluster's work, not the operator's."""
    restart: float = Field(default=10, gt=0)
    """From a retryable failure to the creation of the replacement pod (RESTART-09)."""
    kubelet_restart: float = Field(default=20, gt=0)
    """From the end of a container to its next start in place. The kubelet's work."""
    state: float = Field(default=10, gt=0)
    """From a change of the pods to the condition that tells of it."""
    terminal: float = Field(default=10, gt=0)
    """From the event that decides a job to its Succeeded or Failed condition."""
    removal: float = Field(default=10, gt=0)
    """From the end of a job, or of the time that it may stay after it, to the request that removes what has to go."""
    cleanup: float = Field(default=20, gt=0)
    """From the deletion of a job to the disappearance of everything it owned."""
    never: float = Field(default=4, gt=0)
    """The window of every absence that is claimed: not restarted, not failed, nothing comes back."""
    witness: float = Field(default=10, gt=0)
    """How long past a window the harness goes on asking for proof that the operator is alive."""
    scenario: float = Field(default=60, gt=0)
    """The bound on one whole scenario, whatever it waits for."""

    @classmethod
    def default(cls, speed: ClusterSpeed, *, scale: float = 1.0) -> Self:
        """The table for a class of cluster, every entry multiplied by `scale` (greater than 0)."""
        values = cls() if speed == "embedded" else cls(**_REAL)
        return cls(**{name: value * scale for name, value in values.model_dump().items()})


_REAL: dict[str, float] = {
    "dwell": 3,
    "created": 30,
    "running": 120,
    "restart": 60,
    "kubelet_restart": 60,
    "state": 30,
    "terminal": 60,
    "removal": 60,
    "cleanup": 300,
    "never": 15,
    "witness": 60,
    "scenario": 900,
}
