"""RESTART-09, RESTART-11 and LIMIT-05: how soon, by whom and how often replicas are restarted."""

from history_builder import Story, story

KILLED = "tfjob-worker-exit137-worker3"
SEQUENCE = "tfjob-worker-then-143-138-137-0-worker3"
ALWAYS = "tfjob-worker1-always1-worker3"
NEVER = "tfjob-worker1-never1-worker3"


# --- RESTART-09 --------------------------------------------------------------------------------------------------


def test_restart_09_passes_when_every_replacement_is_in_time() -> None:
    told = story(SEQUENCE).begin()
    for code in (143, 138, 137):
        told.restart("worker-0", code)
    told.complete().passes("RESTART-09", "worker-0 was created again, 0.0 s after the old pod", "3")


def test_restart_09_fails_when_a_replacement_is_late() -> None:
    told = story(KILLED).begin().ends("worker-0", 137).says("Restarting").asks_deletion("worker-0").gone("worker-0")
    told.wait(12).create("worker-0").complete().fails("RESTART-09", "the bound `restart` is 10 s")


def test_restart_09_is_unknown_without_a_restart_or_where_the_node_was_slow() -> None:
    story(KILLED).begin().ends("worker-0", 137).complete().is_unknown("RESTART-09", "no pod was ever created in place")
    told = story(KILLED).begin().ends("worker-0", 9).replace("worker-0").complete()
    told.is_unknown("RESTART-09", "had ended as its script asked for")


# --- RESTART-11 --------------------------------------------------------------------------------------------------


def test_restart_11_tells_who_restarted_what() -> None:
    told = story(SEQUENCE).begin().restart("worker-0", 143).restart("worker-0", 138).complete()
    told.passes("RESTART-11", "worker-0: 2 by the operator, 0 by the kubelet")
    told = story(ALWAYS).begin().ends("worker-1", 1).restarts_in_place("worker-1").complete()
    told.passes("RESTART-11", "worker-1: 0 by the operator, 1 by the kubelet")
    story(NEVER).begin().ends("worker-1", 1).says("Failed").complete().passes("RESTART-11", "no replica was restarted")


def test_restart_11_is_unknown_without_pods() -> None:
    story(KILLED).submit().complete().is_unknown("RESTART-11", "never created a pod")


# --- LIMIT-05 ----------------------------------------------------------------------------------------------------


def failures(*codes: int) -> Story:
    """Worker 0 has failed with these codes in a row and was restarted each time."""
    told = story(SEQUENCE).begin()
    for code in codes:
        told.restart("worker-0", code)
    return told


def test_limit_05_passes_when_every_failure_is_restarted() -> None:
    failures(143, 138, 137).ends("worker-0", 0).says("Succeeded").complete().passes("LIMIT-05")


def test_limit_05_fails_when_restarts_come_to_an_end() -> None:
    told = failures(143, 138).ends("worker-0", 137).says("Failed").complete()
    told.fails("LIMIT-05", "the job became Failed after retryable failure 3 in a row")
    told = failures(143, 138).ends("worker-0", 137).wait(11).complete()
    told.fails("LIMIT-05", "worker-0 was not restarted within the 10 s (`restart`)")


def test_limit_05_fails_whatever_becomes_of_a_pod_that_is_created_after_the_job_failed() -> None:
    failed = story(SEQUENCE).begin().ends("worker-0", 143).asks_deletion("worker-0").gone("worker-0").says("Failed")
    failed.create("worker-0").runs("worker-0").ends("worker-0", 138).complete()
    failed.fails("LIMIT-05", "the job became Failed after retryable failure 1 in a row")


def test_limit_05_and_exit_12_fail_for_a_late_restart_whatever_is_not_known_of_the_next() -> None:
    late = story(SEQUENCE).begin().ends("worker-0", 143).says("Restarting").asks_deletion("worker-0").gone("worker-0")
    late.wait(12).create("worker-0").runs("worker-0").complete()
    late.fails("LIMIT-05", "the bound `restart` is 10 s")
    late.fails("EXIT-12", "the bound `restart` is 10 s")


def test_limit_05_is_unknown_where_the_script_was_not_followed() -> None:
    failures(143).ends("worker-0", 1).says("Failed").complete().is_unknown("LIMIT-05", "not what its script was told")
    failures(143, 138).complete().is_unknown("LIMIT-05", "never seen to end")
