"""Jobs that end in the middle of something: while the other replicas run on, or while a restart is under way."""

from collections.abc import Iterator

from exitcode_conformance.scenario import ExitOutcome, Scenario
from exitcode_conformance.scenarios.topology import TF_PS_WORKER, TF_WORKERS, extended

SUCCESS_DWELL, FAILURE_DWELL = 5, 8
"""Units that the others run on for: the first ends within the window after the job's end, the second after that."""


def scenarios() -> Iterator[Scenario]:
    """Both. Worker 1 fails the job, then worker 0, which decides, succeeds, and worker 2 ends with 137. A worker is
    restarted and then fails for good, while the parameter server waits for a node, so that nothing says Running."""
    yield extended(
        TF_WORKERS,
        "worker1-exit1-late-0-137",
        target="worker-1",
        outcomes={
            "worker-1": (ExitOutcome(code=1),),
            "worker-0": (ExitOutcome(code=0, dwell=SUCCESS_DWELL),),
            "worker-2": (ExitOutcome(code=137, dwell=FAILURE_DWELL),),
        },
        run_policy={"cleanPodPolicy": "None"},
    )
    yield extended(
        TF_PS_WORKER,
        "worker-then-137-1-ps-pending",
        target="worker-0",
        outcomes={"worker-0": (ExitOutcome(code=137), ExitOutcome(code=1))},
        traits={"PS": {"pending": True}},
    )
