"""Containers are real processes: the kernel decides how they end, and nothing of them is left, whoever dies."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from node_cases import container
from node_clusters import NamespaceOfCluster, embedded_process
from node_support import MemoryApi, in_event_loop, is_allowed, processes_of, until_processes

from exitcode_fixtures.embedded.cluster import EmbeddedCluster
from exitcode_fixtures.embedded.node import start_node
from exitcode_fixtures.embedded.node.agent import Node
from exitcode_fixtures.embedded.node.runtime import ISOLATION_LEVELS, RuntimeLost

Json = dict[str, Any]


@pytest.fixture(params=ISOLATION_LEVELS)
def isolation(request: pytest.FixtureRequest) -> str:
    level: str = request.param
    if not is_allowed(level):
        pytest.skip(f"the kernel does not allow {level} here")
    return level


@asynccontextmanager
async def running_node(directory: Path, isolation: str) -> AsyncIterator[tuple[MemoryApi, Node]]:
    api = MemoryApi()
    node = Node(api, directory, "node", isolation=(isolation,))
    assert await node.isolation() == isolation
    try:
        yield api, node
    finally:
        await node.stop()
    assert list(directory.iterdir()) == []


def marker(number: int) -> str:
    """A duration that no other process sleeps for."""
    return f"{3000 + os.getpid()}.{number}"


def only(script: str, policy: str = "Never", **rest: Any) -> Json:
    return {"restartPolicy": policy, "containers": [container(script)], **rest}


def end_of(status: Json) -> Json:
    ended: Json = status["containerStatuses"][0]["state"]["terminated"]
    return ended


@in_event_loop
async def test_codes_and_signals_are_the_kernels(tmp_path: Path, isolation: str) -> None:
    scripts = {
        "three": ("exit 3", 3),
        "byte": ("exit 300", 44),
        "missing": ("no-such-command", 127),
        "child-killed": ("sh -c 'kill -9 $$$$'; exit $?", 137),
        "child-segv": ("sh -c 'kill -SEGV $$$$'; exit $?", 139),
        "child-interrupted": ("sh -c 'kill -INT $$$$'; exit $?", 130),
    }
    async with running_node(tmp_path, isolation) as (api, _):
        for name, (script, _code) in scripts.items():
            api.create(name, only(script))
        codes = {name: end_of(await api.until_phase(name, "Failed"))["exitCode"] for name in scripts}
    assert codes == {name: code for name, (_script, code) in scripts.items()}


@in_event_loop
async def test_pid_1_is_spared_only_in_a_namespace(tmp_path: Path, isolation: str) -> None:
    async with running_node(tmp_path, isolation) as (api, _):
        api.create("pod", only("kill -9 $$$$; exit 3"))
        code = end_of(await api.until_phase("pod", "Failed"))["exitCode"]
    assert code == (137 if isolation == "process-groups" else 3)


@in_event_loop
async def test_what_a_command_leaves_behind_ends_with_it(tmp_path: Path, isolation: str) -> None:
    mark = marker(1)
    async with running_node(tmp_path, isolation) as (api, _):
        script = f"sleep {mark} & setsid sleep {mark} & (setsid sleep {mark} &) & trap 'exit 4' TERM; wait; wait; wait"
        api.create("pod", only(script))
        await until_processes(mark, 3)
        api.delete("pod")
        await api.until_gone("pod")
        await until_processes(mark, 0)


@in_event_loop
async def test_an_ignored_signal_of_the_harness_is_not_inherited(tmp_path: Path, isolation: str) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        async with running_node(tmp_path, isolation) as (api, _):
            api.create("pod", only("grep SigIgn /proc/self/status; sh -c 'kill -INT $$$$'; exit $?"))
            assert end_of(await api.until_phase("pod", "Failed"))["exitCode"] == 130
    finally:
        signal.signal(signal.SIGINT, before)


@in_event_loop
async def test_stopping_the_node_ends_all_containers(tmp_path: Path, isolation: str) -> None:
    mark = marker(2)
    async with running_node(tmp_path, isolation) as (api, _):
        api.create("stubborn", only(f"trap '' TERM; sleep {mark} & sleep {mark}; wait"))
        api.create("willing", only(f"trap exit TERM; sleep {mark} & wait"))
        await until_processes(mark, 3)
    assert processes_of(mark) == []


@in_event_loop
async def test_containers_end_with_the_supervisor_and_the_node_goes_on(tmp_path: Path, isolation: str) -> None:
    mark = marker(3)
    async with running_node(tmp_path, isolation) as (api, node):
        api.create("victim", only(f"sleep {mark}"))
        await api.until_phase("victim", "Running")
        await until_processes(mark, 1)
        os.kill(node.supervisor_pid, signal.SIGKILL)
        assert end_of(await api.until_phase("victim", "Failed"))["exitCode"] == 137
        await until_processes(mark, 0)
        api.create("next", only("exit 5"))
        assert end_of(await api.until_phase("next", "Failed"))["exitCode"] == 5


_HOST = """
import asyncio, sys
from pathlib import Path
from exitcode_fixtures.embedded.cluster import EmbeddedCluster
from exitcode_fixtures.embedded.node import start_node
from exitcode_fixtures.embedded.node.agent import Node
from node_cases import container
from node_clusters import NamespaceOfCluster, embedded_process
from node_support import MemoryApi

async def main():
    api = MemoryApi()
    Node(api, Path(sys.argv[1]), "node", isolation=(sys.argv[2],))
    script = f"trap '' TERM HUP INT; sleep {sys.argv[3]} & setsid sleep {sys.argv[3]} & wait; wait"
    for number in range(3):
        api.create(f"pod-{number}", {"restartPolicy": "Always", "containers": [container(script)]})
        await api.until_phase(f"pod-{number}", "Running")
    print("running", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
def host(tmp_path: Path, isolation: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process with a node in it that runs three stubborn pods, and the mark of their six processes."""
    mark = marker(4)
    command = [sys.executable, "-c", _HOST, str(tmp_path), isolation, mark]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "running\n"
            yield process, mark
        finally:
            process.kill()


@in_event_loop
async def test_no_container_survives_the_cluster(host: tuple[subprocess.Popen[str], str]) -> None:
    process, mark = host
    await until_processes(mark, 6)
    process.kill()
    await until_processes(mark, 0)


@in_event_loop
async def test_no_container_survives_the_embedded_clusters_process(tmp_path: Path) -> None:
    mark = marker(5)
    with embedded_process(tmp_path) as (process, kubeconfig):
        async with NamespaceOfCluster(kubeconfig, dwell_seconds=0) as cluster:
            await cluster.create_pod("pod", only(f"trap '' TERM; sleep {mark} & setsid sleep {mark} & wait; wait"), {})
            await until_processes(mark, 2)
        process.kill()
        await until_processes(mark, 0)


@in_event_loop
async def test_a_supervisor_that_cannot_start_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    node = Node(MemoryApi(), tmp_path, "node")
    with pytest.raises(RuntimeLost, match="the container supervisor is gone: exit status 1"):
        await node.failed
    await node.stop()


@in_event_loop
async def test_a_cluster_ends_with_its_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    cluster = await EmbeddedCluster.start(tmp_path, start_node=start_node)
    with pytest.raises(RuntimeLost, match="the container supervisor is gone"):
        await cluster.failed
    await cluster.stop()
