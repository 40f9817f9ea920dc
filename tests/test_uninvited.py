"""Another operator in the cluster: a run that would be of two operators does not begin."""

import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cluster_support import command, embedded, embedded_api, environment, run_command

from exitcode_conformance.kinds import KINDS
from exitcode_conformance.rendering import render_config_map, render_job
from exitcode_conformance.timeouts import Timeouts
from exitcode_fixtures.api import Json, KubernetesApi, connected
from exitcode_fixtures.crds import CRDS, bundled_crds
from exitcode_fixtures.errors import HarnessError
from exitcode_fixtures.probes import small_job
from exitcode_fixtures.run_folder import new_run_id
from exitcode_fixtures.run_namespace import NAMESPACES, RUN_LABEL, run_namespace
from exitcode_fixtures.uninvited import UninvitedOperator, nobody_else
from exitcode_fixtures.waiting import wait_for, wait_for_all

IMAGE = "busybox:1.36"
SMALL = "STATE-01 and tfjob-worker-exit0-worker1"
WITHIN_S = 60.0
KUBEFLOW = ("tfjobs.kubeflow.org", "pytorchjobs.kubeflow.org")
Act = Callable[[KubernetesApi, str], None]


def late(_: object) -> HarnessError:
    return HarnessError("It did not come.", "")


def make_a_pod(api: KubernetesApi, namespace: str) -> None:
    name = "untouched-pytorchjob"
    jobs = f"/apis/kubeflow.org/v1/namespaces/{namespace}/pytorchjobs"
    job = wait_for(api, jobs, name, lambda job: job is not None, within_s=WITHIN_S, on_timeout=late)
    assert job is not None
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": name, "uid": job["metadata"]["uid"]}
    container = {"name": "c", "image": IMAGE, "command": ["sh", "-c", "sleep 0"]}
    metadata = {"name": f"{name}-master-0", "ownerReferences": [{**owner, "controller": True}]}
    api.create(f"/api/v1/namespaces/{namespace}/pods", {"metadata": metadata, "spec": {"containers": [container]}})


def write_a_status(api: KubernetesApi, namespace: str) -> None:
    jobs = f"/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs"
    wait_for(api, jobs, "untouched-tfjob", lambda job: job is not None, within_s=WITHIN_S, on_timeout=late)
    condition = {"type": "Created", "status": "True"}
    api.merge_patch(f"{jobs}/untouched-tfjob/status", {"status": {"conditions": [condition]}})


def remove_the_job(api: KubernetesApi, namespace: str) -> None:
    jobs = f"/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs"
    wait_for(api, jobs, "untouched-tfjob", lambda job: job is not None, within_s=WITHIN_S, on_timeout=late)
    api.delete(f"{jobs}/untouched-tfjob")


def look(api: KubernetesApi, namespace: str) -> None:
    kinds = [KINDS["TFJob"], KINDS["PyTorchJob"], KINDS["JAXJob"]]  # the last is not served
    with nobody_else(api, namespace, kinds, timeouts=Timeouts(), image=IMAGE, labels={"run": "x"}):
        pass


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (make_a_pod, "made the pod untouched-pytorchjob-master-0"),
        (write_a_status, "wrote the status for untouched-tfjob"),
        (remove_the_job, "somebody removed untouched-tfjob"),
    ],
)
def test_whoever_acts_upon_a_job_is_found_and_no_job_is_left(tmp_path: Path, act: Act, told: str) -> None:
    with embedded_api(tmp_path) as api, run_namespace(api, new_run_id()) as namespace:
        for name in KUBEFLOW:
            api.create(CRDS, bundled_crds()[name])
        with ThreadPoolExecutor() as beside:
            acted = beside.submit(act, api, namespace)
            with pytest.raises(UninvitedOperator, match=told):
                look(api, namespace)
            acted.result()
        for plural in ("tfjobs", "pytorchjobs"):
            assert not api.list(f"/apis/kubeflow.org/v1/namespaces/{namespace}/{plural}")["items"]


def test_a_job_that_stays_as_it_was_made_tells_of_nobody(tmp_path: Path) -> None:
    with embedded_api(tmp_path) as api, run_namespace(api, new_run_id()) as namespace:
        for name in KUBEFLOW:
            api.create(CRDS, bundled_crds()[name])
        look(api, namespace)
        assert not api.list(f"/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs")["items"]


def test_a_label_that_somebody_puts_on_every_object_tells_of_nobody(tmp_path: Path) -> None:
    def put_a_label(api: KubernetesApi, namespace: str) -> None:
        jobs = f"/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs"
        wait_for(api, jobs, "untouched-tfjob", lambda job: job is not None, within_s=WITHIN_S, on_timeout=late)
        api.merge_patch(f"{jobs}/untouched-tfjob", {"metadata": {"labels": {"team": "x"}}})

    with embedded_api(tmp_path) as api, run_namespace(api, new_run_id()) as namespace:
        for name in KUBEFLOW:
            api.create(CRDS, bundled_crds()[name])
        with ThreadPoolExecutor() as beside:
            acted = beside.submit(put_a_label, api, namespace)
            look(api, namespace)
            acted.result()


class FillingIn(KubernetesApi):
    """Answers as an API server does whose CRD has a default of the status: it is in what is read, written or not."""

    def request(self, method: str, path: str, **options: Any) -> Json:
        answer = super().request(method, path, **options)
        if answer.get("kind") == "TFJob":
            answer.setdefault("status", {"observedGeneration": -1})
        return answer


def test_a_status_that_is_only_a_default_tells_of_nobody(tmp_path: Path) -> None:
    with embedded(tmp_path) as cluster, closing(FillingIn.connect(cluster.kubeconfig)) as api:
        api.create(CRDS, bundled_crds()["tfjobs.kubeflow.org"])
        with run_namespace(api, new_run_id()) as namespace:
            look(api, namespace)


def test_beside_an_operator_of_the_whole_cluster_no_other_is_certified(tmp_path: Path) -> None:
    with embedded(tmp_path / "cluster") as cluster, connected(cluster.kubeconfig) as api:
        for crd in bundled_crds().values():
            api.create(CRDS, crd)
        words = command("controller", "--kubeconfig", str(cluster.kubeconfig))
        with subprocess.Popen(words, stdin=subprocess.DEVNULL) as other:
            try:
                it_is_at_work(api)
                result = run_command(
                    "run",
                    f"--cluster=kubeconfig:{cluster.kubeconfig}",
                    f"--out={tmp_path / 'out'}",
                    "-k",
                    SMALL,
                    env=environment(tmp_path),
                    cwd=tmp_path,
                )
            finally:
                other.terminate()
                other.wait(WITHIN_S)
        assert result.returncode == 3, result.stderr
        assert "Another operator acts upon the TFJobs of this cluster" in result.stderr
        assert "start: {mode: none}" in result.stderr
        assert not api.list(NAMESPACES, label_selector=RUN_LABEL)["items"]


def it_is_at_work(api: KubernetesApi) -> None:
    scenario, kind = small_job("first", KINDS["TFJob"]), KINDS["TFJob"]
    namespace = f"{NAMESPACES}/default"
    api.create(f"{namespace}/configmaps", render_config_map(scenario, "default", Timeouts()))
    api.create(
        f"/apis/kubeflow.org/v1/namespaces/default/{kind.plural}",
        render_job(scenario, "default", Timeouts(), IMAGE, kind),
    )
    wait_for_all(api, f"{namespace}/pods", bool, within_s=WITHIN_S, on_timeout=late)
