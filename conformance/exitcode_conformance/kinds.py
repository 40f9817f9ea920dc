"""The job kinds as data: what a manifest of each needs, how its replicas are named, what makes it succeed.

Source: the API types and controllers of tf-operator and training-operator, releases 0.5 to 1.9.
"""

from exitcode_conformance.frozen import Frozen


class JobKind(Frozen):
    """One kind of kubeflow.org/v1."""

    name: str
    plural: str
    replica_specs: str
    """The field of spec that holds the replica types."""
    replica_types: tuple[str, ...]
    container: str
    """Name of the training container, the one whose exit code counts."""
    port_name: str
    port: int
    leaders: tuple[str, ...]
    """Types that decide success and carry the role label `master`, where the job has one of them."""
    followers_decide: str | None
    """Who decides without a leader: `worker-0`, `all-workers`, or None where a leader is obligatory."""
    without_exit_code: str | None = None
    """Why restartPolicy ExitCode has no effect on this kind, so that nothing is certified of it; None where it has."""
    group: str = "kubeflow.org"
    version: str = "v1"

    @property
    def api_version(self) -> str:
        """As a manifest has it."""
        return f"{self.group}/{self.version}"


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
KINDS: dict[str, JobKind] = {kind.name: kind for kind in (TFJOB, PYTORCHJOB, XGBOOSTJOB, PADDLEJOB, JAXJOB, MPIJOB)}
BY_PLURAL: dict[str, JobKind] = {kind.plural: kind for kind in KINDS.values()}
