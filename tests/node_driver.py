"""Runs cases on a cluster, whichever it is, and keeps every state of every pod that the cluster showed."""

import asyncio
import functools
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol

from node_cases import Case
from node_observation import observed_event, observed_sequence, transition_faults

Json = dict[str, Any]
_CASE_SECONDS = 150.0
"""A kubelet's slowest answer: a container that must be killed, a retry of a configuration."""


class Cluster(Protocol):
    """What a case needs of a cluster, in one namespace that is the test's own."""

    dwell_seconds: float

    def watch(self) -> AsyncIterator[tuple[str, Json]]: ...

    async def create_pod(self, name: str, spec: Json, metadata: Json) -> None: ...

    async def delete_pod(self, name: str, grace: int | None) -> None: ...

    async def put_config_map(self, name: str, data: Json) -> None: ...

    async def events_of(self, pod: Json) -> list[Json]: ...

    async def event_count(self) -> int: ...


class Driver:
    """One watch and any number of cases at the same time."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._states: dict[str, list[Json]] = {}
        self._gone: set[str] = set()
        self._changed = asyncio.Condition()

    async def run(self, cases: Sequence[Case], at_once: int, quiet_seconds: float = 0) -> dict[str, Json]:
        """Case name → what was observed: `statuses`, `events`, and `faults` that no cluster may show; only `missed`
        for a case that did not come to its end. Events are read when none has come for `quiet_seconds`."""
        watching = asyncio.create_task(self._watch())
        slots = asyncio.Semaphore(at_once)
        try:
            results = await asyncio.gather(*(self._run_one(case, slots) for case in cases))
        finally:
            watching.cancel()
        await self._until_quiet(quiet_seconds)
        return {
            case.name: {"missed": result} if isinstance(result, str) else await self._observed(result)
            for case, result in zip(cases, results, strict=True)
        }

    async def _until_quiet(self, seconds: float) -> None:
        """A kubelet sends events at a limited rate, long after what they tell of."""
        count = -1
        while seconds and count != (count := await self._cluster.event_count()):
            await asyncio.sleep(seconds)

    async def _watch(self) -> None:
        async for verb, pod in self._cluster.watch():
            name = pod["metadata"]["name"]
            if verb == "DELETED":
                self._gone.add(name)
            else:
                self._states.setdefault(name, []).append(pod)
            async with self._changed:
                self._changed.notify_all()

    async def _run_one(self, case: Case, slots: asyncio.Semaphore) -> list[Json] | str:
        """Every state of the pod's object, or what was waited for in vain."""
        async with slots:
            if case.config:
                await self._cluster.put_config_map(f"{case.name}-config", case.config)
            spec = _with_dwell(case.spec, self._cluster.dwell_seconds)
            await self._cluster.create_pod(case.name, spec, {"labels": case.labels, "annotations": case.annotations})
            missed = ""
            for step in case.steps:
                try:
                    async with asyncio.timeout(_CASE_SECONDS), self._changed:
                        await self._changed.wait_for(functools.partial(self._holds, case.name, step.until))
                except TimeoutError:
                    missed = step.until
                    break
                await self._act(case, step.then)
            # The pod is left to the end of the namespace: its deletion here would show in its events.
            return missed or list(self._states[case.name])

    async def _observed(self, states: list[Json]) -> Json:
        events = await self._cluster.events_of(states[-1])
        seen = (observed_event(event, states[-1]) for event in events)
        return {
            "statuses": observed_sequence(states),
            "events": sorted({text for text in seen if text}),
            "faults": transition_faults(states),
        }

    async def _act(self, case: Case, action: str) -> None:
        if action == "delete":
            await self._cluster.delete_pod(case.name, None)
        elif action == "delete-at-once":
            await self._cluster.delete_pod(case.name, 0)
        elif action == "put-config":
            await self._cluster.put_config_map(f"{case.name}-config", case.next_config)

    def _holds(self, name: str, until: str) -> bool:
        kind, _, wanted = until.partition(":")
        if kind == "gone":
            return name in self._gone
        if name not in self._states:
            return False
        status = self._states[name][-1]["status"]
        containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
        match kind:
            case "phase":
                return bool(status["phase"] == wanted)
            case "running" | "ended":
                key = "running" if kind == "running" else "terminated"
                return any(c["name"] == wanted and key in c["state"] for c in containers)
            case "waiting":
                return any((c["state"].get("waiting") or {}).get("reason") == wanted for c in containers)
            case "restarts":
                return any(c["restartCount"] == int(wanted) for c in containers)
            case "unscheduled":
                return any(
                    c["type"] == "PodScheduled" and c["status"] == "False" for c in status.get("conditions") or ()
                )
        raise ValueError(until)


def _with_dwell(value: Any, seconds: float) -> Any:
    if isinstance(value, str):
        return value.replace("DWELL", f"{seconds:g}")
    if isinstance(value, Mapping):
        return {key: _with_dwell(each, seconds) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_dwell(each, seconds) for each in value]
    return value
