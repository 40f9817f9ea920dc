"""What the harness does next: steps, giving up, the settle window and its witness."""

from typing import Any

import pytest
from history_builder import Story, story

from exitcode_conformance.scenario import (
    ExitOutcome,
    RemovePod,
    ReplicaGroup,
    Scenario,
    Step,
    UntilAttempt,
    UntilSucceeded,
)
from exitcode_conformance.timeouts import Timeouts
from exitcode_fixtures.scenario_driver import Need, ScenarioDriver
from exitcode_fixtures.scenario_requests import TOUCHED

ONE = "tfjob-worker-exit1-worker3"
KILLED = "tfjob-worker-exit137-worker3"
SEQUENCE = "tfjob-worker-then-143-138-137-0-worker3"
ALWAYS = "tfjob-worker1-always1-worker3"
DELETED = "tfjob-deleted-ps1-worker3"
WHEN_FAILED = "tfjob-deleted-when-failed-ps1-worker3"
DONE = "tfjob-worker1-exit0-chief1-worker2"
TIMES = Timeouts()
QUIET = max(TIMES.model_dump(exclude={"scenario", "dwell"}).values()) + TIMES.dwell


class Play:
    """A story and the driver that looks at it."""

    def __init__(self, told: Story) -> None:
        self.told = told
        self.driver = ScenarioDriver(scenario=told.scenario, timeouts=told.timeouts, started=told.now)
        self.tables = 0

    def next(self, *, last_event: float | None = None) -> Need:
        """What the driver asks for now. Unless it is said otherwise, something has just happened."""
        now = self.told.now
        need = self.driver.advance(self.told.history(), now, now if last_event is None else last_event)
        if need is Need.READ_TABLE:  # it is asked for once, and nothing waits for the answer
            assert self.settles
            assert not self.tables
            self.tables += 1
            return self.next(last_event=last_event)
        if need in (Need.NOTHING, Need.WITNESS):
            assert self.driver.wake_at > now, "it would be asked again at once"
        return need

    def told_of(self) -> list[tuple[str, Any]]:
        """What was to be recorded: the action, and why or which step."""
        found = [(action, detail.get("why") or detail["kind"]) for action, detail in self.driver.told]
        self.driver.told.clear()
        return found

    @property
    def settles(self) -> bool:
        """Whether no step is left."""
        return self.driver.settling_since is not None


def play(scenario: str) -> Play:
    """A scenario of the suite from its submission on."""
    return Play(story(scenario))


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
    assert seen.told_of() == [("step-reached", "attempt"), ("step-reached", "gone")]


def test_a_terminal_job_is_not_yet_gone() -> None:
    seen = play(WHEN_FAILED)
    seen.told.begin().ends("worker-0", 1).says("Failed")
    assert seen.next() is Need.DELETE_JOB
    assert seen.next() is Need.NOTHING
    assert not seen.settles


def test_a_pod_is_removed_once_it_is_there_and_only_once() -> None:
    seen = play("tfjob-worker1-deleted-worker2")
    told = seen.told.submit().says("Created").create("worker-0", "worker-1").runs("worker-0")
    assert seen.next() is Need.NOTHING
    told.runs("worker-1").says("Running")
    assert seen.next() is Need.REMOVE_POD
    assert seen.driver.victim is not None
    assert seen.driver.victim.uid == told.pod("worker-1").object["metadata"]["uid"]
    assert seen.driver.passed == RemovePod(replica="worker-1", how="delete")
    assert seen.next() is Need.NOTHING, "the next step waits for the second attempt"
    told.asks_deletion("worker-1").ends("worker-1", 143).gone("worker-1").create("worker-1")
    assert seen.next() is Need.NOTHING
    told.runs("worker-1").says("Running")
    seen.next()
    assert seen.settles


def test_a_pod_that_is_gone_already_is_waited_for() -> None:
    seen = play("tfjob-worker1-deleted-worker2")
    told = seen.told.begin().asks_deletion("worker-1")
    assert seen.next() is Need.NOTHING
    told.gone("worker-1").create("worker-1")
    assert seen.next() is Need.REMOVE_POD


