"""The plan: requirements × scenarios, resolved before anything runs, and what is left out with the reason why."""

from collections.abc import Collection, Mapping
from typing import Literal

from exitcode_conformance.contract import Contract
from exitcode_conformance.frozen import Frozen
from exitcode_conformance.registry import Feature, Profile, Requirement
from exitcode_conformance.requirements import REQUIREMENTS
from exitcode_conformance.scenario import Scenario
from exitcode_conformance.scenarios import SCENARIOS

Planned = Literal["run", "not-supported", "not-run"]


class Claims(Frozen):
    """What an operator's description says that it can do; claimed means tested."""

    kinds: tuple[str, ...]
    features: tuple[Feature, ...]


class Case(Frozen):
    """One verdict to be given: a requirement in one scenario, or over a group of them."""

    requirement: str
    subject: str
    """The scenario's id, or the name of the group."""
    scenarios: tuple[str, ...]
    planned: Planned = "run"
    reason: str | None = None
    """Why it is not run."""

    @property
    def name(self) -> str:
        """`EXIT-03[tfjob-worker-exit137-worker1]`: the test id."""
        return f"{self.requirement}[{self.subject}]"


def build_plan(
    *,
    claims: Claims,
    contract: Contract,
    profile: Profile,
    scenarios: Mapping[str, Scenario] = SCENARIOS,
    requirements: Mapping[str, Requirement] = REQUIREMENTS,
) -> tuple[Case, ...]:
    """Every case of the profile, in the order of the requirements."""
    profiles: tuple[Profile, ...] = ("core",) if profile == "core" else ("core", "extended")
    cases: list[Case] = []
    for requirement in requirements.values():
        if requirement.profile in profiles:
            cases += _cases_of(requirement, claims, contract, scenarios)
    return tuple(cases)


def _cases_of(
    requirement: Requirement, claims: Claims, contract: Contract, scenarios: Mapping[str, Scenario]
) -> list[Case]:
    claimed = requirement.feature in claims.features
    cases: list[Case] = []
    groups: dict[str, list[str]] = {}
    for scenario in scenarios.values():
        if requirement.applies is not None and requirement.applies(scenario, contract):
            reason = None
            if not claimed:
                reason = f"the operator does not claim the feature {requirement.feature}"
            elif scenario.kind not in claims.kinds:
                reason = f"the operator does not claim the kind {scenario.kind}"
            planned: Planned = "not-supported" if reason else "run"
            subject = scenario.id
            cases.append(
                Case(requirement=requirement.id, subject=subject, scenarios=(subject,), planned=planned, reason=reason)
            )
        if requirement.group_by is not None and scenario.kind in claims.kinds:
            group = requirement.group_by(scenario, contract)
            if group is not None:
                groups.setdefault(group, []).append(scenario.id)
    for name, members in groups.items():
        if len(members) >= requirement.minimum:
            reason = None if claimed else f"the operator does not claim the feature {requirement.feature}"
            planned = "not-supported" if reason else "run"
            cases.append(
                Case(requirement=requirement.id, subject=name, scenarios=tuple(members), planned=planned, reason=reason)
            )
    return cases


def only_recorded(plan: tuple[Case, ...], recorded: Collection[str]) -> tuple[Case, ...]:
    """The plan for a recording that holds these scenarios. What it does not hold was not run: a part of a run that is
    judged again is still a part."""
    result = []
    for case in plan:
        missing = [name for name in case.scenarios if name not in recorded]
        if case.planned == "run" and missing:
            reason = f"the recording does not hold {', '.join(missing[:3])}"
            case = case.model_copy(update={"planned": "not-run", "reason": reason})
        result.append(case)
    return tuple(result)
