"""What a replica is told of the others: the environment variables by which each framework finds its cluster.

Pure functions of the job and the replica, and of nothing that a restart changes: a replacement is told what
the first pod was told. Source: the Kubeflow training operator v1.9.
"""

import json
from collections.abc import Callable
from typing import Protocol

from exitcode_reference_controller.job import Job, ReplicaSpec
from exitcode_reference_controller.kinds import EnvironmentStyle


class Addresses(Protocol):
    """Where replicas are found."""

    def replica_name(self, job: Job, replica_type: str, index: int) -> str:
        """The host name of a replica."""

    def port(self, job: Job, spec: ReplicaSpec) -> int:
        """The port that the replicas of a type listen on."""


def container_environment(
    job: Job, replica_type: str, index: int, container: str, addresses: Addresses
) -> dict[str, str]:
    """The variables that one container of a replica gets."""
    if job.kind.environment == "tensorflow" and container != job.kind.container:
        return {}
    return _STYLES[job.kind.environment](job, replica_type, index, addresses)


def rank(job: Job, replica_type: str, index: int) -> int:
    """Position of a replica among all: the leaders first, then the workers."""
    before = 0
    for spec in job.replica_specs:
        if spec.type == replica_type:
            return before + index
        before += spec.replicas
    raise KeyError(replica_type)


def _master(job: Job, addresses: Addresses) -> tuple[str, int]:
    master_type = job.leaders[0] if job.leaders else "Worker"
    spec = next(spec for spec in job.replica_specs if spec.type == master_type)
    return addresses.replica_name(job, master_type, 0), addresses.port(job, spec)


def _tensorflow(job: Job, replica_type: str, index: int, addresses: Addresses) -> dict[str, str]:
    if job.replicas == 1:
        return {}
    cluster = {
        spec.type.lower(): [
            f"{addresses.replica_name(job, spec.type, i)}.{job.namespace}.svc:{addresses.port(job, spec)}"
            for i in range(spec.replicas)
        ]
        for spec in job.replica_specs
        if spec.type != "Evaluator" and spec.replicas
    }
    task = {"type": replica_type.lower(), "index": index}
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task, "environment": "cloud"})}


def _pytorch(job: Job, replica_type: str, index: int, addresses: Addresses) -> dict[str, str]:
    host, port = _master(job, addresses)
    return {
        "PYTHONUNBUFFERED": "1",
        "MASTER_ADDR": host,
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(job.replicas),
        "RANK": str(rank(job, replica_type, index)),
    }


def _xgboost(job: Job, replica_type: str, index: int, addresses: Addresses) -> dict[str, str]:
    variables = _pytorch(job, replica_type, index, addresses)
    workers = job.spec_of("Worker")
    if workers:
        names = (addresses.replica_name(job, "Worker", i) for i in range(workers.replicas))
        variables["WORKER_PORT"] = str(addresses.port(job, workers))
        variables["WORKER_ADDRS"] = ",".join(names)
    return variables


def _paddle(job: Job, replica_type: str, index: int, addresses: Addresses) -> dict[str, str]:
    host, port = _master(job, addresses)
    return {
        "PYTHONUNBUFFERED": "1",
        "PADDLE_JOB_ID": job.name,
        "PADDLE_NNODES": str(job.replicas),
        "PADDLE_MASTER": f"{host}:{port}",
        "PADDLE_NODE_RANK": str(rank(job, replica_type, index)),
    }


def _jax(job: Job, replica_type: str, index: int, addresses: Addresses) -> dict[str, str]:
    host, port = _master(job, addresses)
    return {
        "PYTHONUNBUFFERED": "1",
        "COORDINATOR_ADDRESS": host,
        "COORDINATOR_PORT": str(port),
        "NUM_PROCESSES": str(job.replicas),
        "PROCESS_ID": str(rank(job, replica_type, index)),
    }


def _none(job: Job, replica_type: str, index: int, addresses: Addresses) -> dict[str, str]:  # noqa: ARG001
    return {}


_STYLES: dict[EnvironmentStyle, Callable[[Job, str, int, Addresses], dict[str, str]]] = {
    "tensorflow": _tensorflow,
    "pytorch": _pytorch,
    "xgboost": _xgboost,
    "paddle": _paddle,
    "jax": _jax,
    "none": _none,
}
