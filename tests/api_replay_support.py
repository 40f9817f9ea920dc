"""Replays a script of API requests against any API server and brings the answers into a comparable form.

`python tests/api_replay_support.py SCRIPT KUBECONFIG`, SCRIPT being `api` or `job`, writes the answers of a real
kube-apiserver anew, for whoever changes the script.
"""

import base64
import json
import re
import secrets
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import urllib3
import yaml

DATA: Final = Path(__file__).parent / "data"
AWAIT_S: Final = 90
"""A real garbage collector looks for new kinds every 30 s."""

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_AGE = re.compile(r"(\d+[smhdy])+")

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Script:
    """A script, what a real kube-apiserver answered, and where the embedded cluster answers otherwise."""

    name: str
    minor: int
    """Of the Kubernetes 1.x that is the yardstick."""

    @property
    def recorded(self) -> Path:
        """The answers of the yardstick."""
        return DATA / f"{self.name}_replay_kubernetes_1_{self.minor}.json"

    @property
    def differences(self) -> Path:
        """The differences that are kept."""
        return DATA / f"{self.name}_replay_differences.yaml"

    def steps(self) -> list[Json]:
        """The steps, in order."""
        steps: list[Json] = yaml.safe_load((DATA / f"{self.name}_replay.yaml").read_text())
        names = [step["id"] for step in steps]
        assert len(names) == len(set(names)), "step ids must be unique"
        return steps


API: Final = Script(name="api", minor=20)
JOB: Final = Script(name="job", minor=34)
"""Jobs are younger than the rest: see `exitcode_fixtures.embedded.job`."""
SCRIPTS: Final = (API, JOB)


