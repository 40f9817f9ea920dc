"""STATE-01, 03, 04, 05 and 09: what the job says of itself."""

from collections.abc import Sequence

import pytest
from history_builder import Story, story

KILLED = "tfjob-worker-exit137-worker3"
ONE = "tfjob-worker-exit1-worker1"
ZERO = "tfjob-worker-exit0-worker1"
SEED = "tftest"
ALL_WORKERS = "tfjob-allworkers-all0-worker3"
TWO_OF_ALL = "tfjob-allworkers-two0-worker3"
OTHERS = "tfjob-others0-worker3"


def says(*names: str, scenario: str = ONE) -> Story:
    """A job that says these conditions one after the other, each instead of the one before, whatever is allowed."""
    told = story(scenario).submit().create(*story(scenario).replicas)
    for name in names:
        for condition in told.conditions():
            if condition["type"] != "Created":
                condition["status"] = "False"
        told.put(name).write()
    return told.wait(11).complete()


# --- STATE-01 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        ("Created",),
        ("Created", "Running", "Succeeded"),
        ("Created", "Failed"),
        ("Created", "Running", "Restarting", "Running", "Restarting", "Running", "Failed"),
        ("Created", "Restarting", "Running"),
        ("Created", "Suspended", "Running", "Suspended", "Running", "Succeeded"),
        ("Created", "Running", "Healthy", "Restarting", "PodGroupReady", "Running"),
    ],
)
def test_state_01_passes_along_the_machine(names: Sequence[str]) -> None:
    says(*names).passes("STATE-01")


@pytest.mark.parametrize(
    ("names", "seen"),
    [
        (("Running", "Created"), "first state is Running"),
        (("Running",), "first state is Running"),
        (("Failed",), "first state is Failed"),
        (("Created", "Succeeded", "Running"), "Running after Succeeded"),
        (("Created", "Failed", "Succeeded"), "Succeeded after Failed"),
        (("Created", "Running", "Failed", "Restarting"), "Restarting after Failed"),
        (("Healthy",), "never said Created"),
        ((), "no state at all; the job never said Created"),
    ],
)
def test_state_01_fails_off_the_machine(names: Sequence[str], seen: str) -> None:
    says(*names).fails("STATE-01", seen)


def test_state_01_fails_when_created_is_taken_back_and_said_again() -> None:
    told = story(ONE).begin().drop("Created").write().put("Created").write().complete()
    told.fails("STATE-01", "Created once more")


def test_state_01_allows_several_conditions_in_one_write_in_any_order() -> None:
    told = story(ONE).submit().create("worker-0")
    told.put("Running").put("Created").write().complete().passes("STATE-01")
    told = story(ONE).submit().create("worker-0")
    told.put("Created").put("Running", "False").put("Failed").write().complete().passes("STATE-01")


def test_state_01_allows_a_job_that_says_nothing_active_for_a_while() -> None:
    told = story(ONE).begin().put("Running", "False").write().put("Running").write().complete()
    told.passes("STATE-01", "Created, Running, Running")


def test_state_01_fails_when_created_is_late_and_is_unknown_when_there_was_no_time() -> None:
    story(ONE).submit().wait(11).says("Created").complete().fails("STATE-01", "the bound `created` is 10 s")
    story(ONE).submit().complete().is_unknown("STATE-01", "the job never said Created, but only")


# --- STATE-03 ----------------------------------------------------------------------------------------------------


def test_state_03_passes_on_restarting_and_running_again() -> None:
    story(KILLED).begin().restart("worker-0", 137).complete().passes("STATE-03", "Restarting, Running")


def test_state_03_passes_when_siblings_make_it_say_running_early() -> None:
    told = story(KILLED).begin().ends("worker-0", 137).says("Restarting").asks_deletion("worker-0").gone("worker-0")
    told.says("Running").create("worker-0").runs("worker-0").complete().passes("STATE-03")


def test_state_03_passes_whatever_arrives_first() -> None:
    told = story(KILLED).begin()
    with told.held_back("pods"):
        told.ends("worker-0", 137).says("Restarting").replace("worker-0").says("Running")
    told.complete().passes("STATE-03")


