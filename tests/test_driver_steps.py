"""What the harness does to a job and its pods: removals, touches, the same name again, and what it waits for then."""

import pytest
from driver_support import QUIET, TIMES, Play, play
from history_builder import story

from exitcode_conformance.scenario import RemovePod
from exitcode_fixtures.scenario_driver import SKEW, Need
from exitcode_fixtures.scenario_requests import TOUCHED


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


@pytest.mark.parametrize("ps_is_held", [True, False])
def test_a_name_that_a_pod_of_the_former_job_holds_is_not_asked_for(ps_is_held: bool) -> None:
    seen = play("tfjob-made-again-ps1-worker1")
    told = seen.told.begin()
    former = {name: pod.object for name, pod in told.pods.items()}
    told.act("delete-job").job_removed().forget().submit().says("Created")
    for name, pod in former.items():
        if not (ps_is_held and name.endswith("-ps-0")):
            told.event("pods", "DELETED", pod)
    told.services("worker-0").create("worker-0").runs("worker-0").wait(TIMES.created * 2).complete()
    for requirement in ("IDENT-01", "IDENT-06"):
        if ps_is_held:
            told.is_unknown(requirement, "a pod of the former job held the name tfjob-made-again-ps1-worker1-ps-0")
        else:
            told.fails(requirement, "tfjob-made-again-ps1-worker1-ps-0")


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
    assert seen.driver.wake_at == pytest.approx(begin + TIMES.never / SKEW + TIMES.state - TIMES.never / 8)
