"""CLEAN-01 to CLEAN-04: pods and services of a job that has ended."""

import pytest
from history_builder import Story, story

NAME = "tfjob-clean-{}-exit{}-ps1-chief1-worker1"
WITH_ALL = "tfjob-deadline-clean-all-worker2"
DEFAULT = "tfjob-clean-default-exit0-worker2"


def ended(policy: str, code: int = 0) -> Story:
    """The chief has ended, the worker runs, and the parameter server is pending."""
    told = story(NAME.format(policy, code)).submit().says("Created").services("ps-0", "chief-0", "worker-0")
    told.create("ps-0", "chief-0", "worker-0").runs("chief-0", "worker-0").ends("chief-0", code)
    return told.says("Failed" if code else "Succeeded")


def remove(told: Story, *replicas: str, services: bool = True) -> Story:
    """The operator removes pods, and perhaps their services."""
    for replica in replicas:
        told.asks_deletion(replica).gone(replica)
        if services:
            told.drops_service(replica)
    return told


REQUIREMENT = {0: "CLEAN-01", 1: "CLEAN-02"}
GOING = {"none": (), "running": ("ps-0", "worker-0"), "all": ("ps-0", "chief-0", "worker-0")}


@pytest.mark.parametrize("code", [0, 1])
@pytest.mark.parametrize("policy", GOING)
def test_a_policy_is_met_by_what_it_says_and_by_nothing_else(policy: str, code: int) -> None:
    right = GOING[policy]
    remove(ended(policy, code), *right).complete().passes(REQUIREMENT[code])
    for replica in ("ps-0", "chief-0", "worker-0"):
        if replica in right:
            others = [r for r in right if r != replica]
            told = remove(ended(policy, code), *others).wait(11).complete()
            told.fails(REQUIREMENT[code], f"{replica}, which was", "was not deleted within the 10 s (`removal`)")
        else:
            told = remove(ended(policy, code), *right, replica).complete()
            told.fails(REQUIREMENT[code], f"{replica}, which was", "was deleted")


def test_a_pod_is_called_what_it_was() -> None:
    told = remove(ended("none"), "ps-0", "chief-0", "worker-0").complete()
    told.fails("CLEAN-01", "ps-0, which was pending", "chief-0, which was finished", "worker-0, which was running")


def test_cleaning_up_too_late_names_the_bound() -> None:
    told = remove(ended("all").wait(12), "ps-0", "chief-0", "worker-0").complete()
    told.fails("CLEAN-01", "the bound `removal` is 10 s")


def test_cleaning_up_before_saying_so_is_cleaning_up() -> None:
    told = story(WITH_ALL).begin().wait(6)
    remove(told, "worker-0", "worker-1").says("Failed").complete().passes("CLEAN-02")


def test_a_pod_that_was_deleted_for_a_restart_is_not_asked_for() -> None:
    name = "pytorchjob-worker-exit137-limit1-master1-worker1"
    told = story(name).begin().restart("worker-0", 137).ends("worker-0", 137).says("Failed")
    remove(told, "master-0").complete().passes("CLEAN-02", "master-0 was deleted")
    told = story(name).begin().ends("worker-0", 137).says("Restarting").asks_deletion("worker-0").gone("worker-0")
    told.says("Failed").complete().is_unknown("CLEAN-02", "there was no pod of worker-0 when the job ended")


def test_a_pod_that_went_wrong_decides_although_another_was_never_there() -> None:
    told = story(NAME.format("none", 0)).submit().says("Created").create("ps-0", "chief-0").runs("chief-0")
    told.ends("chief-0", 0).says("Succeeded")
    remove(told, "chief-0").complete().fails("CLEAN-01", "chief-0, which was finished, was deleted")


def test_it_is_unknown_where_the_job_did_not_end_so_or_nobody_was_alive() -> None:
    ended("none", 1).complete(witnessed=False).is_unknown("CLEAN-02", "alive")
    told = story(NAME.format("all", 0)).begin().wait(20).complete()
    told.is_unknown("CLEAN-01", "the job never became Succeeded")
    told = ended("all").complete(window=1)
    told.is_unknown("CLEAN-01", "was not deleted, but only")
    told = story(NAME.format("all", 1)).begin().ends("worker-0", 9).says("Failed").complete()
    told.is_unknown("CLEAN-02", "which nobody asked for")


# --- CLEAN-03 ----------------------------------------------------------------------------------------------------


def test_clean_03_passes_when_services_go_with_their_pods() -> None:
    remove(ended("all"), "ps-0", "chief-0", "worker-0").complete().passes("CLEAN-03")
    remove(ended("running"), "ps-0", "worker-0").complete().passes("CLEAN-03", "worker-0 was removed")


def test_clean_03_fails_when_a_service_stays_or_goes_too_late() -> None:
    told = remove(ended("all"), "ps-0", "chief-0", "worker-0", services=False).wait(11).complete()
    told.fails("CLEAN-03", "chief-0 was not deleted", "within the 10 s (`removal`)")
    told = remove(ended("running"), "ps-0", "worker-0", services=False).wait(12)
    told.drops_service("ps-0").drops_service("worker-0").complete().fails("CLEAN-03", "the bound `removal` is 10 s")


def test_clean_03_is_unknown_without_a_pod_that_went_or_a_service() -> None:
    ended("all").complete().is_unknown("CLEAN-03", "no pod that has a service was cleaned up")
    told = story(NAME.format("all", 0)).begin().wait(20).complete()
    told.is_unknown("CLEAN-03", "never became Succeeded or Failed")
    told = remove(ended("all"), "ps-0").act("watch-gap", of_the_run=True, detail={"resource": "services"})
    told.complete().is_unknown("CLEAN-03", "the watch on services was interrupted")


# --- CLEAN-04 ----------------------------------------------------------------------------------------------------


def by_default(policy: str | None) -> Story:
    """Worker 0 has ended with 0 and worker 1 runs, under an operator that declares this default."""
    told = story(DEFAULT, default_policy=policy).begin().ends("worker-0", 0)
    return told.says("Succeeded")


@pytest.mark.parametrize(
    ("policy", "going"), [("None", ()), ("Running", ("worker-1",)), ("All", ("worker-0", "worker-1"))]
)
def test_clean_04_holds_the_operator_to_its_own_word(policy: str, going: tuple[str, ...]) -> None:
    remove(by_default(policy), *going).complete().passes("CLEAN-04", *(f"{r} was deleted" for r in going[:1]))
    if going:
        by_default(policy).wait(11).complete().fails("CLEAN-04", "was not deleted")
    else:
        remove(by_default(policy), "worker-1").complete().fails("CLEAN-04", "was deleted")


def test_clean_04_is_unknown_where_nothing_is_declared() -> None:
    by_default(None).complete().is_unknown("CLEAN-04", "declares no default")
