"""The informer against a server that plays a script: resumes, relists when its place is gone, survives what breaks."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from kubernetes.client.configuration import Configuration

from exitcode_reference_controller.api import Api, ApiError, Unreachable
from exitcode_reference_controller.informer import CannotList, Informer, Store

Script = list[tuple[str, Any]]
"""What is answered to each request in turn: ("list", body), ("watch", events), ("broken", events), (status, body)."""


def pod(name: str, version: int) -> dict[str, Any]:
    """An object."""
    return {"metadata": {"namespace": "n", "name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}}


def listed(version: int, *pods: dict[str, Any]) -> tuple[str, Any]:
    """The answer to a list."""
    return "list", {"metadata": {"resourceVersion": str(version)}, "items": list(pods)}


GONE = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}
BOOKMARK = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "50"}}}


class Server:
    """Plays a script, and keeps what it was asked."""

    def __init__(self, script: Script) -> None:
        self.asked: Queue[dict[str, str]] = Queue()
        steps = iter(script)
        asked = self.asked
        self.ended = ended = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                query = {key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()}
                asked.put(query)
                what, body = next(steps, ("watch", []))
                if what in ("watch", "broken"):
                    self.send_response(200)
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    for event in body:
                        line = json.dumps(event).encode() + b"\n"
                        self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
                    if what == "watch":
                        self.wfile.write(b"0\r\n\r\n")
                    else:
                        self.close_connection = True
                else:
                    data = json.dumps(body).encode()
                    self.send_response(200 if what == "list" else int(what))
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                if what == "watch" and not body:
                    ended.wait(30)

            def log_message(self, *_: Any) -> None:
                """Says nothing."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def api(self) -> Api:
        """The server as the controller sees it."""
        configuration = Configuration()
        configuration.host = f"http://127.0.0.1:{self.http.server_address[1]}"
        return Api(configuration, connections=4)


@contextmanager
def playing(script: Script) -> Iterator[Server]:
    """A server that plays a script."""
    server = Server(script)
    thread = threading.Thread(target=server.http.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        server.http.shutdown()
        thread.join()
        server.http.server_close()


@contextmanager
def following(script: Script) -> Iterator[tuple[Server, Store, Callable[[str], None]]]:
    """An informer that has begun, and a way to wait until it tells of a change of an object."""
    changes: Queue[str] = Queue()

    def until(name: str) -> None:
        while changes.get(timeout=30) != name:
            pass

    with playing(script) as server:
        store = Store(lambda thing: (thing["metadata"]["namespace"], ""))
        informer = Informer(
            server.api,
            "pods",
            namespace="n",
            query={"labelSelector": "a/b"},
            store=store,
            on_change=lambda thing: changes.put(thing["metadata"]["name"]),
        )
        informer.start()
        yield server, store, until
        informer.stop()


def versions(server: Server, number: int) -> list[str | None]:
    """The resourceVersion that each of the first requests asked from; None for a list."""
    return [server.asked.get(timeout=30).get("resourceVersion") for _ in range(number)]


def test_a_watch_goes_on_where_the_one_before_it_ended() -> None:
    script = [listed(10, pod("a", 5)), ("watch", [{"type": "ADDED", "object": pod("b", 11)}, BOOKMARK])]
    with following(script) as (server, store, until):
        until("b")
        assert versions(server, 3) == [None, "10", "50"]
        assert len(store.bucket(("n", ""))) == 2


def test_a_watch_that_breaks_goes_on_after_the_last_event() -> None:
    script = [
        listed(10),
        ("broken", [{"type": "ADDED", "object": pod("a", 11)}]),
        ("watch", [{"type": "DELETED", "object": pod("a", 12)}]),
    ]
    with following(script) as (server, store, until):
        until("a")
        until("a")
        assert versions(server, 4) == [None, "10", "11", "12"]
        assert store.get("n", "a") is None


@pytest.mark.parametrize("gone", [("watch", [GONE]), ("410", GONE["object"]), ("500", {})])
def test_what_cannot_be_resumed_is_listed_again_and_what_is_missing_then_is_told(gone: tuple[str, Any]) -> None:
    script = [listed(10, pod("a", 5), pod("b", 6)), gone, listed(20, pod("b", 6), pod("c", 15))]
    with following(script) as (server, store, until):
        until("c")
        until("a")
        assert versions(server, 4) == [None, "10", None, "20"]
        assert store.get("n", "a") is None
        assert store.get("n", "b") == pod("b", 6)


def test_a_refused_list_is_told_to_whoever_starts() -> None:
    refusal = {"kind": "Status", "reason": "Forbidden", "message": "not you"}
    with playing([("403", refusal)]) as server:
        informer = Informer(
            server.api,
            "pods",
            namespace=None,
            query={},
            store=Store(lambda _: ("", "")),
            on_change=lambda _: None,
        )
        with pytest.raises(CannotList, match="list of pods: 403 Forbidden: not you"):
            informer.start()


@pytest.mark.parametrize(("body", "error"), [([], Unreachable), ({}, None)])
def test_an_answer_that_is_no_object_is_no_answer(body: Any, error: type[Exception] | None) -> None:
    with playing([("list", body)]) as server:
        if error is None:
            assert server.api.get("/x") == {}
        else:
            with pytest.raises(error):
                server.api.get("/x")


def test_a_refusal_that_is_no_status_is_told_as_it_is() -> None:
    with playing([("502", "bad gateway")]) as server, pytest.raises(ApiError, match="502 Unknown"):
        server.api.get("/x")
