"""Server-side apply on the embedded cluster: what a manager applies is its own, and nobody takes it unasked."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_support import embedded
from test_embedded_api import Raw

from exitcode_fixtures.api import Json, KubernetesApi, connected
from exitcode_fixtures.crds import CRDS, bundled_crds
from exitcode_fixtures.errors import HarnessError
from exitcode_fixtures.waiting import wait_for

MAPS = "/api/v1/namespaces/default/configmaps"
APPLY = {"Content-Type": "application/apply-patch+yaml"}


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with embedded(tmp_path_factory.mktemp("embedded")) as cluster:
        yield cluster.kubeconfig


@pytest.fixture(scope="module")
def api(kubeconfig: Path) -> Iterator[KubernetesApi]:
    with connected(kubeconfig) as api:
        yield api


@pytest.fixture
def raw(kubeconfig: Path) -> Iterator[Raw]:
    connection = Raw(kubeconfig)
    yield connection
    connection.close()


def config(name: str, **data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def apply(raw: Raw, body: Json, manager: str = "one", *, path: str = MAPS, **query: str) -> tuple[int, Any]:
    asked = "&".join(f"{key}={value}" for key, value in {"fieldManager": manager, **query}.items())
    return raw.send("PATCH", f"{path}/{body['metadata']['name']}?{asked}", body, **APPLY)


def test_it_creates_then_changes_and_lets_go_of_what_is_no_longer_wanted(raw: Raw, api: KubernetesApi) -> None:
    code, made = apply(raw, config("own", a="1", b="2"))
    assert (code, made["data"]) == (201, {"a": "1", "b": "2"})
    api.merge_patch(f"{MAPS}/own", {"data": {"theirs": "3"}})
    code, changed = apply(raw, config("own", a="4"))
    assert (code, changed["data"]) == (200, {"a": "4", "theirs": "3"})
    assert changed["metadata"]["uid"] == made["metadata"]["uid"]
    _, again = apply(raw, config("own", a="4"))
    assert again["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"], "nothing was changed"


def test_what_is_somebody_elses_is_not_taken_unless_by_force(raw: Raw, api: KubernetesApi) -> None:
    apply(raw, config("shared", a="1", b="1"), "first")
    code, refused = apply(raw, config("shared", a="2", b="2"), "second")
    assert (code, refused["reason"]) == (409, "Conflict")
    assert refused["message"] == (
        'Apply failed with 2 conflicts: conflicts with "first" using v1:\n- .data.a\n- .data.b'
    )
    assert refused["details"]["causes"][0] == {
        "reason": "FieldManagerConflict",
        "message": 'conflict with "first" using v1',
        "field": ".data.a",
    }
    assert api.get(f"{MAPS}/shared")["data"] == {"a": "1", "b": "1"}
    assert apply(raw, config("shared", a="1"), "second")[0] == 200, "the same value is no conflict"
    assert apply(raw, config("shared", b="2"), "second", force="true")[1]["data"] == {"a": "1", "b": "2"}
    code, refused = apply(raw, config("shared", a="1", b="1"), "first")
    assert (code, refused["message"]) == (409, 'Apply failed with 1 conflict: conflict with "second" using v1: .data.b')
    assert apply(raw, config("shared"), "first")[1]["data"] == {"b": "2"}, "it gives up what only it wanted"


def test_what_was_written_by_other_means_is_somebody_elses(raw: Raw, api: KubernetesApi) -> None:
    api.create(MAPS, config("posted", a="1"))
    assert apply(raw, config("posted", a="2"))[0] == 409
    code, added = apply(raw, config("posted", b="2"))
    assert (code, added["data"]) == (200, {"a": "1", "b": "2"})
    api.merge_patch(f"{MAPS}/posted", {"data": {"b": "3"}})
    assert apply(raw, config("posted", b="2"))[0] == 409
    assert apply(raw, config("posted"))[1]["data"] == {"a": "1", "b": "3"}


def test_what_the_server_filled_in_is_nobodys(raw: Raw) -> None:
    services = "/api/v1/namespaces/default/services"
    ports = [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]
    service: Json = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": ports}}
    _, made = apply(raw, service, path=services)
    assert made["spec"]["ports"][1]["protocol"] == "TCP"
    code, changed = apply(raw, {**service, "spec": {"ports": ports[:1], "sessionAffinity": "ClientIP"}}, path=services)
    assert code == 200, changed
    assert [port["port"] for port in changed["spec"]["ports"]] == [80], "the other one went with what was filled in"
    assert changed["spec"]["sessionAffinity"] == "ClientIP"
    _, more = apply(raw, {**service, "spec": {"ports": [{"port": 82, "name": "c"}]}}, "second", path=services)
    assert [port["port"] for port in more["spec"]["ports"]] == [80, 82]


def test_custom_resources_and_definitions_can_be_applied(raw: Raw, api: KubernetesApi) -> None:
    crd = bundled_crds()["tfjobs.kubeflow.org"]
    assert apply(raw, crd, path=CRDS)[0] == 201
    wait_for(
        api,
        CRDS,
        crd["metadata"]["name"],
        lambda found: "conditions" in ((found or {}).get("status") or {}),
        within_s=20,
        on_timeout=lambda _: HarnessError("The CRD was never established.", ""),
    )
    jobs = "/apis/kubeflow.org/v1/namespaces/default/tfjobs"
    worker = {"template": {"spec": {"containers": [{"name": "tensorflow", "image": "busybox"}]}}}
    job: Json = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "j"}}
    code, made = apply(raw, {**job, "spec": {"tfReplicaSpecs": {"Worker": {"replicas": 1, **worker}}}}, path=jobs)
    assert (code, made["metadata"]["generation"]) == (201, 1)
    code, made = apply(raw, {**job, "spec": {"tfReplicaSpecs": {"Worker": {"replicas": 2, **worker}}}}, path=jobs)
    assert (code, made["metadata"]["generation"]) == (200, 2)
    api.delete(f"{jobs}/j")


@pytest.mark.parametrize(
    ("query", "body", "code", "says"),
    [
        ("", config("x"), 422, 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required'),
        ("?fieldManager=m", config("y"), 400, "does not match the name on the URL"),
        ("?fieldManager=m", b"a: [", 400, "error decoding YAML"),
        ("?fieldManager=m", {**config("x"), "kind": "Secret"}, 400, "Secret"),
        ("?fieldManager=m", {**config("x"), "metadata": {"uid": "1"}}, 409, "uid mismatch"),
    ],
)
def test_what_cannot_be_applied_is_refused(raw: Raw, query: str, body: Any, code: int, says: str) -> None:
    got, answer = raw.send("PATCH", f"{MAPS}/x{query}", body, **APPLY)
    assert got == code, answer
    assert says in answer["message"]
    assert raw.send("GET", f"{MAPS}/x")[0] == 404


def test_yaml_is_read_as_kubernetes_reads_it_and_a_dry_run_leaves_nothing(raw: Raw) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\ndata: {day: 2020-01-01}\n"
    code, made = raw.send("PATCH", f"{MAPS}/dry?fieldManager=m&dryRun=All", text, **APPLY)
    assert (code, made["data"], made["metadata"]["name"]) == (201, {"day": "2020-01-01"}, "dry")
    assert raw.send("GET", f"{MAPS}/dry")[0] == 404


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_applies_on_the_server(kubeconfig: Path) -> None:
    def kubectl(body: Json, *more: str) -> "subprocess.CompletedProcess[str]":
        command = ["kubectl", "--kubeconfig", str(kubeconfig), "apply", "--server-side", "-f", "-", *more]
        said = json.dumps(body)
        return subprocess.run(command, input=said, capture_output=True, text=True, check=False, timeout=60)

    assert kubectl(config("by-kubectl", a="1")).stdout == "configmap/by-kubectl serverside-applied\n"
    assert kubectl(config("by-kubectl", a="2")).returncode == 0
    refused = kubectl(config("by-kubectl", a="3"), "--field-manager=other")
    assert 'conflict with "kubectl" using v1: .data.a' in refused.stderr
    assert kubectl(config("by-kubectl", a="3"), "--field-manager=other", "--force-conflicts").returncode == 0
