"""What the harness asks for a scenario, on an embedded cluster: tables, touches, removals, a name that gets free."""

import threading
from collections.abc import Iterator

import pytest
from cluster_support import embedded_api

from exitcode_conformance.kinds import KINDS
from exitcode_conformance.pods import Incarnation, PodVersion
from exitcode_conformance.scenario import Scenario
from exitcode_conformance.scenarios import SCENARIOS
from exitcode_conformance.timeouts import Timeouts
from exitcode_fixtures.api import ApiError, KubernetesApi
from exitcode_fixtures.crds import install_bundled
from exitcode_fixtures.scenario_requests import TOUCHED, ScenarioRequests

PODS = "/api/v1/namespaces/default/pods"
ONE = SCENARIOS["tfjob-worker-exit137-worker1"]
JOB = f"/apis/kubeflow.org/v1/namespaces/default/tfjobs/{ONE.id}"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesApi]:
    with embedded_api(tmp_path_factory.mktemp("cluster")) as api:
        if not api.exists("/apis/kubeflow.org/v1/namespaces/default/tfjobs"):
            install_bundled(api)
        yield api


@pytest.fixture
def requests(api: KubernetesApi) -> ScenarioRequests:
    times = Timeouts(cleanup=1)
    return ScenarioRequests(
        api,
        namespace="default",
        kind_of=KINDS.__getitem__,
        timeouts=times,
        image="busybox:1.36",
        stop=threading.Event(),
    )


@pytest.fixture
def job(api: KubernetesApi, requests: ScenarioRequests) -> Iterator[Scenario]:
    """A job that nobody reconciles."""
    requests.create_config_map(ONE)
    requests.create_job(ONE)
    yield ONE
    api.merge_patch(JOB, {"metadata": {"finalizers": None}}) if api.exists(JOB) else None
    requests.delete_job(ONE)
    api.delete(f"/api/v1/namespaces/default/configmaps/outcome-{ONE.id}", missing_ok=True)


def test_the_table_is_what_kubectl_prints(api: KubernetesApi, requests: ScenarioRequests, job: Scenario) -> None:
    status = {"conditions": [{"type": "Created", "status": "True"}, {"type": "Running", "status": "True"}]}
    api.replace(f"{JOB}/status", {**api.get(JOB), "status": status})
    told = requests.table(job)
    assert told["resource_version"] == api.get(JOB)["metadata"]["resourceVersion"]
    cells = told["cells"]
    assert isinstance(cells, dict)
    assert (cells["Name"], cells["State"]) == (ONE.id, "Running")


def test_a_table_that_cannot_be_had_is_a_problem_and_no_error(requests: ScenarioRequests) -> None:
    told = requests.table(SCENARIOS["tfjob-worker-exit1-worker1"])
    assert list(told) == ["problem"]
    assert "404" in str(told["problem"])


def test_a_touch_changes_the_job(api: KubernetesApi, requests: ScenarioRequests, job: Scenario) -> None:
    before = api.get(JOB)["metadata"]
    requests.touch_job(job, 3)
    after = api.get(JOB)["metadata"]
    assert after["annotations"][TOUCHED] == "3"
    assert after["resourceVersion"] != before["resourceVersion"]


def test_outcomes_are_moved_on(api: KubernetesApi, requests: ScenarioRequests, job: Scenario) -> None:
    requests.set_outcomes(job, {"worker-0": 2})
    found = api.get(f"/api/v1/namespaces/default/configmaps/outcome-{ONE.id}")
    assert found["data"] == {"worker": "0=run:0"}


def test_a_name_is_free_once_the_job_is_gone(requests: ScenarioRequests, job: Scenario) -> None:
    requests.delete_job(job)
    assert requests.name_is_free(job)
    requests.create_job(job)


def test_a_name_that_a_finalizer_holds_is_not_free(
    api: KubernetesApi, requests: ScenarioRequests, job: Scenario
) -> None:
    api.merge_patch(JOB, {"metadata": {"finalizers": ["example.org/held"]}})
    requests.delete_job(job)
    assert not requests.name_is_free(job)


@pytest.mark.parametrize("how", ["delete", "evict"])
def test_a_pod_is_removed_and_only_the_one_that_is_meant(
    api: KubernetesApi, requests: ScenarioRequests, how: str
) -> None:
    name = f"pod-to-{how}"
    container = {"name": "one", "image": "busybox:1.36", "command": ["sleep", "3600"]}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    made = api.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
    version = PodVersion(seq=1, time=0.0, verb="ADDED", object=made)
    stranger = {**made, "metadata": {**made["metadata"], "uid": "another"}}
    other = PodVersion(seq=1, time=0.0, verb="ADDED", object=stranger)
    assert how in ("delete", "evict")
    with pytest.raises(ApiError, match="409"):
        requests.remove_pod(Incarnation(replica=None, versions=(other,)), how)  # type: ignore[arg-type] # see above
    assert "deletionTimestamp" not in api.get(f"{PODS}/{name}")["metadata"]
    requests.remove_pod(Incarnation(replica=None, versions=(version,)), how)  # type: ignore[arg-type] # see above
    assert not api.exists(f"{PODS}/{name}") or "deletionTimestamp" in api.get(f"{PODS}/{name}")["metadata"]