class Server:
    """An API server as a kubeconfig describes it."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.url: str = cluster["server"]
        self.headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
        options: Json = {"ca_cert_data": base64.b64decode(cluster["certificate-authority-data"]).decode()}
        with tempfile.TemporaryDirectory() as directory:
            if "client-certificate-data" in user:
                context = urllib3.util.ssl_.create_urllib3_context()
                chain, key = Path(directory, "chain"), Path(directory, "key")
                chain.write_bytes(base64.b64decode(user["client-certificate-data"]))
                key.write_bytes(base64.b64decode(user["client-key-data"]))
                context.load_cert_chain(chain, key)
                options["ssl_context"] = context
        self._pool = urllib3.PoolManager(retries=False, cert_reqs="CERT_REQUIRED", **options)

    def send(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> tuple[int, Any]:
        """One request; the status code, and the body as JSON or as text."""
        answer = self._pool.request(
            method, self.url + path, headers={**self.headers, **headers}, body=body, timeout=urllib3.Timeout(60)
        )
        text = answer.data.decode()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text

    def watch(self, path: str, accept: str = "application/json") -> Iterator[Json]:
        """The events of a watch until the server ends it. It has begun when this returns."""
        answer = self._pool.request(
            "GET",
            self.url + path,
            headers={**self.headers, "Accept": accept},
            preload_content=False,
            timeout=urllib3.Timeout(connect=5, read=AWAIT_S + 10),
        )

        def events() -> Iterator[Json]:
            try:
                buffer = b""
                for chunk in answer.stream(1 << 16):
                    *lines, buffer = (buffer + chunk).split(b"\n")
                    for line in lines:
                        yield json.loads(line)
            finally:
                answer.close()

        return events()

    def close(self) -> None:
        """Close every connection."""
        self._pool.clear()


class Replay:
    """One replay of the script, in a namespace and an API group of its own."""

    def __init__(self, server: Server) -> None:
        mark = secrets.token_hex(3)
        self._server = server
        self._known: dict[str, str] = {"ns": f"replay-{mark}", "group": f"r{mark}.replay.example.com"}
        self.answers: dict[str, Json] = {}
        """Step → code and normalised body, or normalised events."""

    def run(self, steps: list[Json]) -> None:
        """Replay every step. Removes what it made if a step fails."""
        try:
            for step in steps:
                self._step({name: self._filled(part) for name, part in step.items()})
        except BaseException:
            self._clean_up()
            raise

    def _clean_up(self) -> None:
        definition = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{self._known['group']}"
        namespace = f"/api/v1/namespaces/{self._known['ns']}"
        release = json.dumps({"metadata": {"finalizers": None}}).encode()
        widgets = f"/apis/{self._known['group']}/v1/namespaces/{self._known['ns']}/widgets"
        for path in (widgets, f"{namespace}/configmaps", f"{namespace}/pods"):
            _, found = self._server.send("GET", path, {}, None)
            for one in found.get("items") or () if isinstance(found, dict) else ():
                name = one["metadata"]["name"]
                patch = {"Content-Type": "application/merge-patch+json"}
                self._server.send("PATCH", f"{path}/{name}", patch, release)
                self._server.send("DELETE", f"{path}/{name}?gracePeriodSeconds=0", {}, None)
        self._server.send("DELETE", definition, {}, None)
        self._server.send("DELETE", namespace, {}, None)

    def _step(self, step: Json) -> None:
        if "request" in step:
            self._request(step)
        elif "watch" in step:
            self._watch(step)
        elif "settle" in step:
            self._settle(step["settle"])
        else:
            self._await(step)

    def _request(self, step: Json) -> None:
        method, path = step["request"].split(" ", 1)
        headers = {"Accept": step.get("accept", "application/json")}
        body = step["raw"].encode() if "raw" in step else json.dumps(step["body"]).encode() if "body" in step else None
        if body is not None:
            headers["Content-Type"] = step.get("content_type", "application/json")
        code, answer = self._server.send(method, path, headers, body)
        self.answers[step["id"]] = {"code": code, "body": self._in_order(self._normalised(answer))}
        for name, place in step.get("save", {}).items():
            if code < 300:
                self._known[name] = str(look(answer, place))

    def _watch(self, step: Json) -> None:
        separator = "&" if "?" in step["watch"] else "?"
        path = f"{step['watch']}{separator}watch=1"
        if "timeoutSeconds" not in path:
            path += "&timeoutSeconds=3"
        events: list[Any] = []
        for event in self._server.watch(path, step.get("accept", "application/json")):
            events.append(self._normalised(event))
            if len(events) == step["events"]:
                break
        self.answers[step["id"]] = {"events": events}

    def _await(self, step: Json) -> None:
        if step.get("served"):
            # A definition that is established may be served a moment later.
            for _ in self._server.watch(f"{step['await']}?watch=1&timeoutSeconds=1"):
                pass
            return
        selector = quote(f"metadata.name={step['name']}")
        path = f"{step['await']}?watch=1&timeoutSeconds={AWAIT_S}&fieldSelector={selector}"
        events = self._server.watch(path)
        if step.get("gone") and self._server.send("GET", f"{step['await']}/{step['name']}", {}, None)[0] == 404:
            return
        for event in events:
            if step.get("gone"):
                if event["type"] == "DELETED":
                    return
            elif event["type"] != "DELETED" and _is_reached(event["object"], step):
                return
        raise AssertionError(f"{step['id']}: not reached within {AWAIT_S} s")

    def _settle(self, path: str) -> None:
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "00000000-0000-4000-8000-000000000001"}
        canary = {"metadata": {"name": "canary", "ownerReferences": [owner]}}
        self._server.send("POST", path, {"Content-Type": "application/json"}, json.dumps(canary).encode())
        self._await({"id": "settle", "await": path, "name": "canary", "gone": True})

    def _filled(self, part: Any) -> Any:
        if isinstance(part, str):
            return re.sub(r"\$\{(\w+)\}", lambda found: self._known[found[1]], part)
        if isinstance(part, dict):
            return {name: self._filled(value) for name, value in part.items()}
        return [self._filled(value) for value in part] if isinstance(part, list) else part

    def _normalised(self, value: Any, name: str = "") -> Any:
        """Without what differs from one run to the next: identities, versions, times, generated names."""
        if isinstance(value, dict):
            return {
                key: self._normalised(part, key)
                for key, part in value.items()
                if key not in ("managedFields", "description") and not key.startswith("f:")
            }
        if isinstance(value, list):
            return [self._normalised(part, name) for part in value]
        return self._normalised_text(value, name) if isinstance(value, str) else value

    def _in_order(self, body: Any) -> Any:
        """A refusal with its causes sorted and told once each: Kubernetes does neither."""
        if not isinstance(body, dict) or body.get("reason") != "Invalid" or not body["details"].get("causes"):
            return body
        causes = body["details"]["causes"]
        told = {(cause["field"], cause["message"]): cause for cause in causes}
        causes = [told[place] for place in sorted(told)]
        listed = [f"{cause['field']}: {cause['message']}" for cause in causes]
        what = listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"
        message = body["message"].partition(" is invalid: ")[0] + f" is invalid: {what}"
        return {**body, "message": message, "details": {**body["details"], "causes": causes}}

    def _normalised_text(self, text: str, name: str) -> str:
        if name == "cells" and _AGE.fullmatch(text):
            return "<age>"
        if name in ("continue", "storageVersionHash"):
            return f"<{name}>" if text else ""
        for known, value in self._known.items():
            if text == value or known in ("ns", "group", "generated", "generated_widget"):
                text = text.replace(value, f"${{{known}}}")
        if name == "resourceVersion" and text.isdigit():
            return "<version>"
        text = re.sub(r"\b(burst|gen)-[a-z0-9]{5}\b", r"\1-<random>", text)
        text = re.sub(r"\b(default-token)-[a-z0-9]{5}\b", r"\1-<random>", text)
        text = re.sub(r"(version: )\d+( \(\d+\)|, current: \d+)", r"\1<n>", text)
        text = re.sub(r"(ResourceVersion in (?:the precondition|record) )\(\d+\)", r"\1(<n>)", text)
        text = re.sub(r"0xc[0-9a-f]+", "<pointer>", text)
        # What follows is a picture of both specs, which Go draws otherwise each time, on purpose.
        text = re.sub(r"(only additions to existing tolerations\)).*", r"\1", text, flags=re.DOTALL)
        text = re.sub(r'(\\"resourceVersion\\":\\")\d+', r"\1<version>", text)
        if name in ("clusterIP", "clusterIPs", "cells"):
            text = re.sub(r"^10\.\d+\.\d+\.\d+$", "<address>", text)
        text = _UUID.sub("<uid>", text)
        return _TIME.sub("<time>", text)


def look(value: Any, place: str) -> Any:
    """The value at a dotted path."""
    for part in place.split("."):
        value = value[part]
    return value


def _is_reached(value: Json, step: Json) -> bool:
    if kind := step.get("condition"):
        conditions = (value.get("status") or {}).get("conditions") or ()
        return any(one["type"] == kind and one["status"] == "True" for one in conditions)
    if place := step.get("field"):
        try:
            return look(value, place) is not None
        except KeyError:
            return False
    return True


def differences(ours: Any, theirs: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every place where two answers differ, with both values; `<absent>` stands for a missing one."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in sorted({*ours, *theirs}):
            one, other = ours.get(name, "<absent>"), theirs.get(name, "<absent>")
            yield from differences(one, other, f"{path}.{name}".lstrip("."))
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif ours != theirs:
        yield path, ours, theirs


def replay(script: Script, kubeconfig: Path) -> dict[str, Json]:
    """The answers of the server that a kubeconfig names."""
    server = Server(kubeconfig)
    try:
        run = Replay(server)
        run.run(script.steps())
        return run.answers
    finally:
        server.close()


if __name__ == "__main__":
    chosen = next(one for one in SCRIPTS if one.name == sys.argv[1])
    chosen.recorded.write_text(json.dumps(replay(chosen, Path(sys.argv[2])), indent=1, sort_keys=True) + "\n")
