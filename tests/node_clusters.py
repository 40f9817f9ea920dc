"""The clusters that cases run on: any that a kubeconfig leads to, and the node alone on an API server in memory."""

import asyncio
import threading
import uuid
from collections.abc import AsyncIterator
from typing import Any

import kubernetes
from node_support import MemoryApi

Json = dict[str, Any]


class KubeconfigCluster:
    """A cluster behind a kubeconfig, in a namespace that is made for the purpose. Use as an async context."""

    def __init__(self, path: str, dwell_seconds: float) -> None:
        self.dwell_seconds = dwell_seconds
        self._api = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(path))
        self._namespace = f"node-cases-{uuid.uuid4().hex[:8]}"
        self._watch = kubernetes.watch.Watch()

    async def __aenter__(self) -> "KubeconfigCluster":
        body = {"metadata": {"name": self._namespace}}
        await asyncio.to_thread(self._api.create_namespace, body)
        while True:
            found = await asyncio.to_thread(self._api.list_namespaced_service_account, self._namespace)
            if any(account.secrets for account in found.items):
                return self
            await asyncio.sleep(0.2)

    async def __aexit__(self, *_exception: object) -> None:
        self._watch.stop()
        await asyncio.to_thread(self._api.delete_namespace, self._namespace)

    async def watch(self) -> AsyncIterator[tuple[str, Json]]:
        loop, queue = asyncio.get_running_loop(), asyncio.Queue[tuple[str, Json]]()

        def read() -> None:
            for event in self._watch.stream(self._api.list_namespaced_pod, self._namespace):
                loop.call_soon_threadsafe(queue.put_nowait, (event["type"], event["raw_object"]))

        threading.Thread(target=read, daemon=True).start()
        while True:
            yield await queue.get()

    async def create_pod(self, name: str, spec: Json, metadata: Json) -> None:
        body = {
            "metadata": {"name": name, **metadata},
            "spec": {"automountServiceAccountToken": False, **spec},
        }
        await asyncio.to_thread(self._api.create_namespaced_pod, self._namespace, body)

    async def delete_pod(self, name: str, grace: int | None) -> None:
        options = {} if grace is None else {"grace_period_seconds": grace}
        await asyncio.to_thread(self._api.delete_namespaced_pod, name, self._namespace, **options)

    async def put_config_map(self, name: str, data: Json) -> None:
        body = {"metadata": {"name": name}, "data": data}
        try:
            await asyncio.to_thread(self._api.create_namespaced_config_map, self._namespace, body)
        except kubernetes.client.ApiException as error:
            if error.status != 409:
                raise
            await asyncio.to_thread(self._api.replace_namespaced_config_map, name, self._namespace, body)

    async def events_of(self, pod: Json) -> list[Json]:
        selector = f"involvedObject.uid={pod['metadata']['uid']}"
        found = await asyncio.to_thread(self._api.list_namespaced_event, self._namespace, field_selector=selector)
        return [{"type": each.type, "reason": each.reason, "message": each.message} for each in found.items]


class MemoryCluster:
    """The node, on an API server in memory."""

    def __init__(self, api: MemoryApi, dwell_seconds: float) -> None:
        self.dwell_seconds = dwell_seconds
        self._api = api

    async def watch(self) -> AsyncIterator[tuple[str, Json]]:
        async for verb, pod in self._api.watch_pods():
            yield verb, dict(pod)

    async def create_pod(self, name: str, spec: Json, metadata: Json) -> None:
        self._api.create(name, {"serviceAccountName": "default", **spec}, **metadata)

    async def delete_pod(self, name: str, grace: int | None) -> None:
        self._api.delete(name, grace=grace)

    async def put_config_map(self, name: str, data: Json) -> None:
        self._api.config_maps["default", name] = {"metadata": {"name": name}, "data": data}

    async def events_of(self, pod: Json) -> list[Json]:
        name = pod["metadata"]["name"]
        return [
            {"type": kind, "reason": reason, "message": message}
            for about, kind, reason, message in self._api.events
            if about == name
        ]
