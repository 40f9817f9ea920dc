"""What ends a job or removes it that no exit code asks for: limits, deadlines, time to live."""

from collections.abc import Iterator

from exitcode_conformance.scenario import ExitOutcome, Scenario, UntilCleaned, UntilGone, UntilTerminal
from exitcode_conformance.scenarios.topology import (
    DONE,
    TF_PAIR,
    TF_PS_WORKER,
    TF_WORKER,
    TORCH_MASTER,
    TORCH_PAIR,
    extended,
)

FAILS = (ExitOutcome(code=1),)
FAILS_LATER = (ExitOutcome(code=1), ExitOutcome(code=1, dwell=16))
"""So late that a third restart, which the kubelet puts off, comes clearly after the bound `terminal`."""
KILLED = (ExitOutcome(code=137),)
DEADLINE = 6
"""Seconds; time enough for the pods to run, and so that nothing happens any more when it is over."""
TIME_TO_LIVE = 4
"""Seconds; longer than the events that follow a job's end go on."""


def scenarios() -> Iterator[Scenario]:
    """All of them."""
    yield from _limits()
    yield from _deadlines()
    for topology, name, replica, outcome in (
        (TF_WORKER, "ttl-when-succeeded", "worker-0", (DONE,)),
        (TORCH_MASTER, "ttl-when-failed", "master-0", FAILS),
    ):
        yield extended(
            topology,
            name,
            outcomes={replica: outcome},
            run_policy={"ttlSecondsAfterFinished": TIME_TO_LIVE},
            needs=("ttl-after-finished",),
            steps=(UntilTerminal(), UntilGone()),
        )


def _limits() -> Iterator[Scenario]:
    """In place, in two replicas that share the limit; and by new pods."""
    yield extended(
        TF_PAIR,
        "both-onfailure1-limit2",
        target="worker-0",
        outcomes={"worker-0": FAILS_LATER, "worker-1": FAILS_LATER},
        policy="OnFailure",
        run_policy={"backoffLimit": 2},
        needs=("backoff-limit",),
    )
    yield extended(
        TORCH_MASTER,
        "master-onfailure1-limit1",
        target="master-0",
        outcomes={"master-0": FAILS},
        policy="OnFailure",
        run_policy={"backoffLimit": 1},
        needs=("backoff-limit",),
    )
    yield extended(
        TF_WORKER,
        "worker-exit137-limit2",
        target="worker-0",
        outcomes={"worker-0": KILLED},
        run_policy={"backoffLimit": 2},
        needs=("backoff-limit",),
    )
    yield extended(
        TORCH_PAIR,
        "worker-exit137-limit1",
        target="worker-0",
        outcomes={"worker-0": KILLED},
        run_policy={"backoffLimit": 1, "cleanPodPolicy": "Running"},
        needs=("backoff-limit", "clean-pod-policy"),
        steps=(UntilTerminal(), UntilCleaned()),
    )


def _deadlines() -> Iterator[Scenario]:
    """With pods that run, and with some that never will."""
    yield extended(
        TF_PAIR,
        "deadline-clean-all",
        run_policy={"activeDeadlineSeconds": DEADLINE, "cleanPodPolicy": "All"},
        needs=("active-deadline", "clean-pod-policy"),
        steps=(UntilTerminal(), UntilCleaned()),
    )
    yield extended(TORCH_MASTER, "deadline", run_policy={"activeDeadlineSeconds": DEADLINE}, needs=("active-deadline",))
    yield extended(
        TF_PS_WORKER,
        "deadline-pending",
        traits={"PS": {"pending": True}},
        run_policy={"activeDeadlineSeconds": DEADLINE},
        needs=("active-deadline",),
    )
