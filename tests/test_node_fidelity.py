"""The embedded node against a real kubelet: the same pods, the same statuses and events, in the same order.

What the kubelet did is kept in `data/node_statuses.json`. With EXITCODE_RECORD_KUBECONFIG in the environment it
is recorded anew there (Kubernetes 1.20 with containerd, about 10 minutes) before it is compared.

Kept differences, with their reasons:
- A container that ends at once: a kubelet, which looks once a second, may never show it Running; the node always does.
- After an end that is not restarted yet, a kubelet takes seconds to say CrashLoopBackOff; the node says so at once.
- A pod deleted in its init container: kubelet 1.20 says ContainerStatusUnknown (see `node_cases`).
- KUBERNETES_SERVICE_HOST and its kin are not set: nothing would answer there.
- A missing ConfigMap or Secret is looked for once a second.
"""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from node_cases import CASES, NEED_NAMESPACES, Case
from node_clusters import NamespaceOfCluster, embedded_process
from node_driver import Driver

from exitcode_fixtures.embedded.node.isolation import probe_isolation

Json = dict[str, Any]
_RECORDING = Path(__file__).parent / "data" / "node_statuses.json"
_REAL_DWELL_SECONDS = 3.0
_REAL_AT_ONCE = 6
_REAL_QUIET_SECONDS = 15.0
_ROUNDS = 8
_UNREADABLE = "ContainerStatusUnknown"
"""What a kubelet 1.20 says, now and then, of a container that it has removed before it read how it ended."""


async def _observe(
    kubeconfig: Path, cases: list[Case], dwell: float, at_once: int, quiet: float = 0
) -> dict[str, Json]:
    async with NamespaceOfCluster(kubeconfig, dwell) as cluster:
        return await Driver(cluster).run(cases, at_once, quiet)


async def record(kubeconfig: Path) -> None:
    """Records every case until it has shown the same twice: a kubelet that is busy merges states."""
    seen: dict[str, list[Json]] = {case.name: [] for case in CASES}
    settled: dict[str, Json] = {}
    for _ in range(_ROUNDS):
        cases = [case for case in CASES if case.name not in settled]
        observed = await _observe(kubeconfig, cases, _REAL_DWELL_SECONDS, _REAL_AT_ONCE, _REAL_QUIET_SECONDS)
        for name, result in observed.items():
            if "missed" in result or _UNREADABLE in json.dumps(result):
                continue
            if result in seen[name]:
                settled[name] = result
            seen[name].append(result)
        if len(settled) == len(CASES):
            break
    unsettled = sorted(seen.keys() - settled.keys())
    assert not unsettled, f"no stable answer for {unsettled}"
    lines = (f"{json.dumps(name)}: {json.dumps(settled[name], sort_keys=True)}" for name in sorted(settled))
    _RECORDING.write_text("{\n" + ",\n".join(lines) + "\n}\n")


@pytest.fixture(scope="module")
def recorded() -> dict[str, Json]:
    real = os.environ.get("EXITCODE_RECORD_KUBECONFIG")
    if real:
        asyncio.run(record(Path(real)))
    loaded: dict[str, Json] = json.loads(_RECORDING.read_text())
    return loaded


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory, recorded: dict[str, Json]) -> dict[str, Json]:
    """What the embedded cluster shows. On a machine that is busy with other things states may come together that
    are apart elsewhere, so what differs is tried again, slower."""
    isolation = probe_isolation()
    can_all = isolation.has_pid_1 and isolation.own_root
    cases = [case for case in CASES if can_all or case.name not in NEED_NAMESPACES]
    with embedded_process(tmp_path_factory.mktemp("cluster")) as (_, kubeconfig):
        observed = asyncio.run(_observe(kubeconfig, cases, 0.2, 20))
        different = [case for case in cases if observed[case.name] != recorded.get(case.name)]
        if different:
            observed |= asyncio.run(_observe(kubeconfig, different, 1.0, 4))
    return observed


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_shows_what_a_kubelet_shows(name: str, recorded: dict[str, Json], embedded: dict[str, Json]) -> None:
    if name not in embedded:
        pytest.skip("containers have no namespaces of their own here")
    assert embedded[name] == recorded[name]
    assert embedded[name]["faults"] == []
