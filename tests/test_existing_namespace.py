"""A run in a namespace that is there: alone in it, leaving nothing, and refused where it could be confused."""

import json
import signal
import subprocess
import sys
import threading
from base64 import b64decode
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster_support import command, embedded, environment, run_command
from request_log import granted_by, logged, told
from test_rights import ASKED_OF_EVERYBODY, JOBS, SCENARIOS, kubeconfig_of

from exitcode_fixtures.api import Json, KubernetesApi, connected
from exitcode_fixtures.clusters.cluster import Cluster
from exitcode_fixtures.crds import install_bundled
from exitcode_fixtures.errors import ClusterUnavailable, ExitStatus, HarnessError, UsageError
from exitcode_fixtures.existing_namespace import GUEST_LABEL, MADE, existing_namespace, remove_made
from exitcode_fixtures.request import read_request
from exitcode_fixtures.run_folder import new_run_id
from exitcode_fixtures.run_namespace import LEASE, NAMESPACES, RUN_LABEL, leases_of
from exitcode_fixtures.waiting import wait_for_all

RUN_S = 150.0
CASE = "STATE-01 and tfjob-worker-exit0-worker1"
KINDS = ("TFJob", "PyTorchJob")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with embedded(tmp_path_factory.mktemp("embedded")) as cluster:
        with connected(cluster.kubeconfig) as api:
            install_bundled(api)
        yield cluster


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> Iterator[KubernetesApi]:
    with connected(cluster.kubeconfig) as api:
        yield api


