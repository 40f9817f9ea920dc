"""IDENT-06 and IDENT-07: services, and the pod template's own restartPolicy."""

from collections.abc import Callable

import pytest
from history_builder import Story, story
from job_objects import Json

KILLED = "tfjob-worker-exit137-worker3"
ONE = "tfjob-worker-exit1-worker3"
TEMPLATE = "tfjob-template-exit137-worker1"


def test_ident_06_passes_when_each_replica_has_its_service() -> None:
    story(KILLED).begin().complete().passes("IDENT-06", "-worker-0 was created, before pod ")
    story(KILLED, generation="v1.4").begin().restart("worker-0", 137).complete().passes("IDENT-06")


def test_ident_06_passes_when_services_come_after_the_pods() -> None:
    told = story(KILLED, has_services=False).begin().services(*story(KILLED).replicas)
    told.complete().passes("IDENT-06")


def test_ident_06_fails_when_a_service_is_missing() -> None:
    told = story(KILLED, has_services=False).begin().services("worker-0").complete()
    told.fails("IDENT-06", f"there was no service {KILLED}-worker-1, {KILLED}-worker-2")
    story(KILLED, has_services=False).begin().complete().fails("IDENT-06", "within the 4 s (`never`)")


def test_ident_06_fails_when_services_come_too_late() -> None:
    told = story(KILLED, has_services=False).begin().wait(11).services(*story(KILLED).replicas)
    told.complete().fails("IDENT-06", "the bound `created` is 10 s")


def test_ident_06_holds_a_service_against_its_own_pod() -> None:
    # The name of worker-2 is taken by a pod of an older job for longer than the bound.
    early, late = ("worker-0", "worker-1"), "worker-2"
    told = story(KILLED, has_services=False).submit().services(*early).create(*early).wait(30).services(late)
    told.create(late).runs(*early, late).complete().passes("IDENT-06")
    told = story(KILLED, has_services=False).submit().services(*early).create(*early).wait(30).create(late)
    told.runs(*early, late).wait(11).services(late).complete().fails(
        "IDENT-06", f"after pod {KILLED}-{late} was created"
    )


def address(spec: Json) -> None:
    spec["clusterIP"] = "10.96.0.7"


def nothing(spec: Json) -> None:
    spec["selector"] = {}


def another(spec: Json) -> None:
    spec["selector"]["training.kubeflow.org/replica-index"] = "7"


def everybody(spec: Json) -> None:
    del spec["selector"]["training.kubeflow.org/replica-index"]


@pytest.mark.parametrize(
    ("spoil", "seen"),
    [
        (address, "has the address 10.96.0.7: it is not headless"),
        (nothing, "selects nothing"),
        (another, "selects training.kubeflow.org/replica-index=7, which its pod is not"),
        (everybody, f"selects {KILLED}-worker-0, {KILLED}-worker-2 too"),
    ],
)
def test_ident_06_fails_on_a_service_that_does_not_lead_to_its_pod(spoil: Callable[[Json], None], seen: str) -> None:
    told = story(KILLED, has_services=False).submit().says("Created")
    told.services(*told.replicas)
    for event in told.entries:
        if event.type == "event" and event.resource == "services" and event.metadata["name"].endswith("-1"):
            spoil(event.object["spec"])
    told.create(*told.replicas).runs(*told.replicas).complete().fails("IDENT-06", f"service {KILLED}-worker-1 {seen}")


def test_ident_06_is_unknown_where_it_did_not_come_to_that() -> None:
    story(KILLED).submit().complete().is_unknown("IDENT-06", "never created a pod")
    told = story(ONE, has_services=False).submit().says("Created").services("worker-0").create("worker-0")
    told.ends("worker-0", 1).says("Failed").complete().is_unknown("IDENT-06", "the job ended before the service")
    told = story(KILLED, has_services=False).begin().complete(window=1)
    told.is_unknown("IDENT-06", "there was no service", "but only")
    told = story(KILLED).begin().act("watch-gap", of_the_run=True, detail={"resource": "services"}).complete()
    told.is_unknown("IDENT-06", "the watch on services was interrupted")


# --- IDENT-07 ----------------------------------------------------------------------------------------------------


def with_policy(policy: str) -> Story:
    """The operator gives its pod this restartPolicy."""
    told = story(TEMPLATE).submit().says("Created")
    manifest = told.manifest("worker-0")
    manifest["spec"]["restartPolicy"] = policy
    return told.create("worker-0", manifest=manifest)


def test_ident_07_holds_pods_to_the_policy_of_their_replica() -> None:
    story(TEMPLATE).begin().complete().passes("IDENT-07")
    with_policy("Never").complete().passes("IDENT-07")
    with_policy("Always").complete().fails("IDENT-07", "has restartPolicy Always; its template says Always")


def test_ident_07_is_unknown_without_pods() -> None:
    story(TEMPLATE).submit().complete().is_unknown("IDENT-07", "never created a pod")
    told = story(TEMPLATE).submit()
    manifest = told.manifest("worker-0")
    manifest["metadata"]["name"] = f"{TEMPLATE}-ps-0"
    told.create(manifest=manifest)
    told.create("ps-0", manifest=manifest).complete().is_unknown("IDENT-07", "stands for a replica whose template")
