"""EVENT: what is told in Kubernetes events. All of it SHOULD, none of it MUST."""

from history_builder import Story, story

KILLED = "tfjob-worker-exit137-worker3"
ONE = "tfjob-worker-exit1-worker3"
TEMPLATE = "tfjob-template-exit137-worker1"
TOUCHED = "tfjob-touched-when-failed-worker1"
POD = f"{KILLED}-worker-0"


def restarted() -> Story:
    """Worker 0 has been restarted once, and nothing was told of it."""
    return story(KILLED).begin().restart("worker-0", 137).wait(6)


def told_of_pods(told: Story, *, deleted: bool = True) -> Story:
    """Every pod that was made has its event."""
    for replica in (*told.replicas, "worker-0"):
        told.tells("SuccessfulCreatePod", f"Created pod: {told.scenario.id}-{replica}")
    return told.tells("SuccessfulDeletePod", f"Deleted pod: {POD}") if deleted else told


def test_event_01_asks_for_pod_and_code() -> None:
    restarted().tells("ExitedWithCode", f"Pod: run.{POD} exited with code 137").complete().passes("EVENT-01")
    restarted().tells("ExitedWithCode", f"Pod: run.{POD} exited").complete().fails("EVENT-01", "ended with 137")
    restarted().tells("ExitedWithCode", "exited with code 137").complete().fails("EVENT-01")
    restarted().tells("ExitedWithCode", f"Pod: run.{POD}1 exited with code 137").complete().fails("EVENT-01")
    restarted().tells("Other", f"Pod: run.{POD} exited with code 137").complete().fails("EVENT-01")


def test_event_01_is_unknown_where_it_may_still_come_or_was_missed() -> None:
    story(KILLED).begin().ends("worker-0", 137).complete(window=1).is_unknown("EVENT-01", "but only")
    told = restarted().act("watch-gap", of_the_run=True, detail={"resource": "events"}).complete()
    told.is_unknown("EVENT-01", "the watch on events was interrupted")


def test_an_event_that_comes_late_counts_and_one_that_may_be_late_is_unknown() -> None:
    told = restarted().wait(20).tells("ExitedWithCode", f"Pod: run.{POD} exited with code 137", late=26)
    told.complete().passes("EVENT-01")
    told = restarted().tells("SuccessfulCreatePod", f"Created pod: {POD}").wait(3)
    told.tells("SuccessfulDeletePod", f"Deleted pod: {POD}", late=6).complete()
    told.is_unknown("EVENT-01", "others came 6 s late: it may still come")


def test_event_02_counts_the_pods() -> None:
    told_of_pods(restarted()).complete().passes("EVENT-02")
    told_of_pods(restarted(), deleted=False).complete().fails("EVENT-02", "0 of 1 events SuccessfulDeletePod")
    restarted().complete().fails(
        "EVENT-02", "of 1 events SuccessfulCreatePod", f"0 of 2 events SuccessfulCreatePod name {POD}"
    )


def test_event_02_takes_an_event_that_counts_for_several() -> None:
    told = restarted().tells("SuccessfulCreatePod", f"Created pod: {POD}", count=2)
    for replica in ("worker-1", "worker-2"):
        told.tells("SuccessfulCreatePod", f"Created pod: {KILLED}-{replica}")
    told.tells("SuccessfulDeletePod", f"Deleted pod: {POD}").complete().passes("EVENT-02")


def test_event_02_is_unknown_without_pods() -> None:
    story(KILLED).submit().complete().is_unknown("EVENT-02", "never created a pod")
    story(KILLED).begin().restart("worker-0", 137).complete().is_unknown("EVENT-02", "but only")


def test_event_02_is_unknown_without_a_restart_unless_a_creation_was_not_told_of() -> None:
    told_of_pods(story(KILLED).begin()).complete().is_unknown("EVENT-02", "no pod was replaced")
    story(KILLED).begin().wait(11).complete().fails("EVENT-02", f"0 of 1 events SuccessfulCreatePod name {POD}")


def test_event_03_asks_for_a_warning() -> None:
    restarted().tells("TFJobRestarting", "is restarting", kind="Warning").complete().passes("EVENT-03")
    restarted().tells("TFJobRestarting", "is restarting").complete().fails("EVENT-03", "no warning")
    restarted().tells("TFJobFailed", "has failed", kind="Warning").complete().fails("EVENT-03", "no warning")
    told = restarted().tells("SettedPodTemplateRestartPolicy", "overwritten", kind="Warning")
    told.complete().fails("EVENT-03", "no warning")


def test_event_03_is_unknown_without_a_restart() -> None:
    story(KILLED).begin().ends("worker-0", 137).complete().is_unknown("EVENT-03", "never restarted")


def test_event_04_asks_for_the_event_that_tells_of_the_template() -> None:
    told = story(TEMPLATE).begin().tells("SettedPodTemplateRestartPolicy", "overwritten", kind="Warning")
    told.complete().passes("EVENT-04")
    story(TEMPLATE).begin().wait(6).complete().fails("EVENT-04", "no event tells of it")
    story(TEMPLATE).begin().complete(window=1).is_unknown("EVENT-04", "but only")


def failed_and_touched(times: int) -> Story:
    """A job that has failed and is touched; each touch brings an event."""
    told = story(TOUCHED).begin().ends("worker-0", 1).says("Failed").tells("TFJobFailed", "it failed", kind="Warning")
    for number in range(1, 21):
        told.act("touch-job", detail={"number": number}).annotated("touched", str(number))
        if number <= times:
            told.tells("TFJobFailed", "it failed", kind="Warning")
    return told


def test_event_05_bounds_the_events_of_a_finished_job() -> None:
    failed_and_touched(0).complete().passes("EVENT-05", "0 new event(s)")
    failed_and_touched(8).complete().passes("EVENT-05", "8 new event(s)")
    failed_and_touched(9).complete().fails("EVENT-05", "9 new event(s) after it was changed 20 times")


def test_event_05_counts_an_event_that_is_recorded_anew() -> None:
    told = failed_and_touched(0)
    first = next(e for e in told.entries if e.type == "event" and e.resource == "events")
    told.event("events", "MODIFIED", {**first.object, "count": 10})
    told.complete().fails("EVENT-05", "9 new event(s)")


def test_event_05_is_unknown_where_nobody_was_alive_or_the_job_was_not_touched() -> None:
    failed_and_touched(0).complete(witnessed=False).is_unknown("EVENT-05", "alive")
    story(TOUCHED).begin().ends("worker-0", 1).says("Failed").complete().is_unknown("EVENT-05", "was not changed")
