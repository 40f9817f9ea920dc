"""A scenario: pure data that says which job is submitted, how its containers end, and what is done to the cluster."""

import re
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from exitcode_conformance.frozen import Frozen

RestartPolicy = Literal["ExitCode", "Always", "OnFailure", "Never"]
SignalName = Literal["INT", "KILL", "USR1", "SEGV", "TERM"]
SIGNAL_NUMBERS: dict[SignalName, int] = {"INT": 2, "KILL": 9, "USR1": 10, "SEGV": 11, "TERM": 15}
"""Linux numbers on every architecture that Kubernetes runs on; a container that dies of one shows 128 more."""


class ExitOutcome(Frozen):
    """The container's script returns `code` after `dwell` units of `Timeouts.dwell`."""

    kind: Literal["exit"] = "exit"
    code: int = Field(ge=0, le=255)
    dwell: float = Field(default=1, ge=0)


class SignalOutcome(Frozen):
    """A child of the script dies of a real signal and the script passes the kernel's 128+n on."""

    kind: Literal["signal"] = "signal"
    signal: SignalName
    dwell: float = Field(default=1, ge=0)


class RunUntilStopped(Frozen):
    """The container runs until somebody stops it; on SIGTERM it exits 0."""

    kind: Literal["run-until-stopped"] = "run-until-stopped"


Outcome = Annotated[ExitOutcome | SignalOutcome | RunUntilStopped, Field(discriminator="kind")]


def outcome_code(outcome: Outcome) -> int | None:
    """The exit code that the outcome leads to, None when it leads to none by itself."""
    match outcome:
        case ExitOutcome():
            return outcome.code
        case SignalOutcome():
            return 128 + SIGNAL_NUMBERS[outcome.signal]
        case RunUntilStopped():
            return None


class ReplicaGroup(Frozen):
    """All replicas of one type. `type` is the kind's own spelling (`Worker`, `PS`, `Chief`, `Master`)."""

    type: str
    replicas: int = Field(ge=1)
    restart_policy: RestartPolicy = "ExitCode"
    template_restart_policy: str | None = None
    """A restartPolicy written into the pod template too, which the operator has to overwrite; None for none."""


class UntilTerminal(Frozen):
    """Reached when the job is Succeeded or Failed."""

    kind: Literal["terminal"] = "terminal"


class UntilAttempt(Frozen):
    """Reached when the `attempt`-th attempt (from 1; pods and in-place restarts counted alike) of a replica is
    running, or has ended, and the job says so where `job_running` asks for it."""

    kind: Literal["attempt"] = "attempt"
    replica: str
    attempt: int = Field(ge=1)
    job_running: bool = False
    """Wait as well for the job to say Running at or after that attempt's start."""


class UntilSucceeded(Frozen):
    """Reached when the pod of the replica has phase Succeeded, and replicaStatuses counts one where `counted` asks."""

    kind: Literal["succeeded"] = "succeeded"
    replica: str
    counted: bool = False


class UntilGone(Frozen):
    """Reached when the job and everything attributed to it has been removed from the cluster."""

    kind: Literal["gone"] = "gone"


class DeleteJob(Frozen):
    """The harness deletes the job (propagation Background, as kubectl does)."""

    kind: Literal["delete-job"] = "delete-job"


Step = Annotated[
    UntilTerminal | UntilAttempt | UntilSucceeded | UntilGone | DeleteJob,
    Field(discriminator="kind"),
]


class Scenario(Frozen):
    """One job and all that is done to it. Values that are not in `outcomes` run until they are stopped."""

    id: str
    """Stable, readable, a DNS label of at most 52 characters: it is the job's name as well."""
    kind: str
    """The job kind, such as `TFJob`."""
    groups: tuple[ReplicaGroup, ...]
    outcomes: dict[str, tuple[Outcome, ...]] = {}
    """Replica (`worker-0`: type in lower case and index) → what each attempt does; the last one repeats."""
    target: str | None = None
    """The replica whose exit code the scenario is about; None where it is about the job as a whole."""
    run_policy: dict[str, Any] = {}
    """The job's runPolicy as it stands in the manifest."""
    success_policy: Literal["AllWorkers"] | None = None
    steps: tuple[Step, ...] = (UntilTerminal(),)
    """Done in this order. A job that has become terminal satisfies every wait but `gone`. After the last step the
    settle window `Timeouts.never` has to pass, with a witness, before the history is complete."""
    manifest: dict[str, Any] | None = None
    """The job as somebody else wrote it, submitted in place of a rendered one: name and namespace are the run's, its
    `sleep` durations and cpu limits are scaled (see `rendering`)."""

    @model_validator(mode="after")
    def _is_consistent(self) -> "Scenario":
        if not re.fullmatch(r"[a-z]([a-z0-9-]{0,50}[a-z0-9])?", self.id):
            raise ValueError(f"scenario id {self.id!r} is not a DNS label of at most 52 characters")
        known = set(self.replica_names())
        named = set(self.outcomes) | ({self.target} if self.target else set())
        named |= {s.replica for s in self.steps if isinstance(s, UntilAttempt | UntilSucceeded)}
        if named - known:
            raise ValueError(f"scenario {self.id}: no such replica: {', '.join(sorted(named - known))}")
        return self

    def replica_names(self) -> tuple[str, ...]:
        """Every replica as `<type in lower case>-<index>`, in the order of the groups."""
        return tuple(f"{g.type.lower()}-{i}" for g in self.groups for i in range(g.replicas))

    def group_of(self, replica: str) -> ReplicaGroup:
        """The group of a replica name; KeyError if the scenario has none of that type."""
        kind = replica.rpartition("-")[0]
        for group in self.groups:
            if group.type.lower() == kind:
                return group
        raise KeyError(replica)

    def outcome_of(self, replica: str, attempt: int) -> Outcome:
        """What the `attempt`-th attempt (from 1) of a replica does."""
        script = self.outcomes.get(replica)
        return script[min(attempt, len(script)) - 1] if script else RunUntilStopped()

    def pod_count(self) -> int:
        """How many pods the job wants at one time."""
        return sum(group.replicas for group in self.groups)
