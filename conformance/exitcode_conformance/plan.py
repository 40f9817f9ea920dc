"""The plan: requirements × scenarios, resolved before anything runs, and what is left out with the reason why."""

from collections.abc import Collection, Mapping
from typing import Literal

from exitcode_conformance.adapters import ADAPTERS
from exitcode_conformance.contract import Contract
from exitcode_conformance.frozen import Frozen
from exitcode_conformance.kinds import KINDS, AdapterName, KindTraits
from exitcode_conformance.registry import Feature, Profile, Requirement
from exitcode_conformance.requirements import REQUIREMENTS
from exitcode_conformance.scenario import Scenario
from exitcode_conformance.scenarios import SCENARIOS

Planned = Literal["run", "not-supported", "not-run"]


class Claims(Frozen):
    """What an operator's description says that it can do; claimed means tested."""

    kinds: tuple[str, ...]
    features: tuple[Feature, ...]
    traits: dict[str, KindTraits] = {}
    """Job kind → what the operator has otherwise than the published API."""

    @property
    def adapters(self) -> tuple[AdapterName, ...]:
        """Those of the kinds, without duplicates."""
        return tuple(dict.fromkeys(KINDS[kind].adapter for kind in self.kinds))

    def replica_types(self, kind: str) -> tuple[str, ...]:
        """The replica types that the operator knows of a kind."""
        known = self.traits[kind].replica_types if kind in self.traits else None
        return KINDS[kind].replica_types if known is None else known


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
    """Every case of the profile, in the order of the requirements. Scenarios of a job API of which the operator claims
    no kind are none of its plan."""
    profiles: tuple[Profile, ...] = ("core",) if profile == "core" else ("core", "extended")
    tried = {n: s for n, s in scenarios.items() if s.profile in profiles and _adapter_of(s) in claims.adapters}
    cases: list[Case] = []
    for requirement in requirements.values():
        if requirement.profile not in profiles:
            continue
        declared = [ADAPTERS[name] for name in claims.adapters if requirement.id in ADAPTERS[name].without]
        apart = {adapter.name for adapter in declared}
        judged = {name: scenario for name, scenario in tried.items() if _adapter_of(scenario) not in apart}
        cases += [_case(requirement, adapter.name, (), adapter.without[requirement.id]) for adapter in declared]
        cases += _cases_of(requirement, claims, contract, judged)
    return tuple(cases)


def _adapter_of(scenario: Scenario) -> AdapterName:
    return KINDS[scenario.kind].adapter


def _cases_of(
    requirement: Requirement, claims: Claims, contract: Contract, scenarios: Mapping[str, Scenario]
) -> list[Case]:
    cases: list[Case] = []
    groups: dict[str, list[str]] = {}
    for scenario in scenarios.values():
        if _has_no_exit_code(scenario) and requirement.feature != "restart-policy-exit-code":
            continue  # it is in the plan to say so once, and not run
        if requirement.applies is not None and requirement.applies(scenario, contract):
            cases.append(_case(requirement, scenario.id, (scenario.id,), _obstacle(requirement, scenario, claims)))
        if requirement.group_by is not None and _obstacle(None, scenario, claims) is None:
            group = requirement.group_by(scenario, contract)
            if group is not None:
                groups.setdefault(group, []).append(scenario.id)
    for name, members in groups.items():
        if len(members) >= requirement.minimum:
            cases.append(_case(requirement, name, tuple(members), _not_claimed(requirement.feature, claims)))
    return cases


def _case(requirement: Requirement, subject: str, scenarios: tuple[str, ...], obstacle: str | None) -> Case:
    planned: Planned = "not-supported" if obstacle else "run"
    return Case(requirement=requirement.id, subject=subject, scenarios=scenarios, planned=planned, reason=obstacle)


def _has_no_exit_code(scenario: Scenario) -> bool:
    return KINDS[scenario.kind].without_exit_code is not None


def _obstacle(requirement: Requirement | None, scenario: Scenario, claims: Claims) -> str | None:
    """Why an operator with these claims is not put to a scenario, None if it is. No requirement: for no reason of the
    requirement's own."""
    unsupported = KINDS[scenario.kind].without_exit_code
    if unsupported is not None:
        return unsupported
    if scenario.kind not in claims.kinds:
        return f"the operator does not claim the kind {scenario.kind}"
    unknown = [g.type for g in scenario.groups if g.type not in claims.replica_types(scenario.kind)]
    if unknown:
        return f"the operator does not claim the replica type {unknown[0]} of {scenario.kind}"
    features = (*((requirement.feature,) if requirement else ()), *scenario.needs)
    return next(filter(None, (_not_claimed(feature, claims) for feature in features)), None)


def _not_claimed(feature: str, claims: Claims) -> str | None:
    return None if feature in claims.features else f"the operator does not claim the feature {feature}"


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
