"""Clusters by their address; and how plainly it is said that one is not there, or cannot be used."""

import copy
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from cluster_support import (
    address_of,
    await_no_process,
    embedded,
    environment,
    marked_processes,
    real_kubeconfig,
    run_command,
    write_kubeconfig,
)

from exitcode_fixtures.api import connected
from exitcode_fixtures.clusters.address import ClusterAddress, kubeconfig_path, parse_address
from exitcode_fixtures.clusters.cluster import open_cluster
from exitcode_fixtures.clusters.kind import prepare_kind_options
from exitcode_fixtures.errors import ClusterUnavailable, ExitStatus, UsageError
from exitcode_fixtures.kubeconfig import write_selection
from exitcode_fixtures.run_folder import new_run_id
from exitcode_fixtures.run_namespace import NAMESPACES, run_namespace


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("embedded", ClusterAddress(type="embedded")),
        ("kind", ClusterAddress(type="kind")),
        ("kind:mine", ClusterAddress(type="kind", name="mine")),
        ("kubeconfig", ClusterAddress(type="kubeconfig")),
        ("kubeconfig:/a/b", ClusterAddress(type="kubeconfig", path=Path("/a/b"))),
        (
            "kubeconfig:/a:arn:aws:eks:x:cluster/y",
            ClusterAddress(type="kubeconfig", path=Path("/a"), context="arn:aws:eks:x:cluster/y"),
        ),
        ("recording:r.jsonl", ClusterAddress(type="recording", path=Path("r.jsonl"))),
        ("recording:a:b", ClusterAddress(type="recording", path=Path("a:b"))),
    ],
)
def test_an_address_is_read_and_written_alike(text: str, address: ClusterAddress) -> None:
    assert parse_address(text) == address
    assert str(address) == text


def test_a_context_alone_goes_with_kubectls_own_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    address = parse_address("kubeconfig::other")
    assert (address.path, address.context) == (None, "other")
    assert parse_address(str(address)) == address
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "one"))
    assert kubeconfig_path(address) == tmp_path / "one"
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'one'}{os.pathsep}{tmp_path / 'two'}")
    with pytest.raises(UsageError, match="KUBECONFIG names 2 files"):
        kubeconfig_path(address)
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert kubeconfig_path(address) == tmp_path / ".kube" / "config"


@pytest.mark.parametrize(
    "text", ["", "minikube", "embedded:x", "kind:", "kubeconfig:", "kubeconfig::", "recording", "recording:", "Kind"]
)
def test_anything_else_is_no_address(text: str) -> None:
    with pytest.raises(UsageError, match="is no cluster") as problem:
        parse_address(text)
    assert "kubeconfig[:PATH[:CONTEXT]]" in problem.value.advice


def test_an_embedded_cluster_comes_and_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in environment(tmp_path).items():
        monkeypatch.setenv(key, value)
    (tmp_path / "state").mkdir(mode=0o700)
    with embedded(tmp_path / "state") as cluster:
        assert cluster.identity.type == "embedded"
        assert cluster.identity.speed == "embedded"
        assert cluster.identity.nodes == 1
        assert marked_processes(tmp_path)
        with connected(cluster.kubeconfig) as api:
            server = api.server
    assert marked_processes(tmp_path) == {}
    with (
        connected(write_kubeconfig(tmp_path / "config", server)) as api,
        pytest.raises(ClusterUnavailable, match="cannot be reached"),
    ):
        api.get("/version")


