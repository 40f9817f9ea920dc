"""The clusters that cases run on: the embedded one as a process, and any that a kubeconfig leads to."""

import asyncio
import json
import subprocess
import sys
import threading
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from exitcode_fixtures.api import ApiError, KubernetesApi

Json = dict[str, Any]
ACCOUNT_WITHIN_S = 60


@contextmanager
def embedded_process(state: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """The embedded cluster's process and the path of its kubeconfig."""
    command = [sys.executable, "-m", "exitcode_fixtures.embedded", "--state-dir", str(state)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, Path(json.loads(process.stdout.readline())["kubeconfig"])
        finally:
            process.terminate()


class NamespaceOfCluster:
    """A namespace of its own on a cluster; an async context, which takes it away again."""

    def __init__(self, kubeconfig: Path, dwell_seconds: float) -> None:
        self.dwell_seconds = dwell_seconds
        self._api = KubernetesApi.connect(kubeconfig)
        self._name = f"node-cases-{uuid.uuid4().hex[:8]}"
        self._root = f"/api/v1/namespaces/{self._name}"
        self._stop = threading.Event()

    async def __aenter__(self) -> "NamespaceOfCluster":
        await asyncio.to_thread(self._api.create, "/api/v1/namespaces", {"metadata": {"name": self._name}})
        self._version = (await self._list("pods"))["metadata"]["resourceVersion"]
        return self

    async def __aexit__(self, *_exception: object) -> None:
        self._stop.set()
        await asyncio.to_thread(self._api.delete, f"/api/v1/namespaces/{self._name}")
        self._api.close()

    async def _list(self, resource: str, field_selector: str = "") -> Json:
        path = f"{self._root}/{resource}"
        return await asyncio.to_thread(self._api.list, path, field_selector=field_selector)

    async def watch(self) -> AsyncIterator[tuple[str, Json]]:
        """Every event of every pod since the context was entered."""
        loop, queue = asyncio.get_running_loop(), asyncio.Queue[Json]()

        def read() -> None:
            events = self._api.watch(
                f"{self._root}/pods", resource_version=self._version, stop=self._stop, timeout_seconds=3000
            )
            for event in events:
                with suppress(RuntimeError):  # the loop is closed: nobody listens any more
                    loop.call_soon_threadsafe(queue.put_nowait, event)

        threading.Thread(target=read, daemon=True).start()
        while True:
            event = await queue.get()
            if event["type"] != "BOOKMARK":
                yield event["type"], event["object"]

    async def create_pod(self, name: str, spec: Json, metadata: Json) -> None:
        """Creates it as soon as the namespace has the service account that every pod needs."""
        spec = {"automountServiceAccountToken": False, **spec}
        body = {"metadata": {"name": name, **metadata}, "spec": spec}
        async with asyncio.timeout(ACCOUNT_WITHIN_S):
            while True:
                try:
                    await asyncio.to_thread(self._api.create, f"{self._root}/pods", body)
                except ApiError as error:
                    if error.code != 403 or "serviceaccount" not in error.message:
                        raise
                    await asyncio.sleep(0.2)  # the account is there a moment before pods are let in
                else:
                    return

    async def delete_pod(self, name: str, grace: int | None) -> None:
        await asyncio.to_thread(self._api.delete, f"{self._root}/pods/{name}", grace_period_s=grace)

    async def put_config_map(self, name: str, data: Json) -> None:
        body = {"metadata": {"name": name}, "data": data}
        try:
            await asyncio.to_thread(self._api.create, f"{self._root}/configmaps", body)
        except ApiError as error:
            if error.code != 409:
                raise
            await asyncio.to_thread(self._api.replace, f"{self._root}/configmaps/{name}", body)

    async def events_of(self, pod: Json) -> list[Json]:
        selector = f"involvedObject.uid={pod['metadata']['uid']}"
        items: list[Json] = (await self._list("events", field_selector=selector))["items"]
        return items

    async def event_count(self) -> int:
        return len((await self._list("events"))["items"])
