"""LIMIT-01 to LIMIT-04: limits, deadlines, time to live."""

import pytest
from history_builder import Story, story

BOTH = "tfjob-both-onfailure1-limit2-worker2"
MASTER = "pytorchjob-master-onfailure1-limit1-master1"
KILLED = "tfjob-worker-exit137-limit2-worker1"
DEADLINE = "pytorchjob-deadline-master1"
LIVES = "tfjob-ttl-when-succeeded-worker1"


# --- LIMIT-01 ----------------------------------------------------------------------------------------------------


def crashing(*replicas: str) -> Story:
    """Both workers run under OnFailure with a limit of 2, and these have been restarted, in this order."""
    told = story(BOTH).begin()
    for replica in replicas:
        told.ends(replica, 1).restarts_in_place(replica)
    return told


def test_limit_01_passes_when_the_pods_together_reach_the_limit() -> None:
    crashing("worker-0", "worker-1").says("Failed").complete().passes("LIMIT-01", "the job says Failed")
    told = story(MASTER).begin().ends("master-0", 1).restarts_in_place("master-0").says("Failed")
    told.complete().passes("LIMIT-01")


def test_limit_01_passes_when_the_kubelet_is_faster_than_the_operator() -> None:
    told = crashing("worker-0", "worker-1", "worker-0").says("Failed").complete()
    told.passes("LIMIT-01", "the pods had been restarted 2 time(s)")


def test_limit_01_fails_when_the_job_goes_on() -> None:
    told = crashing("worker-0", "worker-1").wait(11).complete()
    told.fails("LIMIT-01", "the job did not become Failed; 2 restart(s) were seen")
    crashing("worker-0", "worker-1").wait(12).says("Failed").complete().fails("LIMIT-01", "`terminal` is 10 s")


def test_limit_01_fails_when_the_job_ends_before_the_limit() -> None:
    crashing("worker-0").says("Failed").complete().fails("LIMIT-01", "the job says Failed after 1 restart(s)")
    told = crashing("worker-0", "worker-1").says("Succeeded").complete()
    told.fails("LIMIT-01", "the job says Succeeded")


def test_limit_01_is_unknown_where_the_limit_was_not_reached() -> None:
    crashing("worker-0").complete().is_unknown("LIMIT-01", "only 1 restart(s) were seen")
    told = crashing("worker-0").ends("worker-1", 9).says("Failed").complete()
    told.is_unknown("LIMIT-01", "which nobody asked for")
    story(BOTH).submit().complete().is_unknown("LIMIT-01", "never created a pod")


# --- LIMIT-02 ----------------------------------------------------------------------------------------------------


def killed(restarts: int) -> Story:
    """Worker 0 has failed once more than it was restarted."""
    told = story(KILLED).begin()
    for _ in range(restarts):
        told.restart("worker-0", 137)
    return told.wait(0.5).ends("worker-0", 137)


def test_limit_02_passes_when_restarts_are_bounded() -> None:
    killed(2).says("Failed").complete().passes("LIMIT-02", "2 restart(s) were seen; the job says Failed")
    killed(1).says("Failed").complete().passes("LIMIT-02", "1 restart(s)")


def test_limit_02_fails_when_restarts_go_on() -> None:
    killed(3).complete().fails("LIMIT-02", "3 restart(s) were seen")
    killed(2).wait(11).complete().fails("LIMIT-02", "2 restart(s) were seen; the job did not become Failed")
    killed(2).says("Succeeded").complete().fails("LIMIT-02", "did not become Failed: the job says Succeeded")


def test_limit_02_is_unknown_where_it_did_not_come_to_that() -> None:
    told = story(KILLED).begin().restart("worker-0", 137).complete()
    told.is_unknown("LIMIT-02", "attempt 2 of worker-0 was never seen to end")
    story(KILLED).submit().complete().is_unknown("LIMIT-02", "never created a pod")


