"""The pure parts of the node: phases and conditions, back-off, placement, quantities, expansion of variables."""

from typing import Any

import pytest

from exitcode_fixtures.embedded.node.backoff import BackOff, duration_text
from exitcode_fixtures.embedded.node.environment import expand
from exitcode_fixtures.embedded.node.placement import NodeFacts, obstacle
from exitcode_fixtures.embedded.node.quantity import resource_value
from exitcode_fixtures.embedded.node.status import (
    ContainerView,
    PodView,
    RestartPolicy,
    Running,
    State,
    Terminated,
    Waiting,
    full_image_name,
    pod_phase,
    pod_status,
)

RUNNING = Running(started_at=100.0, container_id="containerd://r")
WAITING = Waiting(reason="ContainerCreating")


def ended(code: int) -> Terminated:
    reason = "Error" if code else "Completed"
    return Terminated(exit_code=code, reason=reason, started_at=90.0, finished_at=99.0, container_id="containerd://e")


def view(
    policy: RestartPolicy, *states: State, init: tuple[State, ...] = (), last: Terminated | None = None
) -> PodView:
    def containers(kind: str, all_states: tuple[State, ...]) -> list[ContainerView]:
        return [
            ContainerView(name=f"{kind}{i}", image="busybox", image_id="sha256:1", state=state, last=last)
            for i, state in enumerate(all_states)
        ]

    return PodView(
        restart_policy=policy,
        init_containers=containers("i", init),
        containers=containers("c", states),
        host_ip="127.0.0.1",
        pod_ip=None,
        start_time=80.0,
    )


@pytest.mark.parametrize(
    ("phase", "seen"),
    [
        ("Pending", view("Never", WAITING)),
        ("Pending", view("Never", RUNNING, WAITING)),
        ("Running", view("Never", RUNNING, ended(1))),
        ("Running", view("Always", ended(0), ended(0))),
        ("Running", view("OnFailure", ended(1), ended(0))),
        ("Succeeded", view("OnFailure", ended(0), ended(0))),
        ("Succeeded", view("Never", ended(0), ended(0))),
        ("Failed", view("Never", ended(0), ended(137))),
        ("Running", view("Always", Waiting(reason="CrashLoopBackOff"), last=ended(1))),
        ("Failed", view("Never", Waiting(reason="PodInitializing"), init=(ended(1),))),
        ("Pending", view("OnFailure", Waiting(reason="PodInitializing"), init=(ended(1),))),
        ("Pending", view("Never", Waiting(reason="PodInitializing"), init=(ended(0), RUNNING))),
        ("Running", view("Never", RUNNING, init=(ended(0),))),
    ],
)
def test_phase(phase: str, seen: PodView) -> None:
    assert pod_phase(seen) == phase


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    first = pod_status(view("Never", RUNNING, RUNNING), {"qosClass": "Burstable"}, now=100)
    second = pod_status(view("Never", RUNNING, ended(0)), first, now=200)
    third = pod_status(view("Never", ended(1), ended(0)), second, now=300)

    def times(status: dict[str, Any]) -> dict[str, str]:
        return {condition["type"]: condition["lastTransitionTime"] for condition in status["conditions"]}

    assert times(first) == dict.fromkeys(times(first), "1970-01-01T00:01:40Z")
    assert (
        times(second)
        == times(third)
        == {**times(first)} | dict.fromkeys(("Ready", "ContainersReady"), "1970-01-01T00:03:20Z")
    )
    assert third["qosClass"] == "Burstable"


def test_what_others_say_of_a_pod_is_kept() -> None:
    gate = {"type": "example.com/gate", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status = pod_status(view("Never", RUNNING), {"conditions": [gate]}, now=100)
    assert gate in status["conditions"]


def test_backoff_doubles_up_to_five_minutes_and_forgets_after_ten() -> None:
    backoff = BackOff()
    now, waits = 1000.0, []
    for _ in range(8):
        ended_at = now + 1
        waits.append(backoff.wait_after(ended_at))
        now = ended_at + waits[-1]
        backoff.restarted(ended_at, now)
    assert waits == [0, 10, 20, 40, 80, 160, 300, 300]
    assert backoff.wait_after(now + 600) == 300
    assert backoff.wait_after(now + 601) == 0
    backoff.restarted(now + 601, now + 601)
    assert backoff.wait_after(now + 602) == 10
    assert [duration_text(seconds) for seconds in (10, 80, 300)] == ["10s", "1m20s", "5m0s"]


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)/$(B)", "1/two"),
        ("$(C)", "$(C)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$", "$"),
        ("$A ${A} $", "$A ${A} $"),
        ("$(A", "$(A"),
    ],
)
def test_expansion(text: str, expanded: str) -> None:
    assert expand(text, {"A": "1", "B": "two"}) == expanded


@pytest.mark.parametrize(
    ("quantity", "divisor", "value"),
    [("1500m", "1m", 1500), ("1500m", "0", 2), ("100Mi", "1Mi", 100), ("1e3", "1", 1000), ("129M", "1Mi", 124)],
)
def test_resource_value(quantity: str, divisor: str, value: int) -> None:
    assert resource_value(quantity, divisor) == value


@pytest.mark.parametrize("quantity", ["", "1..5", "5X", "m"])
def test_no_quantity(quantity: str) -> None:
    with pytest.raises(ValueError, match="not a resource quantity"):
        resource_value(quantity, "1")


def affinity(**expression: Any) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "disk", **expression}]}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    }


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        ({}, True),
        ({"nodeSelector": {"disk": "ssd"}}, True),
        ({"nodeSelector": {"disk": "hdd"}}, False),
        (affinity(operator="In", values=["ssd"]), True),
        (affinity(operator="NotIn", values=["ssd"]), False),
        (affinity(operator="Exists"), True),
        (affinity(operator="DoesNotExist"), False),
        (affinity(operator="Gt", values=["1"]), False),
    ],
)
def test_placement(spec: dict[str, Any], fits: bool) -> None:
    node = NodeFacts(name="node", address="127.0.0.1", labels={"disk": "ssd"}, capacity={"cpu": "2"})
    assert (obstacle({"metadata": {}, "spec": {"containers": [], **spec}}, node) is None) == fits


@pytest.mark.parametrize(
    ("image", "full"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("library/busybox:1", "docker.io/library/busybox:1"),
        ("example.com/a/busybox", "example.com/a/busybox:latest"),
        ("localhost:5000/busybox:1", "localhost:5000/busybox:1"),
    ],
)
def test_image_name(image: str, full: str) -> None:
    assert full_image_name(image) == full
