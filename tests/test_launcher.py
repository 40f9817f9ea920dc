"""Operators are started, known to be ready, seen to end, and stopped, whatever they do about it."""

import json
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from cluster_support import (
    PATIENCE_S,
    address_of,
    await_no_process,
    embedded,
    environment,
    marked_processes,
    real_kubeconfig,
    unconnected,
)
from pydantic import TypeAdapter

from exitcode_fixtures.api import connected
from exitcode_fixtures.clusters.cluster import Cluster, open_cluster
from exitcode_fixtures.errors import OperatorFailed, UsageError
from exitcode_fixtures.launcher import Operator, Relaunch, launch, prerequisites
from exitcode_fixtures.operators.description import OperatorDescription, Start, load_description
from exitcode_fixtures.run_folder import new_run_id
from exitcode_fixtures.run_namespace import run_namespace

START: TypeAdapter[Start] = TypeAdapter(Start)


class Stage:
    """A place to launch in: it keeps what is told of the operator."""

    def __init__(self, folder: Path, cluster: Cluster, namespace: str = "ns") -> None:
        self.log_path = folder / "out" / "operator.log"
        self.events: queue.SimpleQueue[tuple[str, dict[str, Any]]] = queue.SimpleQueue()
        self._cluster = cluster
        self._namespace = namespace

    def launch(self, *, of_version: str = "0.1.0", **start: Any) -> AbstractContextManager[Operator]:
        return launch(
            described_as(start, of_version),
            self._cluster,
            self._namespace,
            log_path=self.log_path,
            on_event=lambda name, detail: self.events.put((name, detail)),
            run_id="test",
        )

    def event(self) -> tuple[str, dict[str, Any]]:
        return self.events.get(timeout=PATIENCE_S)


def described_as(start: dict[str, Any], version: str = "0.1.0") -> OperatorDescription:
    null = load_description("null")
    identity = null.identity.model_copy(update={"version": version})
    return null.model_copy(update={"name": "subject", "identity": identity, "start": START.validate_python(start)})


def shell(script: str, **more: Any) -> dict[str, Any]:
    return {"mode": "process", "command": ("sh", "-c", script), "ready": {"log_line": "^up$"}, **more}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, unconnected(tmp_path))


