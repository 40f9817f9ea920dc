"""The scenarios: topology × outcome script × what is done to the cluster."""

from exitcode_conformance.scenario import Scenario
from exitcode_conformance.scenarios import (
    batch_jobs,
    cleaning,
    codes,
    containers,
    contradictions,
    disruptions,
    endings,
    limits,
    other_kinds,
    policies,
    seed,
    sequences,
    success,
)


class DuplicateScenario(Exception):
    """Two scenarios have one id, or the id of one could be taken for the start of another's pod names."""


MODULES = (
    codes,
    sequences,
    policies,
    success,
    seed,
    contradictions,
    endings,
    limits,
    cleaning,
    containers,
    disruptions,
    other_kinds,
    batch_jobs,
)


def _all() -> dict[str, Scenario]:
    result: dict[str, Scenario] = {}
    for module in MODULES:
        for scenario in module.scenarios():
            if scenario.id in result:
                raise DuplicateScenario(scenario.id)
            result[scenario.id] = scenario
    return result


SCENARIOS: dict[str, Scenario] = _all()
"""Id → scenario."""
