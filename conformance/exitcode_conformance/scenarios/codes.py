"""Every documented code in each place where it matters: one replica ends with it, its siblings run on.

A retryable code that comes of `exit` is followed by an attempt that runs until it is stopped, so that the job can be
seen to say Running again. One that comes of a signal is followed by 0, and where the replica decides the job, by its
success. No sibling ends by itself, so nothing depends on who is faster.
"""

from collections.abc import Iterator

from exitcode_conformance.scenario import (
    SIGNAL_NUMBERS,
    ExitOutcome,
    Outcome,
    Scenario,
    SignalName,
    SignalOutcome,
    Step,
    UntilAttempt,
    UntilSucceeded,
    UntilTerminal,
    outcome_code,
)
from exitcode_conformance.scenarios.topology import (
    DONE,
    RUN,
    TF_CHIEF,
    TF_PS,
    TF_WORKER,
    TF_WORKERS,
    TORCH,
    TORCH_MASTER,
    Topology,
    build,
    short,
)
from exitcode_conformance.selection import outcome_name
from exitcode_conformance.success_rule import deciding_replicas

PERMANENT = (1, 2, 126, 127, 128, 139)
RETRYABLE = (130, 137, 138, 143)
"""The codes of the documented table. They only choose what is run; what is expected comes from the contract."""

PLACES: tuple[tuple[Topology, str], ...] = (
    (TF_WORKER, "worker-0"),
    (TF_PS, "worker-0"),
    (TF_PS, "ps-0"),
    (TF_CHIEF, "chief-0"),
    (TF_CHIEF, "worker-1"),
    (TORCH, "master-0"),
    (TORCH, "worker-1"),
)
"""Where every code is tried."""

MORE_PLACES: tuple[tuple[Topology, str], ...] = (
    (TF_WORKERS, "worker-0"),
    (TF_WORKERS, "worker-2"),
    (TORCH_MASTER, "master-0"),
)
"""Where a code of each class is tried: an operator has no way to tell these from one of `PLACES` but by the number of
the siblings or the index."""

WITHOUT_SIGNALS: tuple[tuple[Topology, str], ...] = ((TF_CHIEF, "worker-1"),)
"""The places where codes come of `exit` only: a replica of this type dies of signals elsewhere."""

SIGNALS: tuple[SignalName, ...] = tuple(SIGNAL_NUMBERS)
BESIDE_SIBLINGS_DWELL = 2
AFTER_SIBLING_DWELL = 6
"""Units that a replica runs if its sibling, which runs for one, is to be seen finished before it ends."""


def scenarios() -> Iterator[Scenario]:
    """All of them."""
    for topology, target in PLACES:
        yield _ends_with(topology, target, DONE)
        for code in (*PERMANENT, *RETRYABLE):
            yield _ends_with(topology, target, ExitOutcome(code=code))
        if (topology, target) not in WITHOUT_SIGNALS:
            for signal in SIGNALS:
                yield _ends_with(topology, target, SignalOutcome(signal=signal))
    for topology, target in MORE_PLACES:
        for code in (0, 1, 137, 138):
            yield _ends_with(topology, target, ExitOutcome(code=code))
    for code in (1, 137, 138):
        yield _after_sibling(TF_WORKERS, "worker-0", "worker-1", code)
        yield _after_sibling(TORCH, "worker-1", "worker-0", code)


def _ends_with(topology: Topology, target: str, outcome: Outcome) -> Scenario:
    """The target ends with the outcome, and once more if that one is retryable. Beside siblings it takes its time: they
    are to be seen up by then."""
    if isinstance(outcome, ExitOutcome | SignalOutcome) and sum(count for _, count in topology.replicas) > 1:
        outcome = outcome.model_copy(update={"dwell": BESIDE_SIBLINGS_DWELL})
    script: tuple[Outcome, ...] = (outcome,)
    if _retryable(outcome):
        script = (outcome, RUN if isinstance(outcome, ExitOutcome) else DONE)

    def ends(*steps: Step) -> Scenario:
        name = f"{short(target)}-{outcome_name(outcome)}"
        return build(topology, name, target=target, outcomes={target: script}, steps=steps)

    if script[-1] == RUN:
        return ends(UntilAttempt(replica=target, attempt=2, job_running=True))
    scenario = ends(UntilTerminal())
    if outcome_code(script[-1]) == 0 and target not in deciding_replicas(scenario):
        return ends(UntilSucceeded(replica=target, counted=True))
    return scenario


def _retryable(outcome: Outcome) -> bool:
    match outcome:
        case ExitOutcome():
            return outcome.code in RETRYABLE
        case SignalOutcome():
            return 128 + SIGNAL_NUMBERS[outcome.signal] in RETRYABLE
        case _:
            return False


def _after_sibling(topology: Topology, target: str, sibling: str, code: int) -> Scenario:
    """The sibling has succeeded when the target ends with the code."""
    script: tuple[Outcome, ...] = (ExitOutcome(code=code, dwell=AFTER_SIBLING_DWELL),)
    steps: tuple[Step, ...] = (UntilTerminal(),)
    if code in RETRYABLE:
        script = (*script, RUN)
        steps = (UntilSucceeded(replica=sibling), UntilAttempt(replica=target, attempt=2, job_running=True))
    return build(
        topology,
        f"{short(target)}-exit{code}-sibling0",
        target=target,
        outcomes={target: script, sibling: (DONE,)},
        steps=steps,
    )
