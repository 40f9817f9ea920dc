"""The plan: what is run, what is not and why, before anything runs."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import get_args

import pytest

from exitcode_conformance.adapters import ADAPTERS
from exitcode_conformance.contract import load_contract
from exitcode_conformance.kinds import KUBEFLOW_KINDS, KindTraits, kinds_of
from exitcode_conformance.plan import Case, Claims, build_plan
from exitcode_conformance.registry import FEATURES, DuplicateRequirement, Feature, Profile, requirement
from exitcode_conformance.requirements import REQUIREMENTS, by_group
from exitcode_conformance.scenarios import SCENARIOS

DOCS = load_contract("kubeflow-docs")
EVERYTHING = Claims(kinds=KUBEFLOW_KINDS, features=tuple(FEATURES))
CATALOGUE = {
    "CLEAN": "01 02 03 04 05",
    "EVENT": "01 02 03 04 05",
    "EXIT": "01 02 03 04 05 06 07 08 09 10 11 12 13 14 15",
    "IDENT": "01 02 03 04 05 06 07",
    "INV": "03 04 05 06 08 10",
    "LIMIT": "01 02 03 04 05",
    "RESTART": "01 02 03 04 05 06 07 08 09 10 11",
    "STATE": "01 02 03 04 05 06 07 08 09 10 11 12",
}


@cache
def everything(contract: str) -> Mapping[str, Case]:
    """What an operator of all claims is put to, by the cases' names."""
    return plan(EVERYTHING, contract)


def plan(claims: Claims | None = None, contract: str = "kubeflow-docs") -> Mapping[str, Case]:
    """The cases of the core profile by their names; without claims, those of an operator that claims everything."""
    if claims is None:
        return everything(contract)
    cases = build_plan(claims=claims, contract=load_contract(contract), profile="core")
    assert len({case.name for case in cases}) == len(cases), "a name stands for one case"
    return {case.name: case for case in cases}


def test_the_catalogue_of_the_first_wave_is_registered() -> None:
    assert list(REQUIREMENTS) == [f"{g}-{n}" for g, numbers in CATALOGUE.items() for n in numbers.split()]
    for found in REQUIREMENTS.values():
        assert found.sentence.endswith(".")
        assert found.source
        assert found.feature in FEATURES
        assert (found.check is None) != (found.compare is None)
        assert (found.applies is None) == (found.check is None)
        assert (found.group_by is None) == (found.compare is None)
    assert set(FEATURES) == set(get_args(Feature))


def test_a_duplicate_requirement_is_refused() -> None:
    known = REQUIREMENTS["EXIT-01"]
    assert known.check is not None
    assert known.applies is not None
    with pytest.raises(DuplicateRequirement, match="EXIT-01"):
        requirement("EXIT-01", "x.", feature="identity", source="s", applies=known.applies)(known.check)


def test_groups_are_found_by_name() -> None:
    assert [r.id for r in by_group("CLEAN")] == [f"CLEAN-0{number}" for number in range(1, 6)]
    assert by_group("NONE") == ()


def test_cases_have_readable_names_and_every_one_is_run_where_all_is_claimed() -> None:
    cases = plan()
    assert cases["EXIT-03[tfjob-worker-exit137-worker1]"].scenarios == ("tfjob-worker-exit137-worker1",)
    assert {case.planned for case in cases.values()} == {"run"}
    assert {case.reason for case in cases.values()} == {None}


def test_a_plan_is_the_same_each_time() -> None:
    again = build_plan(claims=EVERYTHING, contract=DOCS, profile="core")
    assert list(plan().values()) == list(again)
    assert [case.requirement for case in plan().values()] == sorted(case.requirement for case in plan().values())


def test_a_code_belongs_to_one_requirement_of_its_class() -> None:
    for contract in ("kubeflow-docs", "kubeflow-api"):
        judged: dict[str, list[str]] = {}
        for case in plan(contract=contract).values():
            if case.requirement in ("EXIT-01", "EXIT-02", "EXIT-03", "EXIT-04"):
                judged.setdefault(case.subject, []).append(case.requirement)
        assert all(len(found) == 1 for found in judged.values())
    assert "EXIT-02[tfjob-worker-exit139-worker1]" in plan()
    assert "EXIT-03[tfjob-worker-exit139-worker1]" in plan(contract="kubeflow-api")


def test_what_is_not_claimed_is_shown_apart_with_the_reason() -> None:
    cases = plan(EVERYTHING.model_copy(update={"features": ("identity",)}))
    assert cases["IDENT-01[tftest]"].planned == "run"
    left_out = cases["EXIT-03[tfjob-worker-exit137-worker1]"]
    assert left_out.planned == "not-supported"
    assert left_out.reason == "the operator does not claim the feature restart-policy-exit-code"
    assert cases["EXIT-06[exit137]"].planned == "not-supported"


def test_a_kind_that_is_not_claimed_is_in_no_comparison() -> None:
    cases = plan(EVERYTHING.model_copy(update={"kinds": ("PyTorchJob",)}))
    left_out = cases["IDENT-01[tftest]"]
    assert (left_out.planned, left_out.reason) == ("not-supported", "the operator does not claim the kind TFJob")
    assert all(name.startswith("pytorchjob-") for name in cases["EXIT-06[exit137]"].scenarios)
    assert "EXIT-07[tfjob-worker-137]" not in cases


