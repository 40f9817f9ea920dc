"""What a history says was seen, and what it leaves out."""

import dataclasses
from typing import Any

import pytest
from history_builder import story

from exitcode_conformance.entry import Event
from exitcode_conformance.history import History, JobVersion
from exitcode_conformance.kinds import JOB, TFJOB, KindTraits
from exitcode_conformance.witness import operator_act

KILLED = "tfjob-worker-exit137-worker3"
ONE = "tfjob-worker-exit1-worker3"


def version(**status: Any) -> JobVersion:
    """The job with a status."""
    return JobVersion(seq=1, time=0, verb="MODIFIED", object={"metadata": {"uid": "u"}, "status": status}, kind=TFJOB)


def conditions(*names: str) -> JobVersion:
    """The job with these conditions True; one in brackets is False."""
    found = [{"type": n.strip("()"), "status": "False" if n.startswith("(") else "True"} for n in names]
    return version(conditions=found)


def test_nothing_recorded_is_an_empty_history() -> None:
    history = story(KILLED).history()
    assert (history.submitted, history.job_uid, history.terminal, history.states) == (None, None, None, ())
    assert (history.incarnations, history.end.seq, history.is_complete) == ((), 0, False)
    assert history.gap("pods") is None


def test_a_history_is_cut_at_its_completion() -> None:
    told = story(ONE).begin().ends("worker-0", 1).says("Failed").complete()
    told.delete_job().collect().create("worker-0")
    history = told.history()
    assert history.is_complete
    assert history.job_removal is None
    assert history.job_deletion is None
    assert len(history.incarnations) == 3
    assert history.entries[-1].seq == history.end.seq


def test_only_the_scenarios_own_entries_are_in_it() -> None:
    told = story(ONE).begin().witness().act("operator-started", of_the_run=True)
    history = told.history()
    assert {entry.scenario for entry in history.entries} == {ONE}
    assert [action.action for action in history.run_actions] == ["operator-started"]


@pytest.mark.parametrize(
    ("names", "state"),
    [
        ((), None),
        (("(Created)",), None),
        (("Created",), "Created"),
        (("Created", "Running"), "Running"),
        (("Running", "Created"), "Running"),
        (("Created", "(Running)"), "Created"),
        (("Created", "Restarting", "(Running)"), "Restarting"),
        (("Created", "Running", "Restarting"), "Restarting"),
        (("Created", "(Running)", "Suspended"), "Suspended"),
        (("Failed", "Created", "Running"), "Failed"),
        (("Created", "Succeeded", "Healthy"), "Succeeded"),
        (("Healthy",), None),
        (("Created", "Healthy"), "Created"),
    ],
)
def test_the_state_follows_from_what_is_true_and_documented(names: tuple[str, ...], state: str | None) -> None:
    assert conditions(*names).state == state


@pytest.mark.parametrize("status", [None, "ready", [], 7, {}])
def test_a_status_that_is_no_status_says_nothing(status: object) -> None:
    seen = JobVersion(seq=1, time=0, verb="ADDED", object={"metadata": {"uid": "u"}, "status": status}, kind=TFJOB)
    assert (seen.conditions, seen.state, seen.replica_statuses, seen.count("Worker", "succeeded")) == ([], None, {}, 0)


@pytest.mark.parametrize("found", [None, "x", {"type": "Created"}, [None, "x", 7], [{"status": "True"}], [{}]])
def test_conditions_that_are_none_say_nothing(found: object) -> None:
    assert version(conditions=found).state is None


@pytest.mark.parametrize(
    ("statuses", "count"),
    [
        (None, 0),
        ([], 0),
        ({"Worker": None}, 0),
        ({"Worker": []}, 0),
        ({"Worker": {}}, 0),
        ({"Worker": {"succeeded": None}}, 0),
        ({"Worker": {"succeeded": "1"}}, 0),
        ({"Worker": {"succeeded": True}}, 0),
        ({"Worker": {"succeeded": 2}, "PS": {"succeeded": 1}}, 2),
    ],
)
def test_a_count_that_is_no_number_is_zero(statuses: object, count: int) -> None:
    assert version(replicaStatuses=statuses).count("Worker", "succeeded") == count


def test_states_are_told_once_until_they_change() -> None:
    told = story(KILLED).begin().says("Running").says().restart("worker-0", 137).complete()
    assert [name for name, _ in told.history().states] == ["Created", "Running", "Restarting", "Running"]


def test_a_second_job_of_the_same_name_is_kept_apart() -> None:
    told = story(ONE).begin().ends("worker-0", 1).says("Failed").job_removed()
    told.job_uid = "job-2"
    told.status = {}
    told.submit().says("Created", "Running").complete()
    history = told.history()
    assert history.job_uid == "job-1"
    assert history.second_job is not None
    assert history.second_job.uid == "job-2"
    assert [name for name, _ in history.states] == ["Created", "Running", "Failed"]
    told.is_unknown("EXIT-02", "a second job of the same name")


def test_a_job_of_another_kind_is_no_job_of_the_scenario() -> None:
    told = story(ONE).submit()
    told.event("pytorchjobs", "ADDED", {"metadata": {"name": ONE, "uid": "other"}})
    history = told.history()
    assert len(history.job_versions) == 1
    assert history.second_job is None


def test_attempts_are_counted_over_pods_and_restarts_in_place() -> None:
    told = story("tfjob-worker1-always1-worker3").begin().ends("worker-1", 1).restarts_in_place("worker-1")
    told.gone("worker-1").create("worker-1")
    attempts = told.history().attempts("worker-1")
    assert [(a.number, a.in_place, a.ended is not None, a.started_seq is not None) for a in attempts] == [
        (1, False, True, True),
        (2, True, False, True),
        (3, False, False, False),
    ]
    assert len({a.uid for a in attempts}) == 2
    assert told.history().attempt("worker-1", 4) is None


