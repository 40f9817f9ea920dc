"""The job API of kubeflow.org/v1, which is one for all of its kinds: what differs is data of `kinds`."""

import copy
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from exitcode_conformance.adapters.adapter import Change
from exitcode_conformance.container import pod_template
from exitcode_conformance.kinds import JobKind
from exitcode_conformance.pods import LABEL_GENERATIONS, labels_of
from exitcode_conformance.scenario import Scenario
from exitcode_conformance.timeouts import Timeouts

MANIFEST_SECONDS_PER_UNIT = 2.0
"""How many seconds of a foreign manifest's sleep are one unit of `Timeouts.dwell`."""


class KubeflowAdapter:
    """Jobs of replica types with a restart policy each, and conditions that tell all of their life."""

    name: Literal["kubeflow"] = "kubeflow"
    contracts = None
    without: Mapping[str, str] = MappingProxyType({})
    prunes = False

    @property
    def nonsense(self) -> Mapping[str, Change]:
        """A restartPolicy and a kind of replica that do not exist."""
        return {"nonsense-policy": _of_no_policy, "nonsense-type": _of_no_type}

    def spec(self, scenario: Scenario, kind: JobKind, timeouts: Timeouts, image: str) -> dict[str, Any]:
        """See `Adapter.spec`."""
        if scenario.manifest is not None:
            return _scaled(scenario.manifest["spec"], kind, timeouts, image)
        spec: dict[str, Any] = {"runPolicy": copy.deepcopy(scenario.run_policy)} if scenario.run_policy else {}
        if scenario.success_policy is not None:
            spec["successPolicy"] = scenario.success_policy
        spec[kind.replica_specs] = {
            group.type: {
                "replicas": group.replicas,
                "restartPolicy": group.restart_policy,
                "template": pod_template(scenario, group, container=kind.container, image=image, timeouts=timeouts),
            }
            for group in scenario.groups
        }
        return spec

    def replica_of(self, pod: Mapping[str, Any], job: str, /) -> str | None:
        """By its name, else by its labels."""
        name = str(pod["metadata"]["name"])
        if name.startswith(f"{job}-"):
            kind, _, index = name[len(job) + 1 :].rpartition("-")
            # What somebody puts behind an index may be digits too.
            if kind and index.isdecimal() and not kind.rpartition("-")[2].isdecimal():
                return f"{kind}-{index}"
        labels = labels_of(pod)
        for keys in LABEL_GENERATIONS:
            if keys["type"] in labels and keys["index"] in labels:
                return f"{labels[keys['type']].lower()}-{labels[keys['index']]}"
        return None

    def replica_statuses(self, status: Mapping[str, Any], _kind: JobKind, /) -> Mapping[str, Mapping[str, Any]]:
        """status.replicaStatuses."""
        found = status.get("replicaStatuses")
        return {k: v for k, v in found.items() if isinstance(v, Mapping)} if isinstance(found, Mapping) else {}


def _scaled(foreign: Mapping[str, Any], kind: JobKind, timeouts: Timeouts, image: str) -> dict[str, Any]:
    """The spec of a foreign manifest: every `sleep Ns` scaled, and cpu limits made small enough for a node of two
    processors."""
    spec = dict(copy.deepcopy(foreign))
    factor = timeouts.dwell / MANIFEST_SECONDS_PER_UNIT
    for replicas in spec[kind.replica_specs].values():
        for container in replicas["template"]["spec"]["containers"]:
            container["image"] = image
            container["command"] = [_sleeps_scaled(word, factor) for word in container["command"]]
            limits = (container.get("resources") or {}).get("limits") or {}
            if "cpu" in limits:
                limits["cpu"] = "50m"
    return spec


def _sleeps_scaled(script: str, factor: float) -> str:
    return re.sub(r"\bsleep (\d+)s\b", lambda match: f"sleep {int(match[1]) * factor:g}", script)


def _of_no_policy(spec: dict[str, Any], kind: JobKind) -> None:
    for group in spec[kind.replica_specs].values():
        group["restartPolicy"] = "Sometimes"


def _of_no_type(spec: dict[str, Any], kind: JobKind) -> None:
    (group,) = spec[kind.replica_specs].values()
    spec[kind.replica_specs] = {"Nobody": group}
