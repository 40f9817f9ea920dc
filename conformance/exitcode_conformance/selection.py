"""Which scenarios a requirement applies to: questions asked of a scenario and a contract before anything runs."""

from exitcode_conformance.contract import CodeClass, Contract
from exitcode_conformance.scenario import (
    DeleteJob,
    ExitOutcome,
    MissingCommand,
    Outcome,
    RestartPolicy,
    Scenario,
    SignalOutcome,
    outcome_code,
)


def everything(scenario: Scenario, contract: Contract) -> bool:
    """All scenarios."""
    return True


def target_policy(scenario: Scenario) -> RestartPolicy | None:
    """The restart policy of the replica that the scenario is about."""
    return scenario.group_of(scenario.target).restart_policy if scenario.target else None


def script_codes(scenario: Scenario) -> tuple[int | None, ...]:
    """The codes of the target's attempts, in order; None for an attempt that does not end by itself."""
    return tuple(outcome_code(o) for o in scenario.outcomes.get(scenario.target or "", ()))


def first_class(scenario: Scenario, contract: Contract) -> CodeClass | None:
    """What the contract promises for the first code of a target under ExitCode; None where there is none."""
    codes = script_codes(scenario)
    if target_policy(scenario) != "ExitCode" or not codes or codes[0] is None:
        return None
    return contract.class_of(codes[0])


def outcome_name(outcome: Outcome) -> str:
    """`exit137`, `sigkill`, `missing`, `run`: as scenario ids have it."""
    match outcome:
        case ExitOutcome():
            return f"exit{outcome.code}"
        case SignalOutcome():
            return f"sig{outcome.signal.lower()}"
        case MissingCommand():
            return "missing"
        case _:
            return "run"


def topology(scenario: Scenario) -> str:
    """`ps1-worker3`: types and counts."""
    return "-".join(f"{g.type.lower()}{g.replicas}" for g in scenario.groups)


def retryable_runs(scenario: Scenario, contract: Contract) -> int:
    """How many attempts of the target, from the first on, end with codes that the contract restarts."""
    count = 0
    for code in script_codes(scenario):
        if code is None or not contract.class_of(code).restarts:
            break
        count += 1
    return count


def expects_restart(scenario: Scenario, contract: Contract) -> bool:
    """Whether the contract promises that the target is restarted by the operator after its first end."""
    found = first_class(scenario, contract)
    return found is not None and found.restarts


def is_ordinary(scenario: Scenario) -> bool:
    """Whether all that happens to the target is how its training container ends, and nobody else fails."""
    if scenario.target is None or scenario.manifest is not None:
        return False
    alone = all(not outcome_code(o) for r, script in scenario.outcomes.items() if r != scenario.target for o in script)
    return alone and not has_company(scenario) and "backoffLimit" not in scenario.run_policy


def has_company(scenario: Scenario) -> bool:
    """Whether the target's training container has other containers beside it, or a message of its own."""
    if scenario.target is None:
        return False
    group = scenario.group_of(scenario.target)
    return group.sidecar is not None or group.init is not None or group.message is not None


def deletes_the_job(scenario: Scenario, contract: Contract) -> bool:
    """Whether the job is removed, by the harness or by its own time to live."""
    return "ttlSecondsAfterFinished" in scenario.run_policy or any(isinstance(s, DeleteJob) for s in scenario.steps)


def may_go_on(scenario: Scenario, contract: Contract) -> bool:
    """Whether an operator that keeps the contract need not bring the job to an end, although the harness waits for
    one: what the job ends with, the contract does not speak of."""
    if any(g.fails_without_code or g.sidecar_fails for g in scenario.groups):
        return True
    codes = script_codes(scenario)
    last = contract.class_of(codes[-1]) if codes and codes[-1] is not None else None
    under_exit_code = target_policy(scenario) == "ExitCode"
    return under_exit_code and last is not None and (last.restarts or last is CodeClass.UNDEFINED)
