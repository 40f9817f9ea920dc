"""EXIT-05, 08, 10, 11, 13, 14 and 15: other circumstances than one container that ends with a documented code."""

import pytest
from history_builder import CONTRACTS, Story, story

from exitcode_conformance.requirements import REQUIREMENTS

UNDEFINED = "tfjob-exit129-worker1"
SIDECAR_FAILED = "tfjob-exit137-sidecar1-worker1"
SIDECAR_KILLED = "pytorchjob-exit1-sidecar137-master1"
SIDECAR_ALONE = "tfjob-exit0-sidecar1-worker1"
MESSAGE_FINAL = "tfjob-exit1-message-worker1"
MESSAGE_RETRIED = "pytorchjob-exit137-message-master1"
AT_ONCE = "tfjob-at-once-137-1-worker2"
NO_CODE = "tfjob-init1-worker1"
MISSING = "tfjob-missing-command-worker1"


# --- EXIT-05 -----------------------------------------------------------------------------------------------------


def test_exit_05_records_the_class_whatever_it_is() -> None:
    told = story(UNDEFINED).begin().wait(0.5).ends("worker-0", 129).says("Failed").complete()
    told.passes("EXIT-05", "129 is permanent")
    assert told.judge("EXIT-05").observed_class == "permanent"
    story(UNDEFINED).begin().restart("worker-0", 129).complete().passes("EXIT-05", "129 is retryable")
    told = story(UNDEFINED).begin().ends("worker-0", 129).restarts_in_place("worker-0").complete()
    told.passes("EXIT-05", "129 is restarted-in-place")


def test_exit_05_is_unknown_where_no_class_was_shown() -> None:
    story(UNDEFINED).begin().ends("worker-0", 129).complete().is_unknown("EXIT-05", "129: it was not restarted")
    story(UNDEFINED).begin().complete().is_unknown("EXIT-05", "never seen to end")


# --- EXIT-08 -----------------------------------------------------------------------------------------------------


def test_exit_08_passes_when_the_training_containers_code_decides() -> None:
    story(SIDECAR_FAILED).begin().restart("worker-0", 137).complete().passes("EXIT-08", "worker-0 was created again")
    told = story(SIDECAR_KILLED).begin().wait(0.5).ends("master-0", 1).says("Failed").complete()
    told.passes("EXIT-08", "the job says Failed")


def test_exit_08_fails_when_the_sidecars_code_decides() -> None:
    told = story(SIDECAR_FAILED).begin().wait(0.5).ends("worker-0", 137).says("Failed").wait(10).complete()
    told.fails("EXIT-08", "worker-0 was not restarted", "the job became Failed")
    story(SIDECAR_KILLED).begin().restart("master-0", 1).complete().fails("EXIT-08", "master-0 was created again")


def test_exit_08_is_unknown_where_the_sidecar_did_not_do_as_it_was_told() -> None:
    told = story(SIDECAR_FAILED).begin()
    told.pod("worker-0").runs = 0
    told.touch("worker-0", phase="Failed", container={"state": {"terminated": {"exitCode": 137}}})
    for entry in told.entries:
        if entry.type == "event" and entry.resource == "pods":
            statuses = entry.object.get("status", {}).get("containerStatuses", [])
            statuses[:] = [status for status in statuses if status["name"] != "sidecar"]
    told.complete().is_unknown("EXIT-08", "the sidecar of worker-0 was not seen to end")


# --- EXIT-10 -----------------------------------------------------------------------------------------------------


def test_exit_10_passes_when_the_message_changes_nothing() -> None:
    told = story(MESSAGE_FINAL).begin().wait(0.5).ends("worker-0", 1).says("Failed").complete()
    told.passes("EXIT-10", "the job says Failed")
    story(MESSAGE_RETRIED).begin().restart("master-0", 137).complete().passes("EXIT-10", "master-0 was created again")


