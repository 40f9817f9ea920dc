"""The job kinds as data: every difference between a TFJob and a PyTorchJob that the controller knows of is in
here.

Source: the Go types and defaults of the Kubeflow training operator v1.9, group kubeflow.org, version v1. Kubernetes'
own Job is of another family, with a reconciler of its own (`batch_job`).
"""

from dataclasses import dataclass
from typing import Literal, Protocol

GROUP = "kubeflow.org"
VERSION = "v1"
API_VERSION = f"{GROUP}/{VERSION}"

RestartPolicy = Literal["ExitCode", "Always", "OnFailure", "Never"]
WithoutLeader = Literal["first-worker", "all-workers", "refused"]
"""What decides a job that has none of its kind's leaders: worker 0, all workers, or such a job is invalid."""
EnvironmentStyle = Literal["tensorflow", "pytorch", "xgboost", "paddle", "jax", "none"]


class Kind(Protocol):
    """What the controller has to know of a kind of job, whatever it is for."""

    @property
    def name(self) -> str:
        """As objects have it."""

    @property
    def plural(self) -> str:
        """As paths have it."""

    @property
    def api_version(self) -> str:
        """Group and version."""

    @property
    def operator_name(self) -> str:
        """The source of its events."""


@dataclass(frozen=True, kw_only=True)
class JobKind:
    """One kind of training job."""

    name: str
    plural: str
    spec_field: str
    replica_types: tuple[str, ...]
    container: str
    """Name of the training container; the exit codes of all others count for nothing."""
    port_name: str
    port: int
    default_restart_policy: RestartPolicy
    leaders: tuple[str, ...]
    """Replica types that alone decide whether the job has succeeded, where the job has any of them."""
    without_leader: WithoutLeader
    environment: EnvironmentStyle
    restarts_by_exit_code: bool = True
    """False: restartPolicy ExitCode is accepted and means Never."""

    @property
    def api_version(self) -> str:
        """Group and version."""
        return API_VERSION

    @property
    def operator_name(self) -> str:
        """Value of the label and of the event source by which the objects of this kind are known."""
        return f"{self.name.lower()}-controller"


KINDS: dict[str, JobKind] = {
    kind.name: kind
    for kind in (
        JobKind(
            name="TFJob",
            plural="tfjobs",
            spec_field="tfReplicaSpecs",
            replica_types=("Chief", "Master", "PS", "Worker", "Evaluator"),
            container="tensorflow",
            port_name="tfjob-port",
            port=2222,
            default_restart_policy="Never",
            leaders=("Chief", "Master"),
            without_leader="first-worker",
            environment="tensorflow",
        ),
        JobKind(
            name="PyTorchJob",
            plural="pytorchjobs",
            spec_field="pytorchReplicaSpecs",
            replica_types=("Master", "Worker"),
            container="pytorch",
            port_name="pytorchjob-port",
            port=23456,
            default_restart_policy="OnFailure",
            leaders=("Master",),
            without_leader="all-workers",
            environment="pytorch",
        ),
        JobKind(
            name="XGBoostJob",
            plural="xgboostjobs",
            spec_field="xgbReplicaSpecs",
            replica_types=("Master", "Worker"),
            container="xgboost",
            port_name="xgboostjob-port",
            port=9999,
            default_restart_policy="Never",
            leaders=("Master",),
            without_leader="refused",
            environment="xgboost",
        ),
        JobKind(
            name="PaddleJob",
            plural="paddlejobs",
            spec_field="paddleReplicaSpecs",
            replica_types=("Master", "Worker"),
            container="paddle",
            port_name="master",
            port=36543,
            default_restart_policy="OnFailure",
            leaders=("Master",),
            without_leader="all-workers",
            environment="paddle",
        ),
        JobKind(
            name="MPIJob",
            plural="mpijobs",
            spec_field="mpiReplicaSpecs",
            replica_types=("Launcher", "Worker"),
            container="mpi",
            port_name="mpi-port",
            port=9999,
            default_restart_policy="Never",
            leaders=("Launcher",),
            without_leader="refused",
            environment="none",
            restarts_by_exit_code=False,
        ),
        JobKind(
            name="JAXJob",
            plural="jaxjobs",
            spec_field="jaxReplicaSpecs",
            replica_types=("Worker",),
            container="jax",
            port_name="jaxjob-port",
            port=6666,
            default_restart_policy="Never",
            leaders=(),
            without_leader="all-workers",
            environment="jax",
        ),
    )
}
KINDS_BY_OPERATOR_NAME: dict[str, JobKind] = {kind.operator_name: kind for kind in KINDS.values()}


@dataclass(frozen=True, kw_only=True)
class BatchKind:
    """Kubernetes' own Job."""

    name: str = "Job"
    plural: str = "jobs"
    api_version: str = "batch/v1"
    operator_name: str = "job-controller"
    manager: str = "kubernetes.io/job-controller"
    """What `spec.managedBy` says of a Job that is this controller's."""


BATCH_JOB = BatchKind()