def test_comparisons_bring_together_what_their_sentences_say() -> None:
    cases = plan()
    same_code = cases["EXIT-06[exit137]"].scenarios
    assert {SCENARIOS[s].kind for s in same_code} == {"TFJob", "PyTorchJob"}
    assert "tfjob-ps-exit137-ps1-worker3" in same_code
    same_type = cases["EXIT-07[tfjob-worker-1]"].scenarios
    assert "tfjob-worker-exit1-sibling0-worker3" in same_type
    assert "tfjob-worker1-exit1-chief1-worker2" in same_type
    for case in cases.values():
        if case.requirement == "EXIT-09":
            first = [SCENARIOS[s].outcome_of(SCENARIOS[s].target or "", 1).kind for s in case.scenarios]
            assert set(first) == {"exit", "signal"}, case.name
    assert all(len(case.scenarios) >= 2 for case in cases.values() if case.requirement in ("EXIT-06", "EXIT-07"))


def test_a_group_too_small_to_compare_is_no_case() -> None:
    one = {"tfjob-worker-exit137-worker1": SCENARIOS["tfjob-worker-exit137-worker1"]}
    cases = build_plan(claims=EVERYTHING, contract=DOCS, profile="core", scenarios=one)
    assert not {"EXIT-06", "EXIT-07", "EXIT-09"} & {case.requirement for case in cases}


def test_the_extended_profile_holds_the_core() -> None:
    later = {"IDENT-01": replace(REQUIREMENTS["IDENT-01"], profile="extended"), "EXIT-03": REQUIREMENTS["EXIT-03"]}
    core = build_plan(claims=EVERYTHING, contract=DOCS, profile="core", requirements=later)
    extended = build_plan(claims=EVERYTHING, contract=DOCS, profile="extended", requirements=later)
    assert {case.requirement for case in core} == {"EXIT-03"}
    assert {case.requirement for case in extended} == {"EXIT-03", "IDENT-01"}


def test_nothing_to_run_is_an_empty_plan() -> None:
    assert build_plan(claims=EVERYTHING, contract=DOCS, profile="core", scenarios={}) == ()


def test_an_operator_is_not_put_to_a_scenario_whose_point_it_does_not_claim() -> None:
    features = tuple(feature for feature in FEATURES if feature != "active-deadline")
    less = Claims(kinds=EVERYTHING.kinds, features=features)
    cases = build_plan(claims=less, contract=DOCS, profile="extended")
    about = {case.requirement: case for case in cases if case.subject == "pytorchjob-deadline-master1"}
    assert {case.planned for case in about.values()} == {"not-supported"}
    assert about["IDENT-01"].reason == "the operator does not claim the feature active-deadline"
    compared = {name for case in cases if case.planned == "run" for name in case.scenarios}
    assert not [name for name in compared if "active-deadline" in SCENARIOS[name].needs]


def test_what_a_scenario_needs_is_a_feature() -> None:
    assert {feature for scenario in SCENARIOS.values() for feature in scenario.needs} <= set(FEATURES)


def test_replica_types_that_the_operator_does_not_know_are_not_supported() -> None:
    cases = plan(EVERYTHING.model_copy(update={"traits": {"TFJob": KindTraits(replica_types=("PS", "Worker"))}}))
    assert cases["EXIT-03[tfjob-ps-exit137-ps1-worker3]"].planned == "run"
    left_out = cases["EXIT-03[tfjob-chief-exit137-chief1-worker2]"]
    assert left_out.planned == "not-supported"
    assert left_out.reason == "the operator does not claim the replica type Chief of TFJob"
    assert not any("chief" in name for name in cases["EXIT-06[exit137]"].scenarios)


@pytest.mark.parametrize("profile", ["core", "extended"])
def test_what_makes_no_sense_for_a_job_of_kubernetes_is_declared_and_everything_else_judged(profile: Profile) -> None:
    claims = Claims(kinds=kinds_of("batch"), features=tuple(FEATURES))
    cases = build_plan(claims=claims, contract=DOCS, profile=profile)
    asked = [r for r, found in REQUIREMENTS.items() if profile == "extended" or found.profile == "core"]
    assert list(dict.fromkeys(case.requirement for case in cases)) == asked
    without = ADAPTERS["batch"].without
    for case in cases:
        if case.requirement in without:
            assert (case.subject, case.scenarios, case.planned) == ("batch", (), "not-supported")
            assert case.reason == without[case.requirement]
        else:
            assert case.planned == "run"
            assert {SCENARIOS[name].kind for name in case.scenarios} == {"Job"}
    judged = {case.requirement for case in cases if case.planned == "run"}
    assert {"EXIT-02", "EXIT-03", "EXIT-04", "EXIT-12", "RESTART-06", "RESTART-07", "LIMIT-01", "STATE-09"} <= judged


def test_a_job_of_kubernetes_is_no_matter_of_an_operator_of_kubeflow() -> None:
    assert not any(SCENARIOS[name].kind == "Job" for case in plan().values() for name in case.scenarios)


def test_an_operator_of_two_job_apis_is_put_to_both() -> None:
    both = plan(EVERYTHING.model_copy(update={"kinds": ("TFJob", "Job")}))
    assert both["STATE-03[batch]"].planned == "not-supported"
    assert both["STATE-03[tfjob-worker-exit137-worker1]"].planned == "run"
    assert both["EXIT-02[job-worker-exit1-worker1]"].planned == "run"
