"""What the harness does next: steps, giving up, the settle window and its witness."""

import pytest
from driver_support import QUIET, TIMES, Play, play
from history_builder import Story

from exitcode_conformance.scenario import (
    ExitOutcome,
    ReplicaGroup,
    Scenario,
    Step,
    UntilAttempt,
    UntilSucceeded,
)
from exitcode_conformance.timeouts import Timeouts
from exitcode_fixtures.scenario_driver import SKEW, Need

ONE = "tfjob-worker-exit1-worker3"
KILLED = "tfjob-worker-exit137-worker3"
SEQUENCE = "tfjob-worker-then-143-138-137-0-worker3"
ALWAYS = "tfjob-worker1-always1-worker3"
DELETED = "tfjob-deleted-ps1-worker3"
WHEN_FAILED = "tfjob-deleted-when-failed-ps1-worker3"
DONE = "tfjob-worker1-exit0-chief1-worker2"


# --- outcomes ----------------------------------------------------------------------------------------------------


def test_the_next_outcome_is_due_once_an_attempt_runs_and_not_before() -> None:
    seen = play(SEQUENCE)
    due = []
    told = seen.told.submit().says("Created").create(*seen.told.replicas)
    due.append(seen.driver.outcomes_due(told.history()))
    told.runs("worker-0")
    due += [seen.driver.outcomes_due(told.history()), seen.driver.outcomes_due(told.history())]
    told.ends("worker-0", 143).gone("worker-0")
    due.append(seen.driver.outcomes_due(told.history()))
    told.create("worker-0")
    due.append(seen.driver.outcomes_due(told.history()))
    assert due == [False, True, False, False, False]
    assert seen.driver.next_attempt == {"worker-0": 2}
    for number in (3, 4, 4, 4):
        seen.driver.outcomes_due(told.runs("worker-0").history())
        assert seen.driver.next_attempt == {"worker-0": number}
        told.ends("worker-0", 1).gone("worker-0").create("worker-0")


def test_an_attempt_that_was_too_short_to_be_seen_running_moves_the_outcome_on_too() -> None:
    seen = play(SEQUENCE)
    seen.told.submit().create(*seen.told.replicas).ends("worker-0", 143)
    assert seen.driver.outcomes_due(seen.told.history())
    assert seen.driver.next_attempt == {"worker-0": 2}


def test_a_pod_that_went_before_it_ran_does_not_hold_its_successor_to_the_first_outcome() -> None:
    seen = play(SEQUENCE)
    seen.told.submit().create(*seen.told.replicas).gone("worker-0").create("worker-0")
    assert seen.driver.outcomes_due(seen.told.history())
    assert seen.driver.next_attempt == {"worker-0": 2}


def test_a_restart_in_place_moves_the_outcome_on() -> None:
    seen = play(ALWAYS)
    seen.told.begin()
    assert seen.driver.outcomes_due(seen.told.history())
    seen.told.ends("worker-1", 1).restarts_in_place("worker-1")
    assert not seen.driver.outcomes_due(seen.told.history()), "its script has no third outcome"


@pytest.mark.parametrize("scenario", [ONE, "tftest", DELETED])
def test_nothing_is_due_where_there_is_one_outcome_or_a_foreign_manifest(scenario: str) -> None:
    seen = play(scenario)
    assert not seen.driver.outcomes_due(seen.told.begin().history())
    assert seen.driver.next_attempt == {}


# --- steps -------------------------------------------------------------------------------------------------------


def test_a_terminal_job_ends_every_wait() -> None:
    for scenario in (ONE, KILLED, SEQUENCE, DONE):
        seen = play(scenario)
        seen.told.begin()
        assert seen.next() is Need.NOTHING
        assert not seen.settles
        seen.told.says("Failed")
        assert seen.next() is Need.NOTHING
        assert seen.settles
        assert seen.told_of() == [("step-reached", kind.kind) for kind in seen.told.scenario.steps]


