"""What a kubelet does for a pod beside its statuses: logs, files, grace, pods that come and go under one name."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from node_cases import container
from node_support import MemoryApi, in_event_loop, until_processes

from exitcode_fixtures.embedded.node import start_node
from exitcode_fixtures.embedded.node.agent import Node

Json = dict[str, Any]


class AttemptApi(MemoryApi):
    """Every ConfigMap tells how often one has been read: a container's start reads it anew."""

    def __init__(self) -> None:
        super().__init__()
        self._reads = 0

    def config_map(self, namespace: str, name: str) -> Json:
        del namespace, name
        self._reads += 1
        return {"data": {"attempt": str(self._reads)}}


@asynccontextmanager
async def running_node(directory: Path, api: MemoryApi | None = None) -> AsyncIterator[tuple[MemoryApi, Node]]:
    api = api or MemoryApi()
    node = start_node(api, directory, "node")
    try:
        yield api, node
    finally:
        await node.stop()
    assert list(directory.iterdir()) == []


def only(script: str, policy: str = "Never", **rest: Any) -> Json:
    return {"restartPolicy": policy, "containers": [container(script)], **rest}


def state_of(pod: Json) -> Json:
    states: Json = (pod["status"].get("containerStatuses") or [{"state": {}}])[0]["state"]
    return states


def log_of(node: Node, pod: Json, *, previous: bool = False) -> str | None:
    path = node.log_path("default", pod["metadata"]["name"], pod["metadata"]["uid"], "main", previous)
    return None if path is None else path.read_text()


@in_event_loop
async def test_logs_of_this_attempt_and_the_previous_one(tmp_path: Path) -> None:
    async with running_node(tmp_path, AttemptApi()) as (api, node):
        env = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "any", "key": "attempt"}}}]
        script = "echo $A; echo error >&2; [ $A = 2 ] || exit 1; sleep 300"
        pod = api.create("pod", {"restartPolicy": "OnFailure", "containers": [container(script, env=env)]})
        assert log_of(node, pod) is None
        await api.until(lambda: api.restarts("pod") == 1)
        assert log_of(node, pod, previous=True) == "1\nerror\n"
        path = node.log_path("default", "pod", pod["metadata"]["uid"], "main", False)
        assert path is not None
        async with asyncio.timeout(10):
            while path.read_text() != "2\nerror\n":
                await asyncio.sleep(0.01)
        assert node.log_path("default", "pod", pod["metadata"]["uid"], "other", False) is None


@in_event_loop
async def test_files_and_address_of_a_pod_go_with_it(tmp_path: Path) -> None:
    async with running_node(tmp_path) as (api, _):
        api.create("pod", only("echo words; exit 1"))
        status = await api.until_phase("pod", "Failed")
        uid = api.pods["default", "pod"]["metadata"]["uid"]
        assert [path for path in tmp_path.rglob("*") if uid in str(path)] != []
        api.create("other", only("sleep 300"))
        assert (await api.until_phase("other", "Running"))["podIP"] != status["podIP"]
        api.delete("pod")
        async with asyncio.timeout(10):
            while [path for path in tmp_path.rglob("*") if uid in str(path)]:
                await asyncio.sleep(0.01)


@in_event_loop
async def test_a_pod_removed_at_once_still_ends(tmp_path: Path) -> None:
    mark = f"{4000 + os.getpid()}.1"
    async with running_node(tmp_path) as (api, _):
        api.create("pod", only(f"trap 'exit 0' TERM; sleep {mark} & wait"))
        await api.until_phase("pod", "Running")
        await until_processes(mark, 1)
        api.delete("pod", grace=0)
        api.create("pod", only("exit 6"))
        assert state_of({"status": await api.until_phase("pod", "Failed")})["terminated"]["exitCode"] == 6
        await until_processes(mark, 0)


@in_event_loop
async def test_a_shorter_grace_overtakes_a_longer_one(tmp_path: Path) -> None:
    async with running_node(tmp_path) as (api, _):
        pod = api.create("pod", only("sleep 300", terminationGracePeriodSeconds=300))
        await api.until_phase("pod", "Running")
        api.delete("pod")
        api.delete("pod", grace=1)
        await api.until_gone("pod")
        last = api.history[pod["metadata"]["uid"]][-1]
        assert state_of(last)["terminated"]["exitCode"] == 137


@in_event_loop
async def test_a_container_that_ran_is_seen_running(tmp_path: Path) -> None:
    async with running_node(tmp_path) as (api, _):
        pods = [api.create(f"pod-{i}", only("exit 3")) for i in range(20)]
        for pod in pods:
            await api.until_phase(pod["metadata"]["name"], "Failed")
            history = api.history[pod["metadata"]["uid"]]
            assert [state for state in history if "running" in state_of(state)] != []


@in_event_loop
async def test_pods_that_are_not_for_this_node_are_left_alone(tmp_path: Path) -> None:
    async with running_node(tmp_path) as (api, _):
        api.create("elsewhere", only("exit 0", nodeName="another"))
        api.create("other-scheduler", only("exit 0", schedulerName="volcano"))
        api.create("chosen", only("exit 0", nodeName="node"))
        await api.until_phase("chosen", "Succeeded")
        for name in ("elsewhere", "other-scheduler"):
            assert api.pods["default", name]["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


@in_event_loop
async def test_a_pod_whose_selector_does_not_fit_its_node_is_rejected(tmp_path: Path) -> None:
    async with running_node(tmp_path) as (api, _):
        api.create("pod", only("exit 0", nodeName="node", nodeSelector={"no": "where"}))
        status = await api.until_phase("pod", "Failed")
        assert (status["reason"], status["message"]) == ("NodeAffinity", "Pod Predicate NodeAffinity failed")
        api.delete("pod")
        await api.until_gone("pod")


@in_event_loop
async def test_keys_that_cannot_be_variables_are_told_of(tmp_path: Path) -> None:
    async with running_node(tmp_path) as (api, _):
        api.config_maps["default", "c"] = {"data": {"1bad": "x", "good": "3"}}
        source = [{"configMapRef": {"name": "c"}}]
        spec = {"restartPolicy": "Never", "containers": [container("exit $good", envFrom=source)]}
        api.create("pod", spec)
        assert state_of({"status": await api.until_phase("pod", "Failed")})["terminated"]["exitCode"] == 3
        message = (
            "Keys [1bad] from the EnvFrom configMap default/c were skipped since they are considered invalid "
            "environment variable names."
        )
        assert ("pod", "Warning", "InvalidEnvironmentVariableNames", message) in api.events
