"""Faults in names, labels, owners, services and the cluster's variables."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from exitcode_reference_controller.identity import INDEX_LABEL, JOB_LABEL
from exitcode_reference_controller.job import Job, ReplicaSpec
from exitcode_reference_controller.mutants.registry import variant
from exitcode_reference_controller.plan import Create, Thing
from exitcode_reference_controller.reconcile import Reconciler, Situation

_CUT = 20


@variant(
    "job-name-truncated",
    "Cuts the job's name in its pods' names and adds a hash, as templates that fear 63 characters do.",
)
class JobNameTruncated(Reconciler):
    def replica_name(self, job: Job, replica_type: str, index: int) -> str:
        name = super().replica_name(job, replica_type, index)
        if len(job.name) <= _CUT:
            return name
        cut = hashlib.sha1(job.name.encode(), usedforsecurity=False).hexdigest()[:8]
        return f"{job.name[:_CUT].rstrip('-')}-{cut}{name.removeprefix(job.name)}"


@variant(
    "duplicate-index", "Creates two pods for an index, as one that creates with generateName from a stale cache does."
)
class DuplicateIndex(Reconciler):
    def creations(self, situation: Situation) -> Iterable[Create]:
        for creation in super().creations(situation):
            yield creation
            metadata = creation.manifest["metadata"]
            twin = f"{metadata['name']}-twin"
            if creation.manifest["kind"] == "Pod" and twin not in situation.pods and twin not in situation.taken:
                yield Create(manifest={**creation.manifest, "metadata": {**metadata, "name": twin}})


# ---- owner -----------------------------------------------------------------------------------------------------------


@variant("owner-missing", "Finds its pods by label and sets no owner, so that they outlive the job.")
class OwnerMissing(Reconciler):
    def pod(self, job: Job, spec: ReplicaSpec, index: int) -> dict[str, Any]:
        return _without_owner(super().pod(job, spec, index))

    def service(self, job: Job, spec: ReplicaSpec, index: int) -> dict[str, Any]:
        return _without_owner(super().service(job, spec, index))

    def owns(self, job: Job, thing: Mapping[str, Any]) -> bool:
        return bool((thing["metadata"].get("labels") or {}).get(JOB_LABEL) == job.name)


def _without_owner(manifest: dict[str, Any]) -> dict[str, Any]:
    del manifest["metadata"]["ownerReferences"]
    return manifest


@variant(
    "owner-not-controller", "Sets the owner without the controller flag, so that another controller may adopt the pods."
)
class OwnerNotController(Reconciler):
    def owner_references(self, job: Job) -> list[dict[str, Any]]:
        return [{**reference, "controller": False} for reference in super().owner_references(job)]

    def owns(self, job: Job, thing: Mapping[str, Any]) -> bool:
        return any(ref.get("uid") == job.uid for ref in thing["metadata"].get("ownerReferences") or [])


# ---- labels ----------------------------------------------------------------------------------------------------------


@variant("index-label-wrong", "Counts the index label from 1, where the name counts from 0.")
class IndexLabelWrong(Reconciler):
    def labels(self, job: Job, replica_type: str, index: int) -> dict[str, str]:
        return {**super().labels(job, replica_type, index), INDEX_LABEL: str(index + 1)}


@variant(
    "role-label-missing", "Does not mark the master, as operators without that label; selectors by role find nothing."
)
class RoleLabelMissing(Reconciler):
    def is_master(self, job: Job, replica_type: str, index: int) -> bool:  # noqa: ARG002
        return False


@variant("role-label-on-workers", "Marks worker 0 as the master although the job has a chief or master.")
class RoleLabelOnWorkers(Reconciler):
    def is_master(self, job: Job, replica_type: str, index: int) -> bool:
        return super().is_master(job, replica_type, index) or (replica_type == "Worker" and index == 0)


# ---- what the containers are told ------------------------------------------------------------------------------------


@variant(
    "world-size-of-type", "Counts a type's own replicas for the world size and for the cluster, and not all of them."
)
class WorldSizeOfType(Reconciler):
    def environment(self, job: Job, spec: ReplicaSpec, index: int, container: str) -> dict[str, str]:
        variables = super().environment(job, spec, index, container)
        if "WORLD_SIZE" in variables:
            variables["WORLD_SIZE"] = str(spec.replicas)
        if "TF_CONFIG" in variables:
            told = json.loads(variables["TF_CONFIG"])
            told["cluster"] = {kind: known for kind, known in told["cluster"].items() if kind == spec.type.lower()}
            variables["TF_CONFIG"] = json.dumps(told)
        return variables


@variant("rank-of-type", "Numbers each type from 0, so that master 0 and worker 0 have one rank.")
class RankOfType(Reconciler):
    def environment(self, job: Job, spec: ReplicaSpec, index: int, container: str) -> dict[str, str]:
        variables = super().environment(job, spec, index, container)
        return {**variables, "RANK": str(index)} if "RANK" in variables else variables


# ---- services --------------------------------------------------------------------------------------------------------


@variant("service-missing", "Makes a service for the master only, so that the other replicas' names do not resolve.")
class ServiceMissing(Reconciler):
    def creations(self, situation: Situation) -> Iterable[Create]:
        job = situation.job
        masters = {r.name for r in situation.replicas if self.is_master(job, r.spec.type, r.index)}
        for creation in super().creations(situation):
            if creation.manifest["kind"] == "Pod" or creation.manifest["metadata"]["name"] in masters:
                yield creation


@variant("service-not-headless", "Gives each service an address of its own, so that its name is not its pod's address.")
class ServiceNotHeadless(Reconciler):
    def service(self, job: Job, spec: ReplicaSpec, index: int) -> dict[str, Any]:
        manifest = super().service(job, spec, index)
        del manifest["spec"]["clusterIP"]
        return manifest


@variant("service-selects-all", "Selects by job and type without the index, so that one name stands for all of a type.")
class ServiceSelectsAll(Reconciler):
    def service(self, job: Job, spec: ReplicaSpec, index: int) -> dict[str, Any]:
        manifest = super().service(job, spec, index)
        selector: Thing = manifest["spec"]["selector"]
        manifest["spec"]["selector"] = {key: value for key, value in selector.items() if key != INDEX_LABEL}
        return manifest
