"""A proxy in front of an API server that notes which right each request needs: what is asked for, not what is meant.
It may change what is sent, and so make another server of the one behind it."""

import json
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import urllib3

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_HOP = {"connection", "transfer-encoding", "content-length", "host", "keep-alive"}
RightUsed = tuple[str, str, str]
"""Verb, resource (with its subresource), group."""


@dataclass
class RequestLog:
    """Where the proxy listens, and what came through it."""

    url: str
    used: set[RightUsed] = field(default_factory=set)
    refused: set[RightUsed] = field(default_factory=set)


def right_of(method: str, target: str) -> RightUsed | None:
    """The right that a request needs; None for paths of no resource, which everybody may read."""
    split = urlsplit(target)
    parts = split.path.strip("/").split("/")
    if parts[0] not in ("api", "apis"):
        return None
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1] if len(parts) > 1 else "", parts[3:])
    if not rest:
        return None
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    resource = rest[0] if len(rest) < 3 else f"{rest[0]}/{rest[2]}"
    if method == "GET":
        is_watch = parse_qs(split.query).get("watch", ["false"])[0] in ("true", "1")
        return "watch" if is_watch else "get" if len(rest) > 1 else "list", resource, group
    return _VERBS[method], resource, group


Change = Callable[[str, str, bytes], bytes]
"""Method, target and body of a request → the body that is passed on."""


def _as_it_is(_method: str, _target: str, body: bytes) -> bytes:
    return body


@contextmanager
def logged(
    server: str,
    authority: str,
    *,
    answers: Callable[[str, str, str], int | None] = lambda *_: None,
    change: Change = _as_it_is,
) -> Iterator[RequestLog]:
    """A proxy to `server`, whose certificate is checked against the PEM text `authority`. It passes on whatever
    credentials a request carries. Method, path and media type of a request to which it `answers` with a status of its
    own do not come that far; what does may be changed by `change`."""
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(authority)
        file.flush()
        trust = ssl.create_default_context(cafile=file.name)
    pool = urllib3.PoolManager(maxsize=32, ssl_context=trust, retries=False)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            code = answers(self.command, urlsplit(self.path).path, self.headers.get("Content-Type", ""))
            if code is not None:
                self.send_response_only(code)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            body = change(self.command, self.path, sent)
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
            answer = pool.request(
                self.command, server + self.path, body=body, headers=headers, preload_content=False, redirect=False
            )
            right = right_of(self.command, self.path)
            if right is not None:
                (log.refused if answer.status == 403 else log.used).add(right)
            self.send_response_only(answer.status)
            for name, value in answer.headers.items():
                if name.lower() not in _HOP:
                    self.send_header(name, value)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            try:
                for chunk in answer.stream(1 << 16):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                    self.wfile.flush()
                self.wfile.write(b"0\r\n\r\n")
            except (BrokenPipeError, ConnectionResetError, urllib3.exceptions.ProtocolError):
                self.close_connection = True  # whoever watched has seen enough, or the server is gone
            finally:
                answer.release_conn() if answer.closed else answer.close()

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _pass_on

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        log = RequestLog(url=f"http://127.0.0.1:{http.server_address[1]}")
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        try:
            yield log
        finally:
            http.shutdown()
            thread.join()
            pool.clear()


def granted_by(role: dict[str, Any]) -> set[RightUsed]:
    """Every right of a ClusterRole."""
    return {
        (verb, resource, group)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def told(rights: set[RightUsed]) -> str:
    """For the message of a test."""
    return json.dumps(sorted(rights))
