"""What an operator brings along: read from wherever it stands, created in order, and never over what is there."""

import json
import shutil
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster_support import embedded, environment, run_command
from request_log import logged
from test_embedded_api import Raw
from test_rights import kubeconfig_of

from exitcode_fixtures.api import Json, KubernetesApi, connected
from exitcode_fixtures.clusters.cluster import Cluster
from exitcode_fixtures.crds import CRDS, bundled_crds
from exitcode_fixtures.created_objects import JOURNAL, CreatedObjects, remove_noted
from exitcode_fixtures.errors import ExitStatus, HarnessError, UsageError
from exitcode_fixtures.manifest_files import in_creation_order, read_manifests
from exitcode_fixtures.new_object import create_new
from exitcode_fixtures.operator_definitions import lent_definitions
from exitcode_fixtures.run_folder import new_run_id
from exitcode_fixtures.run_namespace import NAMESPACES, RUN_LABEL, run_namespace

TFJOB = "tfjobs.kubeflow.org"
RUN_S = 120.0
needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with embedded(tmp_path_factory.mktemp("embedded")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> Iterator[KubernetesApi]:
    with connected(cluster.kubeconfig) as api:
        yield api


def config(name: str, namespace: str | None = None, **data: str) -> Json:
    metadata = {"name": name} if namespace is None else {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def crd(group: str, *, scope: str = "Namespaced") -> Json:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    spec = {
        "group": group,
        "scope": scope,
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
    }
    metadata = {"name": f"things.{group}"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


def kustomization(folder: Path, *objects: Json, name: str = "kustomization.yaml", **more: Any) -> Path:
    folder.mkdir()
    for number, found in enumerate(objects):
        (folder / f"{number}.yaml").write_text(yaml.safe_dump(found), encoding="utf-8")
    content = {"resources": [f"{number}.yaml" for number in range(len(objects))], "namePrefix": "built-", **more}
    (folder / name).write_text(yaml.safe_dump(content), encoding="utf-8")
    return folder


@needs_kubectl
@pytest.mark.parametrize("name", ["kustomization.yaml", "kustomization.yml", "Kustomization"])
def test_a_kustomization_is_rendered(tmp_path: Path, name: str) -> None:
    folder = kustomization(tmp_path / "operator", config("a"), config("b"), name=name)
    (tmp_path / "plain.json").write_text(json.dumps(config("c")), encoding="utf-8")
    found = [one["metadata"]["name"] for one in read_manifests([folder, tmp_path / "plain.json"])]
    assert found == ["built-a", "built-b", "c"]


@needs_kubectl
def test_one_that_cannot_be_rendered_is_one_sentence_of_the_user(tmp_path: Path) -> None:
    folder = kustomization(tmp_path / "operator", resources=["absent.yaml"])
    with pytest.raises(UsageError, match=r"kustomization .*/operator cannot be rendered: .*absent\.yaml"):
        read_manifests([folder])


def test_without_kubectl_the_run_says_so_and_ends_with_3(tmp_path: Path) -> None:
    kustomization(tmp_path / "operator", config("a"))
    path = described(tmp_path, "operator")
    without = {**environment(tmp_path), "PATH": str(tmp_path / "empty")}
    words = ("run", "--operator", str(path), "-k", "STATE-01 and tfjob-worker-exit0-worker1")
    ran = run_command(*words, env=without, cwd=tmp_path, within_s=RUN_S)
    said = " ".join((ran.stdout + ran.stderr).split())
    assert ran.returncode == ExitStatus.HARNESS_FAILED, said
    assert f"{tmp_path / 'operator'} is a kustomization, and there is no kubectl on PATH that could render it." in said
    assert "Traceback" not in said


def described(folder: Path, *manifests: str) -> Path:
    """The reference controller, with manifests of its own."""
    bundled = yaml.safe_load((resources.files("exitcode_fixtures") / "operators" / "reference.yaml").read_text("utf-8"))
    bundled["start"]["manifests"] = list(manifests)
    path = folder / "operator.yaml"
    path.write_text(yaml.safe_dump(bundled), encoding="utf-8")
    return path


def test_what_others_need_comes_first_and_what_stops_others_last() -> None:
    kinds = ["ValidatingWebhookConfiguration", "Deployment", "ConfigMap", "Thing", "CustomResourceDefinition"]
    kinds += ["ServiceAccount", "Namespace", "APIService"]
    ordered = [found["kind"] for found in in_creation_order({"kind": kind} for kind in kinds)]
    assert ordered == [
        "Namespace",
        "CustomResourceDefinition",
        "ServiceAccount",
        "ConfigMap",
        "Deployment",
        "Thing",
        "ValidatingWebhookConfiguration",
        "APIService",
    ]


def test_it_is_applied_in_order_and_removed_in_the_opposite_order(api: KubernetesApi, cluster: Cluster) -> None:
    run_id, group = new_run_id(), "order.example.com"
    thing = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "t", "namespace": "made"}, "a": 1}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "made"}}
    with run_namespace(api, run_id) as namespace:
        created = CreatedObjects(api, namespace, run_id)
        made = created.create_all([thing, config("c", "made", a="1"), crd(group), space])
        assert [found["kind"] for found in made] == ["Namespace", "CustomResourceDefinition", "ConfigMap", "Thing"]
        noted = json.loads(api.get(f"/api/v1/namespaces/{namespace}/configmaps/{JOURNAL}")["data"]["paths"])
        assert [path.rpartition("/")[2] for path in noted] == ["made", f"things.{group}", "c", "t"]
        raw = Raw(cluster.kubeconfig)
        try:
            code, refused = raw.send(
                "PATCH",
                "/api/v1/namespaces/made/configmaps/c?fieldManager=another",
                config("c", "made", a="2"),
                **{"Content-Type": "application/apply-patch+yaml"},
            )
        finally:
            raw.close()
        assert (code, refused["message"].partition(" using")[0]) == (
            409,
            f'Apply failed with 1 conflict: conflict with "exitcode-conformance-{run_id}"',
        )
        versions = {path: api.list(path)["metadata"]["resourceVersion"] for path in (CRDS, NAMESPACES)}
        created.remove()
        assert gone_since(api, versions) == ["things.order.example.com", "made"]
        assert not any(map(api.exists, noted))


