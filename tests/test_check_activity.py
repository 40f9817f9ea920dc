"""STATE-02, STATE-06, STATE-08, STATE-10 and STATE-11: whether what a job says is true of its pods."""

import pytest
from history_builder import Story, story

ONE = "tfjob-worker-exit1-worker3"
KILLED = "tfjob-worker-exit137-worker3"
DELETED = "tfjob-deleted-ps1-worker3"
ALWAYS = "tfjob-worker1-always1-worker3"
ON_FAILURE = "pytorchjob-worker-onfailure1-master1-worker2"
SOME_DONE = "tfjob-others0-worker3"
SERVED = "tfjob-workers0-ps1-worker3"
SERVER_DONE = "tfjob-ps0-ps1-worker3"


# --- STATE-02 ----------------------------------------------------------------------------------------------------


def test_state_02_passes_when_a_job_says_running_whenever_all_replicas_run() -> None:
    story(KILLED).begin().restart("worker-0", 137).complete().passes("STATE-02", "the job says Running, 0.0 s after")
    told = story(KILLED).submit().says("Created").create(*("worker-0", "worker-1", "worker-2"))
    told.runs("worker-0").says("Running").runs("worker-1", "worker-2").wait(1)
    told.complete().passes("STATE-02", "the job said Running when all replicas ran")


def test_state_02_passes_when_running_is_one_of_two_that_are_said() -> None:
    told = story(KILLED).begin()
    told.put("Restarting").write().complete().passes("STATE-02")


def test_state_02_fails_when_running_is_never_said() -> None:
    told = story(KILLED).submit().says("Created").create(*story(KILLED).replicas).runs(*story(KILLED).replicas)
    told.wait(11).complete().fails("STATE-02", "the job did not say Running within the 10 s (`state`)")


def test_state_02_fails_when_running_is_said_too_late() -> None:
    told = story(KILLED).submit().says("Created").create(*story(KILLED).replicas).runs(*story(KILLED).replicas)
    told.wait(12).says("Running").complete().fails("STATE-02", "the bound `state` is 10 s")


def test_state_02_fails_when_running_is_not_said_again() -> None:
    told = story(KILLED).begin().wait(0.5).ends("worker-0", 137).says("Restarting").replace("worker-0").wait(11)
    told.complete().fails("STATE-02", "did not say Running")


def test_state_02_knows_that_a_job_is_to_say_it_only_until_it_is_deleted() -> None:
    told = story(DELETED).begin().delete_job().collect()
    told.complete().passes("STATE-02")


def test_state_02_is_unknown_where_not_all_replicas_ran_for_long_enough() -> None:
    told = story(KILLED).submit().says("Created").create(*story(KILLED).replicas).runs(*story(KILLED).replicas)
    told.wait(0.5).ends("worker-0", 137).says("Failed").complete()
    told.is_unknown("STATE-02", "no time long enough")
    told = story(KILLED).submit().says("Created").create("worker-0").runs("worker-0").wait(20).complete()
    told.is_unknown("STATE-02", "no time long enough")
    story(KILLED).submit().complete().is_unknown("STATE-02", "never created a pod")


# --- STATE-06 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scenario", "replica"), [(ALWAYS, "worker-1"), (ON_FAILURE, "worker-0")])
def test_state_06_holds_the_job_to_silence_about_the_kubelets_work(scenario: str, replica: str) -> None:
    told = story(scenario).begin().ends(replica, 1).restarts_in_place(replica)
    told.complete().passes("STATE-06")
    told = story(scenario).begin().ends(replica, 1).restarts_in_place(replica).says("Restarting").complete()
    told.fails("STATE-06", "the job says Restarting")


def test_state_06_fails_on_restarting_that_is_said_before_the_kubelet_restarts() -> None:
    told = story(ON_FAILURE).begin().ends("worker-0", 1).says("Restarting").restarts_in_place("worker-0")
    told.says("Running").complete().fails("STATE-06", "the job says Restarting")


def test_state_06_is_unknown_without_a_restart_a_witness_or_another_reason() -> None:
    story(ALWAYS).begin().complete().is_unknown("STATE-06", "no restart in place")
    told = story(ALWAYS).begin().ends("worker-1", 1).restarts_in_place("worker-1")
    told.complete(witnessed=False).is_unknown("STATE-06", "alive")
    told = story(ALWAYS).begin().ends("worker-1", 1).restarts_in_place("worker-1")
    told.touch("worker-2", phase="Failed").says("Restarting").complete()
    told.is_unknown("STATE-06", "a pod failed as a whole")


# --- STATE-08 ----------------------------------------------------------------------------------------------------


def test_state_08_passes_when_the_counts_are_those_of_the_pods() -> None:
    story(KILLED).begin().restart("worker-0", 137).complete().passes("STATE-08")
    story(SOME_DONE).begin().ends("worker-1", 0).ends("worker-2", 0).says().complete().passes("STATE-08")
    story(ONE).begin().ends("worker-0", 1).says("Failed").complete().passes("STATE-08")


def test_state_08_lets_the_counts_of_an_ended_job_stand() -> None:
    told = story(ONE).begin().ends("worker-0", 1).says("Failed").asks_deletion("worker-1").gone("worker-1")
    told.complete().passes("STATE-08")
    told = story(ONE).begin().ends("worker-0", 1).says("Failed").asks_deletion("worker-1").gone("worker-1").says()
    told.complete().passes("STATE-08")


def test_state_08_lets_what_still_ran_in_a_successful_job_count_as_succeeded() -> None:
    told = story(SERVED).begin().ends("worker-0", 0).ends("worker-1", 0).ends("worker-2", 0).says("Succeeded")
    told.write(replicaStatuses={"PS": {"succeeded": 1}, "Worker": {"succeeded": 3}}).complete().passes("STATE-08")


