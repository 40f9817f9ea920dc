"""What an operator has to put right, or has to bear: a template that says otherwise, a job that is touched."""

from collections.abc import Iterator

from exitcode_conformance.scenario import ExitOutcome, Scenario, TouchJob, UntilAttempt, UntilTerminal
from exitcode_conformance.scenarios.topology import DONE, RUN, TF_WORKER, TORCH_MASTER, TORCH_PAIR, extended

TOUCHES = 20


def scenarios() -> Iterator[Scenario]:
    """All of them."""
    yield extended(
        TF_WORKER,
        "template-exit137",
        target="worker-0",
        outcomes={"worker-0": (ExitOutcome(code=137), RUN)},
        traits={"Worker": {"template_restart_policy": "Always"}},
        steps=(UntilAttempt(replica="worker-0", attempt=2, job_running=True),),
        settle="state",
    )
    yield extended(
        TORCH_PAIR,
        "template-onfailure1",
        target="worker-0",
        outcomes={"worker-0": (ExitOutcome(code=1, dwell=2), RUN)},
        policy="OnFailure",
        traits={"Worker": {"template_restart_policy": "Never"}, "Master": {"template_restart_policy": "Never"}},
        steps=(UntilAttempt(replica="worker-0", attempt=2, job_running=True),),
        settle="state",
    )
    yield extended(
        TF_WORKER,
        "touched-when-failed",
        outcomes={"worker-0": (ExitOutcome(code=1),)},
        steps=(UntilTerminal(), TouchJob(times=TOUCHES)),
    )
    yield extended(
        TORCH_MASTER,
        "touched-when-succeeded",
        outcomes={"master-0": (DONE,)},
        steps=(UntilTerminal(), TouchJob(times=TOUCHES)),
    )