def gone_since(api: KubernetesApi, versions: dict[str, str]) -> list[str]:
    """What was deleted from collections since a version of each, in that order."""
    found: list[tuple[int, str]] = []
    for path, version in versions.items():
        for event in api.watch(path, resource_version=version, stop=threading.Event(), timeout_seconds=1):
            metadata = event["object"]["metadata"]
            found += [(int(metadata["resourceVersion"]), metadata["name"])] if event["type"] == "DELETED" else []
    return [name for _, name in sorted(found)]


def test_what_is_there_already_is_neither_changed_nor_removed(api: KubernetesApi) -> None:
    run_id = new_run_id()
    path = "/api/v1/namespaces/default/configmaps/theirs"
    api.create("/api/v1/namespaces/default/configmaps", config("theirs", a="1"))
    theirs = api.create(CRDS, crd("theirs.example.com"))
    try:
        with run_namespace(api, run_id) as namespace:
            before = api.get(path)
            created = CreatedObjects(api, namespace, run_id)
            assert created.create_all([crd("theirs.example.com", scope="Cluster")]) == []
            with pytest.raises(HarnessError, match="ConfigMap theirs is in the cluster already, and not of this run"):
                created.create_all([config("theirs", "default", a="2")])
            created.remove()
            assert remove_noted(api, namespace, run_id) == ()
            assert api.get(path) == before
            assert api.get(f"{CRDS}/things.theirs.example.com")["spec"] == theirs["spec"]
    finally:
        api.delete(path)
        api.delete(f"{CRDS}/things.theirs.example.com")


def test_a_server_without_server_side_apply_gets_a_post(api: KubernetesApi, cluster: Cluster, tmp_path: Path) -> None:
    def old(_method: str, _path: str, media_type: str) -> int | None:
        return 415 if media_type == "application/apply-patch+yaml" else None

    with through(cluster, tmp_path, old) as old_api:
        created = create_new(old_api, "/api/v1/namespaces/default/configmaps", config("posted", a="1"), run_id="one")
        assert (created or {})["data"] == {"a": "1"}
        assert (
            create_new(old_api, "/api/v1/namespaces/default/configmaps", config("posted", a="2"), run_id="one") is None
        )
    assert api.get("/api/v1/namespaces/default/configmaps/posted")["data"] == {"a": "1"}
    api.delete("/api/v1/namespaces/default/configmaps/posted")


