"""From a case to a judgement: what the harness failed at, what was cut short, what no check could read."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from history_builder import CONTRACTS, Story, compare, story

from exitcode_conformance.entry import Event
from exitcode_conformance.history import History
from exitcode_conformance.judge import judge
from exitcode_conformance.judging import judged
from exitcode_conformance.kinds import KUBEFLOW_KINDS
from exitcode_conformance.plan import Case, Claims, build_plan
from exitcode_conformance.registry import FEATURES
from exitcode_conformance.requirements import REQUIREMENTS
from exitcode_conformance.run_record import RunRecord
from exitcode_conformance.scenarios import SCENARIOS
from exitcode_conformance.temporal import Finding
from exitcode_conformance.verdict import Verdict
from exitcode_fixtures.scenario_driver import ScenarioDriver

ONE = "tfjob-worker-exit1-worker3"
KILLED = "tfjob-worker-exit137-worker3"
DOCS = CONTRACTS["kubeflow-docs"]
PLAN = build_plan(claims=Claims(kinds=KUBEFLOW_KINDS, features=tuple(FEATURES)), contract=DOCS, profile="core")


def failed() -> Story:
    """A job that has failed rightly."""
    return story(ONE).begin().wait(0.5).ends("worker-0", 1).says("Failed")


# --- before any check --------------------------------------------------------------------------------------------


def test_a_failure_of_the_harness_is_an_error_whatever_was_seen() -> None:
    told = failed().act("harness-error", detail={"problem": "the API server refused the job"})
    judgement = told.complete().judge("EXIT-02")
    assert judgement.verdict is Verdict.ERROR
    assert judgement.seen == f"{ONE}: the API server refused the job"
    assert judgement.deciding == (told.entries[-3].seq,)


def test_what_was_not_run_is_not_run() -> None:
    assert story(ONE).judge("EXIT-02").verdict is Verdict.NOT_RUN


def test_what_was_cut_short_is_unknown_even_if_a_violation_was_seen() -> None:
    told = failed().replace("worker-0")
    told.is_unknown("EXIT-02", "was cut short")


def test_one_history_that_cannot_be_judged_spoils_a_comparison() -> None:
    right = story("tfjob-worker-exit1-worker1").begin().ends("worker-0", 1).says("Failed").complete()
    assert compare("EXIT-06", right, failed()).verdict is Verdict.UNKNOWN
    assert compare("EXIT-06", right, story(ONE)).verdict is Verdict.NOT_RUN
    broken = failed().act("harness-error").complete()
    assert compare("EXIT-06", right, broken).verdict is Verdict.ERROR


def test_deciding_numbers_are_lines_of_the_recording() -> None:
    told = story(ONE).begin()
    with told.held_back("pods"):
        told.ends("worker-0", 1).says("Failed")
    told.complete()
    lines = {entry.seq: entry for entry in told.entries}
    end, terminal, *_ = (lines[number] for number in told.judge("EXIT-02").deciding)
    assert isinstance(end, Event)
    assert isinstance(terminal, Event)
    assert {end.resource, terminal.resource} == {"pods", "tfjobs"}


def test_a_fail_beats_an_unknown_and_an_unknown_beats_a_pass() -> None:
    yes, no, perhaps = (
        Finding(holds=True, seen="yes", deciding=(3,)),
        Finding(holds=False, seen="no", deciding=(2, 1)),
        Finding(holds=None, seen="perhaps", deciding=(9,)),
    )
    assert judged("x", [yes, yes]).verdict is Verdict.PASS
    assert judged("x", [yes, perhaps]).verdict is Verdict.UNKNOWN
    failing = judged("x", [yes, perhaps, no])
    assert (failing.verdict, failing.seen, failing.deciding) == (Verdict.FAIL, "no", (1, 2))


# --- objects as nobody expects them ------------------------------------------------------------------------------

ODD: tuple[object, ...] = (None, "text", -7, True, ["x"], [None], {"type": "Failed"})
JOB_FIELDS = (
    "status",
    "status.conditions",
    "status.conditions.0",
    "status.conditions.0.type",
    "status.conditions.0.status",
    "status.conditions.0.lastTransitionTime",
    "status.replicaStatuses",
    "status.replicaStatuses.Worker",
    "status.replicaStatuses.Worker.succeeded",
    "status.startTime",
    "status.completionTime",
)
POD_FIELDS = (
    "metadata.labels",
    "metadata.ownerReferences",
    "metadata.ownerReferences.0",
    "metadata.deletionTimestamp",
    "metadata.resourceVersion",
    "spec",
    "spec.restartPolicy",
    "spec.containers",
    "spec.containers.0",
    "spec.containers.0.env",
    "spec.containers.0.env.0.value",
    "status",
    "status.phase",
    "status.containerStatuses",
    "status.containerStatuses.0",
    "status.containerStatuses.0.state",
    "status.containerStatuses.0.state.terminated",
    "status.containerStatuses.0.state.terminated.exitCode",
    "status.containerStatuses.0.restartCount",
)


def put(item: Any, path: str, value: object) -> None:
    """Sets a field, where the object has what the path leads through."""
    *parents, last = path.split(".")
    for name in parents:
        item = item[int(name)] if isinstance(item, list) else item.get(name)
        if not item:
            return
    item[int(last) if isinstance(item, list) else last] = copy.deepcopy(value)


def spoiled(told: Story, resource: str, path: str, value: object) -> History:
    """The history with one field of every object of a resource set to a value."""
    entries = []
    for entry in told.entries:
        if isinstance(entry, Event) and entry.resource == resource:
            item = copy.deepcopy(entry.object)
            put(item, path, value)
            entry = entry.model_copy(update={"object": item})
        entries.append(entry)
    record = RunRecord(scenarios={told.scenario.id: told.scenario}, timeouts=told.timeouts, entries=entries)
    return record.history(told.scenario.id)


def cases_of(scenario: str) -> Iterator[Case]:
    """The single cases of a scenario."""
    return (case for case in PLAN if case.scenarios == (scenario,))


@pytest.mark.parametrize(("resource", "path"), [("tfjobs", p) for p in JOB_FIELDS] + [("pods", p) for p in POD_FIELDS])
def test_an_odd_object_never_breaks_the_judge(resource: str, path: str) -> None:
    told = story(KILLED).begin().restart("worker-0", 137).complete()
    for value in ODD:
        history = spoiled(told, resource, path, value)
        for case in cases_of(KILLED):
            judgement = judge(case, [history], DOCS)
            if judgement.verdict is Verdict.ERROR:
                assert "could not read what was recorded" in judgement.seen


@pytest.mark.parametrize("path", JOB_FIELDS)
def test_an_odd_status_never_breaks_the_driver(path: str) -> None:
    for scenario in (KILLED, "tfjob-worker1-exit0-chief1-worker2", "tfjob-worker-exit1-worker1"):
        told = story(scenario).begin()
        target = told.scenario.target
        assert target is not None
        told.ends(target, 0 if "exit0" in scenario else 1).says()
        for value in ODD:
            driver = ScenarioDriver(scenario=told.scenario, timeouts=told.timeouts, started=told.now)
            history = spoiled(told, "tfjobs", path, value)
            driver.outcomes_due(history)
            driver.advance(history, told.now, told.now)


def test_a_check_that_stumbles_says_where() -> None:
    told = story(KILLED).begin().restart("worker-0", 137).complete()
    history = spoiled(told, "pods", "spec.containers", 7)
    case = next(case for case in cases_of(KILLED) if case.requirement == "IDENT-05")
    judgement = judge(case, [history], DOCS)
    assert judgement.verdict is Verdict.ERROR
    assert judgement.expected == REQUIREMENTS["IDENT-05"].sentence
    assert "TypeError" in judgement.seen
    assert "_environment, line" in judgement.seen


def test_an_object_without_metadata_is_no_witness_and_has_no_place() -> None:
    told = story(ONE).begin()
    bare = Event(seq=9999, time=told.now, scenario=None, resource="pods", verb="ADDED", object={})
    record = RunRecord(scenarios=SCENARIOS, timeouts=told.timeouts, entries=[*told.entries, bare])
    assert len(record.history(ONE).incarnations) == 3
