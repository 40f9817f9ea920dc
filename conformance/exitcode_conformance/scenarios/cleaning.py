"""cleanPodPolicy × how the job ends × what its pods do at that moment."""

from collections.abc import Iterator

from exitcode_conformance.scenario import ExitOutcome, Scenario, UntilAttempt, UntilCleaned, UntilTerminal
from exitcode_conformance.scenarios.topology import TF_PAIR, TF_PS_CHIEF_WORKER, TORCH_PAIR, extended

LONG = 4
"""Units that the replica which decides runs, so that its siblings run when it ends."""


def scenarios() -> Iterator[Scenario]:
    """All of them: the replica that decides has finished, another one runs, and a third one, if any, is pending."""
    for code in (0, 1):
        for policy in ("None", "Running", "All"):
            yield extended(
                TF_PS_CHIEF_WORKER,
                f"clean-{policy.lower()}-exit{code}",
                target="chief-0",
                outcomes={"chief-0": (ExitOutcome(code=code, dwell=LONG),)},
                traits={"PS": {"pending": True}},
                run_policy={"cleanPodPolicy": policy},
                needs=("clean-pod-policy",),
                steps=(UntilAttempt(replica="worker-0", attempt=1), UntilTerminal(), UntilCleaned()),
            )
            yield extended(
                TORCH_PAIR,
                f"clean-{policy.lower()}-exit{code}",
                target="master-0",
                outcomes={"master-0": (ExitOutcome(code=code, dwell=LONG),)},
                run_policy={"cleanPodPolicy": policy},
                needs=("clean-pod-policy",),
                steps=(UntilAttempt(replica="worker-0", attempt=1), UntilTerminal(), UntilCleaned()),
            )
    for topology, decider, sibling, code in (
        (TF_PAIR, "worker-0", "worker-1", 0),
        (TORCH_PAIR, "master-0", "worker-0", 1),
    ):
        yield extended(
            topology,
            f"clean-default-exit{code}",
            target=decider,
            outcomes={decider: (ExitOutcome(code=code, dwell=LONG),)},
            needs=("clean-pod-policy",),
            steps=(UntilAttempt(replica=sibling, attempt=1), UntilTerminal(), UntilCleaned()),
        )
