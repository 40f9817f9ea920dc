"""The reference controller as a process on a real API server, and a witness of all that happens there.

The server is the embedded cluster; with EXITCODE_REAL_KUBECONFIG in the environment it is the one named there.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

import yaml
from kubernetes.client.configuration import Configuration
from kubernetes.config.kube_config import load_kube_config

from exitcode_reference_controller.api import Api, ApiError, Unreachable, collection_path, object_path
from exitcode_reference_controller.kinds import API_VERSION, KINDS

Thing = dict[str, Any]
PATIENCE = float(os.environ.get("EXITCODE_TEST_PATIENCE", "120"))
"""Seconds until a test gives up; nothing takes so long."""
CRDS = Path(__file__).parent.parent / "fixtures" / "exitcode_fixtures" / "manifests" / "crds"
WATCHED = ("pods", "services", "events", "tfjobs", "pytorchjobs", "jobs")


@contextmanager
def kubeconfig(state: Path) -> Iterator[Path]:
    """An API server to test on."""
    given = os.environ.get("EXITCODE_REAL_KUBECONFIG")
    if given:
        yield Path(given)
        return
    command = [sys.executable, "-m", "exitcode_fixtures.embedded", "--state-dir", str(state)]
    with process(command) as server:
        assert server.stdout is not None
        yield Path(json.loads(server.stdout.readline())["kubeconfig"])


@contextmanager
def process(command: list[str], errors: IO[str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """A process that is told to end, and waited for."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True) as child:
        try:
            yield child
        finally:
            child.send_signal(signal.SIGTERM)
            try:
                child.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                child.kill()


def connect(path: Path) -> Api:
    """The API server of a kubeconfig."""
    configuration = Configuration()
    load_kube_config(str(path), client_configuration=configuration, persist_config=False)
    return Api(configuration, connections=10)