def test_exit_10_fails_when_the_message_is_believed() -> None:
    story(MESSAGE_FINAL).begin().restart("worker-0", 1).complete().fails("EXIT-10", "worker-0 was created again")
    told = story(MESSAGE_RETRIED).begin().wait(0.5).ends("master-0", 137).says("Failed").wait(10).complete()
    told.fails("EXIT-10", "master-0 was not restarted")


def test_exit_10_is_unknown_without_the_message() -> None:
    story(MESSAGE_FINAL).begin().complete().is_unknown("EXIT-10", "no end of worker-0 was seen with the message")


# --- EXIT-11 -----------------------------------------------------------------------------------------------------


def at_once(*, first: str = "worker-0") -> Story:
    """Worker 0 has ended with 137 and worker 1 with 1."""
    told = story(AT_ONCE).begin().wait(1)
    codes = {"worker-0": 137, "worker-1": 1}
    told.ends(first, codes.pop(first))
    for replica, code in codes.items():
        told.ends(replica, code)
    return told


@pytest.mark.parametrize("first", ["worker-0", "worker-1"])
def test_exit_11_passes_when_the_job_fails_and_stays_so(first: str) -> None:
    at_once(first=first).says("Failed").complete().passes("EXIT-11", "the job says Failed")


def test_exit_11_passes_when_a_restart_had_begun() -> None:
    told = story(AT_ONCE).begin().wait(1).ends("worker-0", 137).says("Restarting").asks_deletion("worker-0")
    told.ends("worker-1", 1).says("Failed").gone("worker-0").complete().passes("EXIT-11")


def test_exit_11_fails_when_the_job_goes_on() -> None:
    told = at_once().says("Restarting").replace("worker-0").wait(11).complete()
    told.fails("EXIT-11", "the job did not become Failed")
    at_once().says("Succeeded").complete().fails("EXIT-11", "did not become Failed: the job says Succeeded")


def test_exit_11_fails_when_the_job_does_not_stay_failed() -> None:
    told = at_once().says("Failed").wait(1).drop("Failed").says("Running").complete()
    told.fails("EXIT-11", "the job says Running, 1.0 s after the job says Failed")


def test_exit_11_is_unknown_where_only_one_failed_or_nobody_was_alive() -> None:
    told = story(AT_ONCE).begin().wait(1).ends("worker-1", 1).says("Failed").complete()
    told.is_unknown("EXIT-11", "attempt 1 of worker-0 was never seen to end")
    told = story(AT_ONCE).begin().wait(1).ends("worker-1", 1).says("Failed").asks_deletion("worker-0")
    told.ends("worker-0", 0).gone("worker-0").complete().is_unknown("EXIT-11", "was deleted before it was seen to end")
    at_once().says("Failed").complete(witnessed=False).is_unknown("EXIT-11", "alive")


# --- EXIT-13 -----------------------------------------------------------------------------------------------------


def failed_early() -> Story:
    """The init container has failed."""
    return story(NO_CODE).submit().says("Created").create("worker-0").fails_early("worker-0")


def test_exit_13_records_what_was_made_of_it() -> None:
    failed_early().says("Failed").complete().passes("EXIT-13", "failed without a code: the job says Failed")
    failed_early().replace("worker-0").complete().passes("EXIT-13", "worker-0 was created again")
    failed_early().complete().passes("EXIT-13", "nothing followed")


def test_exit_13_is_unknown_where_nothing_failed_or_too_little_was_seen() -> None:
    told = story(NO_CODE).submit().says("Created").create("worker-0").complete()
    told.is_unknown("EXIT-13", "no pod of worker-0 was seen to fail")
    failed_early().complete(window=1).is_unknown("EXIT-13", "too little was observed")


# --- EXIT-15 -----------------------------------------------------------------------------------------------------


