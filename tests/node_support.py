"""A small honest API server in memory for the tests of the node: objects, revisions and watches, nothing else."""

import asyncio
import copy
import functools
import itertools
import subprocess
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, ParamSpec

from exitcode_fixtures.embedded.pod_api import PodGone, WatchVerb

Json = dict[str, Any]
P = ParamSpec("P")


def in_event_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Lets pytest call a coroutine function."""

    @functools.wraps(test)
    def call(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return call


class MemoryApi:
    """Implements `PodApi`; the other methods are what a user of the API server does."""

    def __init__(self) -> None:
        self.pods: dict[tuple[str, str], Json] = {}
        self.config_maps: dict[tuple[str, str], Json] = {}
        self.secrets: dict[tuple[str, str], Json] = {}
        self.history: dict[str, list[Json]] = {}
        """UID → every state of the pod's object, oldest first."""
        self.events: list[tuple[str, str, str, str]] = []
        """Pod name, type, reason, message."""
        self._watchers: list[asyncio.Queue[tuple[WatchVerb, Json]]] = []
        self._numbers = itertools.count(1)
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    def create(self, name: str, spec: Json, namespace: str = "default", **metadata: Any) -> Json:
        """Creates a pod as the API server would; returns the object."""
        number = next(self._numbers)
        pod: Json = {
            "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{number}", **metadata},
            "spec": {"schedulerName": "default-scheduler", **copy.deepcopy(spec)},
            "status": {"phase": "Pending", "qosClass": "BestEffort"},
        }
        self.pods[namespace, name] = pod
        self._tell("ADDED", pod)
        return pod

    def delete(self, name: str, namespace: str = "default", *, grace: int | None = None) -> None:
        """Deletes a pod; grace 0 removes the object at once, as does a pod that nobody runs."""
        pod = copy.deepcopy(self.pods[namespace, name])
        spec_grace = pod["spec"].get("terminationGracePeriodSeconds", 30)
        seconds = spec_grace if grace is None else grace
        if not pod["spec"].get("nodeName") or pod["status"]["phase"] in ("Succeeded", "Failed"):
            seconds = 0
        self._mark_deleted(pod, seconds)
        if seconds == 0:
            self._remove(pod)

    def _mark_deleted(self, pod: Json, seconds: int) -> None:
        marks = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": seconds}
        pod["metadata"] |= marks
        self._write(pod)

    def _remove(self, pod: Json) -> None:
        del self.pods[pod["metadata"]["namespace"], pod["metadata"]["name"]]
        self._tell("DELETED", pod)

    def _write(self, pod: Json) -> None:
        self.pods[pod["metadata"]["namespace"], pod["metadata"]["name"]] = pod
        self._tell("MODIFIED", pod)

    def _tell(self, verb: WatchVerb, pod: Json) -> None:
        self.history.setdefault(pod["metadata"]["uid"], []).append(pod)
        for watcher in self._watchers:
            watcher.put_nowait((verb, pod))
        task = asyncio.get_running_loop().create_task(self._notify())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def _live(self, namespace: str, name: str, uid: str) -> Json:
        pod = self.pods.get((namespace, name))
        if pod is None or pod["metadata"]["uid"] != uid:
            raise PodGone
        return copy.deepcopy(pod)

    async def until(self, condition: Callable[[], bool], seconds: float = 20) -> None:
        """Waits for something that comes about with a pod's change."""
        async with asyncio.timeout(seconds), self._changed:
            await self._changed.wait_for(condition)

    async def until_phase(self, name: str, *phases: str, namespace: str = "default") -> Json:
        """Waits for a pod's phase; returns its status."""
        await self.until(lambda: self.pods[namespace, name]["status"]["phase"] in phases)
        status: Json = self.pods[namespace, name]["status"]
        return status

    def restarts(self, name: str, namespace: str = "default") -> int:
        """How often a pod's first container has been started again."""
        statuses = self.pods[namespace, name]["status"].get("containerStatuses")
        return int(statuses[0]["restartCount"]) if statuses else 0

    async def until_gone(self, name: str, namespace: str = "default") -> None:
        """Waits for a pod's object to disappear."""
        await self.until(lambda: (namespace, name) not in self.pods)

    async def watch_pods(self) -> AsyncIterator[tuple[WatchVerb, Mapping[str, Any]]]:
        queue: asyncio.Queue[tuple[WatchVerb, Json]] = asyncio.Queue()
        for pod in self.pods.values():
            queue.put_nowait(("ADDED", pod))
        self._watchers.append(queue)
        while True:
            yield await queue.get()

    def config_map(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        return self.config_maps.get((namespace, name))

    def secret(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        return self.secrets.get((namespace, name))

    def service_names(self, namespace: str) -> tuple[str, ...]:
        del namespace
        return ()

    def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        pod = self._live(namespace, name, uid)
        pod["spec"]["nodeName"] = node
        condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
        pod["status"]["conditions"] = [condition | {"lastTransitionTime": "2026-01-01T00:00:00Z"}]
        self._write(pod)

    def update_status(self, namespace: str, name: str, uid: str, status: Mapping[str, Any]) -> None:
        pod = self._live(namespace, name, uid)
        if pod["status"] != status:
            pod["status"] = copy.deepcopy(dict(status))
            self._write(pod)

    def finish_deletion(self, namespace: str, name: str, uid: str) -> None:
        try:
            pod = self._live(namespace, name, uid)
        except PodGone:
            return
        self._mark_deleted(pod, 0)
        self._remove(pod)

    def emit_event(self, pod: Mapping[str, Any], kind: str, reason: str, message: str) -> None:
        self.events.append((pod["metadata"]["name"], kind, reason, message))


def processes_of(mark: str) -> list[int]:
    """Process ids of the `sleep`s on this machine that have the mark as their argument."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if words[:2] == [b"sleep", mark.encode()]:
                found.append(int(entry.name))
    return found


async def until_processes(mark: str, count: int) -> None:
    """Waits until as many processes have the mark in their command line. The kernel tells nobody about processes
    that are not one's children, so there is no event to wait for."""
    async with asyncio.timeout(20):
        while len(processes_of(mark)) != count:
            await asyncio.sleep(0.02)


@functools.cache
def is_allowed(isolation: str) -> bool:
    """Whether util-linux can do here what the level needs; nobody's judgement but the kernel's."""
    options = {"pid-namespaces": [], "user-and-pid-namespaces": ["--map-root-user"], "process-groups": None}[isolation]
    if options is None:
        return True
    command = ["unshare", "--pid", "--fork", "--mount", *options, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0
