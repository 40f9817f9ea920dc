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
    """The container runs until somebody stops it; on SIGTERM it exits with `code`."""

    kind: Literal["run-until-stopped"] = "run-until-stopped"
    code: int = Field(default=0, ge=0, le=255)


class MissingCommand(Frozen):
    """The container's command does not exist, in this attempt and in every other: it never runs."""

    kind: Literal["missing-command"] = "missing-command"


Outcome = Annotated[ExitOutcome | SignalOutcome | RunUntilStopped | MissingCommand, Field(discriminator="kind")]
MISSING_COMMAND_CODES = (128, 127)
"""What stands for a command that is not there: containerd says 128 (StartError), Docker 127 (ContainerCannotRun)."""


def outcome_code(outcome: Outcome) -> int | None:
    """The exit code that the outcome leads to, None when it leads to none by itself."""
    match outcome:
        case ExitOutcome():
            return outcome.code
        case SignalOutcome():
            return 128 + SIGNAL_NUMBERS[outcome.signal]
        case MissingCommand():
            return MISSING_COMMAND_CODES[0]
        case RunUntilStopped():
            return None


def is_outcome(outcome: Outcome, code: int) -> bool:
    """Whether a container that was told to end in this way may show this code."""
    if isinstance(outcome, MissingCommand):
        return code in MISSING_COMMAND_CODES
    return code == outcome_code(outcome)


class ReplicaGroup(Frozen):
    """All replicas of one type. `type` is the kind's own spelling (`Worker`, `PS`, `Chief`, `Master`)."""

    type: str
    replicas: int = Field(ge=1)
    restart_policy: RestartPolicy = "ExitCode"
    template_restart_policy: str | None = None
    """A restartPolicy written into the pod template too, which the operator has to overwrite; None for none."""
    pending: bool = False
    """The pods ask for a node that there is not, and stay Pending."""
    sidecar: ExitOutcome | None = None
    """How a second container ends, in every attempt, beside the training container; None for no second one."""
    init: ExitOutcome | None = None
    """How an init container ends, in every attempt; None for none."""
    message: str | None = None
    """The termination message that the training container leaves, however it ends; None for none."""

    @property
    def fails_without_code(self) -> bool:
        """Whether the pods fail before the training container runs, so that it has no exit code."""
        return self.init is not None and self.init.code != 0

    @property
    def sidecar_fails(self) -> bool:
        """Whether the pods have a second container that fails."""
        return self.sidecar is not None and self.sidecar.code != 0


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


class UntilCleaned(Frozen):
    """Reached when the job is terminal and what its cleanPodPolicy removes is removed, or at least marked for it."""

    kind: Literal["cleaned"] = "cleaned"


class RemovePod(Frozen):
    """The harness deletes the replica's pod, or evicts it as `kubectl drain` does."""

    kind: Literal["remove-pod"] = "remove-pod"
    replica: str
    how: Literal["delete", "evict"]


class RecreateJob(Frozen):
    """The harness deletes the job and creates one of the same name as soon as the API server takes it. From here on the
    scenario is about the second one."""

    kind: Literal["recreate-job"] = "recreate-job"


class TouchJob(Frozen):
    """The harness changes an annotation of the job so many times, so that the operator has a reason to look at it."""

    kind: Literal["touch-job"] = "touch-job"
    times: int = Field(ge=1)


class RestartOperator(Frozen):
    """The harness stops the operator and starts it again. Only for a scenario that has an operator to itself."""

    kind: Literal["restart-operator"] = "restart-operator"


Step = Annotated[
    UntilTerminal
    | UntilAttempt
    | UntilSucceeded
    | UntilCleaned
    | UntilGone
    | DeleteJob
    | RemovePod
    | RecreateJob
    | TouchJob
    | RestartOperator,
    Field(discriminator="kind"),
]
Profile = Literal["core", "extended"]


class Scenario(Frozen):
    """One job and all that is done to it. Replicas that are not in `outcomes` run until they are stopped."""

    id: str
    """Stable, readable, a DNS label of at most 52 characters: it is the job's name as well."""
    kind: str
    """The job kind, such as `TFJob`."""
    profile: Profile = "core"
    """The smallest profile that it is run in."""
    needs: tuple[str, ...] = ()
    """Features without which the scenario does not come to its point: an operator that lacks one is not put to it."""
    groups: tuple[ReplicaGroup, ...]
    outcomes: dict[str, tuple[Outcome, ...]] = {}
    """Replica (`worker-0`: type in lower case and index) → what each attempt does; the last one repeats."""
    target: str | None = None
    """The replica whose exit code the scenario is about; None where it is about the job as a whole."""
    run_policy: dict[str, Any] = {}
    """The job's runPolicy as it stands in the manifest."""
    success_policy: Literal["AllWorkers"] | None = None
    steps: tuple[Step, ...] = (UntilTerminal(),)
    """Done in this order. A job that has become terminal satisfies every wait but `cleaned` and `gone`. After the last
    step the settle window has to pass, with a witness, before the history is complete."""
    settle: Literal["never", "state"] = "never"
    """The duration of the settle window, where what is to be missed needs a longer one than what may not come."""
    manifest: dict[str, Any] | None = None
    """The job as somebody else wrote it, submitted in place of a rendered one: name and namespace are the run's, its
    `sleep` durations and cpu limits are scaled (see `rendering`)."""

    @model_validator(mode="after")
    def _is_consistent(self) -> "Scenario":
        if not re.fullmatch(r"[a-z]([a-z0-9-]{0,50}[a-z0-9])?", self.id):
            raise ValueError(f"scenario id {self.id!r} is not a DNS label of at most 52 characters")
        known = set(self.replica_names())
        named = set(self.outcomes) | ({self.target} if self.target else set())
        named |= {s.replica for s in self.steps if isinstance(s, UntilAttempt | UntilSucceeded | RemovePod)}
        if named - known:
            raise ValueError(f"scenario {self.id}: no such replica: {', '.join(sorted(named - known))}")
        for replica, script in self.outcomes.items():
            if len(script) > 1 and any(isinstance(outcome, MissingCommand) for outcome in script):
                raise ValueError(f"scenario {self.id}: {replica} has one command in all its attempts")
        return self

    def replica_names(self) -> tuple[str, ...]:
        """Every replica as `<type in lower case>-<index>`, in the order of the groups."""
        return tuple(f"{g.type.lower()}-{i}" for g in self.groups for i in range(g.replicas))

    def running_replicas(self) -> tuple[str, ...]:
        """Those of the replicas that find a node."""
        return tuple(r for r in self.replica_names() if not self.group_of(r).pending)

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
