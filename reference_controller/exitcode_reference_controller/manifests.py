"""The pods and services that a job's replicas are made of."""

import copy
from typing import Any

from exitcode_reference_controller.environment import container_environment
from exitcode_reference_controller.identity import Identity
from exitcode_reference_controller.job import Job, ReplicaSpec


class Manifests(Identity):
    """The rules that turn a replica into a pod and a service."""

    def pod(self, job: Job, spec: ReplicaSpec, index: int) -> dict[str, Any]:
        """The pod of a replica; the same one at each restart."""
        template_metadata = spec.template.get("metadata") or {}
        pod_spec: dict[str, Any] = copy.deepcopy(dict(spec.template["spec"]))
        pod_spec["restartPolicy"] = self.pod_restart_policy(job, spec)
        for container in [*pod_spec["containers"], *(pod_spec.get("initContainers") or [])]:
            variables = self.environment(job, spec, index, container["name"])
            own = [entry for entry in container.get("env") or [] if entry["name"] not in variables]
            told = [{"name": name, "value": value} for name, value in variables.items()]
            if told or own:
                container["env"] = told + own
        metadata: dict[str, Any] = {
            "name": self.replica_name(job, spec.type, index),
            "namespace": job.namespace,
            "labels": {
                **(template_metadata.get("labels") or {}),
                **self.labels(job, spec.type, index),
                **self.role_labels(job, spec.type, index),
            },
            "ownerReferences": self.owner_references(job),
        }
        if template_metadata.get("annotations"):
            metadata["annotations"] = dict(template_metadata["annotations"])
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec}

    def service(self, job: Job, spec: ReplicaSpec, index: int) -> dict[str, Any]:
        """The headless service by whose name the others find the replica."""
        labels = self.labels(job, spec.type, index)
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": self.replica_name(job, spec.type, index),
                "namespace": job.namespace,
                "labels": labels,
                "ownerReferences": self.owner_references(job),
            },
            "spec": {
                "clusterIP": "None",
                "selector": labels,
                "ports": [{"name": job.kind.port_name, "port": self.port(job, spec)}],
            },
        }

    def pod_restart_policy(self, job: Job, spec: ReplicaSpec) -> str:  # noqa: ARG002
        """What the kubelet is told. It must not restart what the exit code is to decide on."""
        return "Never" if spec.restart_policy == "ExitCode" else spec.restart_policy

    def environment(self, job: Job, spec: ReplicaSpec, index: int, container: str) -> dict[str, str]:
        """The variables that a container is told of its cluster."""
        return container_environment(job, spec.type, index, container, self)

    def port(self, job: Job, spec: ReplicaSpec) -> int:
        """The port of the kind's name that the training container declares, else the kind's default."""
        for container in spec.template["spec"]["containers"]:
            if container["name"] == job.kind.container:
                for port in container.get("ports") or []:
                    if port.get("name") == job.kind.port_name:
                        return int(port["containerPort"])
        return job.kind.port

    def overrides_template_policy(self, spec: ReplicaSpec) -> bool:
        """Whether the template sets a restartPolicy, which the replica's own one overrules."""
        return bool(spec.template["spec"].get("restartPolicy"))