def test_state_03_passes_whatever_the_order_of_the_list() -> None:
    told = story(KILLED).begin().ends("worker-0", 137)
    told.drop("Running").put("Restarting").conditions().reverse()
    told.write().replace("worker-0").drop("Restarting").put("Running").conditions().reverse()
    told.write().complete().passes("STATE-03")


def test_state_03_fails_without_restarting() -> None:
    told = story(KILLED).begin().wait(0.5).ends("worker-0", 137).replace("worker-0").wait(11)
    told.complete().fails("STATE-03", "did not say Restarting")


def test_state_03_fails_without_restarting_whether_or_not_the_new_pod_is_seen_to_run() -> None:
    told = story(KILLED).begin().wait(0.5).ends("worker-0", 137).gone("worker-0").create("worker-0").wait(11)
    told.complete().fails("STATE-03", "did not say Restarting")


def test_state_03_fails_without_running_again() -> None:
    told = story(KILLED).begin().wait(0.5).ends("worker-0", 137).says("Restarting").replace("worker-0").wait(11)
    told.complete().fails("STATE-03", "did not say Running again")


def test_state_03_does_not_ask_for_running_before_the_others_are_up_again() -> None:
    told = story(KILLED).begin().wait(0.5).ends("worker-0", 137).says("Restarting").asks_deletion("worker-1")
    told.replace("worker-0").wait(20).gone("worker-1").create("worker-1").runs("worker-1").says("Running")
    told.complete().passes("STATE-03", "the job says Running, 0.0 s after worker-1 was up too")
    told = story(KILLED).begin().wait(0.5).ends("worker-0", 137).says("Restarting").asks_deletion("worker-1")
    told.replace("worker-0").wait(20).complete().is_unknown("STATE-03", "not all up for as long")
    told = story(KILLED).begin().wait(0.5).ends("worker-0", 137).says("Restarting").asks_deletion("worker-1")
    told.replace("worker-0").wait(20).gone("worker-1").create("worker-1").runs("worker-1").wait(11)
    told.complete().fails("STATE-03", "did not say Running again within the 10 s (`state`) after worker-1 was up too")


def test_state_03_asks_for_running_although_a_sibling_has_succeeded_or_goes_later() -> None:
    told = story("tfjob-worker-exit137-sibling0-worker3").begin().ends("worker-1", 0).wait(0.5).ends("worker-0", 137)
    told.says("Restarting").replace("worker-0").wait(11).complete().fails("STATE-03", "did not say Running again")
    told = story(KILLED).begin().wait(0.5).ends("worker-0", 137).says("Restarting").replace("worker-0").wait(11)
    told.asks_deletion("worker-1").wait(5).complete().fails("STATE-03", "did not say Running again")


def seed(*, silent: int = 0, seconds: float = 1) -> Story:
    """The user's own experiment with four restarts, of which one (from 1) is not told; each attempt runs so long."""
    told = story(SEED).begin()
    for number in range(1, 5):
        told.wait(seconds).ends("worker-0", 138)
        if number != silent:
            told.says("Restarting")
        told.replace("worker-0")
        if number != silent:
            told.says("Running")
    return told


def test_state_03_counts_every_round_of_the_seed() -> None:
    seed().complete().passes("STATE-03", "Restarting, Running, Restarting, Running, Restarting, Running")
    seed(silent=2, seconds=12).complete().is_unknown("STATE-03", "only after attempt 3 had ended too")
    seed(silent=2).complete().is_unknown("STATE-03", "only after attempt 3 had ended too")


def test_state_03_fails_when_no_restart_at_all_is_told() -> None:
    told = story(SEED).begin()
    for _ in range(4):
        told.wait(1).ends("worker-0", 138).replace("worker-0")
    told.wait(11).complete().fails("STATE-03", "did not say Restarting")


def test_state_03_fails_for_one_round_whatever_is_not_known_of_the_next() -> None:
    told = story(SEED).begin().wait(0.5).ends("worker-0", 138).replace("worker-0").wait(12)
    told.complete().fails("STATE-03", "did not say Restarting")