def test_an_attempt_is_reached_when_it_runs_and_the_job_says_so() -> None:
    seen = play(KILLED)
    told = seen.told.begin()
    reached = []

    def look() -> None:
        seen.next()
        reached.append(seen.settles)

    look()
    told.ends("worker-0", 137)
    look()
    told.gone("worker-0").create("worker-0").runs("worker-0")
    look()
    told.says("Restarting")
    look()
    told.says("Running")
    look()
    assert reached == [False, False, False, False, True]


def test_running_that_was_said_early_counts() -> None:
    seen = play(KILLED)
    seen.told.begin().ends("worker-0", 137).says("Restarting").gone("worker-0").says("Running").create("worker-0")
    seen.next()
    assert not seen.settles
    seen.told.runs("worker-0")
    seen.next()
    assert seen.settles


def test_a_restart_in_place_is_no_reason_to_say_running_again() -> None:
    seen = play(ALWAYS)
    seen.told.begin().ends("worker-1", 1)
    seen.next()
    assert not seen.settles
    seen.told.restarts_in_place("worker-1")
    seen.next()
    assert seen.settles


def waiting_for(*steps: Step) -> Play:
    """A job with two workers and these steps."""
    groups = (ReplicaGroup(type="Worker", replicas=2),)
    return Play(Story(Scenario(id="one", kind="TFJob", groups=groups, steps=steps)))


def test_an_attempt_that_ended_is_reached_too() -> None:
    seen = waiting_for(UntilAttempt(replica="worker-0", attempt=1))
    seen.told.submit().create("worker-0")
    seen.next()
    assert not seen.settles
    seen.told.ends("worker-0", 3)
    seen.next()
    assert seen.settles


def test_success_is_reached_with_the_pod_or_with_the_count() -> None:
    for counted in (False, True):
        seen = waiting_for(UntilSucceeded(replica="worker-0", counted=counted))
        seen.told.begin().ends("worker-1", 0)
        seen.next()
        assert not seen.settles
        seen.told.ends("worker-0", 0)
        seen.next()
        assert seen.settles is not counted
        seen.told.says()
        seen.next()
        assert seen.settles


def test_pods_may_be_seen_before_their_job() -> None:
    seen = waiting_for(UntilSucceeded(replica="worker-0", counted=True))
    with seen.told.held_back("tfjobs"):
        seen.told.begin().ends("worker-0", 0)
        assert seen.next() is Need.NOTHING
        assert not seen.settles


def test_a_job_is_deleted_once_and_watched_until_all_is_gone() -> None:
    seen = play(DELETED)
    seen.told.begin()
    assert seen.next() is Need.DELETE_JOB
    assert seen.next() is Need.NOTHING
    seen.told.delete_job()
    assert seen.next() is Need.NOTHING
    assert not seen.settles
    seen.told.collect()
    seen.next()
    assert seen.settles
    assert seen.told_of() == [("step-reached", "attempt")] * 4 + [("step-reached", "gone")]


@pytest.mark.parametrize("last", ["ps-0", "worker-0", "worker-2"])
def test_a_job_is_deleted_when_all_replicas_run_whatever_it_says_before(last: str) -> None:
    seen = play(DELETED)
    others = [replica for replica in seen.told.replicas if replica != last]
    seen.told.submit().says("Created").create(*seen.told.replicas).runs(*others).says("Running")
    assert seen.next() is Need.NOTHING
    seen.told.runs(last)
    assert seen.next() is Need.DELETE_JOB
    seen.told.delete_job().collect().complete().passes("STATE-02", "the job said Running when all replicas ran")


def test_a_terminal_job_is_not_yet_gone() -> None:
    seen = play(WHEN_FAILED)
    seen.told.begin().ends("worker-0", 1).says("Failed")
    assert seen.next() is Need.DELETE_JOB
    assert seen.next() is Need.NOTHING
    assert not seen.settles