def test_state_08_passes_on_counts_that_leave_zeros_out() -> None:
    story(KILLED).begin().write(replicaStatuses={"Worker": {"active": 3}}).complete().passes("STATE-08")


@pytest.mark.parametrize(
    ("counts", "seen"),
    [
        ({"Worker": {"active": 2}}, "replicaStatuses.Worker.active is 2"),
        ({"Worker": {"active": 6}}, "replicaStatuses.Worker.active is 6"),
        ({"Worker": {"active": 3, "succeeded": 1}}, "replicaStatuses.Worker.succeeded is 1"),
        ({"Worker": {"active": 3, "failed": 1}}, "replicaStatuses.Worker.failed is 1"),
        ({}, "replicaStatuses.Worker.active is 0"),
    ],
)
def test_state_08_fails_on_counts_that_the_pods_belie(counts: dict[str, object], seen: str) -> None:
    story(KILLED).begin().write(replicaStatuses=counts).wait(6).complete().fails("STATE-08", seen)


def test_state_08_fails_when_the_failure_that_ended_the_job_is_not_counted() -> None:
    told = story(ONE).begin().ends("worker-0", 1).turns("Failed").write().wait(6)
    told.complete().fails("STATE-08", "replicaStatuses.Worker.failed is 0")


def test_state_08_fails_when_the_counts_become_true_too_late() -> None:
    told = story(SOME_DONE).begin().ends("worker-1", 0).ends("worker-2", 0).wait(11).says()
    told.complete().fails("STATE-08", "the bound `state` is 10 s")


def test_state_08_is_unknown_where_nothing_was_counted_or_something_had_just_changed() -> None:
    told = story(KILLED).submit().put("Created").write().create("worker-0").complete()
    told.is_unknown("STATE-08", "never wrote replicaStatuses")
    told = story(SOME_DONE).begin().ends("worker-1", 0).complete()
    told.is_unknown("STATE-08", "but only 4.5 s")


def test_state_08_does_not_count_a_pod_that_is_leaving_either_way() -> None:
    for counts in ({"active": 3}, {"active": 2}, {"active": 2, "succeeded": 1}):
        told = story(KILLED).begin().asks_deletion("worker-2").write(replicaStatuses={"Worker": counts})
        told.complete().passes("STATE-08")


# --- STATE-10 ----------------------------------------------------------------------------------------------------


def workers_done() -> Story:
    """Every worker has ended with 0, and the parameter server runs on."""
    return story(SERVED).begin().ends("worker-0", 0).ends("worker-1", 0).ends("worker-2", 0)


def test_state_10_passes_when_servers_decide_nothing() -> None:
    workers_done().says("Succeeded").complete().passes("STATE-10", "the job says Succeeded")
    story(SERVER_DONE).begin().ends("ps-0", 0).says().complete().passes("STATE-10")


def test_state_10_fails_when_servers_hold_the_job_up_or_end_it() -> None:
    workers_done().says().wait(11).complete().fails("STATE-10", "the job did not become Succeeded")
    story(SERVER_DONE).begin().ends("ps-0", 0).says("Succeeded").complete().fails("STATE-10", "says Succeeded")
    story(SERVER_DONE).begin().ends("ps-0", 0).says("Failed").complete().fails("STATE-10", "says Failed")
    workers_done().says("Failed").complete().fails("STATE-10", "did not become Succeeded: the job says Failed")


def test_state_10_is_unknown_where_it_did_not_come_to_that() -> None:
    story(SERVED).begin().complete().is_unknown("STATE-10", "attempt 1 of worker-0 was never seen to end")
    story(SERVER_DONE).begin().ends("ps-0", 0).complete(witnessed=False).is_unknown("STATE-10", "alive")
    told = story(SERVER_DONE).begin().ends("worker-1", 9).ends("ps-0", 0).says("Failed").complete()
    told.is_unknown("STATE-10", "which nobody asked for")
    told = story(SERVED).begin().ends("ps-0", 9).ends("worker-0", 0).ends("worker-1", 0).ends("worker-2", 0)
    told.says("Failed").complete().is_unknown("STATE-10", "did not become Succeeded, but only")


# --- STATE-11 ----------------------------------------------------------------------------------------------------


def test_state_11_passes_when_the_column_says_the_state() -> None:
    told = story(ONE).begin().ends("worker-0", 1).says("Failed").prints(NAME=ONE, STATE="Failed", AGE="1s")
    told.complete().passes("STATE-11", "the column says Failed")
    story(KILLED).begin().restart("worker-0", 137).prints(State="Running").complete().passes("STATE-11")


def test_state_11_fails_when_the_column_says_something_else_or_is_not_there() -> None:
    told = story(ONE).begin().ends("worker-0", 1).says("Failed")
    told.prints(State="Created").complete().fails("STATE-11", "the column says Created")
    told = story(ONE).begin().ends("worker-0", 1).says("Failed")
    told.prints(Name=ONE, Age="1s").complete().fails("STATE-11", "there is no column State, but age, name")
    told = story(ONE).begin().ends("worker-0", 1).says("Failed")
    told.prints(State="").complete().fails("STATE-11", "the column says nothing")


def test_state_11_is_unknown_where_the_table_was_not_read_or_is_of_another_version() -> None:
    story(ONE).begin().complete().is_unknown("STATE-11", "was not read")
    told = story(ONE).begin().act("table", detail={"problem": "refused"}).complete()
    told.is_unknown("STATE-11", "was not read: refused")
    detail = {"resource_version": "7", "cells": {"State": "Running"}}
    story(ONE).begin().act("table", detail=detail).complete().is_unknown("STATE-11", "was not seen")
