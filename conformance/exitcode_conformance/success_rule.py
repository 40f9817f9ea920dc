"""The documented success rule of each kind: which replicas have to succeed for the job to succeed."""

from exitcode_conformance.kinds import KINDS
from exitcode_conformance.scenario import Scenario, outcome_code


def deciding_replicas(scenario: Scenario) -> tuple[str, ...]:
    """Replicas that all have to succeed, and that are enough: the chief's or master's where the job has one,
    otherwise worker 0 or all workers, as the kind's default and `successPolicy` say."""
    kind = KINDS[scenario.kind]
    leaders = [g for g in scenario.groups if g.type in kind.leaders]
    if leaders:
        return tuple(f"{g.type.lower()}-{i}" for g in leaders for i in range(g.replicas))
    workers = next(g for g in scenario.groups if g.type == "Worker")
    if scenario.success_policy == "AllWorkers" or kind.followers_decide == "all-workers":
        return tuple(f"worker-{i}" for i in range(workers.replicas))
    return ("worker-0",)


def deciders_succeed(scenario: Scenario) -> bool:
    """Whether all who decide are told to end with 0 in their first attempt."""
    return all(outcome_code(scenario.outcome_of(r, 1)) == 0 for r in deciding_replicas(scenario))
