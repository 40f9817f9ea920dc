"""Topologies, and the one builder through which all scenarios are made."""

from collections.abc import Mapping, Sequence
from typing import Any

from exitcode_conformance.frozen import Frozen
from exitcode_conformance.kinds import JobKind
from exitcode_conformance.scenario import (
    ExitOutcome,
    Outcome,
    Profile,
    ReplicaGroup,
    RestartPolicy,
    RunUntilStopped,
    Scenario,
    Step,
    UntilTerminal,
)


class Topology(Frozen):
    """A job kind, and how many replicas of each type."""

    kind: str
    replicas: tuple[tuple[str, int], ...]
    """(type, count), in the order of the manifest."""

    @property
    def name(self) -> str:
        """`ps1-worker3`."""
        return "-".join(f"{kind.lower()}{count}" for kind, count in self.replicas)

    @property
    def replica_names(self) -> tuple[str, ...]:
        """Every replica as `<type in lower case>-<index>`."""
        return tuple(f"{kind.lower()}-{index}" for kind, count in self.replicas for index in range(count))


TF_WORKER = Topology(kind="TFJob", replicas=(("Worker", 1),))
TF_WORKERS = Topology(kind="TFJob", replicas=(("Worker", 3),))
TF_PS = Topology(kind="TFJob", replicas=(("PS", 1), ("Worker", 3)))
TF_CHIEF = Topology(kind="TFJob", replicas=(("Chief", 1), ("Worker", 2)))
TORCH_MASTER = Topology(kind="PyTorchJob", replicas=(("Master", 1),))
TORCH = Topology(kind="PyTorchJob", replicas=(("Master", 1), ("Worker", 2)))
TF_PS_CHIEF = Topology(kind="TFJob", replicas=(("PS", 1), ("Chief", 1)))
TF_PS_CHIEF_WORKER = Topology(kind="TFJob", replicas=(("PS", 1), ("Chief", 1), ("Worker", 1)))
TF_PS_WORKER = Topology(kind="TFJob", replicas=(("PS", 1), ("Worker", 1)))
TF_PAIR = Topology(kind="TFJob", replicas=(("Worker", 2),))
TORCH_PAIR = Topology(kind="PyTorchJob", replicas=(("Master", 1), ("Worker", 1)))
JOB = Topology(kind="Job", replicas=(("Worker", 1),))
INDEXED_JOB = Topology(kind="Job", replicas=(("Worker", 3),))


RUN = RunUntilStopped()
DONE = ExitOutcome(code=0)


def smallest(kind: JobKind) -> Topology:
    """One replica that decides its job: a worker where the first worker may, else the leader that the kind needs."""
    alone = "Worker" if kind.followers_decide == "worker-0" or not kind.leaders else kind.leaders[0]
    return Topology(kind=kind.name, replicas=((alone, 1),))


def build(
    topology: Topology,
    name: str,
    *,
    target: str | None,
    outcomes: Mapping[str, Sequence[Outcome]],
    steps: Sequence[Step] = (UntilTerminal(),),
    policy: RestartPolicy = "ExitCode",
    policies: Mapping[str, RestartPolicy] | None = None,
    run_policy: Mapping[str, Any] | None = None,
    success_policy: str | None = None,
    traits: Mapping[str, Mapping[str, Any]] | None = None,
    needs: Sequence[str] = (),
    settle: str = "never",
    profile: Profile = "core",
) -> Scenario:
    """A scenario `<kind>-<name>-<topology>`. `policies` overrides `policy` for some types, and `traits` has further
    fields of their `ReplicaGroup`."""
    groups = tuple(
        ReplicaGroup.model_validate(
            {
                "type": kind,
                "replicas": count,
                "restart_policy": (policies or {}).get(kind, policy),
                **(traits or {}).get(kind, {}),
            }
        )
        for kind, count in topology.replicas
    )
    return Scenario.model_validate(
        {
            "id": f"{topology.kind.lower()}-{name}-{topology.name}",
            "kind": topology.kind,
            "groups": groups,
            "outcomes": {replica: tuple(script) for replica, script in outcomes.items()},
            "target": target,
            "steps": tuple(steps),
            "run_policy": dict(run_policy or {}),
            "success_policy": success_policy,
            "needs": tuple(needs),
            "settle": settle,
            "profile": profile,
        }
    )


def extended(topology: Topology, name: str, **fields: Any) -> Scenario:
    """The same, for the profile `extended`; a scenario without a target is about the job as a whole."""
    return build(topology, name, **{"target": None, "outcomes": {}, "profile": "extended", **fields})


def short(replica: str) -> str:
    """`worker` for index 0, else `worker2`: as scenario ids have it."""
    kind, _, index = replica.rpartition("-")
    return kind if index == "0" else f"{kind}{index}"