def test_an_embedded_cluster_dies_with_whoever_started_it(tmp_path: Path) -> None:
    script = f"""
import pathlib, sys
from exitcode_fixtures.clusters.address import parse_address
from exitcode_fixtures.clusters.cluster import open_cluster
from exitcode_fixtures.clusters.kind import prepare_kind_options
state = pathlib.Path({str(tmp_path)!r}) / "state"
state.mkdir(mode=0o700)
with open_cluster(parse_address("embedded"), state=state):
    print("open", flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(tmp_path)
    ) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == b"open\n"
        starter.send_signal(signal.SIGKILL)
    assert await_no_process(tmp_path, within_s=5) == {}


def test_an_embedded_cluster_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file in place of a directory", encoding="utf-8")
    with (
        pytest.raises(ClusterUnavailable, match=r"The embedded cluster ended at its start: .+") as problem,
        open_cluster(parse_address("embedded"), state=tmp_path / "state", log_path=tmp_path / "log"),
    ):
        pass
    assert str(tmp_path / "log") in problem.value.advice


@pytest.mark.real_cluster
def test_a_real_cluster_is_known_by_what_it_says(tmp_path: Path) -> None:
    with open_cluster(address_of(real_kubeconfig()), state=tmp_path) as cluster:
        assert cluster.identity.type == "kubeconfig"
        assert cluster.identity.speed == "real"
        assert cluster.identity.server_version.startswith("v1.")
        assert (cluster.identity.nodes or 0) >= 1


@pytest.mark.real_cluster
def test_a_user_without_rights_is_told(tmp_path: Path) -> None:
    """A real server that lets anonymous users ask for its version, and for nothing else."""
    with connected(real_kubeconfig()) as api:
        server = api.server
    content = yaml.safe_load(real_kubeconfig().read_text(encoding="utf-8"))
    content["users"] = []
    content["contexts"] = [{"name": "nobody", "context": {"cluster": content["clusters"][0]["name"]}}]
    content["current-context"] = "nobody"
    path = tmp_path / "nobody"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    with (
        pytest.raises(ClusterUnavailable, match=f"The API server {server} does not let this user in .403 Forbidden"),
        open_cluster(address_of(path), state=tmp_path),
    ):
        pass


@pytest.mark.real_cluster
def test_rights_that_are_missing_are_all_named(tmp_path: Path) -> None:
    """A service account of a real cluster, which may do nothing but look at namespaces."""
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    with connected(real_kubeconfig()) as api, run_namespace(api, run_id := new_run_id()) as namespace:
        api.create(f"{NAMESPACES}/{namespace}/serviceaccounts", {"metadata": {"name": "limited"}})
        rules = [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["create", "get", "list", "watch"]}]
        role = {"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io", "name": f"exitcode-test-{run_id}"}
        subject = {"kind": "ServiceAccount", "name": "limited", "namespace": namespace}
        metadata = {"name": role["name"]}
        try:
            api.create(f"{rbac}/clusterroles", {"metadata": metadata, "rules": rules})
            binding = {"metadata": metadata, "roleRef": role, "subjects": [subject]}
            api.create(f"{rbac}/clusterrolebindings", binding)
            asked = api.create(f"{NAMESPACES}/{namespace}/serviceaccounts/limited/token", {"spec": {}})
            content = yaml.safe_load(real_kubeconfig().read_text(encoding="utf-8"))
            for user in content["users"]:
                user["user"] = {"token": asked["status"]["token"]}
            path = tmp_path / "limited"
            path.write_text(yaml.safe_dump(content), encoding="utf-8")
            ran = run_command("run", "--cluster", f"kubeconfig:{path}", env=environment(tmp_path), cwd=tmp_path)
        finally:
            api.delete(f"{rbac}/clusterrolebindings/{role['name']}", missing_ok=True)
            api.delete(f"{rbac}/clusterroles/{role['name']}", missing_ok=True)
    assert ran.returncode == ExitStatus.HARNESS_FAILED
    assert "lacks rights in the cluster" in ran.stdout + ran.stderr
    assert ": delete namespaces, create pods, list pods, watch pods," in ran.stdout + ran.stderr
    assert "create tfjobs.kubeflow.org" in ran.stdout + ran.stderr


def test_a_context_is_chosen_in_a_copy(tmp_path: Path) -> None:
    original = write_kubeconfig(tmp_path / "config", "https://127.0.0.1:9", tokenFile="token")
    content = yaml.safe_load(original.read_text(encoding="utf-8"))
    content["contexts"].append({"name": "other", "context": {"cluster": "far", "user": "plugin"}})
    content["clusters"].append({"name": "far", "cluster": {"server": "https://far", "certificate-authority": "ca"}})
    content["users"].append({"name": "plugin", "user": {"exec": {"command": "./login"}}})
    content["users"].append({"name": "on path", "user": {"exec": {"command": "aws"}}})
    original.write_text(yaml.safe_dump(content), encoding="utf-8")
    chosen = yaml.safe_load(write_selection(original, "other", tmp_path / "copy").read_text(encoding="utf-8"))
    assert chosen["current-context"] == "other"
    assert chosen["clusters"][1]["cluster"]["certificate-authority"] == str(tmp_path / "ca")
    assert chosen["users"][0]["user"]["tokenFile"] == str(tmp_path / "token")
    assert [user["user"]["exec"]["command"] for user in chosen["users"][1:]] == [str(tmp_path / "login"), "aws"]
    assert (tmp_path / "copy").stat().st_mode & 0o077 == 0
    with pytest.raises(UsageError, match="has no context 'third'"):
        write_selection(original, "third", tmp_path / "copy")


def tools(folder: Path, **scripts: str) -> str:
    """A PATH with these tools alone."""
    folder.mkdir()
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (folder / name).chmod(0o700)
    return str(folder)


@pytest.mark.parametrize(
    ("scripts", "sentence"),
    [
        ({}, "There is no kind on this machine's PATH."),
        ({"kind": "exit 0"}, "There is no docker on this machine's PATH, which kind needs."),
        (
            {"kind": "exit 0", "docker": "echo banner; echo Cannot connect to the daemon. >&2; exit 1"},
            "Asking docker whether it runs failed: Cannot connect to the daemon.",
        ),
        (
            {"kind": "echo ERROR: no provider >&2; exit 1", "docker": "exit 0"},
            "Listing the kind clusters failed: ERROR: no provider.",
        ),
    ],
)
def test_what_kind_lacks_is_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pytestconfig: pytest.Config,
    scripts: dict[str, str],
    sentence: str,
) -> None:
    monkeypatch.setenv("PATH", tools(tmp_path / "bin", **scripts))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pytestconfig, "option", copy.copy(pytestconfig.option))
    with pytest.raises(ClusterUnavailable) as problem:
        prepare_kind_options(pytestconfig, parse_address("kind:mine"))
    assert sentence == problem.value.problem
    assert list(tmp_path.iterdir()) == [tmp_path / "bin"]


def test_two_names_for_one_kind_cluster_are_refused(
    monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    monkeypatch.setattr(pytestconfig, "option", copy.copy(pytestconfig.option))
    pytestconfig.option.cluster_name = "other"
    with pytest.raises(UsageError, match="name two clusters"):
        prepare_kind_options(pytestconfig, parse_address("kind:mine"))


def test_a_run_without_kind_ends_with_the_sentence(tmp_path: Path) -> None:
    env = environment(tmp_path, PATH=tools(tmp_path / "bin"))
    ran = run_command("run", "--cluster", "kind", "--out", str(tmp_path / "out"), env=env, cwd=tmp_path)
    assert "There is no kind on this machine's PATH." in ran.stdout + ran.stderr
    assert ran.returncode == ExitStatus.HARNESS_FAILED
    assert not (tmp_path / ".pytest-kind").exists()
    assert list((tmp_path / "runtime").iterdir()) == []


def test_a_cluster_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "config", "https://127.0.0.1:9")
    ran = run_command(
        *("run", "--cluster", f"kubeconfig:{path}", "--out", str(tmp_path / "out")),
        env=environment(tmp_path),
        cwd=tmp_path,
    )
    assert "The API server https://127.0.0.1:9 cannot be reached: [Errno 111] Connection refused." in (
        ran.stdout + ran.stderr
    )
    assert ran.returncode == ExitStatus.HARNESS_FAILED
    assert list((tmp_path / "runtime").iterdir()) == []