def test_state_03_is_unknown_when_the_restart_was_not_seen_to_its_end() -> None:
    told = story(KILLED).begin().ends("worker-0", 137).says("Restarting").asks_deletion("worker-0").gone("worker-0")
    told.wait(11).complete().is_unknown("STATE-03", "no pod was ever created in place")
    told = story(KILLED).begin().ends("worker-0", 137).says("Restarting").gone("worker-0").create("worker-0")
    told.wait(30).complete().is_unknown("STATE-03", "was not seen to its end")


def test_state_03_does_not_ask_for_running_of_an_attempt_that_was_over_before_it_had_to_be_said() -> None:
    told = story("tftest").begin().wait(2.5).ends("worker-0", 138).says("Restarting").replace("worker-0")
    for _ in range(3):
        told.wait(2.5).ends("worker-0", 138).says().replace("worker-0")
    told.wait(12).says("Failed").complete().is_unknown("STATE-03", "but it had ended by then too")


# --- STATE-04 ----------------------------------------------------------------------------------------------------


def test_state_04_wants_running_and_restarting_apart() -> None:
    story(KILLED).begin().restart("worker-0", 137).complete().passes("STATE-04")
    story(KILLED).begin().put("Restarting").write().complete().fails("STATE-04", "both are True")
    story(KILLED).begin().put("Restarting", "False").write().complete().passes("STATE-04")


def test_state_04_wants_a_job_that_ran() -> None:
    story(KILLED).submit().wait(11).complete().is_unknown("STATE-04", "never created a pod")
    story(KILLED).submit().says("Created").wait(11).complete().is_unknown("STATE-04", "never created a pod")
    told = story(KILLED).submit().create(*story(KILLED).replicas)
    told.complete().is_unknown("STATE-04", "never wrote a condition")
    told = story(KILLED).submit().says("Created").create(*story(KILLED).replicas).runs(*story(KILLED).replicas)
    told.wait(11).complete().is_unknown("STATE-04", "never said more than Created")


# --- STATE-05 ----------------------------------------------------------------------------------------------------


def failed() -> Story:
    """A job that has failed rightly."""
    return story(ONE).begin().wait(0.5).ends("worker-0", 1).says("Failed")


def test_state_05_passes_when_the_end_is_final() -> None:
    failed().complete().passes("STATE-05", "Failed, and unchanged in the", "the operator")
    failed().says().says().complete().passes("STATE-05")


def test_state_05_does_not_mind_the_order_nor_what_is_said_of_a_condition() -> None:
    told = failed()
    told.conditions().reverse()
    for condition in told.conditions():
        condition |= {"message": "other", "lastUpdateTime": "2027-01-01T00:00:00Z"}
    told.write().complete().passes("STATE-05")


def test_state_05_does_not_mind_what_an_operator_says_beside_the_documented() -> None:
    failed().put("Cleaned").write().put("Cleaned", "False").write().complete().passes("STATE-05")


def test_state_05_fails_on_every_change_after_the_end() -> None:
    told = story(ONE).begin().ends("worker-0", 1).says("Failed").drop("Running").put("Running").write().complete()
    told.fails("STATE-05", "conditions changed")
    failed().drop("Created").write().complete().fails("STATE-05", "conditions changed")
    failed().put("Failed", "False").write().complete().fails("STATE-05", "conditions changed")
    failed().wait(2).put("Failed").write().complete().fails("STATE-05", "conditions changed")
    failed().put("Succeeded").write().complete().fails("STATE-05", "Failed and Succeeded are both True")


def test_state_05_fails_on_what_is_true_beside_the_end() -> None:
    told = story(ONE).begin().ends("worker-0", 1).put("Failed").write().complete()
    told.fails("STATE-05", "Running is True beside Failed")
    told = story(ONE).begin().drop("Running").put("Restarting").put("Failed").write().complete()
    told.fails("STATE-05", "Restarting is True beside Failed")


def test_state_05_passes_on_a_job_that_has_no_reason_to_end() -> None:
    story(KILLED).begin().restart("worker-0", 137).complete().passes("STATE-05", "not terminal while it was observed")


def test_state_05_is_unknown_when_the_end_did_not_come() -> None:
    told = story(ONE).begin().ends("worker-0", 1).says().wait(21).complete()
    told.is_unknown("STATE-05", "never became Succeeded or Failed")
    story(ONE).submit().says("Created").wait(21).complete().is_unknown("STATE-05", "never created a pod")


