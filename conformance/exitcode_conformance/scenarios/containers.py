"""Pods of more than one container, containers with something to say, without a command, and codes that mean nothing."""

from collections.abc import Iterator
from typing import Any

from exitcode_conformance.scenario import (
    ExitOutcome,
    MissingCommand,
    Scenario,
    Step,
    UntilAttempt,
    UntilTerminal,
)
from exitcode_conformance.scenarios.topology import (
    RUN,
    TF_PAIR,
    TF_WORKER,
    TORCH_MASTER,
    TORCH_PAIR,
    Topology,
    extended,
)

ALONE: tuple[tuple[Topology, str], ...] = ((TF_WORKER, "worker-0"), (TORCH_MASTER, "master-0"))
TOGETHER = 2
"""Units that two replicas run which are to fail at the same moment."""


def scenarios() -> Iterator[Scenario]:
    """All of them."""
    for topology, target in ALONE:
        for sidecar, code in ((1, 137), (137, 1), (1, 0)):
            name = f"exit{code}-sidecar{sidecar}"
            yield _fails(topology, target, name, code, sidecar=ExitOutcome(code=sidecar, dwell=0))
        yield _fails(topology, target, "exit1-message", 1, message="exit code 137: try again")
        yield _fails(topology, target, "exit137-message", 137, message="exit code 1: general error")
        yield extended(topology, "missing-command", target=target, outcomes={target: (MissingCommand(),)})
        yield extended(
            topology,
            "init1",
            target=target,
            outcomes={target: (RUN,)},
            traits={_type(target): {"init": ExitOutcome(code=1, dwell=0)}},
        )
    for topology, target, codes in ((TF_WORKER, "worker-0", (3, 129)), (TORCH_MASTER, "master-0", (129,))):
        for code in codes:
            # What follows is open: another attempt, or the end of the job.
            steps = (UntilAttempt(replica=target, attempt=2),)
            yield extended(
                topology,
                f"exit{code}",
                target=target,
                outcomes={target: (ExitOutcome(code=code), RUN)},
                steps=steps,
            )
    yield from _beside_others()


def _type(replica: str) -> str:
    return replica.rpartition("-")[0].capitalize()


def _fails(topology: Topology, target: str, name: str, code: int, **traits: Any) -> Scenario:
    """The target ends with the code, and runs on in its next attempt if the code is one that is retried."""
    retried = code == 137
    steps: tuple[Step, ...] = (UntilAttempt(replica=target, attempt=2, job_running=True),)
    return extended(
        topology,
        name,
        target=target,
        outcomes={target: (ExitOutcome(code=code), RUN) if retried else (ExitOutcome(code=code),)},
        traits={_type(target): traits},
        steps=steps if retried else (UntilTerminal(),),
    )


def _beside_others() -> Iterator[Scenario]:
    """A sibling that no node takes, and one that fails at the same moment with a code of another class."""
    yield extended(
        TORCH_PAIR,
        "worker-pending-exit138",
        target="master-0",
        outcomes={"master-0": (ExitOutcome(code=138), RUN)},
        traits={"Worker": {"pending": True}},
        steps=(UntilAttempt(replica="master-0", attempt=2),),
    )
    yield extended(
        TF_PAIR,
        "at-once-137-1",
        target="worker-1",
        outcomes={
            "worker-0": (ExitOutcome(code=137, dwell=TOGETHER), RUN),
            "worker-1": (ExitOutcome(code=1, dwell=TOGETHER),),
        },
        run_policy={"cleanPodPolicy": "None"},
    )
    yield extended(
        TORCH_PAIR,
        "at-once-1-137",
        target="master-0",
        outcomes={
            "master-0": (ExitOutcome(code=1, dwell=TOGETHER),),
            "worker-0": (ExitOutcome(code=137, dwell=TOGETHER), RUN),
        },
        run_policy={"cleanPodPolicy": "None"},
    )
