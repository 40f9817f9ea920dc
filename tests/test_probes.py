"""The canary and the nonsense: what is said of an operator before anything of it is judged."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cluster_support import embedded_api, environment, run_command

from exitcode_conformance.kinds import KINDS, KindTraits
from exitcode_conformance.timeouts import Timeouts
from exitcode_fixtures.api import Json, KubernetesApi
from exitcode_fixtures.crds import CRDS, bundled_crds
from exitcode_fixtures.errors import HarnessError
from exitcode_fixtures.probes import NONSENSE_POLICY, NONSENSE_TYPE, Probes, small_job
from exitcode_fixtures.run_folder import new_run_id
from exitcode_fixtures.run_namespace import run_namespace
from exitcode_fixtures.waiting import wait_for

CASE = "STATE-01 and tfjob-worker-exit0-worker1"
RUN_S = 120.0


class Noted:
    """What the probes record, in place of a whole recording."""

    def __init__(self) -> None:
        self.actions: list[tuple[str, dict[str, Any]]] = []

    def action(self, scenario: str | None, action: str, **detail: Any) -> None:
        assert scenario is None
        self.actions.append((action, detail))


def actions(recording: Path, name: str) -> list[dict[str, Any]]:
    lines = (json.loads(line) for line in recording.read_text("utf-8").splitlines())
    return [line["detail"] for line in lines if line["type"] == "action" and line["action"] == name]


def run(operator: str, folder: Path) -> tuple[Path, str]:
    words = ("run", "--operator", operator, "-k", CASE, "--out", str(folder / "out"))
    ran = run_command(*words, env=environment(folder), cwd=folder, within_s=RUN_S)
    return folder / "out", " ".join((ran.stdout + ran.stderr).split())


@pytest.mark.parametrize(
    ("kind", "known", "chosen"),
    [
        ("TFJob", None, "Worker"),
        ("TFJob", ("PS", "Chief"), "Chief"),
        ("PyTorchJob", None, "Master"),
        ("PyTorchJob", ("Worker",), "Worker"),
        ("Job", None, "Worker"),
    ],
)
def test_a_small_job_is_of_a_type_that_the_operator_knows(
    kind: str, known: tuple[str, ...] | None, chosen: str
) -> None:
    job = small_job("canary", KINDS[kind].with_traits(KindTraits(replica_types=known)))
    assert [group.type for group in job.groups] == [chosen]


def test_an_operator_that_works_brings_the_canary_home(tmp_path: Path) -> None:
    out, said = run("reference", tmp_path)
    (canary,) = actions(out / "recording.jsonl", "canary")
    assert 0 < canary["seconds"] < RUN_S
    # The bundled CRDs know no such policy and no such type.
    answers = {detail["job"]: detail["answer"] for detail in actions(out / "recording.jsonl", "nonsense")}
    assert answers == {NONSENSE_POLICY: "refused", NONSENSE_TYPE: "refused"}
    assert "canary" not in said
    assert not (out / "canary.yaml").exists()


def test_one_that_does_nothing_does_not_and_the_user_can_see_why(tmp_path: Path) -> None:
    out, said = run("null", tmp_path)
    (canary,) = actions(out / "recording.jsonl", "canary")
    assert canary == {"problem": "got no pod within 10 s"}
    assert "The canary, a TFJob of one replica that exits 0, got no pod within 10 s." in said
    assert f"kubectl apply -f {out / 'canary.yaml'}" in said
    bodies = [json.loads(text) for text in (out / "canary.yaml").read_text("utf-8").split("---\n")]
    assert [body["kind"] for body in bodies] == ["ConfigMap", "TFJob"]
    assert len({body["metadata"]["namespace"] for body in bodies}) == 1


def without_schema(crd: Json) -> Json:
    versions = [
        {**v, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
        for v in crd["spec"]["versions"]
    ]
    return {**crd, "spec": {**crd["spec"], "versions": versions}}


def make_pod(api: KubernetesApi, namespace: str, job: str) -> None:
    found = api.get(f"/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs/{job}")
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": job, "uid": found["metadata"]["uid"]}
    container = {"name": "c", "image": "busybox:1.36", "command": ["sh", "-c", "sleep 0"]}
    metadata = {"name": f"{job}-0", "ownerReferences": [{**owner, "controller": True}]}
    api.create(f"/api/v1/namespaces/{namespace}/pods", {"metadata": metadata, "spec": {"containers": [container]}})


def fail(api: KubernetesApi, namespace: str, job: str) -> None:
    condition = {"type": "Failed", "status": "True"}
    path = f"/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs/{job}/status"
    api.merge_patch(path, {"status": {"conditions": [condition]}})


def act_upon(api: KubernetesApi, namespace: str, does: Any) -> None:
    jobs = f"/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs"
    late = HarnessError("The job was never submitted.", "")
    wait_for(api, jobs, NONSENSE_TYPE, lambda job: job is not None, within_s=RUN_S, on_timeout=lambda _: late)
    if does is not None:
        does(api, namespace, NONSENSE_TYPE)


@pytest.mark.parametrize(
    ("does", "answer", "told"),
    [(make_pod, "run", "whose kind of replica does not exist"), (fail, "failed", ""), (None, "ignored", "")],
)
def test_what_an_operator_does_about_nonsense_is_told(tmp_path: Path, does: Any, answer: str, told: str) -> None:
    said: list[str] = []
    noted = Noted()
    with embedded_api(tmp_path) as api, run_namespace(api, new_run_id()) as namespace:
        api.create(CRDS, without_schema(bundled_crds()["tfjobs.kubeflow.org"]))
        probes = Probes(
            api=api,
            recorder=noted,
            namespace=namespace,
            kind=KINDS["TFJob"],
            timeouts=Timeouts(),
            image="busybox:1.36",
            out=tmp_path,
            tell=said.append,
        )
        with ThreadPoolExecutor() as beside:
            acted = beside.submit(act_upon, api, namespace, does)
            assert probes.ask_nonsense() == {NONSENSE_POLICY: "ignored", NONSENSE_TYPE: answer}
            acted.result()
        made = {item["metadata"]["name"] for item in api.list(f"/api/v1/namespaces/{namespace}/configmaps")["items"]}
        assert {f"outcome-{NONSENSE_POLICY}", f"outcome-{NONSENSE_TYPE}"} <= made, "its pods have to be able to start"
    assert ("nonsense", {"job": NONSENSE_TYPE, "answer": answer}) in noted.actions
    assert len(said) == bool(told)
    assert all(told in text for text in said)


def test_a_selection_without_a_scenario_needs_no_probes(tmp_path: Path) -> None:
    words = ("run", "--profile", "extended", "-k", "mpijob-launcher-exit1", "--out", str(tmp_path / "out"))
    ran = run_command(*words, env=environment(tmp_path), cwd=tmp_path)
    assert "Traceback" not in ran.stderr, ran.stderr
    assert actions(tmp_path / "out" / "recording.jsonl", "canary") == []
