"""The frozen list of requirements: what this version of the suite requires, in a file that can be compared.

It is made from the registry, the scenarios, the contracts and the list of kills; a test fails when it drifts from them.
Whoever checks a report against it need not trust the code that wrote the report.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Literal

import yaml

from exitcode_conformance import SUITE_VERSION
from exitcode_conformance.adapters.batch import TABLE as BATCH_CONTRACT
from exitcode_conformance.contract import contract_ids, load_contract
from exitcode_conformance.frozen import Frozen
from exitcode_conformance.kills import published_kills
from exitcode_conformance.kinds import KUBEFLOW_KINDS, kinds_of
from exitcode_conformance.plan import Case, Claims, build_plan
from exitcode_conformance.registry import FEATURES, Level
from exitcode_conformance.requirements import REQUIREMENTS
from exitcode_conformance.scenario import Profile
from exitcode_conformance.scenarios import SCENARIOS
from exitcode_conformance.selection import topology
from exitcode_conformance.yaml_model import read_yaml

FILE = "requirement_list.yaml"
NAMED = 8
"""Up to so many scenarios are named; of more, the families say enough."""


class JudgedIn(Frozen):
    """The scenarios in which a requirement is judged, under one published contract or another."""

    count: int
    families: dict[str, int]
    """`TFJob ps1-worker3` → how many of that kind and topology."""
    names: tuple[str, ...] = ()
    """All of them where they are few."""


class FrozenRequirement(Frozen):
    """One requirement as it is published."""

    level: Level
    profile: Profile
    feature: str
    sentence: str
    source: str
    cases: dict[str, int]
    """Contract → the cases of an operator that claims everything, in the profile `extended`."""
    scenarios: JudgedIn
    mutants: tuple[str, ...]
    """What it is shown to fail by."""
    batch: int | str
    """The cases of a Job of Kubernetes itself, or why there are none."""
    batch_mutants: tuple[str, ...]
    """What it is shown to fail by in such Jobs."""


class RequirementList(Frozen):
    """The whole list."""

    version: Literal[1] = 1
    """Of the form of the file."""
    suite: str
    requirements: dict[str, FrozenRequirement]

    def text(self) -> str:
        """The list as the file has it."""
        head = "# What this version of the suite requires; a test fails when it drifts from the registry.\n"
        head += "# Made by `python -m exitcode_conformance.requirement_list yaml`.\n"
        value = self.model_dump(mode="json", exclude_defaults=False)
        for entry in value["requirements"].values():
            if not entry["scenarios"]["names"]:
                del entry["scenarios"]["names"]
        return head + yaml.safe_dump(value, sort_keys=False, width=120, allow_unicode=True)


def build_list() -> RequirementList:
    """The list as the code has it."""
    claims = Claims(kinds=KUBEFLOW_KINDS, features=tuple(FEATURES))
    jobs = Claims(kinds=kinds_of("batch"), features=tuple(FEATURES))
    of_jobs = build_plan(claims=jobs, contract=load_contract(BATCH_CONTRACT), profile="extended")
    plans = {
        name: build_plan(claims=claims, contract=load_contract(name), profile="extended") for name in contract_ids()
    }
    proofs, proofs_of_jobs = published_kills().proofs("kubeflow"), published_kills().proofs("batch")
    cases: Mapping[str, Mapping[str, list[Case]]] = {
        contract: {r: [c for c in plan if c.requirement == r and c.planned == "run"] for r in REQUIREMENTS}
        for contract, plan in plans.items()
    }
    entries = {}
    for requirement in REQUIREMENTS.values():
        found = {contract: by_requirement[requirement.id] for contract, by_requirement in cases.items()}
        entries[requirement.id] = FrozenRequirement(
            level=requirement.level,
            profile=requirement.profile,
            feature=requirement.feature,
            sentence=requirement.sentence,
            source=requirement.source,
            cases={contract: len(some) for contract, some in found.items()},
            scenarios=_judged_in({name for some in found.values() for case in some for name in case.scenarios}),
            mutants=proofs.get(requirement.id, ()),
            batch=_of_jobs([case for case in of_jobs if case.requirement == requirement.id]),
            batch_mutants=proofs_of_jobs.get(requirement.id, ()),
        )
    return RequirementList(suite=SUITE_VERSION, requirements=entries)


def _of_jobs(cases: Sequence[Case]) -> int | str:
    return cases[0].reason or "" if cases and cases[0].planned != "run" else len(cases)


def _judged_in(names: set[str]) -> JudgedIn:
    ordered = [name for name in SCENARIOS if name in names]
    families = Counter(f"{SCENARIOS[name].kind} {topology(SCENARIOS[name])}" for name in ordered)
    few = tuple(ordered) if len(ordered) <= NAMED else ()
    return JudgedIn(count=len(ordered), families=dict(families), names=few)


@cache
def published_list() -> RequirementList:
    """The list that this version of the suite was published with."""
    return read_yaml((resources.files("exitcode_conformance") / FILE).read_text("utf-8"), RequirementList)