# --- giving up ---------------------------------------------------------------------------------------------------


def test_it_gives_up_when_nothing_happens_any_more() -> None:
    seen = play("tfjob-worker-exit1-worker1")
    seen.told.begin()
    last = seen.told.now
    seen.told.wait(QUIET - 0.1)
    assert seen.next(last_event=last) is Need.NOTHING
    assert seen.driver.wake_at == pytest.approx(last + QUIET)
    seen.told.wait(0.2)
    seen.next(last_event=last)
    assert seen.settles
    ((action, why),) = seen.told_of()
    assert action == "step-timed-out"
    assert why.startswith("nothing happened for")


def test_quiet_is_longer_than_every_bound_that_a_check_waits_for() -> None:
    seen = play("tfjob-worker-exit137-sibling0-worker3")
    seen.told.begin()
    last = seen.told.now
    seen.told.wait(QUIET + 1)
    assert seen.next(last_event=last) is Need.NOTHING, "a container may run for six units"
    assert not seen.settles


def test_a_start_is_waited_for_as_long_as_one_is_missing() -> None:
    times = Timeouts.default("real")
    for missing in (True, False):
        seen = play(ONE, times)
        told = seen.told.submit().says("Created").create(*seen.told.replicas).runs("worker-0", "worker-1")
        if not missing:
            told.runs("worker-2")
        last = told.now
        told.wait(times.running)
        seen.next(last_event=last)
        assert seen.settles is not missing


@pytest.mark.parametrize("name", [ONE, KILLED, WHEN_FAILED])
def test_what_is_removed_is_waited_for_where_something_is(name: str) -> None:
    times = Timeouts.default("real")
    assert times.cleanup > 2 * times.running
    seen = play(name, times)
    seen.told.begin()
    if name != ONE:
        seen.told.ends("worker-0", 137 if name == KILLED else 1)
    if name == KILLED:
        seen.told.asks_deletion("worker-0")
    if name == WHEN_FAILED:
        seen.told.says("Failed")
        assert seen.next() is Need.DELETE_JOB
        seen.told.delete_job()
    last = seen.told.now
    seen.told.wait(2 * times.running)
    seen.next(last_event=last)
    assert seen.settles == (name == ONE)


def test_it_gives_up_when_the_bound_on_a_scenario_runs_out() -> None:
    seen = play(ONE)
    seen.told.begin()
    seen.told.now = seen.driver.started + TIMES.scenario
    seen.next()
    assert seen.settles
    assert "the bound on a scenario" in seen.told_of()[0][1]


def test_it_gives_up_on_a_replica_that_is_restarted_again_and_again() -> None:
    seen = play(ONE)
    seen.told.begin()
    for _ in range(3):
        seen.told.ends("worker-0", 1).gone("worker-0").create("worker-0").runs("worker-0")
    seen.next()
    assert not seen.settles
    seen.told.ends("worker-0", 1).gone("worker-0").create("worker-0")
    seen.next()
    assert seen.settles
    assert seen.told_of() == [("step-timed-out", "worker-0 is restarted again and again")]


def test_whoever_gives_up_does_not_go_on_with_the_next_step() -> None:
    seen = play(DELETED)
    seen.told.submit().wait(QUIET + 1)
    assert seen.next(last_event=1.0) is Need.NOTHING
    assert seen.settles
    assert [action for action, _ in seen.told_of()] == ["step-timed-out"]


# --- the settle window -------------------------------------------------------------------------------------------


def settled() -> Play:
    """A job that has failed; the window has begun."""
    seen = play(ONE)
    seen.told.begin().ends("worker-0", 1).says("Failed")
    assert seen.next() is Need.NOTHING
    return seen