@pytest.fixture
def marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Everything that is launched carries the mark of this folder."""
    for key, value in environment(tmp_path).items():
        monkeypatch.setenv(key, value)
    yield tmp_path
    assert await_no_process(tmp_path, within_s=5) == {}


def test_it_is_ready_when_a_line_says_so_and_gone_afterwards(stage: Stage, marked: Path) -> None:
    with stage.launch(**shell("echo starting; echo on >&2; echo up; exec sleep 60")) as operator:
        assert operator.pid in marked_processes(marked)
        assert stage.event() == ("operator-started", {"mode": "process", "pid": operator.pid})
    assert marked_processes(marked) == {}
    assert sorted(stage.log_path.read_text().split()) == ["on", "starting", "up"]
    assert stage.events.empty(), "an operator that was stopped has not ended by itself"


def test_it_is_stopped_and_started_again(stage: Stage, marked: Path) -> None:
    starts: list[int] = []

    def launched(number: int) -> AbstractContextManager[Operator]:
        starts.append(number)
        return stage.launch(**shell(f"echo start {number}; echo up; exec sleep 60"))

    with Relaunch(launched) as operator:
        first = marked_processes(marked)
        assert stage.event()[0] == "operator-started"
        operator.restart()
        assert stage.event()[0] == "operator-started"
        assert first
        assert not first.keys() & marked_processes(marked).keys()
    assert marked_processes(marked) == {}
    assert (starts, stage.log_path.read_text()) == ([1, 2], "start 2\nup\n")
    assert stage.events.empty(), "an operator that is started again has not ended by itself"


def test_only_the_stream_that_is_meant_counts(stage: Stage) -> None:
    start = shell("echo up; exec sleep 60", ready={"log_line": "^up$", "stream": "stderr"}, ready_within_s=0.3)
    sentence = r"was not ready within 0.3 s: no line matched '\^up\$' \(its last words: up\)"
    with (
        pytest.raises(OperatorFailed, match=sentence),
        stage.launch(**start),
    ):
        pass


def test_placeholders_and_environment_are_filled(stage: Stage, tmp_path: Path) -> None:
    say = "print(*sys.argv[1:], os.environ['WHERE'], os.getcwd()); print('up')"
    script = f"import os, sys; {say}; os.execlp('sleep', 'sleep', '60')"
    start: dict[str, Any] = {
        "mode": "process",
        "command": ("{python}", "-c", script, "{kubeconfig}", "{context}", "{{}}"),
        "environment": {"WHERE": "in {namespace}"},
        "working_directory": str(tmp_path),
        "ready": {"log_line": "^up$"},
    }
    with stage.launch(**start):
        pass
    assert stage.log_path.read_text().splitlines()[0] == f"{tmp_path / 'unconnected'} test {{}} in ns {tmp_path}"


@pytest.mark.parametrize(
    ("script", "how"),
    [
        ("echo no config >&2; exit 3", r"ended with status 3 \(its last words: no config\)"),
        ("kill -9 $$", r"was killed by SIGKILL \(its last words: it said nothing\)"),
    ],
)
def test_an_end_before_it_is_ready_is_one_sentence(stage: Stage, script: str, how: str) -> None:
    with (
        pytest.raises(OperatorFailed, match=f"The operator subject {how} before it was ready"),
        stage.launch(**shell(script)),
    ):
        pass


def test_a_command_that_is_not_there_is_one_sentence(stage: Stage) -> None:
    start: dict[str, Any] = {"mode": "process", "command": ("/absent/operator",), "ready": {"log_line": "up"}}
    with (
        pytest.raises(OperatorFailed, match="/absent/operator cannot be executed: No such file"),
        stage.launch(**start),
    ):
        pass


def test_an_end_while_it_runs_is_told_at_once(stage: Stage, tmp_path: Path) -> None:
    script = f"echo up; while [ ! -e {tmp_path}/end ]; do sleep 0.05; done; echo panic >&2; exit 7"
    with stage.launch(**shell(script)):
        assert stage.event()[0] == "operator-started"
        (tmp_path / "end").touch()
        name, detail = stage.event()
    assert (name, detail["status"]) == ("operator-exited", 7)
    assert "ended with status 7 (its last words:" in detail["how"]
    assert "panic" in detail["how"]


def test_whoever_ignores_sigterm_is_killed_with_all_that_came_of_it(stage: Stage, marked: Path) -> None:
    daemon = "(setsid sh -c 'trap \"\" TERM; sleep 61; sleep 62' &)"
    with stage.launch(**shell(f"trap '' TERM; {daemon}; echo up; sleep 63; sleep 64", stop_within_s=0.3)):
        pass
    assert marked_processes(marked) == {}


def test_nothing_outlives_a_harness_that_is_killed(marked: Path) -> None:
    script = f"""
import pathlib, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from cluster_support import unconnected
from test_launcher import Stage, shell
folder = pathlib.Path({str(marked)!r})
with Stage(folder, unconnected(folder)).launch(**shell("(setsid sleep 65 &); echo up; sleep 66")):
    print("launched", flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as harness:
        assert harness.stdout is not None
        assert harness.stdout.readline() == b"launched\n"
        assert sum("sleep" in line for line in marked_processes(marked).values()) >= 2
        harness.send_signal(signal.SIGKILL)
    assert await_no_process(marked, within_s=5) == {}


def test_it_is_ready_when_an_address_answers(stage: Stage) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            del arguments

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/healthz"
            with stage.launch(**shell("exec sleep 60", ready={"http": url})):
                assert stage.event()[0] == "operator-started"
        finally:
            server.shutdown()
            thread.join()


def test_an_address_that_never_answers_is_one_sentence(stage: Stage) -> None:
    start = shell("exec sleep 60", ready={"http": "http://127.0.0.1:9/"}, ready_within_s=0.3)
    with (
        pytest.raises(OperatorFailed, match=r"http://127\.0\.0\.1:9/ did not answer with success: at last it could"),
        stage.launch(**start),
    ):
        pass


def test_waiting_for_an_address_ends_with_the_process(stage: Stage) -> None:
    start = shell("exit 4", ready={"http": "http://127.0.0.1:9/"}, ready_within_s=PATIENCE_S)
    with pytest.raises(OperatorFailed, match="ended with status 4"), stage.launch(**start):
        pass


def test_it_is_ready_when_it_takes_its_lease(tmp_path: Path) -> None:
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "lead"}}
    held = {**lease, "spec": {"holderIdentity": "me", "renewTime": "2030-01-01T00:00:00.000000Z"}}
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    (tmp_path / "state").mkdir(mode=0o700)
    with embedded(tmp_path / "state") as cluster, connected(cluster.kubeconfig) as api:
        stage = Stage(tmp_path, cluster, "default")
        start = shell("exec sleep 60", ready={"lease": "{namespace}/lead"}, ready_within_s=0.5)
        with pytest.raises(OperatorFailed, match="nobody took the Lease default/lead"), stage.launch(**start):
            pass
        # The operator is this very test, which takes the lease once the launcher is known to wait for it.
        take = threading.Timer(0.5, api.create, (path, held))
        take.start()
        with stage.launch(**{**start, "ready_within_s": PATIENCE_S}):
            assert stage.event()[0] == "operator-started"
        take.join()
        with pytest.raises(OperatorFailed, match="nobody took"), stage.launch(**start):
            pass


