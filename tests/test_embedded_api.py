"""The embedded cluster's API over real HTTP: the official client, who is let in, watches, and how the process ends."""

import http.client
import json
import os
import signal
import socket
import ssl
import stat
import subprocess
import sys
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from embedded_support import embedded_process
from kubernetes import client, config, watch

MERGE = {"Content-Type": "application/merge-patch+json"}
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


class Raw:
    """One connection, and nothing between the test and the wire."""

    def __init__(self, kubeconfig: Path, token: str | None = None) -> None:
        content = yaml.safe_load(kubeconfig.read_text())
        cluster = content["clusters"][0]["cluster"]
        self.token = content["users"][0]["user"]["token"] if token is None else token
        self.address: str = cluster["server"].removeprefix("https://")
        self.tls = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
        self.connection = http.client.HTTPSConnection(self.address, context=self.tls, timeout=30)

    def send(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
        sent = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        self.connection.request(method, path, data, {**sent, **headers})
        answer = self.connection.getresponse()
        text = answer.read().decode()
        return answer.status, json.loads(text) if text.startswith("{") else text

    def close(self) -> None:
        self.connection.close()


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with embedded_process(tmp_path_factory.mktemp("embedded") / "state") as (path, _):
        yield path


@pytest.fixture
def raw(kubeconfig: Path) -> Iterator[Raw]:
    connection = Raw(kubeconfig)
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def official(kubeconfig: Path) -> Iterator[client.ApiClient]:
    with config.new_client_from_config(str(kubeconfig)) as api:
        yield api


def pods(namespace: str = "default") -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def pod(name: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "busybox"}]
    return {"metadata": {"name": name}, "spec": {"schedulerName": "nobody", "containers": containers, **spec}}


# Who is let in


@pytest.mark.parametrize("token", ["", "wrong", "Bearer", "ä"])
def test_nobody_is_let_in_without_the_token(kubeconfig: Path, token: str) -> None:
    stranger = Raw(kubeconfig, token.encode().decode("latin-1"))
    code, status = stranger.send("GET", "/api/v1/secrets")
    assert (code, status["reason"], status["kind"]) == (401, "Unauthorized", "Status")
    for path in ("/healthz", "/readyz", "/livez"):
        assert stranger.send("GET", path) == (200, "ok")
    assert stranger.send("GET", "/version")[1]["gitVersion"] == "v1.20.2-embedded"
    stranger.close()


def test_the_kubeconfig_is_for_its_owner_only(kubeconfig: Path) -> None:
    assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
    assert stat.S_IMODE(kubeconfig.parent.stat().st_mode) == 0o700


def test_only_the_loopback_interface_is_listened_on(raw: Raw) -> None:
    assert raw.address.startswith("127.0.0.1:")


def test_a_client_that_does_not_trust_the_authority_is_warned(raw: Raw) -> None:
    host, _, port = raw.address.partition(":")
    with socket.create_connection((host, int(port))) as plain, pytest.raises(ssl.SSLCertVerificationError):
        ssl.create_default_context().wrap_socket(plain, server_hostname=host)


# The official client


def test_the_official_client_creates_reads_changes_and_deletes(official: client.ApiClient) -> None:
    core = client.CoreV1Api(official)
    made = core.create_namespaced_config_map(
        "default", client.V1ConfigMap(metadata=client.V1ObjectMeta(generate_name="made-"), data={"a": "b"})
    )
    name = made.metadata.name
    assert core.read_namespaced_config_map(name, "default").data == {"a": "b"}
    made.data = {"a": "c"}
    changed = core.replace_namespaced_config_map(name, "default", made)
    with pytest.raises(client.ApiException) as refused:
        core.replace_namespaced_config_map(name, "default", made)
    assert (refused.value.status, json.loads(refused.value.body)["reason"]) == (409, "Conflict")
    patched = core.patch_namespaced_config_map(name, "default", {"data": {"d": "e"}})
    assert (changed.data, patched.data) == ({"a": "c"}, {"a": "c", "d": "e"})
    assert core.delete_namespaced_config_map(name, "default")["status"] == "Success"
    assert name not in [one.metadata.name for one in core.list_namespaced_config_map("default").items]


def test_the_official_client_watches(official: client.ApiClient) -> None:
    core = client.CoreV1Api(official)
    version = core.list_namespaced_secret("default").metadata.resource_version
    body = client.V1Secret(metadata=client.V1ObjectMeta(name="watched"), string_data={"a": "b"})
    core.create_namespaced_secret("default", body)
    core.delete_namespaced_secret("watched", "default")
    stream = watch.Watch().stream(core.list_namespaced_secret, "default", resource_version=version, timeout_seconds=1)
    assert [(event["type"], event["object"].metadata.name) for event in stream] == [
        ("ADDED", "watched"),
        ("DELETED", "watched"),
    ]