def test_an_attempt_did_as_told_only_if_its_script_ended_it() -> None:
    def first_end(code: int, *, scenario: str = KILLED, replica: str = "worker-0", stopped: bool = False) -> bool:
        told = story(scenario).begin()
        if stopped:
            told.asks_deletion(replica)
        history = told.ends(replica, code).history()
        return history.did_as_told(history.attempts(replica)[0])

    assert first_end(137)
    assert not first_end(1)
    assert not first_end(137, stopped=True)
    assert not first_end(0, replica="worker-1"), "it was to run until it is stopped, and nobody stopped it"
    history = story(KILLED).begin().history()
    assert history.did_as_told(history.attempts("worker-0")[0]), "it has not ended"


def test_own_failures_are_those_that_nobody_asked_for_by_a_deletion() -> None:
    told = story(KILLED).begin().ends("worker-0", 137).asks_deletion("worker-1").ends("worker-1", 143)
    told.touch("worker-2", phase="Failed")
    history = told.history()
    assert [moment.what for _, moment in history.own_failures] == [
        f"{KILLED}-worker-0 ended with 137",
        f"{KILLED}-worker-2 failed",
    ]
    unasked = history.unscripted_failure(history.end.seq)
    assert unasked is not None
    assert unasked.what == f"{KILLED}-worker-2 failed"
    assert history.unscripted_failure(unasked.seq - 1) is None


def gap_in(history: History, *resources: str) -> bool:
    """Whether the history has a gap in one of the watches."""
    return history.gap(*resources) is not None


def test_a_gap_counts_while_the_scenario_was_observed() -> None:
    gap = {"resource": "pods"}
    before = story(ONE).act("watch-gap", of_the_run=True, detail=gap).begin().complete()
    assert not gap_in(before.history(), "pods")
    during = story(ONE).begin().act("watch-gap", of_the_run=True, detail=gap).complete()
    assert gap_in(during.history(), "services", "pods")
    assert not gap_in(during.history(), "services")
    after = story(ONE).begin().complete().act("watch-gap", of_the_run=True, detail=gap)
    assert not gap_in(after.history(), "pods")


def test_a_witness_is_an_act_for_another_scenario_between_two_times() -> None:
    told = story(ONE).begin().wait(1).witness()
    at = told.now
    history = told.wait(1).create("worker-0").complete(witnessed=False).history()
    found = history.witness(at - 0.5, at + 0.5)
    assert found is not None
    assert found.what == "created pod witness-1-worker-0"
    assert history.witness(at + 0.1, told.now) is None, "what it does here proves nothing"
    assert history.witness(0, at - 0.1) is None


def test_what_is_done_for_a_job_of_another_kind_is_no_witness() -> None:
    told = story(ONE).begin().wait(1).witness("PyTorchJob").wait(1).complete(witnessed=False)
    assert told.history().witness(0, told.now) is None


def event(resource: str, verb: Any, **fields: Any) -> Event:
    """A watch event."""
    item = {"metadata": {"name": "x", "uid": "u"}, **fields}
    return Event(seq=1, time=0, scenario=None, resource=resource, verb=verb, object=item)


def test_only_what_nobody_else_does_proves_that_the_operator_did_it() -> None:
    assert operator_act(event("pods", "ADDED"), None) == "created pod x"
    assert operator_act(event("services", "ADDED"), None) == "created service x"
    assert operator_act(event("tfjobs", "MODIFIED", status={"a": 1}), {"status": {}}) == "wrote the status of x"
    assert operator_act(event("tfjobs", "MODIFIED", status={"a": 1}), {"status": {"a": 1}}) is None
    assert operator_act(event("tfjobs", "MODIFIED"), {"spec": {}}) is None
    assert operator_act(event("tfjobs", "ADDED", status={"a": 1}), None) is None
    assert operator_act(event("tfjobs", "DELETED"), {}) is None
    assert operator_act(event("pods", "MODIFIED"), {}) is None
    assert operator_act(event("pods", "DELETED"), {}) is None
    assert operator_act(event("events", "ADDED"), None) is None


def test_conditions_are_understood_by_the_names_that_the_operator_gives_them() -> None:
    kind = TFJOB.with_traits(KindTraits(conditions={"Succeeded": "Complete", "Running": "Active"}))

    def said(*names: str) -> JobVersion:
        return dataclasses.replace(conditions(*names), kind=kind)

    assert said("Created", "Active").state == "Running"
    assert said("Created", "(Active)", "Complete").state == "Succeeded"
    assert said("Created", "Succeeded").state == "Created", "what it calls otherwise it does not mean by that name"
    assert said("Failed").state == "Failed"


def test_a_job_of_kubernetes_says_how_it_ended_and_counts_its_pods() -> None:
    status = {"active": 1, "succeeded": 2, "conditions": [{"type": "Complete", "status": "True"}]}
    job = dataclasses.replace(version(**status), kind=JOB)
    assert (job.state, job.true_conditions) == ("Succeeded", ["Succeeded"])
    assert [job.count("Worker", name) for name in ("active", "succeeded", "failed")] == [1, 2, 0]
    assert dataclasses.replace(version(), kind=JOB).replica_statuses == {}
    started = dataclasses.replace(version(startTime="2026-01-01T00:00:00Z"), kind=JOB)
    assert started.replica_statuses == {"Worker": {"active": 0, "succeeded": 0, "failed": 0}}
