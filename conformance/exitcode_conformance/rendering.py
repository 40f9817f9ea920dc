"""A scenario as the objects that are submitted: the job's manifest, and the ConfigMap that tells its containers how to
end."""

import copy
from typing import Any

from exitcode_conformance.adapters import adapter_of
from exitcode_conformance.container import config_map_name, outcome_data
from exitcode_conformance.kinds import KINDS, JobKind
from exitcode_conformance.scenario import Scenario
from exitcode_conformance.timeouts import Timeouts

DEFAULT_IMAGE = "busybox:1.36"


def render_config_map(scenario: Scenario, namespace: str, timeouts: Timeouts) -> dict[str, Any]:
    """The ConfigMap with the first outcome of every replica."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": config_map_name(scenario), "namespace": namespace},
        "data": outcome_data(scenario, {}, timeouts),
    }


def render_job(
    scenario: Scenario,
    namespace: str,
    timeouts: Timeouts,
    image: str = DEFAULT_IMAGE,
    kind: JobKind | None = None,
) -> dict[str, Any]:
    """The job's manifest. `image` has to hold a POSIX shell and `sleep`; `kind` is the scenario's as the operator has
    it, None for the published one. A foreign manifest keeps all but its name, namespace and what has to be scaled."""
    kind = KINDS[scenario.kind] if kind is None else kind
    spec = adapter_of(scenario.kind).spec(scenario, kind, timeouts, image)
    metadata = {"name": scenario.id, "namespace": namespace}
    if scenario.manifest is not None:
        job = copy.deepcopy(scenario.manifest)
        return {**job, "metadata": {**job["metadata"], **metadata}, "spec": spec}
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, "spec": spec}
