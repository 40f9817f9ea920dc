"""The other job kinds: a code of each class, who decides, and a restart in place. The rest is the same table."""

from collections.abc import Iterator

from exitcode_conformance.scenario import ExitOutcome, Scenario, UntilAttempt, UntilSucceeded
from exitcode_conformance.scenarios.topology import DONE, RUN, Topology, extended, short

WITH_MASTER = ("XGBoostJob", "PaddleJob")
FAILS = (ExitOutcome(code=1),)
TOLD_IN_TIME = 2
"""Units until a container ends that the kubelet starts again at once: by then its next outcome has to be told."""


def scenarios() -> Iterator[Scenario]:
    """All of them; those of the MPIJob are there to be told why they are not run."""
    for kind in WITH_MASTER:
        alone = Topology(kind=kind, replicas=(("Master", 1),))
        pair = Topology(kind=kind, replicas=(("Master", 1), ("Worker", 1)))
        yield from _codes(alone, "master-0", pair, "worker-0")
        yield extended(pair, "master-exit0", target="master-0", outcomes={"master-0": (DONE,)})
        yield extended(pair, "workers0", outcomes={"worker-0": (DONE,)}, steps=(UntilSucceeded(replica="worker-0"),))
    alone = Topology(kind="JAXJob", replicas=(("Worker", 1),))
    pair = Topology(kind="JAXJob", replicas=(("Worker", 2),))
    yield from _codes(alone, "worker-0", pair, "worker-1")
    yield extended(pair, "all0", outcomes={"worker-0": (DONE,), "worker-1": (DONE,)})
    yield extended(
        pair,
        "worker-exit0",
        target="worker-0",
        outcomes={"worker-0": (DONE,)},
        steps=(UntilSucceeded(replica="worker-0", counted=True),),
    )
    launched = Topology(kind="MPIJob", replicas=(("Launcher", 1), ("Worker", 1)))
    for code in (1, 137):
        yield extended(
            launched, f"launcher-exit{code}", target="launcher-0", outcomes={"launcher-0": (ExitOutcome(code=code),)}
        )


def _codes(alone: Topology, leader: str, pair: Topology, other: str) -> Iterator[Scenario]:
    """A retryable code where one replica is all there is; the other retryable one, a permanent code and a restart in
    place beside a sibling."""
    for topology, target, code in ((alone, leader, 137), (pair, other, 138)):
        yield extended(
            topology,
            f"{short(target)}-exit{code}",
            target=target,
            outcomes={target: (ExitOutcome(code=code), RUN)},
            steps=(UntilAttempt(replica=target, attempt=2, job_running=True),),
        )
    yield extended(pair, f"{short(other)}-exit1", target=other, outcomes={other: FAILS})
    yield extended(
        pair,
        f"{short(other)}-onfailure1",
        target=other,
        outcomes={other: (ExitOutcome(code=1, dwell=TOLD_IN_TIME), RUN)},
        policy="OnFailure",
        steps=(UntilAttempt(replica=other, attempt=2, job_running=True),),
    )
