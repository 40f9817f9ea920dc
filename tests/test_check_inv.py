"""INV: what holds in every history."""

from typing import Any

import pytest
from history_builder import Story, story

from exitcode_conformance.scenario import ReplicaGroup, Scenario

ONE = "tfjob-worker-exit1-worker3"
KILLED = "tfjob-worker-exit137-worker3"
DELETED = "tfjob-deleted-ps1-worker3"
LIMITED = "tfjob-worker-onfailure1-limit1-worker1"
DONE = "tfjob-worker1-exit0-chief1-worker2"


def failed() -> Story:
    """A job that has failed rightly."""
    return story(ONE).begin().wait(0.5).ends("worker-0", 1).says("Failed")


# --- INV-03 ------------------------------------------------------------------------------------------------------


def test_inv_03_passes_when_nothing_is_created_after_the_end() -> None:
    failed().complete().passes("INV-03", "nothing of the kind")
    story(DELETED).begin().delete_job().collect().complete().passes("INV-03")
    failed().delete_job().collect().complete().passes("INV-03")
    story(KILLED).begin().restart("worker-0", 137).complete().passes("INV-03", "neither ended nor was deleted")


def test_inv_03_fails_on_a_pod_after_the_terminal_condition() -> None:
    told = failed().asks_deletion("worker-0").gone("worker-0").create("worker-0").complete()
    told.fails("INV-03", "worker-0 was created", "after the job says Failed")


def test_inv_03_passes_when_a_pod_was_created_before_the_end_but_arrives_later() -> None:
    told = story(ONE).submit().says("Created").create("worker-0").runs("worker-0").ends("worker-0", 1)
    with told.held_back("pods"):
        told.create("worker-1").says("Failed")
    told.complete().passes("INV-03")


def test_inv_03_fails_on_a_pod_long_after_the_deletion_or_again_and_again() -> None:
    told = story(DELETED).begin().delete_job().collect().wait(3).create("worker-0").complete()
    told.fails("INV-03", "after the job was removed")
    told = story(DELETED).begin().delete_job().collect()
    told.create("worker-0").gone("worker-0").create("worker-0").gone("worker-0").complete()
    told.fails("INV-03", "once more")


def test_inv_03_fails_on_a_pod_after_the_deletion_of_a_job_that_never_ended() -> None:
    told = story("tfjob-deleted-when-failed-ps1-worker3").begin().ends("worker-0", 1).delete_job().collect()
    told.wait(3).create("worker-0").complete().fails("INV-03", "after the job was removed")


def test_inv_03_is_unknown_when_a_pod_may_have_been_on_its_way() -> None:
    told = story(DELETED).begin().delete_job().create("worker-0").collect().complete()
    told.is_unknown("INV-03", "may have been on its way")
    told = story(DELETED).begin().delete_job().collect().wait(2.5)
    told.act("held-up", of_the_run=True, detail={"seconds": 2.5, "what": "a request of the harness"})
    told.create("worker-0").complete().is_unknown("INV-03", "too slow to tell")


def test_inv_03_is_unknown_without_pods_an_end_or_a_witness() -> None:
    story(ONE).submit().says("Created").complete().is_unknown("INV-03", "never created a pod")
    story(ONE).begin().wait(21).complete().is_unknown("INV-03", "never became Succeeded or Failed")
    failed().complete(witnessed=False).is_unknown("INV-03", "alive")


# --- INV-04 ------------------------------------------------------------------------------------------------------


def test_inv_04_passes_when_a_pod_takes_the_place_of_a_failed_one() -> None:
    story(KILLED).begin().restart("worker-0", 137).restart("worker-0", 137).complete().passes("INV-04", "5 pod(s)")


def test_inv_04_fails_on_two_live_pods_of_one_index() -> None:
    told = story(KILLED).begin()
    manifest = told.manifest("worker-1")
    manifest["metadata"]["name"] += "-again"
    told.create("worker-1", manifest=manifest).complete().fails("INV-04", "two pods of worker-1 alive")


@pytest.mark.parametrize("phase", ["Failed", "Succeeded", "Running"])
def test_inv_04_fails_when_a_healthy_pod_is_replaced_however_it_ends(phase: str) -> None:
    told = story(KILLED).begin().asks_deletion("worker-1").touch("worker-1", phase=phase).gone("worker-1")
    told.create("worker-1").complete().fails("INV-04", "took the place of a pod that had not failed")


