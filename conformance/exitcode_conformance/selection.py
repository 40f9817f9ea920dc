"""Which scenarios a requirement applies to: questions asked of a scenario and a contract before anything runs."""

from exitcode_conformance.contract import CodeClass, Contract
from exitcode_conformance.scenario import (
    ExitOutcome,
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
    """`exit137`, `sigkill`, `run`: as scenario ids have it."""
    match outcome:
        case ExitOutcome():
            return f"exit{outcome.code}"
        case SignalOutcome():
            return f"sig{outcome.signal.lower()}"
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