def test_a_window_with_a_witness_in_its_second_half_is_complete() -> None:
    seen = settled()
    begin = seen.told.now + TIMES.never / SKEW
    seen.told.wait(TIMES.never / 2 - 0.2).witness()
    assert seen.next() is Need.NOTHING
    seen.told.now = begin + TIMES.never * 7 / 8 + 0.1
    assert seen.next() is Need.WITNESS, "one from the first half proves nothing for the second"
    assert seen.driver.awaits_witness
    seen.told.witness()
    assert seen.next() is Need.NOTHING
    assert not seen.driver.awaits_witness
    assert seen.driver.wake_at == pytest.approx(begin + TIMES.never)
    seen.told.now = begin + TIMES.never + 0.01
    assert seen.next() is Need.COMPLETE


def test_a_witness_by_chance_in_the_second_half_saves_a_job_of_its_own() -> None:
    seen = settled()
    begin = seen.told.now + TIMES.never / SKEW
    seen.told.now = begin + TIMES.never / 2 + 0.1
    assert seen.next() is Need.NOTHING, "another scenario may still serve"
    seen.told.witness()
    seen.told.now = begin + TIMES.never * 7 / 8 + 0.1
    assert seen.next() is Need.NOTHING
    assert not seen.driver.awaits_witness


def test_without_a_witness_it_asks_for_one_and_at_last_gives_up() -> None:
    seen = settled()
    begin = seen.told.now + TIMES.never / SKEW
    seen.told.now = begin + TIMES.never - 0.1
    assert seen.next() is Need.WITNESS
    assert seen.driver.wake_at == pytest.approx(begin + TIMES.never)
    seen.told.now = begin + TIMES.never + 0.1
    assert seen.next() is Need.WITNESS
    assert seen.driver.wake_at == pytest.approx(begin + TIMES.never + TIMES.witness)
    seen.told.now = begin + TIMES.never + TIMES.witness
    assert seen.next() is Need.COMPLETE


def test_what_the_operator_does_to_the_job_itself_is_no_witness() -> None:
    seen = settled()
    seen.told.wait(TIMES.never).says().write(other=1)
    assert seen.next() is Need.WITNESS


@pytest.mark.parametrize("news", ["the job's end", "an end of a container"])
def test_news_begin_the_window_anew(news: str) -> None:
    seen = play(KILLED)
    seen.told.begin().restart("worker-0", 137)
    assert seen.next() is Need.NOTHING
    assert seen.settles
    seen.told.wait(TIMES.never - 0.5)
    if news == "the job's end":
        seen.told.says("Failed")
    else:
        seen.told.ends("worker-0", 137)
    at = seen.told.now
    assert seen.next() is Need.NOTHING
    assert seen.driver.wake_at == pytest.approx(at + TIMES.never / SKEW + TIMES.never * 7 / 8)


def test_the_window_of_the_driver_is_that_of_the_checks() -> None:
    """What is complete for the driver is judged, and not unknown, however the watches delay each other."""
    for pods_are_late in (False, True):
        seen = play(ONE)
        seen.told.begin()
        if pods_are_late:
            with seen.told.held_back("pods"):
                seen.told.ends("worker-0", 1).says("Failed").wait(0.4)
        else:
            seen.told.ends("worker-0", 1).says("Failed")
        while seen.next() is not Need.COMPLETE:
            seen.told.now = seen.driver.wake_at
            if seen.driver.awaits_witness:
                seen.told.witness()
        seen.told.act("complete").passes("EXIT-02")


def test_an_outcome_without_a_dwell_needs_no_time() -> None:
    groups = (ReplicaGroup(type="Worker", replicas=1),)
    outcomes = {"worker-0": (ExitOutcome(code=0, dwell=0),)}
    seen = Play(Story(Scenario(id="one", kind="TFJob", groups=groups, outcomes=outcomes)))
    seen.told.submit()
    last = seen.told.now
    seen.told.wait(QUIET - TIMES.dwell + 0.01)
    seen.next(last_event=last)
    assert seen.settles