def test_the_official_client_handles_custom_objects(official: client.ApiClient, raw: Raw) -> None:
    raw.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
    custom = client.CustomObjectsApi(official)
    place = ("example.com", "v1", "default", "things")
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "one"}, "spec": {"a": 1}}
    custom.create_namespaced_custom_object(*place, thing)
    custom.patch_namespaced_custom_object_status(*place, "one", {"status": {"phase": "Good"}, "spec": {"a": 2}})
    found = custom.get_namespaced_custom_object(*place, "one")
    assert (found["spec"], found["status"]) == ({"a": 1}, {"phase": "Good"})
    assert len(custom.list_namespaced_custom_object(*place)["items"]) == 1
    custom.delete_namespaced_custom_object(*place, "one")


@pytest.mark.parametrize(
    ("group", "version"), [("scheduling.volcano.sh", "v1beta1"), ("scheduling.x-k8s.io", "v1alpha1")]
)
def test_pod_groups_are_ordinary_custom_resources(raw: Raw, group: str, version: str) -> None:
    spec = {"type": "object", "properties": {"minMember": {"type": "integer", "format": "int32"}}}
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    columns = [{"name": "MinMember", "type": "integer", "jsonPath": ".spec.minMember"}]
    served = {"name": version, "served": True, "storage": True, "subresources": {"status": {}}}
    definition = {
        **CRD,
        "metadata": {"name": f"podgroups.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "podgroups", "kind": "PodGroup", "shortNames": ["pg"]},
            "versions": [{**served, "schema": {"openAPIV3Schema": schema}, "additionalPrinterColumns": columns}],
        },
    }
    assert raw.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)[0] == 201
    place = f"/apis/{group}/{version}/namespaces/default/podgroups"
    body = {
        "apiVersion": f"{group}/{version}",
        "kind": "PodGroup",
        "metadata": {"name": "job"},
        "spec": {"minMember": 4},
    }
    assert raw.send("POST", place, body)[0] == 201
    code, said = raw.send("PATCH", f"{place}/job/status", {"status": {"phase": "Inqueue"}}, **MERGE)
    assert (code, said["status"], said["metadata"]["generation"]) == (200, {"phase": "Inqueue"}, 1)
    table = raw.send("GET", place, Accept="application/json;as=Table;v=v1;g=meta.k8s.io")[1]
    assert table["rows"][0]["cells"] == ["job", 4]


# Rules that the replayed script cannot ask a shared cluster about


def test_a_pod_of_an_unknown_service_account_is_refused(raw: Raw) -> None:
    code, status = raw.send("POST", pods(), pod("strange", serviceAccountName="nobody"))
    assert code == 403
    assert status["message"] == (
        'pods "strange" is forbidden: error looking up service account default/nobody: '
        'serviceaccount "nobody" not found'
    )


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"hostNetwork": True}, "spec.hostNetwork"),
        ({"volumes": [{"name": "v", "emptyDir": {}}]}, "a volume of type emptyDir"),
        ({"containers": [{"name": "main", "image": "alpine"}]}, '"alpine" (only busybox is there)'),
        (
            {"containers": [{"name": "main", "image": "busybox", "securityContext": {"privileged": True}}]},
            "securityContext.privileged",
        ),
        (
            {"containers": [{"name": "main", "image": "busybox", "livenessProbe": {"exec": {"command": ["x"]}}}]},
            "livenessProbe",
        ),
    ],
)
def test_what_cannot_be_given_is_refused_and_named(raw: Raw, spec: dict[str, Any], named: str) -> None:
    code, status = raw.send("POST", pods(), pod("greedy", **spec))
    assert (code, status["reason"]) == (403, "Forbidden")
    assert named in status["message"]


@pytest.mark.parametrize(
    "image", ["busybox", "busybox:1.37.0-glibc", "docker.io/library/busybox:1", "busybox@sha256:" + "0" * 64]
)
def test_every_spelling_of_busybox_is_accepted(raw: Raw, image: str) -> None:
    containers = [{"name": "main", "image": image}]
    assert raw.send("POST", pods() + "?dryRun=All", pod("spelt", containers=containers))[0] == 201


def test_an_expired_page_is_gone(tmp_path: Path) -> None:
    with embedded_process(tmp_path / "state", "--history", "20") as (kubeconfig, _):
        raw, place = Raw(kubeconfig), "/api/v1/namespaces/default/configmaps"
        for name in ("a", "b", "c"):
            raw.send("POST", place, {"metadata": {"name": name}})
        page = raw.send("GET", f"{place}?limit=1")[1]
        token, version = page["metadata"]["continue"], page["metadata"]["resourceVersion"]
        raw.send("DELETE", f"{place}/b")
        rest = raw.send("GET", f"{place}?limit=5&continue={token}")[1]
        assert [one["metadata"]["name"] for one in rest["items"]] == ["b", "c"]
        for number in range(40):
            raw.send("PATCH", f"{place}/c", {"data": {"n": str(number)}}, **MERGE)
        code, status = raw.send("GET", f"{place}?limit=5&continue={token}")
        assert (code, status["reason"]) == (410, "Expired")
        code, line = raw.send("GET", f"{place}?watch=1&resourceVersion={version}")
        assert (code, line["type"], line["object"]["code"]) == (200, "ERROR", 410)
        raw.close()


