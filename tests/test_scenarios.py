"""The catalogue of scenarios: what it has to hold, and what may not be a scenario."""

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from pydantic import ValidationError

from exitcode_conformance.contract import load_contract
from exitcode_conformance.kinds import KINDS, KUBEFLOW_KINDS
from exitcode_conformance.plan import Claims, build_plan
from exitcode_conformance.registry import FEATURES
from exitcode_conformance.requirements import REQUIREMENTS
from exitcode_conformance.scenario import (
    DeleteJob,
    ExitOutcome,
    RunUntilStopped,
    Scenario,
    SignalOutcome,
    UntilAttempt,
    UntilGone,
    UntilTerminal,
    outcome_code,
)
from exitcode_conformance.scenarios import SCENARIOS
from exitcode_conformance.scenarios.topology import TF_CHIEF, TF_PS, TF_WORKER, TF_WORKERS, TORCH
from exitcode_conformance.selection import outcome_name, topology
from exitcode_conformance.success_rule import deciding_replicas

FAR_APART = 4
"""Units between two failures of one job, so that nothing depends on which is seen first."""
SEVERAL_FAIL = (
    "tfjob-both-onfailure1-limit2-worker2",
    "tfjob-at-once-137-1-worker2",
    "pytorchjob-at-once-1-137-master1-worker1",
    "job-both-onfailure1-limit2-worker3",
    "job-at-once-137-1-worker3",
)
"""Scenarios in which who is faster changes nothing of what has to come."""
DOCUMENTED = (0, 1, 2, 126, 127, 128, 130, 137, 138, 139, 143)


def test_every_topology_of_the_first_wave_is_there() -> None:
    found = {(s.kind, topology(s)) for s in SCENARIOS.values()}
    assert {(t.kind, t.name) for t in (TF_WORKER, TF_WORKERS, TF_PS, TF_CHIEF, TORCH)} <= found


@pytest.mark.parametrize("code", DOCUMENTED)
def test_every_documented_code_is_tried_in_every_place_and_as_a_real_signal(code: int) -> None:
    places: set[tuple[str, str]] = set()
    signals: set[tuple[str, str]] = set()
    for scenario in SCENARIOS.values():
        if scenario.target and scenario.outcomes.get(scenario.target):
            first = scenario.outcomes[scenario.target][0]
            if outcome_code(first) == code and scenario.group_of(scenario.target).restart_policy == "ExitCode":
                kind = scenario.target.rpartition("-")[0]
                (signals if isinstance(first, SignalOutcome) else places).add((scenario.kind, kind))
    everywhere = {("TFJob", "worker"), ("TFJob", "ps"), ("TFJob", "chief")}
    everywhere |= {("PyTorchJob", "master"), ("PyTorchJob", "worker")}
    if code:
        assert everywhere <= places
    if code > 128:
        assert everywhere <= signals


@pytest.mark.parametrize("contract", ["kubeflow-docs", "kubeflow-api"])
def test_every_requirement_is_judged_in_two_scenarios_of_different_topology(contract: str) -> None:
    claims = Claims(kinds=KUBEFLOW_KINDS, features=tuple(FEATURES))
    plan = build_plan(claims=claims, contract=load_contract(contract), profile="extended")
    topologies: dict[str, set[tuple[str, str]]] = {name: set() for name in REQUIREMENTS}
    for case in plan:
        topologies[case.requirement] |= {(SCENARIOS[s].kind, topology(SCENARIOS[s])) for s in case.scenarios}
    # The comment on the Go type reserves no code for the user, and leaves none undefined.
    reserved = {"EXIT-04", "EXIT-05"} if contract == "kubeflow-api" else set()
    assert [name for name, found in topologies.items() if len(found) < 2 and name not in reserved] == []


def test_every_kind_but_those_of_the_core_is_tried_in_the_extended_profile_only() -> None:
    core = {s.kind for s in SCENARIOS.values() if s.profile == "core"}
    assert core == {"TFJob", "PyTorchJob", "Job"}
    assert {s.kind for s in SCENARIOS.values()} == set(KINDS)
    claims = Claims(kinds=KUBEFLOW_KINDS, features=tuple(FEATURES))
    plan = build_plan(claims=claims, contract=load_contract("kubeflow-docs"), profile="core")
    assert {SCENARIOS[name].profile for case in plan for name in case.scenarios} == {"core"}