def test_a_job_that_is_made_again_is_looked_at_once_the_second_one_is_submitted() -> None:
    seen = play("tfjob-made-again-ps1-worker1")
    told = seen.told.begin()
    assert seen.next() is Need.RECREATE_JOB
    assert seen.next() is Need.NOTHING, "what was reached before was reached by the first job"
    assert not seen.settles
    told.act("delete-job").job_removed()
    assert seen.next() is Need.NOTHING
    first = list(told.pods)
    told.forget().submit().collect()
    assert seen.next() is Need.NOTHING
    assert not seen.told.history().incarnations
    assert len(seen.told.history().former) > len(first)
    told.says("Created").services(*told.replicas).create(*told.replicas).runs(*told.replicas).says("Running")
    seen.next()
    assert seen.settles
    told.complete().passes("IDENT-01", "was created, 0.1 s after the former pod")
    told.passes("IDENT-03")
    told.passes("INV-04")


def test_a_second_job_whose_name_is_never_free_is_given_up() -> None:
    seen = play("tfjob-made-again-ps1-worker1")
    seen.told.begin()
    assert seen.next() is Need.RECREATE_JOB
    last = seen.told.now
    seen.told.wait(QUIET + 1)
    assert seen.next(last_event=last) is Need.NOTHING
    assert seen.settles
    assert [action for action, _ in seen.told_of()] == ["step-reached", "step-timed-out"]


def test_a_job_is_touched_again_once_the_last_touch_was_seen() -> None:
    seen = play("tfjob-touched-when-failed-worker1")
    told = seen.told.begin().ends("worker-0", 1)
    assert seen.next() is Need.NOTHING
    told.says("Failed")
    for number in range(1, 21):
        assert seen.next() is Need.TOUCH_JOB
        assert seen.driver.touched == number
        assert seen.next() is Need.NOTHING
        assert not seen.settles
        told.annotated(TOUCHED, str(number))
    seen.next()
    assert seen.settles


def test_a_job_is_cleaned_up_when_all_that_has_to_go_is_going() -> None:
    seen = play("tfjob-clean-running-exit1-ps1-chief1-worker1")
    told = seen.told.submit().says("Created").services(*seen.told.replicas).create(*seen.told.replicas)
    told.runs("chief-0", "worker-0").ends("chief-0", 1).says("Failed")
    for replica in ("ps-0", "worker-0"):
        seen.next()
        assert not seen.settles
        told.asks_deletion(replica)
        seen.next()
        assert not seen.settles, "its service is to go too"
        told.drops_service(replica)
    seen.next()
    assert seen.settles


def test_without_a_policy_it_is_the_declared_default_that_has_to_be_carried_out() -> None:
    for policy, settles in (("None", True), ("Running", False), (None, True)):
        seen = Play(story("tfjob-clean-default-exit0-worker2", default_policy=policy))
        seen.told.begin().ends("worker-0", 0).says("Succeeded")
        seen.next()
        assert seen.settles is settles


def test_a_longer_window_is_watched_where_a_scenario_asks_for_it() -> None:
    seen = play("tfjob-template-exit137-worker1")
    seen.told.begin().restart("worker-0", 137)
    begin = seen.told.now
    assert seen.next() is Need.NOTHING
    assert seen.driver.wake_at == pytest.approx(begin + TIMES.state - TIMES.never / 2)


# --- giving up ---------------------------------------------------------------------------------------------------


def test_it_gives_up_when_nothing_happens_any_more() -> None:
    seen = play(ONE)
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
    begin = seen.told.now
    seen.told.wait(TIMES.never / 2 - 0.2).witness()
    assert seen.next() is Need.NOTHING
    seen.told.now = begin + TIMES.never / 2 + 0.1
    assert seen.next() is Need.WITNESS, "one from the first half proves nothing for the second"
    assert seen.driver.awaits_witness
    seen.told.witness()
    assert seen.next() is Need.NOTHING
    assert not seen.driver.awaits_witness
    assert seen.driver.wake_at == pytest.approx(begin + TIMES.never)
    seen.told.now = begin + TIMES.never + 0.01
    assert seen.next() is Need.COMPLETE


def test_without_a_witness_it_asks_for_one_and_at_last_gives_up() -> None:
    seen = settled()
    begin = seen.told.now
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
    seen.told.wait(TIMES.never - 0.1).says().write(other=1)
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
    assert seen.driver.wake_at == pytest.approx(at + TIMES.never / 2)


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