def test_exit_15_records_what_was_made_of_it() -> None:
    told = story(SIDECAR_ALONE).begin().ends("worker-0", 0).says("Failed").complete()
    told.passes("EXIT-15", "failed although attempt 1 of worker-0 ended with 0: the job says Failed")
    told = story(SIDECAR_ALONE).begin().ends("worker-0", 0).says("Succeeded").complete()
    told.passes("EXIT-15", "the job says Succeeded")


def test_exit_15_is_unknown_where_it_did_not_come_to_that() -> None:
    story(SIDECAR_ALONE).begin().complete().is_unknown("EXIT-15", "never seen to end")


def test_what_no_text_covers_is_judged_by_nothing_that_must_hold() -> None:
    for name, told in (
        (SIDECAR_ALONE, story(SIDECAR_ALONE).begin().ends("worker-0", 0).says("Failed")),
        (NO_CODE, failed_early().says("Failed")),
    ):
        told.complete()
        for requirement in ("EXIT-01", "EXIT-02", "STATE-09"):
            assert told.scenario.id == name
            assert not applies(requirement, told), requirement


def applies(requirement: str, told: Story) -> bool:
    """Whether a requirement is judged in the story's scenario."""
    found = REQUIREMENTS[requirement].applies
    return found is not None and found(told.scenario, CONTRACTS["kubeflow-docs"])


# --- a command that is not there ---------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [128, 127])
def test_a_missing_command_is_judged_by_the_code_that_the_runtime_gives_it(code: int) -> None:
    told = story(MISSING).submit().says("Created").create("worker-0").ends("worker-0", code).says("Failed")
    told.complete().passes("EXIT-02", f"ended with {code}")


def test_a_missing_command_is_not_held_to_a_promise_for_another_code() -> None:
    told = story(MISSING).submit().says("Created").create("worker-0").ends("worker-0", 127).says("Failed")
    told.complete().is_unknown("EXIT-03", "which is permanent under kubeflow-api", contract="kubeflow-api")


# --- EXIT-14 -----------------------------------------------------------------------------------------------------

LOST = "tfjob-worker1-deleted-worker2"


def removed() -> Story:
    """The harness has deleted worker 1, and its container was stopped."""
    told = story(LOST).begin()
    detail = {"pod": f"{LOST}-worker-1", "uid": told.pod("worker-1").object["metadata"]["uid"], "how": "delete"}
    return told.act("remove-pod", detail=detail).asks_deletion("worker-1").ends("worker-1", 143)


def test_exit_14_passes_when_the_pod_is_replaced() -> None:
    removed().gone("worker-1").create("worker-1").runs("worker-1").complete().passes("EXIT-14", "was created again")


def test_exit_14_fails_when_the_job_ends_or_the_pod_is_not_replaced() -> None:
    removed().gone("worker-1").says("Failed").wait(10).complete().fails(
        "EXIT-14", "the job says Failed", "no other pod"
    )
    told = removed().gone("worker-1").says("Succeeded").create("worker-1").complete()
    told.fails("EXIT-14", "the job says Succeeded")
    removed().gone("worker-1").wait(11).complete().fails("EXIT-14", "worker-1 got no other pod within the 10 s")


def test_exit_14_is_unknown_where_the_node_was_slow_or_something_else_failed() -> None:
    removed().complete().is_unknown("EXIT-14", "the node has not removed")
    story(LOST).begin().complete().is_unknown("EXIT-14", "never came to the point")
    removed().gone("worker-1").create("worker-1").ends("worker-0", 9).says("Failed").complete().is_unknown(
        "EXIT-14", "which nobody asked for"
    )
    told = removed().gone("worker-1").create("worker-1").complete(witnessed=False)
    told.is_unknown("EXIT-14", "alive")


def test_a_pod_that_the_harness_removed_may_be_followed_by_another() -> None:
    told = removed().gone("worker-1").create("worker-1").complete()
    told.passes("INV-04", "was deleted from outside")
    told = story(LOST).begin().asks_deletion("worker-1").gone("worker-1").create("worker-1").complete()
    told.fails("INV-04", "took the place of a pod that had not failed")