class Stage:
    """A namespace, everything that happens in it, and controllers to start."""

    def __init__(self, path: Path) -> None:
        self.kubeconfig = path
        self.api = connect(path)
        self.namespace = f"reference-{uuid4().hex[:8]}"
        self.history: list[tuple[str, str, Thing]] = []
        """(resource, verb, object), in order of arrival."""
        self._changed = threading.Condition()
        self._stop = threading.Event()

    def open(self) -> None:
        """Makes the namespace and begins to watch it."""
        for file in sorted(CRDS.glob("*.yaml")):
            with suppress(ApiError):  # it is there
                self.api.create(
                    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                    yaml.safe_load(file.read_text(encoding="utf-8")),
                )
        self.api.create("/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        self._until_served()
        for resource in WATCHED:
            version = self.api.list(collection_path(resource, self.namespace), {})["metadata"]["resourceVersion"]
            threading.Thread(target=self._witness, args=(resource, version), daemon=True).start()

    def close(self) -> None:
        """Removes the namespace."""
        self._stop.set()
        with suppress(ApiError, Unreachable):
            path = f"/api/v1/namespaces/{self.namespace}"
            self.api.delete(path, self.api.get(path)["metadata"]["uid"])

    def _until_served(self) -> None:
        crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        listed = self.api.list(crds, {})
        missing = {f"{kind.plural}.kubeflow.org" for kind in KINDS.values()}
        missing -= {d["metadata"]["name"] for d in listed["items"] if _is_established(d)}
        query = {"resourceVersion": listed["metadata"]["resourceVersion"]}
        for event in self.api.watch(crds, query, self._stop, seconds=int(PATIENCE)) if missing else ():
            if _is_established(event["object"]):
                missing.discard(event["object"]["metadata"]["name"])
            if not missing:
                return
        assert not missing, f"never established: {missing}"

    def _witness(self, resource: str, version: str) -> None:
        while not self._stop.is_set():
            try:
                path = collection_path(resource, self.namespace)
                for event in self.api.watch(path, {"resourceVersion": version}, self._stop):
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        with self._changed:
                            self.history.append((resource, event["type"], event["object"]))
                            self._changed.notify_all()
            except (ApiError, Unreachable):
                return  # the cluster is on its way out; a test that still waits says what it has seen

    @contextmanager
    def controller(self, *options: str, errors: Path | None = None) -> Iterator[subprocess.Popen[str]]:
        """A controller that is ready."""
        command = [sys.executable, "-m", "exitcode_reference_controller", "--kubeconfig", str(self.kubeconfig)]
        with (
            (errors or Path(os.devnull)).open("w", encoding="utf-8") as log,
            process([*command, "--namespace", self.namespace, *options], log) as child,
        ):
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            yield child

    # ---- jobs --------------------------------------------------------------------------------------------------------

    def submit(self, name: str, script: str, specs: dict[str, Thing], *, kind: str = "TFJob", **spec: Any) -> None:
        """A job whose containers run the script; a ConfigMap of the job's name tells them CODE, 0 at first."""
        config = {"metadata": {"name": name}, "data": {"code": str(spec.pop("code", 0))}}
        self.api.create(f"/api/v1/namespaces/{self.namespace}/configmaps", config)
        container = {
            "name": KINDS[kind].container,
            "image": "busybox:1.37.0-glibc",
            "imagePullPolicy": "IfNotPresent",
            "command": ["sh", "-c", script],
            "env": [
                {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "CODE", "valueFrom": {"configMapKeyRef": {"name": name, "key": "code"}}},
            ],
        }
        template = {"spec": {"containers": [container], "terminationGracePeriodSeconds": 1}}
        replica_specs = {t: {"restartPolicy": "ExitCode", "template": template, **s} for t, s in specs.items()}
        manifest = {
            "apiVersion": API_VERSION,
            "kind": kind,
            "metadata": {"name": name},
            "spec": {KINDS[kind].spec_field: replica_specs, **spec},
        }
        self.api.create(collection_path(KINDS[kind].plural, self.namespace), manifest)

    def set_code(self, name: str, code: int | str) -> None:
        """What the containers of a job read when they start next."""
        self.api.patch(f"/api/v1/namespaces/{self.namespace}/configmaps/{name}", {"data": {"code": str(code)}})

    def delete(self, resource: str, name: str) -> None:
        """Deletes an object as a user does."""
        path = object_path(resource, self.namespace, name)
        self.api.delete(path, self.api.get(path)["metadata"]["uid"])

    # ---- what was seen -----------------------------------------------------------------------------------------------

    def until(self, sentence: str, holds: Callable[[], bool]) -> None:
        """Waits until something holds of the history."""
        with self._changed:
            assert self._changed.wait_for(holds, PATIENCE), f"never: {sentence}\n{self.story()}"

    def until_state(self, name: str, state: str) -> list[str]:
        """Waits until a job has said this; answers with all that it has said. Whether a container's short life was
        seen as Running is a matter of the machine, so Running counts only as the last word."""
        self.until(f"{name} says {state}", lambda: self.states(name)[-1:] == [state])
        *before, last = self.states(name)
        return [*(s for s in before if s != "Running"), last]

    def until_gone(self, name: str) -> None:
        """Waits until a pod and its service are gone."""
        self.until(f"pod {name} is gone", lambda: self.is_gone("pods", name))
        self.until(f"service {name} is gone", lambda: self.is_gone("services", name))

    def states(self, name: str) -> list[str]:
        """What STATE showed of a job, each change once."""
        states: list[str] = []
        for resource, _, thing in list(self.history):
            if resource.endswith("jobs") and thing["metadata"]["name"] == name:
                conditions = thing.get("status", {}).get("conditions") or [{"type": ""}]
                if conditions[-1]["type"] and (not states or states[-1] != conditions[-1]["type"]):
                    states.append(conditions[-1]["type"])
        return states

    def job(self, name: str) -> Thing:
        """The job as it was seen last."""
        seen = (t for r, _, t in reversed(self.history) if r.endswith("jobs") and t["metadata"]["name"] == name)
        return next(seen, {"metadata": {}})

    def uids(self, pod: str) -> list[str]:
        """UIDs that a pod's name has had."""
        seen = (t["metadata"]["uid"] for r, _, t in list(self.history) if r == "pods" and t["metadata"]["name"] == pod)
        return list(dict.fromkeys(seen))

    def pods(self, name: str) -> dict[str, list[str]]:
        """Pod → UIDs, of a job."""
        names = {t["metadata"]["name"] for r, _, t in list(self.history) if r == "pods" and _belongs(t, name)}
        return {pod: self.uids(pod) for pod in sorted(names)}

    def phase(self, pod: str) -> str:
        """Phase of a pod when it was seen last, `gone` if it is."""
        for resource, verb, thing in reversed(self.history):
            if resource == "pods" and thing["metadata"]["name"] == pod:
                return "gone" if verb == "DELETED" else str(thing.get("status", {}).get("phase"))
        return "unknown"

    def is_gone(self, resource: str, name: str) -> bool:
        """Whether the last that was seen of an object is that it was deleted."""
        seen = [verb for r, verb, t in list(self.history) if r == resource and t["metadata"]["name"] == name]
        return bool(seen) and seen[-1] == "DELETED"

    def reasons(self, name: str) -> list[str]:
        """Reasons of the events about a job, sorted."""
        events = [t for r, verb, t in list(self.history) if r == "events" and verb == "ADDED"]
        return sorted(e["reason"] for e in events if e["involvedObject"]["name"] == name)

    def story(self) -> str:
        """The history, short."""
        lines = []
        for resource, verb, thing in self.history:
            status = thing.get("status", {})
            what = status.get("phase") or [c["type"] for c in status.get("conditions", [])] or thing.get("message", "")
            lines.append(f"{resource} {verb} {thing['metadata']['name']} {what}")
        return "\n".join(lines)


def _belongs(pod: Thing, job: str) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return bool(labels.get("training.kubeflow.org/job-name") == job)


def _is_established(definition: Thing) -> bool:
    conditions = definition.get("status", {}).get("conditions") or []
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)