def test_a_watch_ends_with_a_bookmark_where_it_was_asked_for(raw: Raw) -> None:
    place = "/api/v1/namespaces/kube-public/configmaps"
    code, line = raw.send("GET", f"{place}?watch=1&timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion=")
    assert (code, line["type"], line["object"]["kind"]) == (200, "BOOKMARK", "ConfigMap")
    newest = raw.send("GET", place)[1]["metadata"]["resourceVersion"]
    assert int(line["object"]["metadata"]["resourceVersion"]) <= int(newest)


def test_a_client_that_wants_the_list_from_a_watch_is_told_to_list(raw: Raw) -> None:
    place = "/api/v1/namespaces/default/configmaps"
    code, refused = raw.send("GET", f"{place}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
    assert (code, refused["reason"]) == (422, "Invalid")
    assert refused["details"]["causes"][0]["field"] == "sendInitialEvents"


def test_many_watchers_get_the_same_bytes(kubeconfig: Path, raw: Raw) -> None:
    place, seen, ready = "/api/v1/namespaces/default/configmaps", [], threading.Barrier(4)

    def follow() -> None:
        watcher = Raw(kubeconfig)
        headers = {"Authorization": f"Bearer {watcher.token}"}
        path = f"{place}?watch=1&fieldSelector=metadata.name%3Dshared"
        watcher.connection.request("GET", path, headers=headers)
        answer = watcher.connection.getresponse()
        ready.wait(30)
        seen.append([answer.readline() for _ in range(2)])
        answer.close()
        watcher.close()

    threads = [threading.Thread(target=follow) for _ in range(3)]
    for thread in threads:
        thread.start()
    ready.wait(30)
    raw.send("POST", place, {"metadata": {"name": "shared"}})
    raw.send("DELETE", f"{place}/shared")
    for thread in threads:
        thread.join(30)
    assert len(seen) == 3
    assert seen[0] == seen[1] == seen[2]
    assert [json.loads(line)["type"] for line in seen[0]] == ["ADDED", "DELETED"]


@pytest.mark.parametrize(
    "body",
    [
        b"null",
        b"[]",
        b"1",
        b"{",
        b'{"metadata": []}',
        b'{"metadata": {"name": 1}}',
        b'{"spec": []}',
        b"\xff",
        b"[" * 9999,
    ],
)
def test_nonsense_is_refused_with_a_status(raw: Raw, body: bytes) -> None:
    for path in (pods(), "/api/v1/namespaces", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"):
        code, status = raw.send("POST", path, body)
        assert code in (400, 422), (path, status)
        assert status["kind"] == "Status"


def test_a_body_that_is_too_large_is_refused(raw: Raw) -> None:
    huge = {"metadata": {"name": "huge"}, "data": {"a": "x" * 4_000_000}}
    code, status = raw.send("POST", "/api/v1/namespaces/default/configmaps", huge)
    assert (code, status["reason"]) == (413, "RequestEntityTooLarge")


# The process


@contextmanager
def start(state: Path, *options: str) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "exitcode_fixtures.embedded", "--state-dir", str(state), *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_cluster_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with start(tmp_path / "state") as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert set(ready) == {"kubeconfig", "server"}
        raw = Raw(Path(ready["kubeconfig"]))
        assert raw.send("GET", "/readyz") == (200, "ok")
        os.kill(process.pid, number)
        rest, complaints = process.communicate(timeout=30)
    raw.close()
    assert (process.returncode, rest, complaints) == (0, "", "")
    assert not Path(ready["kubeconfig"]).exists()


def test_the_cluster_ends_with_its_standard_input(tmp_path: Path) -> None:
    with start(tmp_path / "state", "--until-stdin-closes") as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        process.stdin.close()
        process.stdin = None
        _, complaints = process.communicate(timeout=30)
    assert (process.returncode, complaints) == (0, "")


def test_a_port_that_is_taken_is_said_so(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with start(tmp_path / "state", "--port", port) as process:
            out, complaints = process.communicate(timeout=30)
    assert (process.returncode, out) == (3, "")
    assert port in complaints
    assert "Traceback" not in complaints


def test_a_state_directory_that_cannot_be_made_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with start(tmp_path / "file" / "state") as process:
        out, complaints = process.communicate(timeout=30)
    assert (process.returncode, out) == (3, "")
    assert "--state-dir" in complaints
    assert "Traceback" not in complaints