def test_inv_04_fails_when_a_completed_pod_is_replaced() -> None:
    told = story(DONE).begin().ends("worker-1", 0).replace("worker-1").complete()
    told.fails("INV-04", "had not failed")


def test_inv_04_passes_when_the_cluster_took_the_pod_away() -> None:
    told = story(KILLED).begin()
    told.pod("worker-1").object["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True"}]
    told.asks_deletion("worker-1").gone("worker-1").create("worker-1").complete().passes("INV-04", "from outside")
    told = story(KILLED).begin()
    told.pod("worker-1").object["status"]["reason"] = "Evicted"
    told.touch("worker-1", phase="Failed").gone("worker-1").create("worker-1").complete().passes("INV-04")


def test_inv_04_leaves_what_comes_after_the_deletion_to_others() -> None:
    told = story(DELETED).begin().delete_job().asks_deletion("worker-0").gone("worker-0").create("worker-0").collect()
    told.complete().passes("INV-04", "from outside")


def test_inv_04_is_unknown_after_a_gap_in_the_watch_on_pods() -> None:
    told = story(KILLED).begin().act("watch-gap", of_the_run=True, detail={"resource": "pods"})
    told.gone("worker-0").create("worker-0").complete().is_unknown("INV-04", "interrupted")


# --- INV-05 ------------------------------------------------------------------------------------------------------


def crashes(times: int) -> Story:
    """The container has been restarted so often."""
    told = story(LIMITED).begin()
    for _ in range(times):
        told.wait(0.5).ends("worker-0", 1).restarts_in_place("worker-0")
    return told


def test_inv_05_passes_up_to_the_limit() -> None:
    crashes(1).says("Failed").complete().passes("INV-05", "1 restart(s)")


def test_inv_05_does_not_count_what_the_kubelet_does_after_the_end() -> None:
    told = crashes(1).says("Failed")
    for _ in range(3):
        told.ends("worker-0", 1).waits_for_restart("worker-0").restarts_in_place("worker-0")
    told.complete().passes("INV-05", "1 restart(s)")


def test_inv_05_fails_when_the_job_goes_on_beyond_the_limit() -> None:
    crashes(2).wait(11).complete().fails("INV-05", "2 restarts in place; the job went on")


def test_inv_05_is_unknown_when_the_kubelet_was_faster_than_the_end() -> None:
    crashes(2).says("Failed").complete().is_unknown("INV-05", "2 restarts in place")
    crashes(2).complete().is_unknown("INV-05", "the job went on, but only")
    crashes(0).complete().is_unknown("INV-05", "no restart was seen")


def test_inv_05_adds_the_pods_up() -> None:
    scenario = Scenario(
        id="limited",
        kind="TFJob",
        groups=(ReplicaGroup(type="Worker", replicas=2, restart_policy="OnFailure"),),
        run_policy={"backoffLimit": 1},
    )
    told = Story(scenario).begin()
    for replica in told.replicas:
        told.ends(replica, 1).restarts_in_place(replica)
    told.wait(11).complete().fails("INV-05", "2 restarts in place")


# --- INV-06 ------------------------------------------------------------------------------------------------------


def counted(*counts: Any) -> Story:
    """The operator writes these numbers of succeeded workers, one after the other."""
    told = story(DONE).begin()
    for count in counts:
        told.write(replicaStatuses={"Worker": {"succeeded": count}, "Chief": {}})
    return told


@pytest.mark.parametrize("counts", [(0,), (1,), (0, 1, 2), (1, 1), (None, 1)])
def test_inv_06_passes_while_the_count_grows(counts: tuple[Any, ...]) -> None:
    counted(*counts).complete().passes("INV-06")


@pytest.mark.parametrize("counts", [(1, 0), (1, None), (2, 1), (0, 1, 0, 1)])
def test_inv_06_fails_when_the_count_falls(counts: tuple[Any, ...]) -> None:
    counted(*counts).complete().fails("INV-06", "succeeded of Worker fell")


@pytest.mark.parametrize("statuses", [None, {}, {"Chief": {}}, {"Worker": None}])
def test_inv_06_fails_when_a_count_is_left_out_again(statuses: Any) -> None:
    told = counted(1).write(replicaStatuses=statuses).complete()
    told.fails("INV-06", "succeeded of Worker fell from 1 to 0")


