"""A job manifest as typed values, with the kind's defaults filled in; what cannot be run is refused with a
sentence."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from exitcode_reference_controller.kinds import JobKind, RestartPolicy

CleanPodPolicy = Literal["None", "Running", "All"]

_LONGEST_NAME = 63
"""A pod has a service of its name, and a service's name is a DNS label (RFC 1035)."""


class InvalidJob(ValueError):
    """The job can never be run; the text is for the person who wrote it."""


@dataclass(frozen=True, kw_only=True)
class ReplicaSpec:
    """All replicas of one type."""

    type: str
    replicas: int
    restart_policy: RestartPolicy
    template: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class RunPolicy:
    """The part of a job's runPolicy that is obeyed; durations in seconds, None for no bound."""

    clean_pod_policy: CleanPodPolicy
    ttl_after_finished: int | None
    active_deadline: int | None
    backoff_limit: int | None


@dataclass(frozen=True, kw_only=True)
class Job:
    """One job, as its owner declared it."""

    kind: JobKind
    namespace: str
    name: str
    uid: str
    replica_specs: tuple[ReplicaSpec, ...]
    """In the order of the kind's table, which is the order of everything that is derived from it."""
    run_policy: RunPolicy
    all_workers: bool
    """successPolicy AllWorkers: without a leader, all workers have to succeed and not only worker 0."""

    @property
    def replicas(self) -> int:
        """How many replicas of all types the job wants."""
        return sum(spec.replicas for spec in self.replica_specs)

    def spec_of(self, replica_type: str) -> ReplicaSpec | None:
        """The replicas of a type; None if the job has none."""
        return next((spec for spec in self.replica_specs if spec.type == replica_type and spec.replicas), None)

    @property
    def leaders(self) -> tuple[str, ...]:
        """The types of the kind's leaders that this job has."""
        return tuple(leader for leader in self.kind.leaders if self.spec_of(leader))


def parse_job(kind: JobKind, manifest: Mapping[str, Any]) -> Job:
    """The manifest as values. Raises InvalidJob where the CRD has let something through that cannot be
    run."""
    metadata, spec = manifest["metadata"], _object("spec", manifest.get("spec"))
    specs = _object(f"spec.{kind.spec_field}", spec.get(kind.spec_field))
    if not specs:
        raise InvalidJob(f"spec.{kind.spec_field} names no replicas")
    unknown = sorted(set(specs) - set(kind.replica_types))
    if unknown:
        raise InvalidJob(f"spec.{kind.spec_field}: a {kind.name} has no replica type {', '.join(unknown)}")
    job = Job(
        kind=kind,
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        replica_specs=tuple(_replica_spec(kind, t, specs[t]) for t in kind.replica_types if t in specs),
        run_policy=_run_policy(_object("spec.runPolicy", spec.get("runPolicy"))),
        all_workers=spec.get("successPolicy") == "AllWorkers",
    )
    if not job.leaders and (kind.without_leader == "refused" or not job.spec_of("Worker")):
        deciding = [*kind.leaders] if kind.without_leader == "refused" else [*kind.leaders, "Worker"]
        raise InvalidJob(
            f"spec.{kind.spec_field} needs a replica of type {' or '.join(deciding)}: nothing else decides success"
        )
    _check_names(job)
    return job


def _replica_spec(kind: JobKind, replica_type: str, value: object) -> ReplicaSpec:
    path = f"spec.{kind.spec_field}.{replica_type}"
    spec = _object(path, value)
    policy = spec.get("restartPolicy") or kind.default_restart_policy
    if policy not in get_args(RestartPolicy):
        raise InvalidJob(f"{path}.restartPolicy {policy!r} is none of {', '.join(get_args(RestartPolicy))}")
    template = _object(f"{path}.template", spec.get("template"))
    if kind.container not in _container_names(f"{path}.template", template):
        raise InvalidJob(f"{path}.template has no container named {kind.container}, the one whose exit code counts")
    replicas = spec.get("replicas")
    return ReplicaSpec(
        type=replica_type,
        replicas=1 if replicas is None else _count(f"{path}.replicas", replicas),
        restart_policy=policy,
        template=template,
    )


def _container_names(path: str, template: Mapping[str, Any]) -> list[str]:
    """Names of the containers, after a look at every part of the template that the controller itself reads or writes;
    the rest is the API server's to judge."""
    metadata = _object(f"{path}.metadata", template.get("metadata"))
    for field in ("labels", "annotations"):
        _object(f"{path}.metadata.{field}", metadata.get(field))
    spec = _object(f"{path}.spec", template.get("spec"))
    for field in ("initContainers", "containers"):
        for container in _objects(f"{path}.spec.{field}", spec.get(field)):
            if not isinstance(container.get("name"), str):
                raise InvalidJob(f"{path}.spec.{field} has one without a name")
            for entry in _objects(f"{path}.spec.{field}.env", container.get("env")):
                if not isinstance(entry.get("name"), str):
                    raise InvalidJob(f"{path}.spec.{field}.env has one without a name")
            for port in _objects(f"{path}.spec.{field}.ports", container.get("ports")):
                _count(f"{path}.spec.{field}.ports.containerPort", port.get("containerPort"))
    return [container["name"] for container in spec.get("containers") or []]


def _object(path: str, value: object) -> Mapping[str, Any]:
    if value is not None and not isinstance(value, dict):
        raise InvalidJob(f"{path} is {value!r} and has to be an object")
    return value or {}


def _objects(path: str, value: object) -> list[Mapping[str, Any]]:
    if value is not None and not isinstance(value, list):
        raise InvalidJob(f"{path} is {value!r} and has to be a list")
    return [_object(path, entry) for entry in value or []]


def _run_policy(policy: Mapping[str, Any]) -> RunPolicy:
    clean = policy.get("cleanPodPolicy") or "None"
    if clean not in get_args(CleanPodPolicy):
        raise InvalidJob(f"spec.runPolicy.cleanPodPolicy {clean!r} is none of {', '.join(get_args(CleanPodPolicy))}")

    def bound(field: str) -> int | None:
        value = policy.get(field)
        return None if value is None else _count(f"spec.runPolicy.{field}", value)

    return RunPolicy(
        clean_pod_policy=cast(CleanPodPolicy, clean),
        ttl_after_finished=bound("ttlSecondsAfterFinished"),
        active_deadline=bound("activeDeadlineSeconds"),
        backoff_limit=bound("backoffLimit"),
    )


def _count(path: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidJob(f"{path} is {value!r} and has to be a whole number, 0 or greater")
    return value


def _check_names(job: Job) -> None:
    if not re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", job.name):
        raise InvalidJob(f"the name {job.name!r} is not a DNS label, and its replicas' services are named after it")
    longest = max(
        (f"{job.name}-{spec.type.lower()}-{max(spec.replicas - 1, 0)}" for spec in job.replica_specs), key=len
    )
    if len(longest) > _LONGEST_NAME:
        raise InvalidJob(f"the name {longest} of a replica would be longer than {_LONGEST_NAME} characters")
