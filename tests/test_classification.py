"""Which class an operator shows, and where it is not certain."""

import pytest
from history_builder import Story, story

from exitcode_conformance.classification import aftermath, observed_class
from exitcode_conformance.contract import ObservedClass
from exitcode_conformance.judging import Undecided

KILLED = "tfjob-worker-exit137-worker3"
ZERO = "tfjob-worker-exit0-worker3"


def shown(told: Story, number: int = 1) -> ObservedClass | None:
    """The class that worker 0 showed."""
    history = told.history()
    return observed_class(history, aftermath(history, "worker-0", number))


def ended(code: int = 137, scenario: str = KILLED) -> Story:
    """Worker 0 has ended."""
    return story(scenario).begin().wait(0.5).ends("worker-0", code)


def test_every_class_can_be_shown() -> None:
    restarted = ended().says("Restarting").replace("worker-0").says("Running")
    assert shown(restarted.complete()) is ObservedClass.RETRYABLE
    restarted = ended().says("Restarting").replace("worker-0").says("Failed")
    assert shown(restarted.complete()) is ObservedClass.RESTARTED_AND_FAILED
    assert shown(ended().restarts_in_place("worker-0").complete()) is ObservedClass.RESTARTED_IN_PLACE
    assert shown(ended().says("Failed").complete()) is ObservedClass.PERMANENT
    assert shown(ended().says().wait(11).complete()) is ObservedClass.IGNORED
    assert shown(ended(0, ZERO).says("Succeeded").complete()) is ObservedClass.SUCCESS
    assert shown(ended(0, ZERO).replace("worker-0").complete()) is ObservedClass.RETRYABLE
    assert shown(ended(0, ZERO).restarts_in_place("worker-0").complete()) is ObservedClass.RESTARTED_IN_PLACE


def test_no_class_is_shown_where_the_evidence_is_too_weak() -> None:
    assert shown(ended().says("Failed").complete(witnessed=False)) is None
    assert shown(ended().says("Failed").complete(window=1)) is None
    assert shown(ended().complete()) is None, "it may still be restarted"
    assert shown(ended(0, ZERO).complete(witnessed=False)) is None
    assert shown(ended(0, ZERO).says("Failed").complete()) is None


def test_a_failure_that_something_else_explains_shows_no_class() -> None:
    assert shown(ended().ends("worker-1", 1).says("Failed").complete()) is None
    restarted = ended().says("Restarting").replace("worker-0").ends("worker-2", 1).says("Failed")
    assert shown(restarted.complete()) is ObservedClass.RETRYABLE


def test_a_failure_that_a_deletion_caused_explains_nothing() -> None:
    told = ended().says("Restarting").replace("worker-0").asks_deletion("worker-1").ends("worker-1", 143)
    assert shown(told.says("Failed").complete()) is ObservedClass.RESTARTED_AND_FAILED


def test_the_class_belongs_to_one_attempt() -> None:
    told = story("tfjob-worker-then-137-1-worker1").begin().restart("worker-0", 137).wait(0.5).ends("worker-0", 1)
    told.says("Failed").complete()
    assert shown(told, 1) is ObservedClass.RETRYABLE
    assert shown(told, 2) is ObservedClass.PERMANENT


def test_the_order_of_arrival_changes_no_class() -> None:
    told = story(KILLED).begin()
    with told.held_back("pods"):
        told.ends("worker-0", 137).says("Restarting").replace("worker-0").says("Running")
    assert shown(told.complete()) is ObservedClass.RETRYABLE
    told = story(KILLED).begin()
    with told.held_back("pods"):
        told.ends("worker-0", 137).says("Failed")
    assert shown(told.complete()) is ObservedClass.PERMANENT


@pytest.mark.parametrize("code", [1, 0, 255])
def test_there_is_no_aftermath_of_an_end_that_was_not_scripted(code: int) -> None:
    with pytest.raises(Undecided, match="not what its script was told"):
        shown(ended(code).complete())


def test_there_is_no_aftermath_of_what_came_after_the_end_of_the_job() -> None:
    with pytest.raises(Undecided, match="the job was Succeeded before"):
        shown(story(KILLED).begin().says("Succeeded").ends("worker-0", 137).complete())
