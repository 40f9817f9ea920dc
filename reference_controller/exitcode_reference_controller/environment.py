"""What a replica is told of the others: the environment variables by which each framework finds its cluster.

Pure functions of the job and the replica, and of nothing that a restart changes: a replacement is told what
the first pod was told. Source: the Kubeflow training operator v1.9.
"""

import json
from collections.abc import Callable, Mapping

from exitcode_reference_controller.job import Job
from exitcode_reference_controller.kinds import EnvironmentStyle

ReplicaNames = Callable[[Job, str, int], str]
"""(job, replica type, index) → the name of the replica's pod and service."""


def container_environment(
    job: Job, replica_type: str, index: int, container: str, port: int, name_of: ReplicaNames
) -> Mapping[str, str]:
    """The variables that one container of a replica gets."""
    if job.kind.environment == "tensorflow" and container != job.kind.container:
        return {}
    return _STYLES[job.kind.environment](job, replica_type, index, port, name_of)


def rank(job: Job, replica_type: str, index: int) -> int:
    """Position of a replica among all: the leaders first, then the workers."""
    before = 0
    for spec in job.replica_specs:
        if spec.type == replica_type:
            return before + index
        before += spec.replicas
    raise KeyError(replica_type)


def _first(job: Job, name_of: ReplicaNames) -> str:
    return name_of(job, job.leaders[0] if job.leaders else "Worker", 0)


def _tensorflow(job: Job, replica_type: str, index: int, port: int, name_of: ReplicaNames) -> dict[str, str]:
    if job.replicas == 1:
        return {}
    cluster = {
        spec.type.lower(): [f"{name_of(job, spec.type, i)}.{job.namespace}.svc:{port}" for i in range(spec.replicas)]
        for spec in job.replica_specs
        if spec.type != "Evaluator" and spec.replicas
    }
    task = {"type": replica_type.lower(), "index": index}
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task, "environment": "cloud"})}


def _pytorch(job: Job, replica_type: str, index: int, port: int, name_of: ReplicaNames) -> dict[str, str]:
    return {
        "PYTHONUNBUFFERED": "1",
        "MASTER_ADDR": _first(job, name_of),
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(job.replicas),
        "RANK": str(rank(job, replica_type, index)),
    }


def _xgboost(job: Job, replica_type: str, index: int, port: int, name_of: ReplicaNames) -> dict[str, str]:
    variables = _pytorch(job, replica_type, index, port, name_of)
    workers = job.spec_of("Worker")
    if workers:
        variables["WORKER_PORT"] = str(port)
        variables["WORKER_ADDRS"] = ",".join(name_of(job, "Worker", i) for i in range(workers.replicas))
    return variables


def _paddle(job: Job, replica_type: str, index: int, port: int, name_of: ReplicaNames) -> dict[str, str]:
    return {
        "PYTHONUNBUFFERED": "1",
        "PADDLE_JOB_ID": job.name,
        "PADDLE_NNODES": str(job.replicas),
        "PADDLE_MASTER": f"{_first(job, name_of)}:{port}",
        "PADDLE_NODE_RANK": str(rank(job, replica_type, index)),
    }


def _jax(job: Job, replica_type: str, index: int, port: int, name_of: ReplicaNames) -> dict[str, str]:
    return {
        "PYTHONUNBUFFERED": "1",
        "COORDINATOR_ADDRESS": _first(job, name_of),
        "COORDINATOR_PORT": str(port),
        "NUM_PROCESSES": str(job.replicas),
        "PROCESS_ID": str(rank(job, replica_type, index)),
    }


def _none(job: Job, replica_type: str, index: int, port: int, name_of: ReplicaNames) -> dict[str, str]:  # noqa: ARG001
    return {}


_STYLES: dict[EnvironmentStyle, Callable[[Job, str, int, int, ReplicaNames], dict[str, str]]] = {
    "tensorflow": _tensorflow,
    "pytorch": _pytorch,
    "xgboost": _xgboost,
    "paddle": _paddle,
    "jax": _jax,
    "none": _none,
}