def test_whoever_was_faster_gets_the_object_back(api: KubernetesApi, cluster: Cluster, tmp_path: Path) -> None:
    collection = "/api/v1/namespaces/default/configmaps"
    theirs = api.create(collection, config("faster", a="1"))

    def before_it_was_there(method: str, path: str, _media_type: str) -> int | None:
        return 404 if (method, path) == ("GET", f"{collection}/faster") else None

    with through(cluster, tmp_path, before_it_was_there) as early:
        labelled = {**config("faster", b="2"), "metadata": {"name": "faster", "labels": {"of": "ours"}}}
        assert create_new(early, collection, labelled, run_id="one") is None
        assert create_new(early, collection, config("faster", a="2"), run_id="one") is None, "a conflict"
    found = api.get(f"{collection}/faster")
    assert (found["data"], found["metadata"].get("labels")) == (theirs["data"], None)
    api.delete(f"{collection}/faster")


def test_of_two_runs_at_one_moment_the_second_leaves_the_first_one_its_object(
    api: KubernetesApi, cluster: Cluster, tmp_path: Path
) -> None:
    collection = "/api/v1/namespaces/default/configmaps"

    def of(run_id: str) -> Json:
        return {**config("both", a="1"), "metadata": {"name": "both", "labels": {RUN_LABEL: run_id}}}

    def before_it_was_there(method: str, path: str, _media_type: str) -> int | None:
        return 404 if (method, path) == ("GET", f"{collection}/both") else None

    assert create_new(api, collection, of("first"), run_id="first") is not None
    with through(cluster, tmp_path, before_it_was_there) as early:
        assert create_new(early, collection, of("second"), run_id="second") is None
    found = api.get(f"{collection}/both")
    assert (found["data"], found["metadata"]["labels"]) == ({"a": "1"}, {RUN_LABEL: "first"})
    api.delete(f"{collection}/both")


@contextmanager
def through(cluster: Cluster, folder: Path, answers: Callable[[str, str, str], int | None]) -> Iterator[KubernetesApi]:
    """The cluster behind a proxy that answers some requests itself."""
    content = yaml.safe_load(cluster.kubeconfig.read_text("utf-8"))
    entry = content["clusters"][0]["cluster"]
    trusted = b64decode(entry["certificate-authority-data"]).decode()
    with logged(entry["server"], trusted, answers=answers) as log:
        path = kubeconfig_of(folder, log.url, content["users"][0]["user"]["token"])
        with connected(path) as api:
            yield api


def test_a_note_keeps_what_others_of_the_run_have_noted(api: KubernetesApi) -> None:
    run_id = new_run_id()
    with run_namespace(api, run_id) as namespace:
        CreatedObjects(api, namespace, run_id).create_all([config("first", "default")])
        CreatedObjects(api, namespace, run_id).create_all([config("second", "default")])
        removed = remove_noted(api, namespace, run_id)
    assert [path.rpartition("/")[2] for path in removed] == ["second", "first"]


def test_crds_of_the_manifests_go_with_the_last_run_that_uses_them(api: KubernetesApi) -> None:
    brought = [crd("lent.example.com"), crd("whole.example.com", scope="Cluster")]
    first, second = new_run_id(), new_run_id()
    with run_namespace(api, second):
        with run_namespace(api, first), lent_definitions(api, brought, run_id=first):
            entered = lent_definitions(api, brought, run_id=second)
            entered.__enter__()
        assert api.exists(f"{CRDS}/things.lent.example.com")
        api.create("/apis/whole.example.com/v1/things", {"metadata": {"name": "t"}, **kind_of("whole.example.com")})
        entered.__exit__(None, None, None)
        assert not api.exists(f"{CRDS}/things.lent.example.com")
        assert api.exists(f"{CRDS}/things.whole.example.com"), "somebody uses it"
        api.delete(f"{CRDS}/things.whole.example.com")


def kind_of(group: str) -> Json:
    return {"apiVersion": f"{group}/v1", "kind": "Thing"}


@needs_kubectl
def test_a_run_takes_the_crds_that_the_operator_brings(tmp_path: Path) -> None:
    marked = bundled_crds()[TFJOB]
    annotations = {**(marked["metadata"].get("annotations") or {}), "example.com/of": "the operator"}
    own = {**marked, "metadata": {**marked["metadata"], "annotations": annotations}}
    kustomization(tmp_path / "operator", own, config("needed"), namePrefix="")
    words = ("run", "--operator", str(described(tmp_path, "operator")), "--out", str(tmp_path / "out"))
    case = ("-k", "STATE-01 and tfjob-worker-exit0-worker1")
    ran = run_command(*words, *case, env=environment(tmp_path), cwd=tmp_path, within_s=RUN_S)
    assert ran.returncode == ExitStatus.UNDECIDED, ran.stdout + ran.stderr
    assert "1 pass" in ran.stdout, ran.stdout
