"""STATE-07 and STATE-12: times, and the form of conditions."""

from collections.abc import Callable
from typing import Any

import pytest
from history_builder import Story, story

ONE = "tfjob-worker-exit1-worker1"
KILLED = "tfjob-worker-exit137-worker1"
SIBLING = "tfjob-worker-exit1-sibling0-worker3"
ALL = "tfjob-allworkers-all0-worker3"
LIMITED = "tfjob-worker-onfailure1-limit1-worker1"
LATER = "2026-01-01T00:01:00Z"
EARLIER = "2025-12-31T23:59:59Z"


def ended() -> Story:
    """Worker 0 has ended with 1."""
    return story(ONE).begin().wait(0.5).ends("worker-0", 1)


# --- STATE-07 ----------------------------------------------------------------------------------------------------


def test_state_07_passes_when_the_times_come_with_the_conditions() -> None:
    ended().says("Failed").says().complete().passes("STATE-07", "completionTime was written, 0.0 s after")
    story(KILLED).begin().restart("worker-0", 137).complete().passes("STATE-07", "not terminal")


def test_state_07_passes_when_the_completion_time_comes_in_the_next_write() -> None:
    told = ended().turns("Failed").write()
    told.write(completionTime=told.timestamp()).complete().passes("STATE-07")


def test_state_07_passes_when_the_completion_time_comes_in_the_write_before() -> None:
    told = ended().write(completionTime="2026-01-01T00:00:01Z")
    told.says("Failed").complete().passes("STATE-07")
    told = story(ALL).begin().ends("worker-0", 0).ends("worker-1", 0).ends("worker-2", 0)
    told.write(completionTime="2026-01-01T00:00:01Z").says("Succeeded").complete().passes("STATE-07")
    told = story(LIMITED).begin().ends("worker-0", 1).restarts_in_place("worker-0")
    told.write(completionTime="2026-01-01T00:00:01Z").says("Failed").complete().passes("STATE-07")


def test_state_07_passes_when_the_start_time_comes_late_but_comes() -> None:
    told = story(ONE).submit()
    told.put("Created").write().create("worker-0").runs("worker-0").ends("worker-0", 1)
    told.says("Failed").complete().passes("STATE-07", "startTime was written")


@pytest.mark.parametrize("name", ["startTime", "completionTime"])
def test_state_07_fails_when_a_time_changes_goes_or_is_none(name: str) -> None:
    ended().says("Failed").write(**{name: LATER}).complete().fails("STATE-07", f"{name} changed from")
    ended().says("Failed").write(**{name: None}).complete().fails("STATE-07", f"{name} changed from", "to None")
    told = story(ONE).submit().create("worker-0").ends("worker-0", 1)
    told.status[name] = "2026-01-01"
    told.says("Created", "Failed").complete().fails("STATE-07", f"{name} is '2026-01-01', which is no time")


def test_state_07_fails_when_the_times_stand_the_wrong_way_round() -> None:
    told = story(ONE).submit()
    told.status["startTime"] = LATER
    told.says("Created").create("worker-0").runs("worker-0").says("Running").ends("worker-0", 1).says("Failed")
    told.complete().fails("STATE-07", "is after completionTime")


def test_state_07_fails_without_a_completion_time() -> None:
    ended().turns("Failed").write().complete().fails("STATE-07", "no completionTime was written")


def test_state_07_fails_without_a_start_time() -> None:
    told = story(ONE).submit()
    told.put("Created").write().create("worker-0").runs("worker-0").ends("worker-0", 1)
    told.turns("Failed").write(completionTime=told.timestamp()).complete().fails("STATE-07", "no startTime was written")


def test_state_07_fails_on_a_completion_time_before_the_end() -> None:
    told = story(ONE).begin().write(completionTime="2026-01-01T00:00:01Z").ends("worker-0", 1).says("Failed")
    told.complete().fails("STATE-07", "before the job says Failed")
    told = story(SIBLING).begin().ends("worker-1", 0).write(completionTime="2026-01-01T00:00:01Z")
    told.wait(2.5).ends("worker-0", 1).says("Failed").complete().fails("STATE-07", "2.5 s before the job says Failed")
    told = story(ALL).begin().ends("worker-0", 0).write(completionTime="2026-01-01T00:00:01Z")
    told.ends("worker-1", 0).ends("worker-2", 0).says("Succeeded").complete().fails("STATE-07", "before the job says")
    told = ended().write(completionTime="2026-01-01T00:00:01Z").write(other=1).says("Failed")
    told.complete().fails("STATE-07", "before the job says Failed")
    told = story(KILLED).begin().write(completionTime="2026-01-01T00:00:01Z").restart("worker-0", 137).complete()
    told.fails("STATE-07", "the job did not become terminal")


def test_state_07_fails_on_a_completion_time_of_a_job_that_should_have_ended_and_did_not() -> None:
    told = ended()
    told.write(completionTime=told.timestamp()).complete().fails("STATE-07", "the job did not become terminal")


