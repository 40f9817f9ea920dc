"""Jobs of Kubernetes itself: the same codes, sequences, policies and limits, as far as such a Job knows them.

Its controller waits longer before each restart, so that no scenario here asks for more than two. It tells of nothing
but the end, so that nobody waits for it to say Running.
"""

from collections.abc import Iterator
from typing import Any

from exitcode_conformance.scenario import (
    DeleteJob,
    ExitOutcome,
    Outcome,
    Scenario,
    SignalOutcome,
    Step,
    UntilAttempt,
    UntilGone,
    UntilSucceeded,
    UntilTerminal,
    outcome_code,
)
from exitcode_conformance.scenarios.codes import AFTER_SIBLING_DWELL, PERMANENT, RETRYABLE, SIGNALS
from exitcode_conformance.scenarios.containers import TOGETHER
from exitcode_conformance.scenarios.limits import DEADLINE, FAILS, FAILS_LATER, TIME_TO_LIVE
from exitcode_conformance.scenarios.topology import DONE, INDEXED_JOB, JOB, RUN, Topology, build, extended, short
from exitcode_conformance.selection import outcome_name

PLACES: tuple[tuple[Topology, str], ...] = ((JOB, "worker-0"), (INDEXED_JOB, "worker-1"))


def scenarios() -> Iterator[Scenario]:
    """All of them."""
    for topology, target in PLACES:
        yield from _codes(topology, target)
        yield from _policies(topology, target)
        yield build(
            topology,
            "deleted",
            target=None,
            outcomes={},
            steps=(UntilAttempt(replica=target, attempt=1), DeleteJob(), UntilGone()),
        )
    yield from _several()
    yield from _in_company()
    yield from _limits()


def _codes(topology: Topology, target: str) -> Iterator[Scenario]:
    codes: list[Outcome] = [ExitOutcome(code=code) for code in (*PERMANENT, *RETRYABLE)]
    for outcome in (*codes, *(SignalOutcome(signal=signal) for signal in SIGNALS)):
        name = f"{short(target)}-{outcome_name(outcome)}"
        if outcome_code(outcome) in RETRYABLE:
            again: tuple[Step, ...] = (UntilAttempt(replica=target, attempt=2),)
            yield build(topology, name, target=target, outcomes={target: (outcome, RUN)}, steps=again)
        else:
            yield build(topology, name, target=target, outcomes={target: (outcome,)})
    counted: tuple[Step, ...] = (UntilSucceeded(replica=target, counted=True),)
    steps = counted if topology == INDEXED_JOB else (UntilTerminal(),)
    yield build(topology, f"{short(target)}-exit0", target=target, outcomes={target: (DONE,)}, steps=steps)
    for sequence in ((137, 0), (138, 1)):
        script = tuple(ExitOutcome(code=code) for code in sequence)
        decided = topology == JOB or sequence[-1] != 0
        yield build(
            topology,
            f"{short(target)}-then-{'-'.join(map(str, sequence))}",
            target=target,
            outcomes={target: script, **({} if decided else dict.fromkeys(_others(topology, target), (DONE,)))},
        )


def _others(topology: Topology, target: str) -> tuple[str, ...]:
    (group,) = topology.replicas
    return tuple(name for i in range(group[1]) if (name := f"{group[0].lower()}-{i}") != target)


def _policies(topology: Topology, target: str) -> Iterator[Scenario]:
    for code in (0, 1, 137):
        restarted: tuple[Step, ...] = (UntilAttempt(replica=target, attempt=2),)
        yield build(
            topology,
            f"{short(target)}-onfailure{code}",
            target=target,
            outcomes={target: (ExitOutcome(code=code), RUN)},
            steps=restarted if code else (UntilSucceeded(replica=target),),
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


def _several() -> Iterator[Scenario]:
    """What needs more than one index: who decides, and what a restart does to the others."""
    every = dict.fromkeys(("worker-0", "worker-1", "worker-2"), (DONE,))
    yield build(INDEXED_JOB, "all0", target=None, outcomes=every)
    yield build(
        INDEXED_JOB,
        "two0",
        target=None,
        outcomes={"worker-0": (DONE,), "worker-1": (DONE,)},
        steps=(UntilSucceeded(replica="worker-0"), UntilSucceeded(replica="worker-1")),
        settle="state",
    )
    late = (ExitOutcome(code=137, dwell=AFTER_SIBLING_DWELL), RUN)
    yield build(
        INDEXED_JOB,
        "worker-exit137-sibling0",
        target="worker-0",
        outcomes={"worker-0": late, "worker-1": (DONE,)},
        steps=(UntilSucceeded(replica="worker-1"), UntilAttempt(replica="worker-0", attempt=2)),
    )


def _in_company() -> Iterator[Scenario]:
    """A second container with another code, a message, and a sibling that fails at the same moment."""
    company: tuple[tuple[str, int, dict[str, Any]], ...] = (
        ("sidecar137", 1, {"sidecar": ExitOutcome(code=137, dwell=0)}),
        ("sidecar1", 137, {"sidecar": ExitOutcome(code=1, dwell=0)}),
        ("message", 1, {"message": "exit code 137: try again"}),
        ("message", 137, {"message": "exit code 1: general error"}),
    )
    for name, code, traits in company:
        retried = code in RETRYABLE
        again: tuple[Step, ...] = (UntilAttempt(replica="worker-0", attempt=2),)
        yield extended(
            JOB,
            f"worker-exit{code}-{name}",
            target="worker-0",
            outcomes={"worker-0": (ExitOutcome(code=code), RUN) if retried else (ExitOutcome(code=code),)},
            traits={"Worker": traits},
            steps=again if retried else (UntilTerminal(),),
        )
    yield extended(
        INDEXED_JOB,
        "at-once-137-1",
        target="worker-1",
        outcomes={
            "worker-0": (ExitOutcome(code=137, dwell=TOGETHER), RUN),
            "worker-1": (ExitOutcome(code=1, dwell=TOGETHER),),
        },
    )


def _limits() -> Iterator[Scenario]:
    limited = {"backoffLimit": 1}
    yield build(
        JOB,
        "worker-onfailure1-limit1",
        target="worker-0",
        outcomes={"worker-0": FAILS},
        policy="OnFailure",
        run_policy=limited,
        needs=("backoff-limit",),
    )
    yield extended(
        INDEXED_JOB,
        "both-onfailure1-limit2",
        target="worker-0",
        outcomes={"worker-0": FAILS_LATER, "worker-1": FAILS_LATER},
        policy="OnFailure",
        run_policy={"backoffLimit": 2},
        needs=("backoff-limit",),
    )
    deadline = {"activeDeadlineSeconds": DEADLINE}
    for topology, name, traits in ((INDEXED_JOB, "deadline", {}), (JOB, "deadline-pending", {"pending": True})):
        yield extended(topology, name, run_policy=deadline, traits={"Worker": traits}, needs=("active-deadline",))
    for name, outcome in (("ttl-when-succeeded", (DONE,)), ("ttl-when-failed", FAILS)):
        yield extended(
            JOB,
            name,
            outcomes={"worker-0": outcome},
            policy="Never",
            run_policy={"ttlSecondsAfterFinished": TIME_TO_LIVE},
            needs=("ttl-after-finished",),
            steps=(UntilTerminal(), UntilGone()),
        )
