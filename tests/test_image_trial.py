"""A cluster that cannot run the image of the scenarios is told before the first job."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_support import embedded_api, environment, real_kubeconfig, run_command

from exitcode_fixtures.api import KubernetesApi, connected
from exitcode_fixtures.errors import ClusterUnavailable, ExitStatus
from exitcode_fixtures.image_trial import POD, try_image
from exitcode_fixtures.run_folder import new_run_id
from exitcode_fixtures.run_namespace import run_namespace

WITHIN_S = 60.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesApi]:
    with embedded_api(tmp_path_factory.mktemp("embedded")) as api:
        yield api


def test_one_that_runs_leaves_nothing(cluster: KubernetesApi) -> None:
    with run_namespace(cluster, new_run_id()) as namespace:
        assert try_image(cluster, namespace, "busybox:1.36", within_s=WITHIN_S).seconds > 0
        assert cluster.list(f"/api/v1/namespaces/{namespace}/pods")["items"] == []


def test_one_that_is_refused_is_one_sentence(tmp_path: Path) -> None:
    words = ("run", "-k", "EXIT-01 and tfjob-worker-exit0-worker1", "--image", "python:3.12")
    ran = run_command(*words, env=environment(tmp_path), cwd=tmp_path)
    assert ran.returncode == ExitStatus.HARNESS_FAILED
    said = " ".join((ran.stdout + ran.stderr).split())
    assert "The cluster refuses a pod with the image python:3.12 (403 Forbidden: pods" in said
    assert "Traceback" not in said
    assert not (tmp_path / "conformance-report" / "recording.jsonl").exists()


@pytest.mark.real_cluster
@pytest.mark.parametrize(
    ("image", "problem"),
    [
        ("registry.invalid/absent:1", r"cannot get the image registry\.invalid/absent:1 \(ImagePullBackOff: "),
        ("Not An Image", r"cannot get the image Not An Image \(InvalidImageName: "),
    ],
)
def test_one_that_cannot_be_had_is_one_sentence(image: str, problem: str) -> None:
    with connected(real_kubeconfig()) as api, run_namespace(api, new_run_id()) as namespace:
        with pytest.raises(ClusterUnavailable, match=problem) as told:
            try_image(api, namespace, image, within_s=WITHIN_S)
        assert "\n" not in str(told.value)
        assert not api.exists(f"/api/v1/namespaces/{namespace}/pods/{POD}")


@pytest.mark.real_cluster
def test_one_without_a_node_says_why() -> None:
    with connected(real_kubeconfig()) as api, run_namespace(api, new_run_id()) as namespace:
        quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
        api.create(f"/api/v1/namespaces/{namespace}/resourcequotas", quota)
        with pytest.raises(
            ClusterUnavailable, match=r"refuses a pod with the image busybox:1\.36 \(403 Forbidden: .*quota"
        ):
            try_image(api, namespace, "busybox:1.36", within_s=WITHIN_S)
