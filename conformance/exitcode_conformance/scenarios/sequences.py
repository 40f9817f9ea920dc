"""Sequences of codes over the attempts of one replica."""

from collections.abc import Iterator

from exitcode_conformance.scenario import ExitOutcome, Scenario
from exitcode_conformance.scenarios.topology import (
    TF_CHIEF,
    TF_WORKER,
    TF_WORKERS,
    TORCH,
    Topology,
    build,
    extended,
    short,
)

SEQUENCES: tuple[tuple[Topology, str, tuple[int, ...]], ...] = (
    (TF_WORKER, "worker-0", (137, 0)),
    (TF_WORKERS, "worker-0", (143, 138, 137, 0)),
    (TF_CHIEF, "chief-0", (130, 137, 0)),
    (TORCH, "master-0", (138, 138, 0)),
    (TF_WORKER, "worker-0", (137, 1)),
    (TF_WORKERS, "worker-1", (130, 143, 127)),
    (TORCH, "worker-0", (138, 139)),
)


def scenarios() -> Iterator[Scenario]:
    """All of them."""
    for topology, target, codes in SEQUENCES:
        yield build(
            topology,
            f"{short(target)}-then-{'-'.join(map(str, codes))}",
            target=target,
            outcomes={target: tuple(ExitOutcome(code=code) for code in codes)},
        )
    codes = (137, 143, 138, 130, 0)
    yield extended(
        TF_WORKER,
        f"worker-then-{'-'.join(map(str, codes))}",
        target="worker-0",
        outcomes={"worker-0": tuple(ExitOutcome(code=code) for code in codes)},
    )
