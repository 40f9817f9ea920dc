"""The policies that are the kubelet's own work, and the deletion of a job."""

from collections.abc import Iterator

from exitcode_conformance.scenario import (
    DeleteJob,
    ExitOutcome,
    Scenario,
    Step,
    UntilAttempt,
    UntilGone,
    UntilSucceeded,
    UntilTerminal,
)
from exitcode_conformance.scenarios.topology import (
    RUN,
    TF_CHIEF,
    TF_PS,
    TF_WORKER,
    TF_WORKERS,
    TORCH,
    Topology,
    build,
    short,
)

PLACES: tuple[tuple[Topology, str], ...] = ((TF_WORKERS, "worker-1"), (TORCH, "worker-0"))


def scenarios() -> Iterator[Scenario]:
    """All of them."""
    for topology, target in PLACES:
        for code in (0, 1, 137):
            again: tuple[Step, ...] = (UntilAttempt(replica=target, attempt=2, job_running=True),)
            script = (ExitOutcome(code=code), RUN)
            yield build(
                topology,
                f"{short(target)}-always{code}",
                target=target,
                outcomes={target: script},
                steps=again,
                policy="Always",
            )
            yield build(
                topology,
                f"{short(target)}-onfailure{code}",
                target=target,
                outcomes={target: script},
                steps=again if code else (UntilSucceeded(replica=target),),
                policy="OnFailure",
            )
        for code in (1, 137, 138):
            yield build(
                topology,
                f"{short(target)}-never{code}",
                target=target,
                outcomes={target: (ExitOutcome(code=code),)},
                policy="Never",
            )
    yield build(
        TF_WORKER,
        "worker-onfailure1-limit1",
        target="worker-0",
        outcomes={"worker-0": (ExitOutcome(code=1),)},
        policy="OnFailure",
        run_policy={"backoffLimit": 1},
    )
    for topology, leader in ((TF_PS, "worker-0"), (TF_CHIEF, "chief-0"), (TORCH, "master-0")):
        # All of them: an operator may say Running as soon as one runs.
        running = (UntilAttempt(replica=r, attempt=1) for r in topology.replica_names if r != leader)
        yield build(
            topology,
            "deleted",
            target=None,
            outcomes={},
            steps=(*running, UntilAttempt(replica=leader, attempt=1, job_running=True), DeleteJob(), UntilGone()),
        )
    yield build(
        TF_PS,
        "deleted-when-failed",
        target=None,
        outcomes={"worker-0": (ExitOutcome(code=1),)},
        steps=(UntilTerminal(), DeleteJob(), UntilGone()),
    )