def test_inv_06_fails_when_cleaning_up_takes_a_success_back() -> None:
    told = story("tfjob-workers0-ps1-worker3").begin().ends("worker-0", 0).says("Succeeded")
    told.asks_deletion("worker-0").gone("worker-0").complete().passes("INV-06")
    told = story("tfjob-workers0-ps1-worker3").begin().ends("worker-0", 0).says("Succeeded")
    told.asks_deletion("worker-0").gone("worker-0").says().complete().fails("INV-06", "fell from 1 to 0")
    told = story(DONE).begin().ends("worker-1", 0).says().gone("worker-1").says().complete()
    told.fails("INV-06", "fell from 1 to 0")


def test_inv_06_allows_what_still_ran_to_be_counted_at_the_end() -> None:
    told = story("tfjob-workers0-ps1-worker3").begin().ends("worker-0", 0).says("Succeeded")
    told.write(replicaStatuses={"PS": {"succeeded": 1}, "Worker": {"succeeded": 3}}).complete().passes("INV-06")


@pytest.mark.parametrize("statuses", [{}, [], "none", {"Worker": None}])
def test_inv_06_is_unknown_where_nothing_is_counted(statuses: Any) -> None:
    told = story(DONE).submit().put("Created").write().create("worker-0").write(replicaStatuses=statuses)
    told.complete().is_unknown("INV-06", "never wrote replicaStatuses")
    story(DONE).submit().says("Created").complete().is_unknown("INV-06", "never created a pod")


# --- INV-08 ------------------------------------------------------------------------------------------------------


def test_inv_08_passes_while_the_process_runs() -> None:
    told = story(ONE).act("operator-started", of_the_run=True, detail={"mode": "process"}).begin().complete()
    told.act("operator-exited", of_the_run=True, detail={"status": 0, "how": "ended"}).passes("INV-08")


def test_inv_08_fails_when_the_process_ends() -> None:
    told = story(ONE).act("operator-started", of_the_run=True, detail={"mode": "process"}).begin()
    told.act("operator-exited", of_the_run=True, detail={"status": -9, "how": "was killed by KILL"}).complete()
    told.fails("INV-08", "was killed by KILL")


def test_inv_08_fails_when_the_process_was_gone_before_but_not_when_a_container_was_started_again() -> None:
    told = story(ONE).act("operator-started", of_the_run=True)
    told.act("operator-exited", of_the_run=True, detail={"status": 1, "how": "ended with status 1"}).submit()
    told.complete().fails("INV-08", "ended with status 1")
    told = story(ONE).act("operator-started", of_the_run=True, detail={"mode": "manifests"})
    told.act("operator-exited", of_the_run=True, detail={"how": "a container of its pod ended"}).submit()
    told.complete().passes("INV-08")


def test_inv_08_is_unknown_where_the_process_cannot_be_seen() -> None:
    story(ONE).begin().complete().is_unknown("INV-08", "did not see the operator's process")


# --- INV-10 ------------------------------------------------------------------------------------------------------


def test_inv_10_passes_when_the_job_stays_is_deleted_on_request_or_has_outlived_its_time() -> None:
    failed().complete().passes("INV-10", "no removal of the job")
    story(KILLED).begin().complete().passes("INV-10", "no removal of the job")
    story(DELETED).begin().delete_job().collect().complete().passes("INV-10", "after its deletion was asked for")
    lives = story("tfjob-ttl-when-succeeded-worker1").begin().ends("worker-0", 0).says("Succeeded").wait(3)
    lives.job_removed().collect().complete().passes("INV-10", "it had a time to live")


def test_inv_10_fails_when_the_job_is_removed_unasked() -> None:
    failed().job_removed().collect().complete().fails("INV-10", "the job was removed, 0.")
    story(KILLED).begin().job_removed().collect().complete().fails("INV-10", "the job was removed")
    # A time to live begins with the end.
    lives = story("tfjob-ttl-when-succeeded-worker1").begin().job_removed().collect()
    lives.complete().fails("INV-10", "the job was removed")


def test_inv_10_is_unknown_without_pods_or_a_witness() -> None:
    story(ONE).submit().says("Created").complete().is_unknown("INV-10", "never created a pod")
    failed().complete(witnessed=False).is_unknown("INV-10", "alive")
