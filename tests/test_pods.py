"""Incarnations and attempts: what the statuses of pods tell, in every form that kubelets give them."""

from collections.abc import Sequence
from typing import Any

import pytest

from exitcode_conformance.adapters import ADAPTERS
from exitcode_conformance.pods import MOST_RUNS, Incarnation, PodVersion

Json = dict[str, Any]
RUNNING: Json = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
WAITING: Json = {"waiting": {"reason": "CrashLoopBackOff"}}


def ended(code: int, container: str = "") -> Json:
    """A terminated state."""
    found: Json = {"exitCode": code, "reason": "Error"}
    return {"terminated": {**found, "containerID": container} if container else found}


def pod(*statuses: Json | None, phases: Sequence[str] = (), deleted: bool = False) -> Incarnation:
    """A pod whose training container had these statuses, one version each."""
    versions = []
    for number, status in enumerate(statuses):
        phase = phases[number] if number < len(phases) else "Running"
        item: Json = {"metadata": {"uid": "u", "name": "p"}, "status": {"phase": phase}}
        if status is not None:
            item["status"]["containerStatuses"] = [{"name": "other"}, {"name": "tensorflow", **status}]
        versions.append(PodVersion(seq=number + 1, time=float(number), verb="MODIFIED", object=item))
    if deleted:
        versions.append(PodVersion(seq=99, time=99.0, verb="DELETED", object=versions[-1].object))
    return Incarnation(replica="worker-0", versions=tuple(versions))


def seen(incarnation: Incarnation) -> list[tuple[int | None, int | None]]:
    """Of each attempt: the line of its start, and its code."""
    attempts = incarnation.attempts("tensorflow", first=1)
    return [(a.started_seq, a.ended.code if a.ended else None) for a in attempts]


@pytest.mark.parametrize(
    ("statuses", "attempts"),
    [
        ([None], [(None, None)]),
        ([{"state": WAITING}], [(None, None)]),
        ([{}], [(None, None)]),
        ([{"state": None, "lastState": None, "restartCount": None}], [(None, None)]),
        ([{"state": RUNNING, "restartCount": 0}], [(1, None)]),
        ([{"state": RUNNING}, {"state": ended(7)}], [(1, 7)]),
        ([{"state": ended(7)}], [(None, 7)]),
        # A restart: told by the next run alone, or by every step of it.
        ([{"state": RUNNING}, {"state": RUNNING, "lastState": ended(7), "restartCount": 1}], [(1, 7), (2, None)]),
        (
            [
                {"state": RUNNING, "restartCount": 0},
                {"state": ended(7, "c1"), "restartCount": 0},
                {"state": WAITING, "lastState": ended(7, "c1"), "restartCount": 0},
                {"state": RUNNING, "lastState": ended(7, "c1"), "restartCount": 1},
                {"state": ended(8, "c2"), "lastState": ended(7, "c1"), "restartCount": 1},
                {"state": WAITING, "lastState": ended(8, "c2"), "restartCount": 1},
                {"state": RUNNING, "lastState": ended(8, "c2"), "restartCount": 2},
            ],
            [(1, 7), (4, 8), (7, None)],
        ),
        # Waiting is told without the end before it.
        (
            [{"state": RUNNING}, {"state": WAITING, "lastState": ended(7), "restartCount": 0}],
            [(1, 7)],
        ),
        # No state at all is one of waiting.
        ([{"state": RUNNING}, {"state": {}, "lastState": ended(7), "restartCount": 0}], [(1, 7)]),
        # Two restarts are told at once.
        (
            [{"state": RUNNING}, {"state": RUNNING, "lastState": ended(8), "restartCount": 2}],
            [(1, None), (None, 8), (2, None)],
        ),
        # One end is not taken for two.
        (
            [
                {"state": ended(7, "c1"), "restartCount": 0},
                {"state": WAITING, "lastState": ended(7, "c1"), "restartCount": 1},
            ],
            [(None, 7), (None, None)],
        ),
    ],
)
def test_attempts_follow_from_the_statuses(
    statuses: list[Json | None], attempts: list[tuple[int | None, int | None]]
) -> None:
    assert seen(pod(*statuses)) == attempts


def test_attempts_in_place_begin_where_they_are_first_told() -> None:
    told = pod({"state": RUNNING}, {"state": RUNNING, "lastState": ended(8), "restartCount": 2})
    attempts = told.attempts("tensorflow", first=4)
    assert [(a.number, a.in_place, a.created_seq) for a in attempts] == [(4, False, 1), (5, True, 2), (6, True, 2)]
    assert told.restart_count() == 2


def test_an_end_is_known_to_be_asked_for() -> None:
    def end(deletion: int | None, verb: str = "MODIFIED") -> bool:
        versions = []
        for number, state in enumerate((RUNNING, RUNNING, ended(1))):
            metadata: Json = {"uid": "u", "name": "p"}
            if deletion is not None and number >= deletion:
                metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            item = {"metadata": metadata, "status": {"containerStatuses": [{"name": "tensorflow", "state": state}]}}
            last = verb if number == 2 else "MODIFIED"
            versions.append(PodVersion(seq=number, time=0.0, verb=last, object=item))
        (attempt,) = Incarnation(replica="worker-0", versions=tuple(versions)).attempts("tensorflow", first=1)
        assert attempt.ended is not None
        return attempt.ended.stopped

    assert not end(None)
    assert end(1)
    assert end(2)
    assert end(None, "DELETED")