def test_without_a_start_there_is_nothing_to_see(stage: Stage) -> None:
    with stage.launch(mode="none") as operator:
        assert (operator.pid, operator.log_path) == (None, None)
    assert stage.events.empty()


DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "operator"},
    "spec": {
        "selector": {"matchLabels": {"app": "operator"}},
        "template": {
            "metadata": {"labels": {"app": "operator"}},
            "spec": {
                "terminationGracePeriodSeconds": 1,
                "containers": [
                    {
                        "name": "manager",
                        "image": "busybox:1.37.0-glibc",
                        "imagePullPolicy": "IfNotPresent",
                        "command": ["sh", "-c", "echo hello; sleep 4; exit 5"],
                    }
                ],
            },
        },
    },
}
ROLE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "exitcode-test-operator"},
    "rules": [],
}


@pytest.mark.real_cluster
def test_manifests_are_deployed_watched_and_removed(tmp_path: Path) -> None:
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/exitcode-test-operator"
    (tmp_path / "operator.json").write_text(json.dumps({"kind": "List", "items": [ROLE, DEPLOYMENT]}))
    with (
        open_cluster(address_of(real_kubeconfig()), state=tmp_path) as cluster,
        connected(cluster.kubeconfig) as api,
        run_namespace(api, new_run_id()) as namespace,
    ):
        stage = Stage(tmp_path, cluster, namespace)
        start: dict[str, Any] = {"mode": "manifests", "manifests": (str(tmp_path / "operator.json"),)}
        with pytest.raises(
            OperatorFailed, match=r"says that its version is 1\.37\.0-glibc; its description names 2\.0"
        ):
            stage.launch(of_version="2.0", **start).__enter__()
        assert not api.exists(path), "one of another version is not left behind"
        with stage.launch(of_version="1.37.0-glibc", **start):
            assert stage.event() == ("operator-started", {"mode": "manifests", "version": "1.37.0-glibc"})
            assert api.exists(path)
            name, detail = stage.event()
            assert name == "operator-exited"
            assert "a container of its pod operator-" in detail["how"]
        # Not every cluster can give logs (the API server has to reach the node), so only the attempt is sure.
        assert ", container manager\n" in stage.log_path.read_text()
        assert not api.exists(path)
        assert api.list(f"/apis/apps/v1/namespaces/{namespace}/deployments")["items"] == []


@pytest.mark.real_cluster
def test_an_operator_that_is_there_is_found_watched_and_left_alone(tmp_path: Path) -> None:
    with (
        open_cluster(address_of(real_kubeconfig()), state=tmp_path) as cluster,
        connected(cluster.kubeconfig) as api,
        run_namespace(api, new_run_id()) as namespace,
    ):
        stage = Stage(tmp_path, cluster, namespace)
        deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
        start: dict[str, Any] = {"mode": "none", "deployment": f"{namespace}/operator"}
        with pytest.raises(OperatorFailed, match=f"There is no Deployment {namespace}/operator in the cluster"):
            stage.launch(**start).__enter__()
        scaled = {**DEPLOYMENT, "metadata": {"name": "scaled"}, "spec": {**DEPLOYMENT["spec"], "replicas": 0}}
        api.create(deployments, scaled)
        with pytest.raises(OperatorFailed, match="The operator's Deployment scaled has 0 replicas: nothing of it runs"):
            stage.launch(mode="none", deployment=f"{namespace}/scaled").__enter__()
        api.create(deployments, DEPLOYMENT)
        with stage.launch(of_version="v1.37.0-glibc", **start):
            name, detail = stage.event()
            assert (name, detail["version"]) == ("operator-started", "1.37.0-glibc")
            assert stage.event()[0] == "operator-exited"
        assert [item["metadata"]["name"] for item in api.list(deployments)["items"]] == ["operator", "scaled"]


