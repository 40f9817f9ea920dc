"""The way to an API server: what it gives, and the one sentence for each way in which it can fail."""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cluster_support import embedded, write_kubeconfig

from exitcode_fixtures.api import ApiError, KubernetesApi, connected
from exitcode_fixtures.clusters.cluster import Cluster
from exitcode_fixtures.errors import ClusterUnavailable, UsageError

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
Answer = Callable[[BaseHTTPRequestHandler], None]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with embedded(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def api(cluster: Cluster) -> Iterator[KubernetesApi]:
    with connected(cluster.kubeconfig) as api:
        yield api


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return str(request.node.originalname).replace("_", "-")


def config_map(name: str, **data: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"of": name}}, "data": data}


def test_objects_are_created_read_changed_and_deleted(api: KubernetesApi, name: str) -> None:
    path = f"{CONFIG_MAPS}/{name}"
    created = api.create(CONFIG_MAPS, config_map(name, a="1"))
    assert api.get(path) == created
    assert api.merge_patch(path, {"data": {"a": None, "b": "2"}})["data"] == {"b": "2"}
    current = api.get(path)
    assert api.replace(path, {**current, "data": {"c": "3"}})["data"] == {"c": "3"}
    with pytest.raises(ApiError, match="409 Conflict") as conflict:
        api.replace(path, {**current, "data": {}})
    assert (conflict.value.code, conflict.value.reason) == (409, "Conflict")
    api.delete(path, uid=current["metadata"]["uid"])
    assert not api.exists(path)
    assert api.delete(path, missing_ok=True) == {}


def test_a_refusal_carries_what_the_status_says(api: KubernetesApi) -> None:
    with pytest.raises(ApiError) as refusal:
        api.get(f"{CONFIG_MAPS}/absent")
    assert (refusal.value.code, refusal.value.reason) == (404, "NotFound")
    assert refusal.value.details["name"] == "absent"
    assert 'configmaps "absent" not found' in refusal.value.message


def test_only_the_incarnation_that_is_meant_is_deleted(api: KubernetesApi, name: str) -> None:
    api.create(CONFIG_MAPS, config_map(name))
    with pytest.raises(ApiError) as refusal:
        api.delete(f"{CONFIG_MAPS}/{name}", uid="another")
    assert refusal.value.code == 409


def test_a_list_is_whole_however_it_is_paged(api: KubernetesApi, name: str) -> None:
    for number in range(5):
        api.create(CONFIG_MAPS, {**config_map(name), "metadata": {"name": f"{name}-{number}", "labels": {"of": name}}})
    paged = api.list(CONFIG_MAPS, label_selector=f"of={name}", page_size=2)
    assert [item["metadata"]["name"] for item in paged["items"]] == [f"{name}-{number}" for number in range(5)]
    assert int(paged["metadata"]["resourceVersion"]) > 0


def test_a_watch_delivers_what_happens_and_ends_when_told(api: KubernetesApi, name: str) -> None:
    version = api.list(CONFIG_MAPS)["metadata"]["resourceVersion"]
    stop = threading.Event()
    seen = []
    api.create(CONFIG_MAPS, config_map(name))
    for event in api.watch(CONFIG_MAPS, resource_version=version, stop=stop):
        seen.append((event["type"], event["object"]["metadata"]["name"]))
        if event["type"] == "ADDED":
            api.delete(f"{CONFIG_MAPS}/{name}")
        if event["type"] == "DELETED":
            stop.set()
    assert seen[0] == ("ADDED", name)
    assert seen[-1] == ("DELETED", name)


def test_silent_watches_end_when_another_thread_says_so(api: KubernetesApi) -> None:
    version = api.list(CONFIG_MAPS)["metadata"]["resourceVersion"]
    stop = threading.Event()
    watches = [
        threading.Thread(target=list, args=(api.watch(CONFIG_MAPS, resource_version=version, stop=stop),))
        for _ in range(3)
    ]
    for watch in watches:
        watch.start()
    stop.set()
    for watch in watches:
        watch.join(10)
    assert not any(watch.is_alive() for watch in watches)


def test_a_watch_that_is_stopped_before_it_begins_asks_nothing(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    with connected(write_kubeconfig(tmp_path / "config", "http://127.0.0.1:9")) as api:
        assert list(api.watch(CONFIG_MAPS, resource_version="1", stop=stop)) == []


def test_the_servers_clock_has_a_zone(api: KubernetesApi) -> None:
    assert api.server_time().tzinfo is not None


def test_threads_that_connect_at_the_same_time_do_not_take_each_others_certificates(cluster: Cluster) -> None:
    def connect(_number: int) -> str:
        with connected(cluster.kubeconfig) as api:
            return str(api.get("/version")["major"])

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(connect, range(24))) == {"1"}


