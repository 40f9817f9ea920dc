"""The namespace of a run: its own, gone with it, and left behind only by a run that was killed."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from pathlib import Path

import pytest
from cluster_support import embedded_api, real_kubeconfig

from exitcode_fixtures.api import Json, KubernetesApi, connected
from exitcode_fixtures.ended_pods import EndedPods
from exitcode_fixtures.errors import ClusterUnavailable
from exitcode_fixtures.process_identity import ProcessIdentity
from exitcode_fixtures.run_folder import new_run_id
from exitcode_fixtures.run_namespace import (
    LEASE,
    NAMESPACES,
    OWNER_ANNOTATION,
    RUN_LABEL,
    STALE_AFTER_S,
    await_gone,
    run_namespace,
    stale_runs,
)
from exitcode_fixtures.stale import live_runs, remove_stale_runs


@pytest.fixture(scope="module", params=["embedded", pytest.param("real", marks=pytest.mark.real_cluster)])
def api(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesApi]:
    opened: AbstractContextManager[KubernetesApi] = (
        embedded_api(tmp_path_factory.mktemp("cluster"))
        if request.param == "embedded"
        else connected(real_kubeconfig())
    )
    with opened as api:
        yield api


def left_behind(api: KubernetesApi, owner: ProcessIdentity | None, *, labels: bool = True) -> str:
    """A namespace as a run of `owner` would leave it."""
    run_id = new_run_id()
    name = f"exitcode-{run_id}"
    metadata: Json = {"name": name, "labels": {RUN_LABEL: run_id} if labels else {}}
    if owner is not None:
        metadata["annotations"] = {OWNER_ANNOTATION: owner.model_dump_json()}
    api.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    return name


def lease(api: KubernetesApi, namespace: str, *, age_s: float) -> None:
    """The Lease of a run that renewed it last `age_s` seconds ago."""
    when = api.server_time() - timedelta(seconds=age_s)
    body = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": LEASE},
        "spec": {"holderIdentity": "x", "renewTime": when.strftime("%Y-%m-%dT%H:%M:%S.%fZ")},
    }
    api.create(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases", body)


def remove(api: KubernetesApi, *names: str) -> None:
    """What a test has made in a real cluster is gone when it ends."""
    for name in names:
        api.delete(f"{NAMESPACES}/{name}")
    await_gone(api, [*names])


def dead(machine: str | None = None) -> ProcessIdentity:
    """A process that has had its number before this one: of this machine, or of another."""
    own = ProcessIdentity.of_self()
    return own.model_copy(update={"started": own.started - 1, "machine": machine or own.machine})


def test_it_is_there_for_the_run_and_gone_afterwards(api: KubernetesApi) -> None:
    run_id = new_run_id()
    with run_namespace(api, run_id) as name:
        assert name == f"exitcode-{run_id}"
        metadata = api.get(f"{NAMESPACES}/{name}")["metadata"]
        assert metadata["labels"][RUN_LABEL] == run_id
        owner = json.loads(metadata["annotations"][OWNER_ANNOTATION])
        assert owner == ProcessIdentity.of_self().model_dump()
        spec = api.get(f"/apis/coordination.k8s.io/v1/namespaces/{name}/leases/{LEASE}")["spec"]
        assert spec["holderIdentity"] == run_id
        assert name in live_runs(api)
        api.create(
            f"{NAMESPACES}/{name}/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "left"}}
        )
    assert not api.exists(f"{NAMESPACES}/{name}")


def test_it_is_gone_after_an_interruption(api: KubernetesApi) -> None:
    with pytest.raises(KeyboardInterrupt), run_namespace(api, new_run_id()) as name:
        raise KeyboardInterrupt
    assert not api.exists(f"{NAMESPACES}/{name}")


def test_a_pod_that_was_deleted_is_gone_when_its_containers_have_ended(api: KubernetesApi) -> None:
    """Pods of a node that is not there, so that nobody else removes them."""
    with run_namespace(api, new_run_id()) as name:
        pods = f"{NAMESPACES}/{name}/pods"
        container: Json = {"name": "main", "image": "busybox:1.36"}
        for pod in ("ended", "never-begun", "going-on", "unknown", "not-deleted"):
            body = {"metadata": {"name": pod}, "spec": {"nodeName": "nowhere", "containers": [container]}}
            api.create(pods, {"apiVersion": "v1", "kind": "Pod", **body})
            if pod != "not-deleted":
                api.delete(f"{pods}/{pod}", grace_period_s=600)
        told(api, f"{pods}/ended", "Failed", {"terminated": {"exitCode": 143, "reason": "Error"}})
        told(api, f"{pods}/never-begun", "Failed", {"waiting": {"reason": "ContainerCreating"}})
        told(api, f"{pods}/going-on", "Failed", {"running": {}})
        told(api, f"{pods}/not-deleted", "Succeeded", {"terminated": {"exitCode": 0, "reason": "Completed"}})
        EndedPods(api, name).release(api.list(pods)["items"])
        assert {pod["metadata"]["name"] for pod in api.list(pods)["items"]} == {"going-on", "unknown", "not-deleted"}
        for pod in ("going-on", "unknown"):
            told(api, f"{pods}/{pod}", "Failed", {"terminated": {"exitCode": 143, "reason": "Error"}})
    assert not api.exists(f"{NAMESPACES}/{name}")


def told(api: KubernetesApi, pod: str, phase: str, state: Json) -> None:
    """What a kubelet would tell of a pod."""
    container = {"name": "main", "image": "busybox:1.36", "imageID": "", "ready": False, "restartCount": 0}
    api.merge_patch(f"{pod}/status", {"status": {"phase": phase, "containerStatuses": [{**container, "state": state}]}})


def test_one_that_is_there_already_is_left_alone(api: KubernetesApi) -> None:
    name = left_behind(api, None, labels=False)
    try:
        with (
            pytest.raises(ClusterUnavailable, match=r"cannot be created .*409 AlreadyExists"),
            run_namespace(api, name.removeprefix("exitcode-")),
        ):
            pass
        assert "deletionTimestamp" not in api.get(f"{NAMESPACES}/{name}")["metadata"]
    finally:
        remove(api, name)


def test_what_killed_runs_left_is_told_from_what_live_runs_need(api: KubernetesApi) -> None:
    own = ProcessIdentity.of_self()
    killed_here = left_behind(api, dead())
    killed_elsewhere = left_behind(api, dead("another machine"))
    lease(api, killed_elsewhere, age_s=STALE_AFTER_S + 5)
    # As a process that has the same number there would be taken for alive if only numbers were compared.
    alive_number_elsewhere = left_behind(api, own.model_copy(update={"machine": "another machine"}))
    lease(api, alive_number_elsewhere, age_s=STALE_AFTER_S + 5)
    alive_here = left_behind(api, own)
    lease(api, alive_here, age_s=STALE_AFTER_S + 5)
    alive_elsewhere = left_behind(api, dead("another machine"))
    lease(api, alive_elsewhere, age_s=0)
    begun_elsewhere = left_behind(api, dead("another machine"))
    foreign = left_behind(api, dead(), labels=False)
    try:
        over = {killed_here, killed_elsewhere, alive_number_elsewhere}
        assert over <= set(stale_runs(api))
        removed = remove_stale_runs(api, keep_crds=True)
        assert {f"namespace {name}" for name in over} <= set(removed.things)
        for name in over:
            assert not api.exists(f"{NAMESPACES}/{name}")
        for name in (alive_here, alive_elsewhere, begun_elsewhere, foreign):
            assert f"namespace {name}" not in removed.things
            assert "deletionTimestamp" not in api.get(f"{NAMESPACES}/{name}")["metadata"]
    finally:
        remove(api, alive_here, alive_elsewhere, begun_elsewhere, foreign)


def test_an_owner_that_cannot_be_read_is_judged_by_its_lease(api: KubernetesApi) -> None:
    name = left_behind(api, None)
    try:
        api.merge_patch(f"{NAMESPACES}/{name}", {"metadata": {"annotations": {OWNER_ANNOTATION: "{nonsense"}}})
        assert name not in stale_runs(api)
        lease(api, name, age_s=STALE_AFTER_S + 5)
        assert name in stale_runs(api)
    finally:
        remove(api, name)


def test_identities_tell_processes_apart(tmp_path: Path) -> None:
    del tmp_path
    own = ProcessIdentity.of_self()
    assert own.is_local()
    assert own.is_alive()
    assert not dead().is_alive()
    assert not dead("another machine").is_local()
    with nullcontext(), pytest.raises(ProcessLookupError):
        ProcessIdentity.of(2**22 + 1)