def test_only_the_training_container_counts() -> None:
    assert pod({"state": ended(3)}).attempts("sidecar", first=1)[0].ended is None


def test_a_pod_lives_until_it_ends_or_goes() -> None:
    assert pod(None, phases=["Pending"]).not_live is None
    assert pod(None, None, phases=["Running", "Failed"]).not_live == 2
    assert pod(None, phases=["Running"], deleted=True).not_live == 99
    assert pod(None, None, phases=["Running", "Succeeded"], deleted=True).not_live == 2


def marked(incarnation: Incarnation, position: int) -> Incarnation:
    """The pod with a deletionTimestamp from one version on."""
    versions = []
    for number, version in enumerate(incarnation.versions):
        stamp = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if number >= position else {}
        item = {**version.object, "metadata": {**version.object["metadata"], **stamp}}
        versions.append(PodVersion(seq=version.seq, time=version.time, verb=version.verb, object=item))
    return Incarnation(replica=incarnation.replica, versions=tuple(versions))


def test_a_pod_failed_by_itself_if_it_did_so_before_anybody_asked_for_its_deletion() -> None:
    told = pod(None, None, None, phases=["Running", "Failed", "Failed"], deleted=True)
    for incarnation in (told, marked(told, 2)):
        assert incarnation.failed_by_itself is not None
        assert incarnation.failed_by_itself.seq == 2
    assert marked(told, 1).failed_by_itself is None
    assert marked(told, 0).failed_by_itself is None
    assert pod(None, phases=["Succeeded"]).failed_by_itself is None
    asked = marked(told, 1).deletion_asked
    assert asked is not None
    assert asked.seq == 2
    assert told.deletion_asked is told.deleted


def test_a_disruption_is_seen_by_its_condition_or_its_reason() -> None:
    def disrupted(**status: Any) -> bool:
        item = {"metadata": {"uid": "u", "name": "p"}, "status": status}
        return Incarnation(
            replica=None, versions=(PodVersion(seq=1, time=0.0, verb="MODIFIED", object=item),)
        ).was_disrupted

    assert disrupted(reason="Evicted")
    assert disrupted(conditions=[{"type": "DisruptionTarget", "status": "True"}])
    assert not disrupted(conditions=[{"type": "DisruptionTarget", "status": "False"}])
    assert not disrupted(conditions=None)
    assert not disrupted()


@pytest.mark.parametrize(
    ("name", "labels", "replica"),
    [
        ("job-worker-0", {}, "worker-0"),
        ("job-ps-12", None, "ps-12"),
        ("job-my-type-3", {}, "my-type-3"),
        ("job-worker-0", {"training.kubeflow.org/replica-type": "ps"}, "worker-0"),
        ("job-worker-x", {}, None),
        ("job-worker-0-12345", {}, None),
        ("job-worker-0-12345", {"replica-type": "worker", "replica-index": "0"}, "worker-0"),
        ("job-0", {}, None),
        ("job", {}, None),
        ("other-worker-0", {}, None),
        ("x", {"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "2"}, "worker-2"),
        ("x", {"replica-type": "Worker", "replica-index": "1"}, "worker-1"),
        ("x", {"tf-replica-type": "PS", "tf-replica-index": "0"}, "ps-0"),
        ("x", {"replica-type": "worker", "tf-replica-index": "0"}, None),
    ],
)
def test_a_pod_stands_for_a_replica_by_its_name_or_its_labels(
    name: str, labels: dict[str, str] | None, replica: str | None
) -> None:
    assert ADAPTERS["kubeflow"].replica_of({"metadata": {"name": name, "labels": labels}}, "job") == replica


INDEX = "batch.kubernetes.io/job-completion-index"


@pytest.mark.parametrize(
    ("metadata", "replica"),
    [
        ({"name": "job-x7k2p"}, "worker-0"),
        ({"name": "job-24567", "annotations": {}}, "worker-0"),
        ({"name": "job-2-x7k2p", "annotations": {INDEX: "2"}}, "worker-2"),
        ({"name": "job-2-x7k2p", "labels": {INDEX: "1"}}, "worker-1"),
        ({"name": "job-2-x7k2p", "annotations": {INDEX: "two"}}, None),
    ],
)
def test_a_pod_of_a_job_of_kubernetes_is_known_by_its_completion_index(metadata: Json, replica: str | None) -> None:
    assert ADAPTERS["batch"].replica_of({"metadata": metadata}, "job") == replica


def test_no_number_of_restarts_takes_for_ever() -> None:
    assert len(pod({"state": RUNNING, "restartCount": 2**62}).attempts("tensorflow", first=1)) == MOST_RUNS + 1
