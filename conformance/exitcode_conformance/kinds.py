"""The job kinds as data: what a manifest of each needs, how its replicas are named, what makes it succeed.

Source: the API types and controllers of tf-operator and training-operator, releases 0.5 to 1.9; for Job the
Kubernetes API reference, batch/v1.
"""

from typing import Literal

from exitcode_conformance.frozen import Frozen

AdapterName = Literal["kubeflow", "batch"]


class KindTraits(Frozen):
    """What one operator has otherwise than the published API of a kind; what is left out is as published."""

    replica_types: tuple[str, ...] | None = None
    """Those that the operator knows."""
    container: str | None = None
    """Name of the training container."""
    conditions: dict[str, str] = {}
    """Documented condition type → what the operator calls it."""
    events: dict[str, str] = {}
    """Documented event reason → what the operator calls it."""


class JobKind(Frozen):
    """One kind of job."""

    name: str
    plural: str
    replica_specs: str = ""
    """The field of spec that holds the replica types; empty where the job has one pod template and no types."""
    replica_types: tuple[str, ...]
    container: str
    """Name of the training container, the one whose exit code counts."""
    port_name: str = ""
    port: int = 0
    """Of the service that each replica has; 0 where the API has none."""
    leaders: tuple[str, ...]
    """Types that decide success and carry the role label `master`, where the job has one of them."""
    followers_decide: str | None
    """Who decides without a leader: `worker-0`, `all-workers`, or None where a leader is obligatory."""
    without_exit_code: str | None = None
    """Why restartPolicy ExitCode has no effect on this kind, so that nothing is certified of it; None where it has."""
    group: str = "kubeflow.org"
    version: str = "v1"
    adapter: AdapterName = "kubeflow"
    """Through which the suite speaks to the API."""
    says_its_start: bool = True
    """Whether the status has conditions from the start on, and not only one of the end."""
    conditions: dict[str, str] = {}
    """Documented condition type → what it is called, where that is something else."""
    events: dict[str, str] = {}
    """Documented event reason → what it is called, where that is something else."""

    @property
    def api_version(self) -> str:
        """As a manifest has it."""
        return f"{self.group}/{self.version}"

    def called(self, condition: str) -> str:
        """What a documented condition is called in the status."""
        return self.conditions.get(condition, condition)

    def documented(self, condition: str) -> str:
        """The documented type of a condition of the status; its own where it stands for none. One that is called
        otherwise here is not meant by its documented name."""
        for name, called in self.conditions.items():
            if called == condition:
                return name
        return "" if condition in self.conditions else condition

    def reason(self, event: str) -> str:
        """What the reason of a documented event is called."""
        return self.events.get(event, event)

    def with_traits(self, traits: KindTraits) -> "JobKind":
        """The kind as an operator has it."""
        return self.model_copy(
            update={
                "replica_types": self.replica_types if traits.replica_types is None else traits.replica_types,
                "container": self.container if traits.container is None else traits.container,
                "conditions": {**self.conditions, **traits.conditions},
                "events": {**self.events, **traits.events},
            }
        )


TFJOB = JobKind(
    name="TFJob",
    plural="tfjobs",
    replica_specs="tfReplicaSpecs",
    replica_types=("PS", "Worker", "Chief", "Master", "Evaluator"),
    container="tensorflow",
    port_name="tfjob-port",
    port=2222,
    leaders=("Chief", "Master"),
    followers_decide="worker-0",
)
PYTORCHJOB = JobKind(
    name="PyTorchJob",
    plural="pytorchjobs",
    replica_specs="pytorchReplicaSpecs",
    replica_types=("Master", "Worker"),
    container="pytorch",
    port_name="pytorchjob-port",
    port=23456,
    leaders=("Master",),
    followers_decide="all-workers",
)
XGBOOSTJOB = JobKind(
    name="XGBoostJob",
    plural="xgboostjobs",
    replica_specs="xgbReplicaSpecs",
    replica_types=("Master", "Worker"),
    container="xgboost",
    port_name="xgboostjob-port",
    port=9999,
    leaders=("Master",),
    followers_decide=None,
)
PADDLEJOB = JobKind(
    name="PaddleJob",
    plural="paddlejobs",
    replica_specs="paddleReplicaSpecs",
    replica_types=("Master", "Worker"),
    container="paddle",
    port_name="master",
    port=36543,
    leaders=("Master",),
    followers_decide="all-workers",
)
JAXJOB = JobKind(
    name="JAXJob",
    plural="jaxjobs",
    replica_specs="jaxReplicaSpecs",
    replica_types=("Worker",),
    container="jax",
    port_name="jaxjob-port",
    port=6666,
    leaders=(),
    followers_decide="all-workers",
)
MPIJOB = JobKind(
    name="MPIJob",
    plural="mpijobs",
    replica_specs="mpiReplicaSpecs",
    replica_types=("Launcher", "Worker"),
    container="mpi",
    port_name="mpi-port",
    port=9999,
    leaders=("Launcher",),
    followers_decide=None,
    without_exit_code="restartPolicy ExitCode has no effect on an MPIJob: its controller restarts by no exit code",
)
JOB = JobKind(
    name="Job",
    plural="jobs",
    replica_types=("Worker",),
    container="worker",
    leaders=(),
    followers_decide="all-workers",
    group="batch",
    adapter="batch",
    says_its_start=False,
    conditions={"Succeeded": "Complete"},
)
KINDS: dict[str, JobKind] = {
    kind.name: kind for kind in (TFJOB, PYTORCHJOB, XGBOOSTJOB, PADDLEJOB, JAXJOB, MPIJOB, JOB)
}
BY_PLURAL: dict[str, JobKind] = {kind.plural: kind for kind in KINDS.values()}


def kinds_of(adapter: AdapterName) -> tuple[str, ...]:
    """The names of an adapter's kinds."""
    return tuple(name for name, kind in KINDS.items() if kind.adapter == adapter)


KUBEFLOW_KINDS = kinds_of("kubeflow")
