"""The requests that a controller makes, on the connection pool of the official client, with plain dicts.

The client's generated classes turn each answer into model objects, which costs ten times the request itself
and a second at import. Its configuration, authentication, TLS and pool are what is used here.
"""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

import urllib3
from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration

from exitcode_reference_controller.kinds import API_VERSION, BATCH_JOB

_CONNECT_SECONDS = 5.0
_READ_SECONDS = 30.0
_WATCH_SECONDS = 240
"""How long the server keeps a watch open; it is resumed where it ended. The socket waits a little longer."""

_CREDENTIALS_SECONDS = 60.0
"""How long a token is used until the client is asked again, which renews one that is about to expire; asking costs
more than a request."""
_NO_RETRIES = urllib3.Retry(False)
"""Whoever asks decides whether to ask again."""


class ApiError(Exception):
    """The API server refused a request: HTTP status, and the reason and message of its Status object."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message


class Unreachable(Exception):
    """No answer: the connection could not be made, or broke."""


class Api:
    """An API server. Thread-safe; connections are kept alive and shared."""

    def __init__(self, configuration: Configuration, *, connections: int) -> None:
        """`connections`: how many are kept open at one time."""
        configuration.connection_pool_maxsize = connections
        self._configuration = configuration
        self._known_credentials: dict[str, str] = {}
        self._credentials_expire = 0.0
        manager: urllib3.PoolManager = ApiClient(configuration).rest_client.pool_manager
        self._pool = manager.connection_from_url(configuration.host)
        self._root = urlsplit(configuration.host).path.rstrip("/")

    @property
    def host(self) -> str:
        """The server's address, for messages."""
        return str(self._configuration.host)

    def list(self, path: str, query: Mapping[str, str]) -> dict[str, Any]:
        """A whole collection. Raises ApiError, Unreachable."""
        return self._call("GET", path, query=query)

    def get(self, path: str) -> dict[str, Any]:
        """One object. Raises ApiError (404 if there is none), Unreachable."""
        return self._call("GET", path)

    def create(self, path: str, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """A new object. Raises ApiError (409 if the name is taken), Unreachable."""
        return self._call("POST", path, body=manifest)

    def replace(self, path: str, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Writes the object. Raises ApiError (409 if it has been written by somebody else since),
        Unreachable."""
        return self._call("PUT", path, body=manifest)

    def patch(self, path: str, change: Mapping[str, Any]) -> dict[str, Any]:
        """A JSON merge patch. Raises ApiError (409 if it names a resourceVersion that is not the newest),
        Unreachable."""
        return self._call("PATCH", path, body=change, content_type="application/merge-patch+json")

    def delete(self, path: str, uid: str) -> dict[str, Any]:
        """Deletes the object of this UID, and what it owns in the background. Raises ApiError (404 if it is
        gone, 409 if another one has its name), Unreachable. Answers with the object, or with a Status."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": uid},
        }
        return self._call("DELETE", path, body=options)

    def watch(
        self, path: str, query: Mapping[str, str], stop: threading.Event, *, seconds: int = _WATCH_SECONDS
    ) -> Iterator[dict[str, Any]]:
        """The changes after `resourceVersion` in the query, for `seconds` or until `stop` is set or the server ends it.
        Raises ApiError, Unreachable."""
        fields = {**query, "watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)}
        response = self._send("GET", path, fields, None, None, read_seconds=seconds + _READ_SECONDS)
        try:
            if response.status != 200:
                raise _refusal(response.status, response.data)
            rest = b""
            for chunk in response.stream():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if stop.is_set():
                        return
                    if line:
                        yield json.loads(line)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise Unreachable(str(error)) from error
        finally:
            response.close()

    def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> dict[str, Any]:
        payload = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        response = self._send(method, path, query, payload, content_type, read_seconds=_READ_SECONDS)
        try:
            data = response.data
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unreachable(str(error)) from error
        if not 200 <= response.status < 300:
            raise _refusal(response.status, data)
        try:
            answer = json.loads(data)
        except ValueError as error:
            raise Unreachable(f"the answer to {method} {path} is no JSON") from error
        if not isinstance(answer, dict):
            raise Unreachable(f"the answer to {method} {path} is no JSON object")
        return answer

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        payload: bytes | None,
        content_type: str | None,
        *,
        read_seconds: float,
    ) -> urllib3.BaseHTTPResponse:
        headers = {"Accept": "application/json", "User-Agent": "exitcode-reference-controller"}
        if payload is not None and content_type is not None:
            headers["Content-Type"] = content_type
        headers.update(self._credentials())
        url = self._root + path
        if query:
            url += "?" + urlencode(query)
        try:
            return self._pool.urlopen(
                method,
                url,
                body=payload,
                headers=headers,
                timeout=urllib3.Timeout(connect=_CONNECT_SECONDS, read=read_seconds),
                retries=_NO_RETRIES,
                preload_content=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unreachable(str(error)) from error

    def _credentials(self) -> dict[str, str]:
        now = time.monotonic()
        if now >= self._credentials_expire:
            settings = self._configuration.auth_settings().values()
            self._known_credentials = {setting["key"]: str(setting["value"]) for setting in settings}
            self._credentials_expire = now + _CREDENTIALS_SECONDS
        return self._known_credentials


def _refusal(status: int, data: bytes) -> ApiError:
    try:
        answer = json.loads(data)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        return ApiError(status, "Unknown", data[:200].decode(errors="replace"))
    return ApiError(status, str(answer.get("reason", "Unknown")), str(answer.get("message", "")))


_ROOTS = {
    **dict.fromkeys(("pods", "services", "events"), "/api/v1"),
    BATCH_JOB.plural: f"/apis/{BATCH_JOB.api_version}",
}


def collection_path(resource: str, namespace: str | None) -> str:
    """Path of `pods`, `services`, `events` or a job kind's plural, in one namespace or in all."""
    root = _ROOTS.get(resource, f"/apis/{API_VERSION}")
    return f"{root}/{resource}" if namespace is None else f"{root}/namespaces/{namespace}/{resource}"


def object_path(resource: str, namespace: str, name: str) -> str:
    """Path of one object."""
    return f"{collection_path(resource, namespace)}/{name}"
