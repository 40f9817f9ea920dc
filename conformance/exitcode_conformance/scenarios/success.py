"""Who decides that a job has succeeded."""

from collections.abc import Iterator

from exitcode_conformance.scenario import Scenario, UntilAttempt, UntilSucceeded
from exitcode_conformance.scenarios.topology import (
    DONE,
    TF_CHIEF,
    TF_PS,
    TF_PS_CHIEF,
    TF_WORKERS,
    TORCH,
    build,
    extended,
)


def scenarios() -> Iterator[Scenario]:
    """All of them. In the first two of each kind the job ends, in the others nobody who decides has ended."""
    yield build(
        TF_WORKERS,
        "allworkers-all0",
        target=None,
        outcomes={f"worker-{i}": (DONE,) for i in range(3)},
        success_policy="AllWorkers",
    )
    yield build(
        TF_WORKERS,
        "allworkers-two0",
        target=None,
        outcomes={f"worker-{i}": (DONE,) for i in range(2)},
        success_policy="AllWorkers",
        steps=(UntilSucceeded(replica="worker-0"), UntilSucceeded(replica="worker-1")),
    )
    yield build(
        TF_WORKERS,
        "others0",
        target=None,
        outcomes={"worker-1": (DONE,), "worker-2": (DONE,)},
        steps=(UntilSucceeded(replica="worker-1"), UntilSucceeded(replica="worker-2")),
        settle="state",
    )
    yield build(TF_PS, "workers0", target=None, outcomes={f"worker-{i}": (DONE,) for i in range(3)})
    yield build(TF_PS, "ps0", target=None, outcomes={"ps-0": (DONE,)}, steps=(UntilSucceeded(replica="ps-0"),))
    yield build(
        TF_CHIEF,
        "workers0",
        target=None,
        outcomes={"worker-0": (DONE,), "worker-1": (DONE,)},
        steps=(UntilSucceeded(replica="worker-0"), UntilSucceeded(replica="worker-1")),
    )
    yield build(
        TORCH,
        "workers0",
        target=None,
        outcomes={"worker-0": (DONE,), "worker-1": (DONE,)},
        steps=(UntilSucceeded(replica="worker-0"), UntilSucceeded(replica="worker-1")),
        settle="state",
    )
    yield build(TORCH, "all0", target=None, outcomes=dict.fromkeys(("master-0", "worker-0", "worker-1"), (DONE,)))
    yield build(
        TORCH,
        "running",
        target=None,
        outcomes={},
        steps=(UntilAttempt(replica="master-0", attempt=1, job_running=True),),
    )
    yield extended(TF_PS_CHIEF, "chief0", outcomes={"chief-0": (DONE,)})
    yield extended(TF_PS_CHIEF, "ps0", outcomes={"ps-0": (DONE,)}, steps=(UntilSucceeded(replica="ps-0"),))