@pytest.mark.real_cluster
def test_one_that_does_not_come_up_is_told_as_its_pod_tells_it(tmp_path: Path) -> None:
    template = DEPLOYMENT["spec"]["template"]
    container = {**template["spec"]["containers"][0], "image": "registry.invalid/absent:1.37.0-glibc"}
    absent = {**template, "spec": {**template["spec"], "containers": [container]}}
    manifest = {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "template": absent}}
    (tmp_path / "operator.json").write_text(json.dumps(manifest))
    with (
        open_cluster(address_of(real_kubeconfig()), state=tmp_path) as cluster,
        connected(cluster.kubeconfig) as api,
        run_namespace(api, new_run_id()) as namespace,
    ):
        stage = Stage(tmp_path, cluster, namespace)
        path = str(tmp_path / "operator.json")
        start: dict[str, Any] = {"mode": "manifests", "manifests": (path,), "ready_within_s": 6}
        with pytest.raises(
            OperatorFailed,
            match=r"within 6 s \(its pod operator-\S+, container manager: \S+: .*registry\.invalid/absent:1",
        ):
            stage.launch(**start).__enter__()
        assert api.list(f"/api/v1/namespaces/{namespace}/pods")["items"] == []


def version(script: str, pattern: str) -> dict[str, Any]:
    return {"command": ("sh", "-c", script), "pattern": pattern}


def test_the_version_that_the_program_tells_is_recorded(stage: Stage) -> None:
    asked = version('echo "subject $NUMBER (built today)"', r"subject v?([0-9.]+)")
    with stage.launch(**shell("echo up; sleep 60", version=asked, environment={"NUMBER": "v0.1.0"})) as operator:
        assert stage.event() == ("operator-started", {"mode": "process", "pid": operator.pid, "version": "0.1.0"})


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo subject 0.2.0", r"says that its version is 0\.2\.0; its description names 0\.1\.0"),
        ("echo none; exit 3", r"'subject \(\.\*\)' is not in what .* printed \(status 3; 'none'\)"),
        ("exit 0", r"printed \(status 0; 'nothing'\)"),
    ],
)
def test_a_program_of_another_version_is_not_started(stage: Stage, script: str, problem: str) -> None:
    start = shell("echo up; sleep 60", version=version(script, "subject (.*)"))
    with pytest.raises(OperatorFailed, match=problem), stage.launch(**start):
        pass
    assert not stage.log_path.exists()


def test_what_a_process_needs_in_the_cluster_outlives_its_restarts(tmp_path: Path) -> None:
    needed = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "needed"}}
    (tmp_path / "needed.json").write_text(json.dumps(needed))
    with embedded(tmp_path) as cluster, connected(cluster.kubeconfig) as api, run_namespace(api, "r") as namespace:
        described = described_as(shell("echo up; sleep 60", manifests=(str(tmp_path / "needed.json"),)))
        secret = f"/api/v1/namespaces/{namespace}/secrets/needed"
        with prerequisites(described, cluster, namespace, run_id="r"):
            before = api.get(secret)
            assert before["metadata"]["labels"] == {"exitcode-conformance/run": "r"}
            stage = Stage(tmp_path, cluster, namespace)
            with Relaunch(lambda _: stage.launch(**shell("echo up; sleep 60"))) as operator:
                operator.restart()
                assert api.get(secret)["metadata"]["uid"] == before["metadata"]["uid"]
        assert not api.exists(secret)
        with prerequisites(described, cluster, namespace, run_id="r"):
            assert api.exists(secret), "a second time in the same run"


def test_manifests_without_a_deployment_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "operator.json").write_text(json.dumps(ROLE))
    start: dict[str, Any] = {"mode": "manifests", "manifests": (str(tmp_path / "operator.json"),)}
    stage = Stage(tmp_path, unconnected(tmp_path))
    with (
        pytest.raises(UsageError, match="hold no Deployment: nobody could tell whether it runs"),
        stage.launch(**start),
    ):
        pass


def test_a_manifest_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "operator.yaml").write_text("kind: Deployment\n")
    start: dict[str, Any] = {"mode": "manifests", "manifests": (str(tmp_path / "operator.yaml"),)}
    stage = Stage(tmp_path, unconnected(tmp_path))
    with pytest.raises(UsageError, match=r"without apiVersion, kind and metadata\.name"), stage.launch(**start):
        pass
