"""What a killed run leaves on a machine and in a cluster is removed by the next run or by `cleanup`, and only that."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cluster_support import await_no_process, embedded_api, environment, marked_processes

from exitcode_fixtures.api import ApiError, KubernetesApi
from exitcode_fixtures.cleanup import clean_machine
from exitcode_fixtures.crds import CRDS, LENT_LABEL, available_crds, bundled_crds, remove_lent
from exitcode_fixtures.created_objects import CreatedObjects
from exitcode_fixtures.errors import ClusterUnavailable, HarnessError
from exitcode_fixtures.request import read_request
from exitcode_fixtures.run_folder import KindRecord, new_run_id, run_folder, stale_folders
from exitcode_fixtures.run_home import run_home
from exitcode_fixtures.run_namespace import NAMESPACES, run_namespace
from exitcode_fixtures.stale import remove_stale_folders, remove_stale_runs
from exitcode_fixtures.waiting import wait_for

TFJOB = "tfjobs.kubeflow.org"
KILLED_RUN = """
import subprocess, sys
from exitcode_fixtures.run_folder import KindRecord, run_folder
from pathlib import Path
with run_folder("killed") as folder:
    (folder.directory("state") / "file").write_text("x")
    survivor = subprocess.Popen(["sleep", "67"], start_new_session=True)
    folder.register(survivor.pid)
    if len(sys.argv) > 1:
        folder.note_kind_cluster(KindRecord(name="left", kind=Path(sys.argv[1]), kubeconfig=Path("/dev/null")))
    print(folder.path, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of the test's own: its runtime directory is empty."""
    for key, value in environment(tmp_path).items():
        monkeypatch.setenv(key, value)
    return tmp_path


def killed_run(*arguments: str) -> Path:
    """A run that was killed; its folder."""
    with subprocess.Popen(
        [sys.executable, "-c", KILLED_RUN, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as run:
        assert run.stdout is not None
        path = Path(os.fsdecode(run.stdout.readline().strip()))
        assert path.is_dir()
        run.send_signal(signal.SIGKILL)
    return path


def test_a_run_that_ends_leaves_nothing(machine: Path) -> None:
    with run_folder(new_run_id()) as folder:
        assert folder.path.stat().st_mode & 0o077 == 0
        assert folder.owner() is not None
        with stale_folders() as stale:
            assert stale == []
        assert remove_stale_folders().things == ()
        assert folder.path.is_dir()
    assert list((machine / "runtime").iterdir()) == []


def test_what_a_killed_run_left_is_removed(machine: Path) -> None:
    path = killed_run()
    assert any("sleep 67" in line for line in marked_processes(machine).values())
    with run_folder(new_run_id()) as living:
        removed = remove_stale_folders().things
        assert living.path.is_dir()
    assert f"folder {path}" in removed
    assert any(thing.startswith("process ") for thing in removed)
    assert await_no_process(machine, within_s=5) == {}
    assert list((machine / "runtime").iterdir()) == []


def test_the_kind_cluster_of_a_killed_run_waits_for_cleanup(machine: Path) -> None:
    kind = machine / "kind"
    kind.write_text(f'#!/bin/sh\necho "$@" >>{machine}/calls\n')
    kind.chmod(0o700)
    path = killed_run(str(kind))
    remove_stale_folders()
    assert path.is_dir()
    assert "kind cluster left" in clean_machine().things
    assert (machine / "calls").read_text().split()[:5] == ["delete", "cluster", "--name", "left", "--kubeconfig"]
    assert not path.exists()


def test_a_directory_of_somebody_else_is_not_trusted(machine: Path) -> None:
    (machine / "runtime" / "exitcode-conformance").mkdir(mode=0o777)
    (machine / "runtime" / "exitcode-conformance").chmod(0o777)
    with pytest.raises(HarnessError, match="is not a directory of this user's alone"), run_folder(new_run_id()):
        pass


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesApi]:
    with embedded_api(tmp_path_factory.mktemp("cluster")) as api:
        yield api


def crds(api: KubernetesApi) -> set[str]:
    return {item["metadata"]["name"] for item in api.list(CRDS)["items"]}


def test_missing_crds_are_named_or_lent(api: KubernetesApi) -> None:
    with run_namespace(api, run_id := new_run_id()):
        with (
            pytest.raises(ClusterUnavailable, match=rf"has no {TFJOB} and no pytorchjobs\.kubeflow\.org"),
            available_crds(api, ("TFJob", "PyTorchJob"), install=False, run_id=run_id),
        ):
            pass
        with available_crds(api, ("TFJob",), install=True, run_id=run_id) as installed:
            assert installed == (TFJOB,)
            assert crds(api) == {TFJOB}
        assert crds(api) == set()


def test_crds_of_the_cluster_are_left_alone(api: KubernetesApi) -> None:
    api.create(CRDS, bundled_crds()[TFJOB])
    try:
        with run_namespace(api, run_id := new_run_id()):
            with available_crds(api, ("TFJob",), install=True, run_id=run_id) as installed:
                assert installed == ()
            assert crds(api) == {TFJOB}
    finally:
        api.delete(f"{CRDS}/{TFJOB}")


def test_lent_crds_go_with_the_last_run_that_uses_them(api: KubernetesApi) -> None:
    first, second = new_run_id(), new_run_id()
    with run_namespace(api, second):
        with run_namespace(api, first), available_crds(api, ("TFJob",), install=True, run_id=first):
            entered = available_crds(api, ("TFJob",), install=True, run_id=second)
            entered.__enter__()
        assert crds(api) == {TFJOB}
        entered.__exit__(None, None, None)
        assert crds(api) == set()


def test_lent_crds_go_with_two_runs_that_end_at_once(api: KubernetesApi) -> None:
    """The other one is there until the first has left its CRDs to it, and gone before the first is."""
    settings, _ = read_request(operator=None, cluster="embedded", profile="core", contract=None)
    other = f"{NAMESPACES}/exitcode-other"
    labels = {"exitcode-conformance/run": "other"}
    api.create(NAMESPACES, {"metadata": {"name": "exitcode-other", "labels": labels}})

    def end_the_other(namespace: str) -> None:
        wait_for(
            api,
            NAMESPACES,
            namespace,
            lambda found: found is None or "deletionTimestamp" in found["metadata"],
            within_s=60,
            on_timeout=lambda _: HarnessError("the first does not end", ""),
        )
        assert crds(api), "it has left them"
        api.delete(other)
        held = f"{NAMESPACES}/{namespace}/configmaps/held"
        api.merge_patch(held, {"metadata": {"finalizers": None}})

    with ThreadPoolExecutor() as threads:
        with run_home(api, settings, (), run_id=new_run_id(), installs_crds=True, on_way_out=False) as namespace:
            held = {"metadata": {"name": "held", "finalizers": ["example.org/held"]}}
            api.create(f"{NAMESPACES}/{namespace}/configmaps", held)
            ended = threads.submit(end_the_other, namespace)
        ended.result()
    assert crds(api) == set()


def test_lent_crds_that_somebody_uses_stay(api: KubernetesApi) -> None:
    with run_namespace(api, run_id := new_run_id()), available_crds(api, ("TFJob",), install=True, run_id=run_id):
        containers = [{"name": "tensorflow", "image": "busybox"}]
        worker = {"replicas": 1, "template": {"spec": {"containers": containers}}}
        job = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "theirs"}}
        spec = {"tfReplicaSpecs": {"Worker": worker}}
        api.create("/apis/kubeflow.org/v1/namespaces/default/tfjobs", {**job, "spec": spec})
    assert crds(api) == {TFJOB}
    api.delete("/apis/kubeflow.org/v1/namespaces/default/tfjobs/theirs")
    assert remove_lent(api) == (TFJOB,)