def test_state_05_is_unknown_when_nobody_was_alive_to_change_anything() -> None:
    failed().complete(witnessed=False).is_unknown("STATE-05", "Failed, and unchanged for 4 s", "alive")
    failed().complete(window=1).is_unknown("STATE-05", "of the window `never`")


# --- STATE-09 ----------------------------------------------------------------------------------------------------


def test_state_09_passes_when_those_who_decide_have_ended() -> None:
    story(ALL_WORKERS).begin().ends("worker-0", 0).ends("worker-2", 0).says().ends("worker-1", 0).says(
        "Succeeded"
    ).complete().passes("STATE-09", "worker-1 ended with 0")
    story("tfjob-workers0-ps1-worker3").begin().ends("worker-0", 0).says("Succeeded").complete().passes("STATE-09")
    told = story("pytorchjob-all0-master1-worker2").begin().ends("worker-0", 0).says().ends("master-0", 0)
    told.says("Succeeded").complete().passes("STATE-09", "master-0 ended with 0")


def test_state_09_passes_when_nobody_who_decides_has_ended_and_the_job_goes_on() -> None:
    story(TWO_OF_ALL).begin().ends("worker-0", 0).ends("worker-1", 0).says().complete().passes("STATE-09")
    story("tfjob-ps0-ps1-worker3").begin().ends("ps-0", 0).says().complete().passes("STATE-09")


def test_state_09_fails_on_success_too_early() -> None:
    told = story(ALL_WORKERS).begin().ends("worker-0", 0).ends("worker-1", 0).says("Succeeded")
    told.complete().fails("STATE-09", "although worker-2 had not ended")
    told = story(ALL_WORKERS).begin().ends("worker-0", 0).ends("worker-1", 0).says("Succeeded").ends("worker-2", 0)
    told.complete().fails("STATE-09", "before attempt 1 of worker-2 ended with 0")
    told = story(ALL_WORKERS).begin().ends("worker-0", 0).says("Succeeded").asks_deletion("worker-1", "worker-2")
    told.ends("worker-1", 0).gone("worker-1", "worker-2").complete().fails("STATE-09", "had not ended")


def test_state_09_fails_on_success_by_those_who_do_not_decide() -> None:
    told = story(OTHERS).begin().ends("worker-1", 0).ends("worker-2", 0).says("Succeeded").complete()
    told.fails("STATE-09", "nobody who decides had ended")
    told = story(OTHERS).begin().says("Succeeded").complete()
    told.fails("STATE-09", "nobody who decides had ended")


def test_state_09_fails_when_success_does_not_come() -> None:
    story(ZERO).begin().ends("worker-0", 0).says().wait(11).complete().fails("STATE-09", "did not become Succeeded")


def test_state_09_fails_on_failure_without_a_reason() -> None:
    story(ZERO).begin().ends("worker-0", 0).says("Failed").complete().fails("STATE-09", "became Failed")
    story(OTHERS).begin().says("Failed").complete().fails("STATE-09", "became Failed")


def test_state_09_passes_whatever_arrives_first() -> None:
    told = story(ZERO).begin()
    with told.held_back("pods"):
        told.ends("worker-0", 0).says("Succeeded")
    told.complete().passes("STATE-09")


def test_state_09_is_unknown_where_the_premise_is_not_reached() -> None:
    story(ZERO).begin().wait(11).complete().is_unknown("STATE-09", "never seen to end")
    story(ZERO).submit().wait(11).complete().is_unknown("STATE-09", "never created a pod")
    told = story(OTHERS).begin().ends("worker-1", 0).says().complete()
    told.is_unknown("STATE-09", "worker-2 was never seen to end")
    told = story(OTHERS).begin().ends("worker-1", 0).ends("worker-2", 0).says().complete(witnessed=False)
    told.is_unknown("STATE-09", "alive")


def test_state_09_is_unknown_after_a_failure_that_nobody_asked_for() -> None:
    told = story(ALL_WORKERS).begin().ends("worker-0", 137).says("Failed").complete()
    told.is_unknown("STATE-09", "worker-0 ended with 137, which nobody asked for")
