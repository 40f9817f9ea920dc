"""The plot of a scenario, in words: which job, how its containers end, what the harness waits for and does."""

from typing import Any

from exitcode_conformance.scenario import (
    DeleteJob,
    ExitOutcome,
    MissingCommand,
    Outcome,
    RecreateJob,
    RemovePod,
    ReplicaGroup,
    RestartOperator,
    RunUntilStopped,
    Scenario,
    SignalOutcome,
    Step,
    TouchJob,
    UntilAttempt,
    UntilCleaned,
    UntilGone,
    UntilSucceeded,
    UntilTerminal,
)


def told(scenario: Scenario) -> str:
    """The scenario in a few sentences."""
    groups = " + ".join(f"{g.replicas} {g.type} ({', '.join(_traits(g))})" for g in scenario.groups)
    scripts = "; ".join(
        f"{replica} {', then '.join(_outcome(outcome) for outcome in script)}"
        for replica, script in scenario.outcomes.items()
    )
    job = f"{scenario.kind} of {groups}"
    policies = [f"{key} {_value(value)}" for key, value in scenario.run_policy.items()]
    if scenario.success_policy:
        policies.append(f"successPolicy {scenario.success_policy}")
    sentences = [", ".join([job, *policies]), scripts or "All replicas run until they are stopped"]
    sentences.append("Until " + ", then ".join(_step(step) for step in scenario.steps))
    return ". ".join(sentences) + "."


def _traits(group: ReplicaGroup) -> list[str]:
    traits: list[str] = [group.restart_policy]
    if group.template_restart_policy is not None:
        traits.append(f"template {group.template_restart_policy}")
    if group.pending:
        traits.append("no node takes it")
    if group.sidecar is not None:
        traits.append(f"a sidecar that {_outcome(group.sidecar)}")
    if group.init is not None:
        traits.append(f"an init container that {_outcome(group.init)}")
    if group.message is not None:
        traits.append(f"termination message {group.message!r}")
    return traits


def _outcome(outcome: Outcome) -> str:
    match outcome:
        case ExitOutcome():
            return f"exits {outcome.code}"
        case SignalOutcome():
            return f"dies of SIG{outcome.signal}"
        case RunUntilStopped():
            return "runs until stopped"
        case MissingCommand():
            return "has a command that does not exist"


def _step(step: Step) -> str:
    match step:
        case UntilTerminal():
            return "the job has ended"
        case UntilAttempt():
            running = " and the job says Running" if step.job_running else ""
            return f"attempt {step.attempt} of {step.replica} runs{running}"
        case UntilSucceeded():
            return f"{step.replica} has succeeded"
        case UntilCleaned():
            return "what cleanPodPolicy removes is removed"
        case UntilGone():
            return "everything is gone"
        case DeleteJob():
            return "the job has been deleted by the harness"
        case RemovePod():
            how = "deleted" if step.how == "delete" else "evicted"
            return f"{step.replica} has been {how} by the harness"
        case RecreateJob():
            return "the job has been deleted and made again by the harness"
        case RestartOperator():
            return "the operator has been started again by the harness"
        case TouchJob():
            return f"the job has been changed {step.times} times by the harness"


def _value(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)