# --- LIMIT-03 ----------------------------------------------------------------------------------------------------


def test_limit_03_passes_when_the_job_fails_in_time() -> None:
    story(DEADLINE).begin().wait(6).says("Failed").complete().passes("LIMIT-03", "after the 6 s since its start")
    story(DEADLINE).begin().wait(5).says("Failed").complete().passes("LIMIT-03")


def test_limit_03_fails_when_the_job_ends_early_late_or_otherwise() -> None:
    story(DEADLINE).begin().wait(1).says("Failed").complete().fails("LIMIT-03", "before the 6 s since its start")
    story(DEADLINE).begin().wait(17).says("Failed").complete().fails("LIMIT-03", "the bound `terminal` is 10 s")
    story(DEADLINE).begin().wait(20).complete().fails("LIMIT-03", "the job did not become Failed")
    story(DEADLINE).begin().wait(6).says("Succeeded").complete().fails("LIMIT-03", "the job says Succeeded")


def test_limit_03_counts_from_the_first_pod_where_the_start_is_told_late() -> None:
    told = story(DEADLINE).submit().put("Created").write().create("master-0").runs("master-0").wait(6)
    told.says("Failed").complete().passes("LIMIT-03")


def test_limit_03_is_unknown_where_something_else_happened_or_too_little_was_seen() -> None:
    told = story(DEADLINE).begin().ends("master-0", 9).says("Failed").complete()
    told.is_unknown("LIMIT-03", "which nobody asked for")
    story(DEADLINE).begin().wait(4).complete().is_unknown("LIMIT-03", "only 2.6 s")


@pytest.mark.parametrize(("seconds", "verdict"), [(3.0, "unknown"), (1.0, "fail")])
def test_what_was_told_late_makes_nobody_too_early(seconds: float, verdict: str) -> None:
    late = {"seconds": seconds, "what": "a request of the harness"}
    told = story(DEADLINE).wait(5).begin().act("held-up", of_the_run=True, detail=late).wait(2).says("Failed")
    assert told.complete().judge("LIMIT-03").verdict == verdict
    told = succeeded().act("held-up", of_the_run=True, detail=late).job_removed().complete()
    assert told.judge("LIMIT-04").verdict == verdict


# --- LIMIT-04 ----------------------------------------------------------------------------------------------------


def succeeded() -> Story:
    """The job has succeeded, and may stay for 4 s."""
    return story(LIVES).begin().ends("worker-0", 0).says("Succeeded")


def test_limit_04_passes_when_the_job_goes_in_time() -> None:
    succeeded().wait(4).job_removed().collect().complete().passes("LIMIT-04", "the job was deleted, 0.0 s after")
    succeeded().wait(3.5).job_removed().collect().complete().passes("LIMIT-04")


def test_limit_04_takes_a_job_that_is_marked_for_one_that_is_deleted() -> None:
    told = succeeded().wait(4)
    assert told.job is not None
    told.job["metadata"]["deletionTimestamp"] = told.timestamp()
    told.write().complete().passes("LIMIT-04")


def test_limit_04_fails_when_the_job_goes_early_late_or_never() -> None:
    succeeded().wait(1).job_removed().complete().fails("LIMIT-04", "before the 4 s since the job's end")
    succeeded().wait(15).job_removed().complete().fails("LIMIT-04", "the bound `removal` is 10 s")
    succeeded().wait(15).complete().fails("LIMIT-04", "the job was not deleted within the 10 s (`removal`)")
    story(LIVES).begin().job_removed().complete().fails("LIMIT-04", "before it had ended")


def test_limit_04_is_unknown_where_the_job_did_not_end_or_too_little_was_seen() -> None:
    story(LIVES).begin().wait(20).complete().is_unknown("LIMIT-04", "never became Succeeded or Failed")
    succeeded().wait(2).complete().is_unknown("LIMIT-04", "the job was not deleted, but only")
