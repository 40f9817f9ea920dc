"""Scenarios that need an operator to themselves, since they do something to it. No plan has them: only the broken
controllers, and the unchanged one, are put to them, one scenario each."""

from collections.abc import Iterator

from exitcode_conformance.scenario import ExitOutcome, RestartOperator, Scenario, UntilAttempt, UntilTerminal
from exitcode_conformance.scenarios.topology import TF_WORKER, extended

LONG = 5
"""Units that the second attempt runs, so that the operator is back when it ends."""


def scenarios() -> Iterator[Scenario]:
    """The one there is: the operator is started again after the first restart of a replica that may be restarted
    twice."""
    killed = ExitOutcome(code=137)
    yield extended(
        TF_WORKER,
        "worker-exit137-limit2-relaunched",
        target="worker-0",
        outcomes={"worker-0": (killed, ExitOutcome(code=137, dwell=LONG), killed)},
        run_policy={"backoffLimit": 2},
        needs=("backoff-limit",),
        steps=(UntilAttempt(replica="worker-0", attempt=2), RestartOperator(), UntilTerminal()),
    )


SOLITARY: dict[str, Scenario] = {scenario.id: scenario for scenario in scenarios()}
"""Id → scenario."""
