"""To which scenario an object belongs: by its owner, its labels, or its name."""

from typing import Any

import pytest

from exitcode_conformance.pods import LABEL_GENERATIONS
from exitcode_conformance.scenarios import SCENARIOS
from exitcode_fixtures.attribution import scenario_of

SCENARIO = "tfjob-worker-exit1-worker1"
OTHER = "tfjob-worker-exit2-worker1"
KNOWN = {SCENARIO, OTHER}


def pod(name: str = "x", *, owner: str | None = None, kind: str = "TFJob", **labels: str) -> dict[str, Any]:
    """A pod."""
    metadata: dict[str, Any] = {"name": name, "labels": labels}
    if owner is not None:
        metadata["ownerReferences"] = [{"kind": kind, "name": owner}]
    return {"metadata": metadata}


def test_a_job_is_its_own_scenario() -> None:
    assert scenario_of("tfjobs", pod(SCENARIO), KNOWN) == SCENARIO
    assert scenario_of("pytorchjobs", pod("witness-1"), KNOWN) is None
    assert scenario_of("tfjobs", pod(f"{SCENARIO}-worker-0"), KNOWN) is None


@pytest.mark.parametrize("resource", ["pods", "services"])
def test_an_owner_says_most_then_labels_then_the_name(resource: str) -> None:
    said = {"job-name": OTHER}
    assert scenario_of(resource, pod(f"{OTHER}-worker-0", owner=SCENARIO, **said), KNOWN) == SCENARIO
    assert scenario_of(resource, pod(f"{SCENARIO}-worker-0", **said), KNOWN) == OTHER
    assert scenario_of(resource, pod(f"{SCENARIO}-worker-0"), KNOWN) == SCENARIO
    assert scenario_of(resource, pod("worker-0"), KNOWN) is None


def test_an_owner_that_is_no_job_of_the_run_says_nothing() -> None:
    assert scenario_of("pods", pod("x", owner=SCENARIO, kind="ReplicaSet"), KNOWN) is None
    assert scenario_of("pods", pod("x", owner="witness-1"), KNOWN) is None
    assert scenario_of("pods", pod(f"{SCENARIO}-ps-0", owner="witness-1"), KNOWN) == SCENARIO


@pytest.mark.parametrize("keys", LABEL_GENERATIONS)
def test_every_generation_of_labels_is_known(keys: dict[str, str]) -> None:
    assert scenario_of("pods", pod("x", **{keys["job"]: SCENARIO}), KNOWN) == SCENARIO
    assert scenario_of("pods", pod("x", **{keys["job"]: "somebody"}), KNOWN) is None


def test_an_event_belongs_to_whom_it_is_about() -> None:
    def event(name: str | None) -> dict[str, Any]:
        return {**pod("event-1"), "involvedObject": {"name": name} if name else {}}

    assert scenario_of("events", event(SCENARIO), KNOWN) == SCENARIO
    assert scenario_of("events", event(f"{SCENARIO}-worker-0"), KNOWN) == SCENARIO
    assert scenario_of("events", event("node-1"), KNOWN) is None
    assert scenario_of("events", event(None), KNOWN) is None
    assert scenario_of("events", pod("event-1"), KNOWN) is None


def test_a_name_alone_leads_to_the_right_one_of_all_scenarios() -> None:
    for scenario in SCENARIOS.values():
        for replica in scenario.replica_names():
            assert scenario_of("pods", pod(f"{scenario.id}-{replica}"), SCENARIOS) == scenario.id
            assert scenario_of("pods", pod(f"{scenario.id}-{replica}-x7abc"), SCENARIOS) == scenario.id


def test_what_has_no_name_labels_or_owners_belongs_to_nobody() -> None:
    nothing: list[dict[str, Any]] = [
        {"metadata": {}},
        {"metadata": {"name": "", "labels": None, "ownerReferences": None}},
        {"metadata": {"name": "-", "labels": {}, "ownerReferences": [{}]}},
    ]
    for item in nothing:
        assert scenario_of("pods", item, KNOWN) is None
