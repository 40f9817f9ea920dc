"""What is done to a job from outside: pods deleted and evicted, the job deleted, or made again under the same name."""

from collections.abc import Iterator

from exitcode_conformance.scenario import (
    DeleteJob,
    RecreateJob,
    RemovePod,
    RunUntilStopped,
    Scenario,
    UntilAttempt,
    UntilGone,
)
from exitcode_conformance.scenarios.topology import (
    RUN,
    TF_PAIR,
    TF_PS_CHIEF,
    TF_PS_WORKER,
    TORCH_PAIR,
    Topology,
    extended,
    short,
)

STOPPED = RunUntilStopped(code=143)
"""A container that is stopped says so by its code; one that exited 0 could be taken for one that has done its work."""

REMOVALS: tuple[tuple[Topology, str, str], ...] = (
    (TF_PAIR, "worker-1", "delete"),
    (TF_PS_CHIEF, "chief-0", "evict"),
    (TORCH_PAIR, "master-0", "delete"),
)


def scenarios() -> Iterator[Scenario]:
    """All of them."""
    for topology, target, how in REMOVALS:
        yield extended(
            topology,
            f"{short(target)}-{'deleted' if how == 'delete' else 'evicted'}",
            target=target,
            outcomes={target: (STOPPED, RUN)},
            steps=(
                UntilAttempt(replica=target, attempt=1, job_running=True),
                RemovePod.model_validate({"replica": target, "how": how}),
                UntilAttempt(replica=target, attempt=2, job_running=True),
            ),
        )
    yield extended(
        TF_PS_WORKER,
        "deleted-while-pending",
        traits={"PS": {"pending": True}},
        steps=(UntilAttempt(replica="worker-0", attempt=1), DeleteJob(), UntilGone()),
    )
    runs = UntilAttempt(replica="worker-0", attempt=1, job_running=True)
    yield extended(TF_PS_WORKER, "made-again", steps=(runs, RecreateJob(), runs))