def test_no_credential_stays_on_disk(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with connected(cluster.kubeconfig) as api:
        api.get("/version")
        assert list(tmp_path.iterdir()) == []


@contextmanager
def server(answer: Answer, folder: Path, *, timeout_s: float = 5) -> Iterator[KubernetesApi]:
    """A server that answers every GET as the test says."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            answer(self)

        def log_message(self, *arguments: object) -> None:
            del arguments

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        path = write_kubeconfig(folder / "kubeconfig", f"http://127.0.0.1:{httpd.server_port}")
        with connected(path, timeout_s=timeout_s) as api:
            yield api
    finally:
        httpd.shutdown()
        thread.join()
        httpd.server_close()


def send(handler: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body)))
    for key, value in headers.items():
        handler.send_header(key.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (401, b"{}", "refuses the credentials of the kubeconfig"),
        (200, b"<html>portal</html>", "answered GET /version with something other than a JSON object"),
        (200, b"[1]", "answered GET /version with something other than a JSON object"),
    ],
)
def test_an_answer_of_something_else_is_one_sentence(tmp_path: Path, status: int, body: bytes, sentence: str) -> None:
    with (
        server(lambda handler: send(handler, status, body), tmp_path) as api,
        pytest.raises(ClusterUnavailable, match=sentence),
    ):
        api.get("/version")


def test_a_refusal_that_is_no_status_keeps_its_text(tmp_path: Path) -> None:
    with server(lambda handler: send(handler, 502, b"bad\ngateway"), tmp_path) as api:
        with pytest.raises(ApiError, match="bad gateway") as refusal:
            api.get("/version")
        assert refusal.value.code == 502


def test_a_server_that_does_not_answer_is_given_up(tmp_path: Path) -> None:
    release = threading.Event()

    def say_nothing(_: BaseHTTPRequestHandler) -> None:
        release.wait(10)

    with server(say_nothing, tmp_path, timeout_s=0.3) as api:
        with pytest.raises(ClusterUnavailable, match="did not answer within"):
            api.get("/version")
        release.set()


def test_a_read_is_repeated_when_the_connection_breaks(tmp_path: Path) -> None:
    calls: list[str] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        calls.append(handler.path)
        if len(calls) == 1:
            handler.close_connection = True
            handler.connection.close()
        else:
            send(handler, 200, b'{"gitVersion": "v1"}')

    with server(answer, tmp_path) as api:
        assert api.get("/version") == {"gitVersion": "v1"}
    assert len(calls) == 2


def test_a_server_that_asks_for_patience_gets_it(tmp_path: Path) -> None:
    calls: list[str] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        calls.append(handler.path)
        if len(calls) == 1:
            send(handler, 429, b"{}", Retry_After="0")
        else:
            send(handler, 200, b"{}")

    with server(answer, tmp_path) as api:
        assert api.get("/version") == {}


def test_an_error_event_ends_a_watch_with_its_code(tmp_path: Path) -> None:
    event = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}
    with server(lambda handler: send(handler, 200, json.dumps(event).encode() + b"\n"), tmp_path) as api:
        with pytest.raises(ApiError, match="too old") as refusal:
            list(api.watch("/api/v1/pods", resource_version="1", stop=threading.Event()))
        assert refusal.value.code == 410


def test_half_a_watch_event_is_no_event(tmp_path: Path) -> None:
    body = b'{"type": "ADDED", "object": {}}\n{"type": "MODI'
    with server(lambda handler: send(handler, 200, body), tmp_path) as api:
        events = list(api.watch("/api/v1/pods", resource_version="1", stop=threading.Event()))
    assert events == [{"type": "ADDED", "object": {}}]


def test_nobody_at_the_address_is_one_sentence(tmp_path: Path) -> None:
    with connected(write_kubeconfig(tmp_path / "config", "http://127.0.0.1:9")) as api:
        with pytest.raises(ClusterUnavailable, match=r"cannot be reached: .*Connection refused") as problem:
            api.get("/version")
        assert problem.value.advice


def test_a_certificate_of_somebody_else_is_one_sentence(cluster: Cluster, tmp_path: Path) -> None:
    with connected(cluster.kubeconfig) as api:
        address = api.server
    if not address.startswith("https:"):
        pytest.skip("the embedded cluster speaks plain HTTP")
    with (
        connected(write_kubeconfig(tmp_path / "config", address)) as stranger,
        pytest.raises(ClusterUnavailable, match="cannot be trusted"),
    ):
        stranger.get("/version")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "does not exist"),
        ("", "holds no configuration"),
        ("- a", "holds no configuration"),
        ("a: [", "is not YAML"),
        ("{apiVersion: v1}", "has no current-context"),
        ("{current-context: a}", "has no context 'a'"),
        ("{current-context: a, contexts: 3}", "is wrong at contexts"),
        ("{current-context: a, contexts: [{name: a, context: {cluster: b}}]}", "has no cluster 'b'"),
        (
            "{current-context: a, contexts: [{name: a, context: {cluster: b}}], clusters: [{name: b, cluster: {}}]}",
            "is wrong at clusters.0.cluster.server",
        ),
        (
            "{current-context: a, contexts: [{name: a, context: {cluster: b}}],"
            " clusters: [{name: b, cluster: {server: 'https://x', certificate-authority: /absent.pem}}]}",
            "cannot be used: .*absent.pem",
        ),
        (
            "{current-context: a, contexts: [{name: a, context: {cluster: b}}],"
            " clusters: [{name: b, cluster: {server: 'https://x', certificate-authority-data: '!'}}]}",
            "cannot be used",
        ),
    ],
)
def test_a_wrong_kubeconfig_is_one_sentence(tmp_path: Path, text: str | None, sentence: str) -> None:
    path = tmp_path / "kubeconfig"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=sentence) as problem:
        KubernetesApi.connect(path)
    assert str(path) in problem.value.problem
    assert "\n" not in str(problem.value)