@pytest.mark.parametrize("kind", ["XGBoostJob", "PaddleJob", "JAXJob"])
def test_every_other_kind_is_judged_by_what_is_not_of_one_kind(kind: str) -> None:
    claims = Claims(kinds=KUBEFLOW_KINDS, features=tuple(FEATURES))
    plan = build_plan(claims=claims, contract=load_contract("kubeflow-docs"), profile="extended")
    judged = {case.requirement for case in plan if any(SCENARIOS[name].kind == kind for name in case.scenarios)}
    assert judged >= {"EXIT-01", "EXIT-02", "EXIT-03", "EXIT-04", "EXIT-06", "STATE-09", "RESTART-06"}
    assert judged >= {f"RESTART-0{number}" for number in (1, 2, 3, 4, 8, 9)}
    assert judged >= {f"IDENT-0{number}" for number in (1, 2, 3, 4, 6)}


def test_an_mpijob_is_in_the_plan_to_say_that_exit_code_has_no_effect_on_it() -> None:
    claims = Claims(kinds=KUBEFLOW_KINDS, features=tuple(FEATURES))
    plan = build_plan(claims=claims, contract=load_contract("kubeflow-docs"), profile="extended")
    cases = [case for case in plan if any(SCENARIOS[name].kind == "MPIJob" for name in case.scenarios)]
    assert {"EXIT-02", "EXIT-03"} <= {case.requirement for case in cases}
    assert {case.planned for case in cases} == {"not-supported"}
    assert {case.reason for case in cases} == {KINDS["MPIJob"].without_exit_code}


def test_no_name_of_a_pod_could_be_that_of_another_scenario() -> None:
    names = {f"{s.id}-{r}": s.id for s in SCENARIOS.values() for r in s.replica_names()}
    assert not set(names) & set(SCENARIOS)
    for pod, owner in names.items():
        starts = [other for other in SCENARIOS if pod.startswith(f"{other}-")]
        assert max(starts, key=len) == owner, "the longest name that a pod's name continues is that of its job"


def test_names_fit_into_what_is_made_of_them() -> None:
    for scenario in SCENARIOS.values():
        longest = max(f"{scenario.id}-{replica}" for replica in scenario.replica_names())
        assert len(longest) <= 63, "the name of a pod is its host name, and that of a service a DNS label"


def test_no_scenario_depends_on_who_is_faster() -> None:
    for scenario in SCENARIOS.values():
        failing = [script for script in scenario.outcomes.values() if {outcome_code(o) for o in script} - {0, None}]
        dwells = sorted(getattr(script[0], "dwell", 0) for script in failing)
        apart = all(later - earlier >= FAR_APART for earlier, later in pairwise(dwells))
        assert apart or scenario.id in SEVERAL_FAIL, f"{scenario.id}: when one fails, no other is about to"


def test_retryable_attempts_are_followed_by_one_that_can_be_seen_to_run() -> None:
    for scenario in SCENARIOS.values():
        for step in scenario.steps:
            if isinstance(step, UntilAttempt) and step.job_running and scenario.manifest is None:
                assert isinstance(scenario.outcome_of(step.replica, step.attempt), RunUntilStopped), scenario.id


def test_jobs_that_are_deleted_are_watched_until_they_are_gone() -> None:
    for scenario in SCENARIOS.values():
        kinds = [type(step) for step in scenario.steps]
        if DeleteJob in kinds:
            assert kinds[kinds.index(DeleteJob) :] == [DeleteJob, UntilGone]
        elif "ttlSecondsAfterFinished" in scenario.run_policy:
            assert kinds == [UntilTerminal, UntilGone]
        else:
            assert UntilGone not in kinds


def test_the_seed_is_the_users_own_manifest() -> None:
    seed = SCENARIOS["tftest"]
    assert seed.manifest is not None
    assert seed.manifest["spec"]["runPolicy"] == {"backoffLimit": 3}
    workers = seed.manifest["spec"]["tfReplicaSpecs"]["Worker"]
    assert (workers["replicas"], workers["restartPolicy"]) == (3, "ExitCode")
    assert "exit 138" in workers["template"]["spec"]["containers"][0]["command"][2]
    assert max(step.attempt for step in seed.steps if isinstance(step, UntilAttempt)) == 4


