"""The objects that a conforming operator creates for a job, in the style of one of the releases."""

import json
from collections.abc import Mapping
from typing import Any, Literal

from exitcode_conformance.kinds import KINDS
from exitcode_conformance.pods import LABEL_GENERATIONS
from exitcode_conformance.scenario import Scenario
from exitcode_conformance.success_rule import deciding_replicas

Json = dict[str, Any]
Generation = Literal["v1.6", "v1.0", "v0.5", "v1.4"]
LABELS: Mapping[Generation, tuple[int, ...]] = {"v1.6": (0,), "v1.0": (1,), "v0.5": (2,), "v1.4": (0, 1)}


def copied(value: Any) -> Any:
    """A copy of what JSON can say, all the way down."""
    if isinstance(value, dict):
        return {key: copied(part) for key, part in value.items()}
    return [copied(part) for part in value] if isinstance(value, list) else value


class JobObjects:
    """What belongs to one job."""

    def __init__(self, scenario: Scenario, generation: Generation) -> None:
        self.scenario = scenario
        self.kind = KINDS[scenario.kind]
        self.generation: Generation = generation
        self.job_uid = "job-1"

    def labels(self, replica: str) -> dict[str, str]:
        """The labels of a replica's pod."""
        kind, _, index = replica.rpartition("-")
        leaders = deciding_replicas(self.scenario)
        if not any(g.type in self.kind.leaders for g in self.scenario.groups):
            leaders = ("worker-0",)
        result: dict[str, str] = {}
        for keys in (LABEL_GENERATIONS[number] for number in LABELS[self.generation]):
            operator = "kubeflow.org" if keys["operator"] == "group-name" else f"{self.kind.name.lower()}-controller"
            result |= {keys["operator"]: operator, keys["job"]: self.scenario.id}
            result |= {keys["type"]: kind, keys["index"]: index}
            if replica in leaders:
                result[keys["role"]] = "master"
        return result

    def selector(self, replica: str) -> dict[str, str]:
        """What the service of a replica selects: its labels, but for the role."""
        return {key: value for key, value in self.labels(replica).items() if not key.endswith("job-role")}

    def owners(self) -> list[Json]:
        """The ownerReferences of what belongs to the job."""
        owner = {"apiVersion": self.kind.api_version, "kind": self.kind.name, "name": self.scenario.id}
        return [{**owner, "uid": self.job_uid, "controller": True, "blockOwnerDeletion": True}]

    def environment(self, replica: str) -> list[Json]:
        """The variables by which the replicas find each other."""
        kind, _, index = replica.rpartition("-")
        if self.kind.name == "TFJob":
            if self.scenario.pod_count() == 1:
                return []
            cluster = {
                g.type.lower(): [
                    f"{self.scenario.id}-{g.type.lower()}-{i}.run.svc:{self.kind.port}" for i in range(g.replicas)
                ]
                for g in self.scenario.groups
            }
            config = {"cluster": cluster, "task": {"type": kind, "index": int(index)}, "environment": "cloud"}
            return [{"name": "TF_CONFIG", "value": json.dumps(config)}]
        if self.kind.name != "PyTorchJob":
            return []
        rank = 0 if kind == "master" else int(index) + 1
        values = {
            "MASTER_ADDR": f"{self.scenario.id}-master-0",
            "MASTER_PORT": str(self.kind.port),
            "WORLD_SIZE": str(self.scenario.pod_count()),
            "RANK": str(rank),
        }
        return [{"name": name, "value": value} for name, value in values.items()]

    def manifest(self, replica: str) -> Json:
        """The pod that the operator creates for a replica, without what the API server adds."""
        policy = self.scenario.group_of(replica).restart_policy
        container = {"name": self.kind.container, "image": "busybox", "env": self.environment(replica)}
        name = f"{self.scenario.id}-{replica}"
        return {
            "metadata": {"name": name, "labels": self.labels(replica), "ownerReferences": self.owners()},
            "spec": {"restartPolicy": "Never" if policy == "ExitCode" else policy, "containers": [container]},
        }