def test_what_a_killed_run_created_is_found_through_its_note(api: KubernetesApi) -> None:
    run_id = new_run_id()
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"made-{run_id}", "namespace": "default"}}
    path = f"/api/v1/namespaces/default/configmaps/made-{run_id}"
    own, theirs = new_run_id(), {**manifest, "metadata": {"name": "theirs", "namespace": "default"}}
    api.create("/api/v1/namespaces/default/configmaps", theirs)
    killed = f"exitcode-{run_id}"
    labels = {"exitcode-conformance/run": run_id}
    api.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": killed, "labels": labels}})
    created = CreatedObjects(api, killed, run_id)
    created.create(manifest)
    with pytest.raises(HarnessError, match="ConfigMap theirs is in the cluster already, and not of this run"):
        created.create(theirs)
    with run_namespace(api, own):
        assert path in str(api.get(f"/api/v1/namespaces/{killed}/configmaps/exitcode-created"))
        make_stale(api, killed)
        removed = remove_stale_runs(api).things
    assert f"{path} in the cluster" in removed
    assert f"namespace {killed}" in removed
    assert not api.exists(path)
    assert api.exists("/api/v1/namespaces/default/configmaps/theirs")
    api.delete("/api/v1/namespaces/default/configmaps/theirs")


def make_stale(api: KubernetesApi, namespace: str) -> None:
    """As if its run had renewed its Lease long ago."""
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "exitcode-run"},
        "spec": {"holderIdentity": "x", "renewTime": "2020-01-01T00:00:00.000000Z"},
    }
    api.create(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases", lease)


def test_crds_that_a_killed_run_lent_are_removed(api: KubernetesApi) -> None:
    crd = bundled_crds()[TFJOB]
    api.create(CRDS, {**crd, "metadata": {**crd["metadata"], "labels": {LENT_LABEL: "true"}}})
    assert remove_stale_runs(api, keep_crds=True).things == ()
    assert remove_stale_runs(api).things == (f"CRD {TFJOB}",)
    with pytest.raises(ApiError):
        api.get(f"{CRDS}/{TFJOB}")


def test_a_note_of_a_kind_cluster_is_kept_until_it_is_forgotten(machine: Path) -> None:
    record = KindRecord(name="n", kind=Path("/bin/true"), kubeconfig=Path("/dev/null"))
    with run_folder(new_run_id()) as folder:
        folder.note_kind_cluster(record)
        assert folder.kind_cluster() == record
    assert folder.path.is_dir()
    folder.forget_kind_cluster()
    assert f"folder {folder.path}" in remove_stale_folders().things
    assert list((machine / "runtime").iterdir()) == []
