"""kind for real, through pytest-kind: created, made ready, given the image, deleted, and nothing left behind."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cluster_support import environment
from skip_reasons import NO_KIND

from exitcode_fixtures.certification_run import plugin_arguments

NAME = "exitcode-test"
WITHIN_S = 400
SUITE = """
import pytest
from exitcode_fixtures.api import connected
from exitcode_fixtures.clusters.kind import kind_fixture_as_cluster
from exitcode_fixtures.run_folder import run_folder
from exitcode_fixtures.run_namespace import run_namespace

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "first"},
    "spec": {"containers": [{"name": "c", "image": "busybox:1.37.0-glibc", "command": ["true"]}]},
}


@pytest.fixture(scope="session")
def cluster(request):
    with run_folder("kind-test") as folder:
        yield kind_fixture_as_cluster(request, folder)


def test_it_can_be_used_at_once(cluster):
    assert cluster.identity.type == "kind"
    assert cluster.identity.nodes == 1
    with connected(cluster.kubeconfig) as api, run_namespace(api, "kind-test") as namespace:
        api.create(f"/api/v1/namespaces/{namespace}/pods", POD)
"""


def kind_image() -> str:
    """The node image of real-kind, where the environment names one; else the test is skipped, and says why."""
    image = os.environ.get("REAL_KIND_IMAGE")
    if not image or shutil.which("kind") is None or shutil.which("docker") is None:
        pytest.skip(NO_KIND)
    return image


def clusters() -> list[str]:
    return subprocess.run(["kind", "get", "clusters"], capture_output=True, text=True, check=True).stdout.split()


def run(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    folder.mkdir(exist_ok=True)
    (folder / "test_kind.py").write_text(SUITE, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", *plugin_arguments(), "-p", "no:cacheprovider", "-q"]
    command += ["--cluster", f"kind:{NAME}", "--kind-image", kind_image(), *arguments]
    env = environment(folder)
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=WITHIN_S, check=False)


@pytest.mark.real_cluster
def test_a_cluster_is_kept_on_request_found_again_and_deleted(tmp_path: Path) -> None:
    kind_image()
    try:
        kept = run(tmp_path / "first", "--keep-cluster")
        assert kept.returncode == 0, kept.stdout + kept.stderr
        # From another folder, where pytest-kind alone would find no kubeconfig.
        used = run(tmp_path / "second", "--keep-cluster")
        assert used.returncode == 0, used.stdout + used.stderr
        assert NAME in clusters()
        # An image that nobody has: one sentence; and the cluster goes as it would after a run.
        failed = run(tmp_path / "third", "--image", "registry.invalid/busybox:1")
        assert failed.returncode != 0
        assert "Getting the image registry.invalid/busybox:1 failed: " in failed.stdout
        assert NAME not in clusters()
        assert not (tmp_path / "third" / ".pytest-kind").exists()
        assert list((tmp_path / "third" / "runtime").iterdir()) == []
    finally:
        subprocess.run(["kind", "delete", "cluster", "--name", NAME], capture_output=True, check=False)


@pytest.mark.real_cluster
def test_a_cluster_that_cannot_be_created_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    kind_image()
    failed = run(tmp_path, "--kind-image", "registry.invalid/node:1")
    assert failed.returncode != 0
    assert f"kind could not create the cluster {NAME}: " in failed.stdout
    assert NAME not in clusters()
    assert not (tmp_path / ".pytest-kind").exists()