@pytest.fixture
def team(api: KubernetesApi, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace that somebody uses."""
    name = f"team-{abs(hash(request.node.name)) % 100000}"
    api.create(NAMESPACES, {"metadata": {"name": name}})
    api.create(f"{NAMESPACES}/{name}/pods", pod("notebook"))
    api.create(f"{NAMESPACES}/{name}/configmaps", {"metadata": {"name": "outcome-of-ours"}})
    yield name
    api.delete(f"{NAMESPACES}/{name}")


def pod(name: str, **metadata: Any) -> Json:
    container = {"name": "c", "image": "busybox:1.36", "command": ["sh", "-c", "sleep 600 & wait"]}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    return {"metadata": {"name": name, **metadata}, "spec": spec}


def job(name: str) -> Json:
    spec = {"tfReplicaSpecs": {"Worker": {"replicas": 0, "template": {"spec": {"containers": []}}}}}
    return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name}, "spec": spec}


def tfjobs(namespace: str) -> str:
    return f"/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs"


def contents(api: KubernetesApi, namespace: str) -> dict[str, list[str]]:
    """What is in a namespace, but for events."""
    folder = f"{NAMESPACES}/{namespace}"
    paths = [f"{folder}/pods", f"{folder}/services", f"{folder}/configmaps", tfjobs(namespace), leases_of(namespace)]
    return {path.rpartition("/")[2]: [one["metadata"]["name"] for one in api.list(path)["items"]] for path in paths}


AS_BEFORE = {"pods": ["notebook"], "services": [], "configmaps": ["outcome-of-ours"], "tfjobs": [], "leases": []}


def words_for(cluster: Cluster, namespace: str, out: Path) -> list[str]:
    words = ["run", "--cluster", f"kubeconfig:{cluster.kubeconfig}", "--namespace", namespace]
    return [*words, "-k", CASE, "--out", str(out)]


def roll_out(api: KubernetesApi, namespace: str, stop: threading.Event) -> None:
    """Somebody's own pod, made as soon as the run has submitted its first job."""
    folder = f"{NAMESPACES}/{namespace}"
    before = api.list(tfjobs(namespace))["metadata"]["resourceVersion"]
    for event in api.watch(tfjobs(namespace), resource_version=before, stop=stop):
        if event["type"] == "ADDED":
            theirs = api.get(f"{folder}/configmaps/outcome-of-ours")["metadata"]
            owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": theirs["name"], "uid": theirs["uid"]}
            api.create(f"{folder}/pods", pod("rolled-out", ownerReferences=[{**owner, "controller": True}]))
            return


def test_a_run_leaves_the_namespace_as_it_was(cluster: Cluster, api: KubernetesApi, team: str, tmp_path: Path) -> None:
    before = api.list(NAMESPACES)["metadata"]["resourceVersion"]
    stop = threading.Event()
    meanwhile = threading.Thread(target=roll_out, args=(api, team, stop))
    meanwhile.start()
    ran = run_command(
        *words_for(cluster, team, tmp_path / "out"), env=environment(tmp_path), cwd=tmp_path, within_s=RUN_S
    )
    stop.set()
    meanwhile.join()
    assert ran.returncode == ExitStatus.UNDECIDED, ran.stdout + ran.stderr
    assert "1 pass" in ran.stdout
    assert contents(api, team) == {**AS_BEFORE, "pods": ["notebook", "rolled-out"]}
    assert api.get(f"{NAMESPACES}/{team}/pods/notebook")["metadata"].get("deletionTimestamp") is None
    events = list(api.watch(NAMESPACES, resource_version=before, stop=threading.Event(), timeout_seconds=1))
    assert not [event for event in events if event["type"] != "BOOKMARK"], "no namespace was made or removed"
    lines = [json.loads(line) for line in (tmp_path / "out" / "recording.jsonl").read_text("utf-8").splitlines()]
    assert lines[0]["namespace"] == team
    assert lines[0]["reproduce"][-2:] == ["--namespace", team]
    seen = [line for line in lines if line["type"] == "event"]
    assert not [line for line in seen if "notebook" in json.dumps(line)], "what others have there is not recorded"
    assert not [line for line in seen if "rolled-out" in json.dumps(line)], "nor what they make meanwhile"
    jobs = [line["object"]["metadata"]["labels"] for line in seen if line["resource"] == "tfjobs"]
    assert all(labels[RUN_LABEL] == lines[0]["run_id"] for labels in jobs)


def test_it_asks_for_what_its_role_grants_and_for_no_more(
    cluster: Cluster, api: KubernetesApi, team: str, tmp_path: Path
) -> None:
    manifest = resources.files("exitcode_fixtures") / "manifests" / "rbac-namespace.yaml"
    (role,) = [one for one in yaml.safe_load_all(manifest.read_text("utf-8")) if one["kind"] == "Role"]
    content = yaml.safe_load(cluster.kubeconfig.read_text("utf-8"))
    trusted = b64decode(content["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
    operator = yaml.safe_load(
        (resources.files("exitcode_fixtures") / "operators" / "reference.yaml").read_text("utf-8")
    )
    module = [sys.executable, "-P", "-m", "exitcode_reference_controller"]
    operator["start"]["command"] = [*module, "--kubeconfig", str(cluster.kubeconfig), "--namespace", "{namespace}"]
    (tmp_path / "operator.yaml").write_text(yaml.safe_dump(operator), encoding="utf-8")
    with logged(api.server, trusted) as log:
        path = kubeconfig_of(tmp_path, log.url, content["users"][0]["user"]["token"])
        words = [
            "run",
            "--cluster",
            f"kubeconfig:{path}",
            "--namespace",
            team,
            "--profile",
            "extended",
            "-k",
            SCENARIOS,
        ]
        words += ["--operator", str(tmp_path / "operator.yaml"), "--out", str(tmp_path / "out")]
        ran = run_command(*words, env=environment(tmp_path), cwd=tmp_path, within_s=RUN_S)
    assert ran.returncode == ExitStatus.UNDECIDED, ran.stdout + ran.stderr
    granted = granted_by(role)
    assert log.used - granted <= ASKED_OF_EVERYBODY | {("list", "nodes", "")}, told(log.used - granted)
    used = {right for right in granted if right[2] != "kubeflow.org" or right[1] in JOBS}
    assert not used - log.used - {("delete", "services", "")}, f"granted and never used: {told(used - log.used)}"
    assert contents(api, team) == AS_BEFORE


def test_what_a_killed_run_left_is_removed_by_cleanup_and_nothing_else(
    cluster: Cluster, api: KubernetesApi, team: str, tmp_path: Path
) -> None:
    # An operator that does nothing: its canary is waited for long enough to be killed beside it.
    words = [*words_for(cluster, team, tmp_path / "out"), "--operator", "null", "--timeout-scale", "10"]
    with subprocess.Popen(
        command(*words), env=environment(tmp_path), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as run:
        wait_for_all(
            api, tfjobs(team), bool, within_s=RUN_S, on_timeout=lambda _: HarnessError("No job was submitted.", "")
        )
        refused = run_command(*words_for(cluster, team, tmp_path / "second"), env=environment(tmp_path), cwd=tmp_path)
        run.send_signal(signal.SIGKILL)
    said = " ".join((refused.stdout + refused.stderr).split())
    assert refused.returncode == ExitStatus.HARNESS_FAILED
    assert f"In the namespace {team} the run " in said
    assert "is under way: each would take the other's pods for its own. Wait for its end" in said
    (left,) = api.list(tfjobs(team))["items"]
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "canary", "uid": left["metadata"]["uid"]}
    api.create(f"{NAMESPACES}/{team}/pods", pod("canary-worker-0", ownerReferences=[owner]))
    api.create(f"{NAMESPACES}/{team}/pods", pod("canary-worker-1", labels={"training.kubeflow.org/job-name": "canary"}))
    api.create(f"{NAMESPACES}/{team}/pods", pod("canary-of-a-miner"))
    api.create(tfjobs(team), job("theirs"))
    api.create(f"{NAMESPACES}/{team}/pods", pod("theirs-worker-0", labels={"training.kubeflow.org/job-name": "theirs"}))
    cleanup = ["cleanup", "--kubeconfig", str(cluster.kubeconfig)]
    elsewhere = run_command(*cleanup, "--namespace", "default", env=environment(tmp_path), cwd=tmp_path)
    assert "Lease" not in elsewhere.stdout
    cleaned = run_command(*cleanup, "--namespace", team, env=environment(tmp_path), cwd=tmp_path)
    assert cleaned.returncode == 0, cleaned.stderr
    assert f"removed Lease {team}/{LEASE}" in cleaned.stdout
    assert f"removed 1 tfjobs in namespace {team}" in cleaned.stdout
    found = contents(api, team)
    assert found["pods"] == ["canary-of-a-miner", "notebook", "theirs-worker-0"]
    assert (found["tfjobs"], found["configmaps"], found["leases"]) == (["theirs"], ["outcome-of-ours"], [])


def test_the_next_run_makes_room_for_itself(cluster: Cluster, api: KubernetesApi, team: str, tmp_path: Path) -> None:
    killed(api, team)
    ran = run_command(
        *words_for(cluster, team, tmp_path / "out"), env=environment(tmp_path), cwd=tmp_path, within_s=RUN_S
    )
    assert "1 pass" in ran.stdout, ran.stdout + ran.stderr
    assert contents(api, team) == AS_BEFORE


def killed(api: KubernetesApi, namespace: str) -> None:
    """What a run that was killed long ago on another machine has left."""
    labels = {RUN_LABEL: "killed"}
    spec = {"holderIdentity": "killed", "renewTime": "2020-01-01T00:00:00.000000Z"}
    api.create(
        leases_of(namespace), {"metadata": {"name": LEASE, "labels": {**labels, GUEST_LABEL: "true"}}, "spec": spec}
    )
    made = {"kinds": [*KINDS], "names": ["tfjob-a"]}
    config = {"metadata": {"name": MADE, "labels": labels}, "data": {"made": json.dumps(made)}}
    api.create(f"{NAMESPACES}/{namespace}/configmaps", config)
    left = job("tfjob-a")
    api.create(tfjobs(namespace), {**left, "metadata": {"name": "tfjob-a", "labels": labels}})


def test_cleanup_of_the_whole_cluster_finds_it(cluster: Cluster, api: KubernetesApi, team: str, tmp_path: Path) -> None:
    killed(api, team)
    cleanup = ["cleanup", "--kubeconfig", str(cluster.kubeconfig)]
    cleaned = run_command(*cleanup, env=environment(tmp_path), cwd=tmp_path)
    assert f"removed Lease {team}/{LEASE}" in cleaned.stdout, cleaned.stderr
    assert contents(api, team) == AS_BEFORE


def enter(api: KubernetesApi, namespace: str) -> None:
    with existing_namespace(api, namespace, new_run_id(), kinds=KINDS, scenarios=["tfjob-a"]):
        pytest.fail("it was let in")


@pytest.mark.parametrize(
    ("name", "metadata", "plural"),
    [
        ("tfjob-a-worker-0", {}, "pods"),
        ("canary-worker-0", {}, "pods"),
        ("mine", {"labels": {"training.kubeflow.org/job-name": "mine"}}, "pods"),
        ("mine", {"labels": {"tf-job-name": "mine"}}, "services"),
    ],
)
def test_company_that_could_be_confused_is_refused_and_left_alone(
    api: KubernetesApi, team: str, name: str, metadata: Json, plural: str
) -> None:
    body = pod(name, **metadata)
    if plural == "services":
        body = {"metadata": {"name": name, **metadata}, "spec": {"ports": [{"port": 80}]}}
    api.create(f"{NAMESPACES}/{team}/{plural}", body)
    with pytest.raises(ClusterUnavailable, match=rf"namespace {team} holds {plural} that could be taken .*: {name}\."):
        enter(api, team)
    assert contents(api, team) == {**AS_BEFORE, plural: sorted([*AS_BEFORE[plural], name])}


def test_the_pods_of_a_job_of_another_kind_are_no_company(api: KubernetesApi, team: str) -> None:
    template = {"spec": {**pod("backup")["spec"], "restartPolicy": "Never"}}
    jobs = f"/apis/batch/v1/namespaces/{team}/jobs"
    backup = api.create(jobs, {"metadata": {"name": "backup"}, "spec": {"suspend": True, "template": template}})
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "backup", "uid": backup["metadata"]["uid"]}
    told = {"labels": {"job-name": "backup"}, "ownerReferences": [{**owner, "controller": True}]}
    api.create(f"{NAMESPACES}/{team}/pods", pod("backup-x7k2p", **told))
    with existing_namespace(api, team, new_run_id(), kinds=KINDS, scenarios=["tfjob-a"]):
        pass
    assert contents(api, team) == {**AS_BEFORE, "pods": ["backup-x7k2p", "notebook"]}
    with (
        pytest.raises(ClusterUnavailable, match=r"holds jobs that could be taken .*: backup\."),
        existing_namespace(api, team, new_run_id(), kinds=("Job",), scenarios=["job-a"]),
    ):
        pytest.fail("it was let in")


def test_jobs_of_others_are_refused_and_left_alone(api: KubernetesApi, team: str) -> None:
    for name in ("a", "b", "canary", "d"):
        api.create(tfjobs(team), job(name))
    api.create(f"{NAMESPACES}/{team}/pods", pod("canary-worker-0", labels={"training.kubeflow.org/job-name": "canary"}))
    with pytest.raises(ClusterUnavailable, match=r"holds tfjobs that could .*: a, b, canary and 1 more\. Delete"):
        enter(api, team)
    found = contents(api, team)
    assert found == {**AS_BEFORE, "tfjobs": ["a", "b", "canary", "d"], "pods": ["canary-worker-0", "notebook"]}


def test_a_namespace_that_is_not_there_or_of_a_run_is_one_sentence(api: KubernetesApi, team: str) -> None:
    with pytest.raises(ClusterUnavailable, match="There is no namespace absent in the cluster"):
        enter(api, "absent")
    spec = {"holderIdentity": "x", "renewTime": "2020-01-01T00:00:00.000000Z"}
    api.create(leases_of(team), {"metadata": {"name": LEASE, "labels": {RUN_LABEL: "x"}}, "spec": spec})
    with pytest.raises(ClusterUnavailable, match="is the namespace that the run x has made for itself"):
        enter(api, team)


def test_a_lease_that_another_run_has_taken_over_is_left_to_it(api: KubernetesApi, team: str) -> None:
    lease = f"{leases_of(team)}/{LEASE}"
    with existing_namespace(api, team, new_run_id(), kinds=KINDS, scenarios=["tfjob-a"]):
        former = api.get(lease)
        api.delete(lease)
        body = {key: former[key] for key in ("apiVersion", "kind", "spec")}
        later = api.create(
            leases_of(team), {**body, "metadata": {"name": LEASE, "labels": former["metadata"]["labels"]}}
        )
    assert api.get(lease)["metadata"]["uid"] == later["metadata"]["uid"]
    api.delete(lease)


def test_the_list_of_a_run_without_its_lease_is_one_sentence(api: KubernetesApi, team: str) -> None:
    killed(api, team)
    run = api.get(f"{NAMESPACES}/{team}/configmaps/{MADE}")["metadata"]["labels"][RUN_LABEL]
    api.delete(f"{leases_of(team)}/{LEASE}")
    before = contents(api, team)
    with pytest.raises(ClusterUnavailable, match=rf"the ConfigMap {MADE} of the run {run}, but no Lease") as told:
        enter(api, team)
    assert f"kubectl -n {team} delete tfjobs,pytorchjobs,configmaps -l {RUN_LABEL}={run}" in told.value.advice
    assert contents(api, team) == before


def test_two_guests_are_one_too_many(api: KubernetesApi, team: str) -> None:
    with existing_namespace(api, team, new_run_id(), kinds=KINDS, scenarios=[]):
        with pytest.raises(ClusterUnavailable, match=f"In the namespace {team} the run .* is under way"):
            enter(api, team)
        assert remove_made(api, team, "nobody") == ()
    assert contents(api, team) == AS_BEFORE


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            {"cluster": "embedded", "namespace": "team"},
            "a namespace of an existing cluster, and --cluster is embedded",
        ),
        ({"cluster": "kubeconfig", "namespace": "Team A"}, "'Team A' is no name of a namespace"),
        ({"cluster": "kubeconfig", "namespace": "team", "install_crds": True}, "--install-crds does not go with"),
    ],
)
def test_what_cannot_be_meant_is_wrong_usage(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        read_request(operator=None, profile="core", contract=None, **options)