def test_state_07_passes_where_a_job_that_goes_on_has_no_times_yet() -> None:
    told = story(KILLED).submit().put("Created").write().create("worker-0").runs("worker-0").put("Running").write()
    told.complete().passes("STATE-07", "no completionTime; the job was not terminal")


def test_state_07_is_unknown_where_nothing_is_known() -> None:
    story(ONE).begin().wait(21).complete().is_unknown("STATE-07", "never became Succeeded or Failed")
    story(ONE).submit().says("Created").complete().is_unknown("STATE-07", "never created a pod")
    told = ended().turns("Failed").write().complete(window=1)
    told.is_unknown("STATE-07", "no completionTime was written, but only")
    told = ended().turns("Failed").write().wait(5)
    told.write(completionTime=told.timestamp()).complete().fails("STATE-07", "the bound `never` is 4 s")


# --- STATE-12 ----------------------------------------------------------------------------------------------------


def test_state_12_passes_on_what_a_right_operator_writes() -> None:
    story(KILLED).begin().restart("worker-0", 137).wait(5).restart("worker-0", 137).complete().passes("STATE-12")
    ended().wait(5).says("Failed").complete().passes("STATE-12")
    ended().says("Failed").job_removed().complete().passes("STATE-12")


@pytest.mark.parametrize("time", ["2026-01-01T00:00:01Z", "2026-01-01T00:00:01.123456Z", "2026-01-01T02:00:01+02:00"])
def test_state_12_passes_on_every_way_to_write_a_time(time: str) -> None:
    story(ONE).submit().put("Created", at=time).write().complete().passes("STATE-12")


def condition(**fields: Any) -> Callable[[Story], object]:
    """Writes one condition with these fields changed, or taken away where they are None."""

    def write(told: Story) -> None:
        told.conditions()[-1].update(fields)
        told.status["conditions"][-1] = {k: v for k, v in told.conditions()[-1].items() if v is not None}
        told.write()

    return write


@pytest.mark.parametrize(
    ("spoil", "seen"),
    [
        (condition(status="true"), "Running has status 'true'"),
        (condition(status=True), "Running has status True"),
        (condition(status=None), "Running has status None"),
        (condition(type=None), "a condition has type None"),
        (condition(type=""), "a condition has type ''"),
        (condition(type=7), "a condition has type 7"),
        (condition(type="Created"), "two conditions of type Created"),
        (condition(lastTransitionTime=None), "Running has lastTransitionTime None"),
        (condition(lastTransitionTime="2026-01-01"), "Running has lastTransitionTime '2026-01-01'"),
        (condition(lastTransitionTime="2026-13-01T00:00:00Z"), "Running has lastTransitionTime"),
        (condition(lastTransitionTime="2026-01-01T00:00:00"), "Running has lastTransitionTime"),
        (condition(lastTransitionTime=1), "Running has lastTransitionTime 1"),
        (condition(lastTransitionTime=LATER), "lastTransitionTime of Running moved, its status did not"),
        (condition(lastTransitionTime=EARLIER), "lastTransitionTime of Running moved, its status did not"),
        (condition(status="False", lastTransitionTime=EARLIER), "lastTransitionTime of Running went back"),
        (lambda told: told.write(conditions={"Running": "True"}), "not a list of objects"),
        (lambda told: told.write(conditions=["Running"]), "not a list of objects"),
        (lambda told: told.put("Own", "maybe").write(), "Own has status 'maybe'"),
    ],
)
def test_state_12_fails_on_what_is_not_well_formed(spoil: Callable[[Story], object], seen: str) -> None:
    told = story(ONE).begin()
    spoil(told)
    told.complete().fails("STATE-12", seen)


def test_state_12_fails_when_a_time_stays_although_the_end_says_that_it_is_later() -> None:
    told = story(ONE).begin().wait(3).ends("worker-0", 1)
    told.conditions()[-1]["status"] = "False"
    told.put("Failed").write().complete().fails("STATE-12", "lastTransitionTime of Running did not move")


def test_state_12_fails_when_a_time_stays_although_another_state_says_that_it_is_later() -> None:
    told = story(KILLED).begin().wait(3).ends("worker-0", 137)
    told.conditions()[-1]["status"] = "False"
    told.put("Restarting").write().complete().fails("STATE-12", "lastTransitionTime of Running did not move")
    told = story(KILLED).begin().wait(3).ends("worker-0", 137)
    told.conditions()[-1]["status"] = "False"
    told.put("Own").write().complete().passes("STATE-12")


def test_state_12_knows_that_times_are_cut_to_seconds() -> None:
    told = story(ONE).begin().ends("worker-0", 1).wait(0.9)
    told.conditions()[-1]["status"] = "False"
    told.put("Failed").write().complete().passes("STATE-12")


def test_state_12_does_not_compare_a_condition_that_was_gone_in_between() -> None:
    told = story(ONE).begin().drop("Running").write().put("Running", at=EARLIER).write().complete()
    told.passes("STATE-12")


def test_state_12_is_unknown_without_a_condition() -> None:
    story(ONE).submit().create("worker-0").complete().is_unknown("STATE-12", "never wrote a condition")