def test_the_rule_of_success_is_that_of_the_kind() -> None:
    deciders = Counter((s.kind, topology(s), deciding_replicas(s)) for s in SCENARIOS.values())
    assert set(deciders) == {
        ("TFJob", "worker1", ("worker-0",)),
        ("TFJob", "worker3", ("worker-0",)),
        ("TFJob", "worker3", ("worker-0", "worker-1", "worker-2")),
        ("TFJob", "ps1-worker3", ("worker-0",)),
        ("TFJob", "ps1-worker1", ("worker-0",)),
        ("TFJob", "chief1-worker2", ("chief-0",)),
        ("TFJob", "worker2", ("worker-0",)),
        ("TFJob", "ps1-worker1", ("worker-0",)),
        ("TFJob", "ps1-chief1", ("chief-0",)),
        ("TFJob", "ps1-chief1-worker1", ("chief-0",)),
        ("PyTorchJob", "master1-worker2", ("master-0",)),
        ("PyTorchJob", "master1-worker1", ("master-0",)),
        ("PyTorchJob", "master1", ("master-0",)),
        ("XGBoostJob", "master1", ("master-0",)),
        ("XGBoostJob", "master1-worker1", ("master-0",)),
        ("PaddleJob", "master1", ("master-0",)),
        ("PaddleJob", "master1-worker1", ("master-0",)),
        ("JAXJob", "worker1", ("worker-0",)),
        ("JAXJob", "worker2", ("worker-0", "worker-1")),
        ("MPIJob", "launcher1-worker1", ("launcher-0",)),
        ("Job", "worker1", ("worker-0",)),
        ("Job", "worker3", ("worker-0", "worker-1", "worker-2")),
    }


def test_ids_tell_what_happens() -> None:
    for scenario in SCENARIOS.values():
        if scenario.manifest is None:
            assert scenario.id.startswith(f"{scenario.kind.lower()}-")
            assert scenario.id.endswith(topology(scenario))


def make(**fields: Any) -> Scenario:
    """A scenario with some fields changed."""
    base = {"id": "one", "kind": "TFJob", "groups": [{"type": "Worker", "replicas": 2}]}
    return Scenario.model_validate({**base, **fields})


def test_a_scenario_answers_questions_about_its_replicas() -> None:
    scenario = make(outcomes={"worker-0": [ExitOutcome(code=137), ExitOutcome(code=0)]})
    assert scenario.replica_names() == ("worker-0", "worker-1")
    assert scenario.pod_count() == 2
    assert [outcome_code(scenario.outcome_of("worker-0", n)) for n in (1, 2, 3)] == [137, 0, 0]
    assert isinstance(scenario.outcome_of("worker-1", 1), RunUntilStopped)
    assert scenario.group_of("worker-1").type == "Worker"
    with pytest.raises(KeyError):
        scenario.group_of("ps-0")
    assert scenario.steps == (UntilTerminal(),)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"id": "One"}, "not a DNS label"),
        ({"id": "1one"}, "not a DNS label"),
        ({"id": "one-"}, "not a DNS label"),
        ({"id": "o" * 53}, "not a DNS label"),
        ({"id": "one\n"}, "not a DNS label"),
        ({"target": "worker-2"}, "no such replica: worker-2"),
        ({"outcomes": {"ps-0": []}}, "no such replica: ps-0"),
        ({"steps": [{"kind": "succeeded", "replica": "chief-0"}]}, "no such replica: chief-0"),
        ({"steps": [{"kind": "attempt", "replica": "worker-0", "attempt": 0}]}, "greater than or equal to 1"),
        ({"steps": [{"kind": "dance"}]}, "does not match any of the expected tags"),
        ({"outcomes": {"worker-0": [{"kind": "exit", "code": 256}]}}, "less than or equal to 255"),
        ({"outcomes": {"worker-0": [{"kind": "signal", "signal": "HUP"}]}}, "Input should be"),
        ({"groups": [{"type": "Worker", "replicas": 0}]}, "greater than or equal to 1"),
        ({"groups": [{"type": "Worker", "replicas": 1, "restart_policy": "Sometimes"}]}, "Input should be"),
        ({"colour": "red"}, "Extra inputs are not permitted"),
    ],
)
def test_what_is_no_scenario_is_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        make(**fields)


def test_outcomes_have_names_and_codes() -> None:
    assert outcome_name(ExitOutcome(code=137)) == "exit137"
    assert outcome_name(SignalOutcome(signal="KILL")) == "sigkill"
    assert outcome_name(RunUntilStopped()) == "run"
    codes = {s: outcome_code(SignalOutcome(signal=s)) for s in ("INT", "KILL", "USR1", "SEGV", "TERM")}
    assert codes == {"INT": 130, "KILL": 137, "USR1": 138, "SEGV": 139, "TERM": 143}
