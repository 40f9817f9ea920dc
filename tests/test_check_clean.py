"""CLEAN-05: what is left of a job that was deleted."""

from history_builder import Story, story

DELETED = "tfjob-deleted-ps1-worker3"
WHEN_FAILED = "tfjob-deleted-when-failed-ps1-worker3"


def running() -> Story:
    """A running job."""
    return story(DELETED).begin()


def test_clean_05_passes_when_everything_goes() -> None:
    running().delete_job().collect().complete().passes("CLEAN-05", "marked for deletion or removed", "job was removed")


def test_clean_05_passes_when_everything_had_gone_before() -> None:
    told = story(WHEN_FAILED).begin().ends("worker-0", 1).says("Failed").collect().wait(1)
    told.delete_job().complete().passes("CLEAN-05")


def test_clean_05_passes_without_services() -> None:
    told = story(DELETED, has_services=False).begin().delete_job().collect().complete()
    told.passes("CLEAN-05")


def test_clean_05_fails_when_a_pod_or_a_service_stays() -> None:
    told = running().delete_job()
    told.pods.pop(f"{DELETED}-ps-0")
    told.collect().wait(21).complete().fails("CLEAN-05", f"pod {DELETED}-ps-0 did not go")
    told = running().delete_job()
    told.service_objects.pop(f"{DELETED}-ps-0")
    told.collect().wait(21).complete().fails("CLEAN-05", f"service {DELETED}-ps-0 did not go")


def test_clean_05_fails_when_the_job_itself_stays() -> None:
    told = running().act("delete-job").collect().wait(21).complete()
    told.fails("CLEAN-05", "the job itself was not removed")


def test_clean_05_fails_when_something_comes_back() -> None:
    told = running().delete_job().collect().wait(3).create("worker-0").complete()
    told.fails("CLEAN-05", f"pod {DELETED}-worker-0 was created")
    told = running().delete_job().collect().wait(3).services("worker-0").complete()
    told.fails("CLEAN-05", f"service {DELETED}-worker-0 was created")
    told = running().delete_job().collect()
    told.job_uid = "job-2"
    told.submit().complete().fails("CLEAN-05", "the job came back")


def test_clean_05_is_unknown_when_something_may_have_been_on_its_way() -> None:
    told = running().delete_job().services("worker-0").collect().complete()
    told.is_unknown("CLEAN-05", "may have been on its way")


def test_clean_05_does_not_blame_the_operator_for_a_slow_node() -> None:
    told = running().delete_job().asks_deletion("worker-0")
    told.pods.pop(f"{DELETED}-worker-0")
    told.collect().wait(30).complete().is_unknown("CLEAN-05", "the node has not removed it")


def test_clean_05_fails_when_a_finalizer_keeps_a_pod() -> None:
    def kept(finalizer: str) -> Story:
        told = running().delete_job()
        told.pod("worker-0").object["metadata"]["finalizers"] = [finalizer]
        told.asks_deletion("worker-0")
        told.pods.pop(f"{DELETED}-worker-0")
        return told.collect()

    told = kept("example.org/mine").wait(21).complete()
    told.fails("CLEAN-05", f"pod {DELETED}-worker-0 (example.org/mine) was asked for, but a finalizer keeps it")
    kept("example.org/mine").complete().is_unknown("CLEAN-05", "a finalizer keeps it")
    kept("orphan").wait(21).complete().is_unknown("CLEAN-05", "the node has not removed it")


def test_clean_05_is_unknown_when_it_came_late_was_not_seen_or_was_not_asked_for() -> None:
    running().delete_job().wait(30).collect().complete().is_unknown("CLEAN-05", "too slow to tell")
    running().delete_job().complete().is_unknown("CLEAN-05", "did not go, but only")
    running().complete().is_unknown("CLEAN-05", "never came to the point of deleting the job")
    story(DELETED).submit().delete_job().complete().is_unknown("CLEAN-05", "never created a pod")
    running().delete_job().collect().complete(witnessed=False).is_unknown("CLEAN-05", "alive")


def test_clean_05_is_unknown_after_a_gap_in_the_watch_on_services() -> None:
    told = running().act("watch-gap", of_the_run=True, detail={"resource": "services"}).delete_job().collect()
    told.complete().is_unknown("CLEAN-05", "the watch on services was interrupted")
