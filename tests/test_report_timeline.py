"""The time line of a scenario, as data, as text and drawn; whatever the objects look like."""

from pathlib import Path
from typing import Any

import pytest
from recording_support import recorded, scenarios

from exitcode_conformance.entry import Action, Entry, Event, WatchVerb
from exitcode_conformance.verdict import Verdict
from exitcode_reports.drawing import WIDTH, draw
from exitcode_reports.text_timeline import text_timeline
from exitcode_reports.timeline import extract

NAME = "tf-ps1-w3-worker-exit137"


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> tuple[Entry, ...]:
    """A scenario in which worker-0 ends with 137 and is restarted."""
    path: Path = tmp_path_factory.mktemp("recording") / "r.jsonl"
    return recorded(path, known=scenarios([137])).entries_of(NAME)


def event(seq: int, resource: str, object: dict[str, Any], verb: WatchVerb = "MODIFIED") -> Event:
    """An event at as many seconds as its number."""
    return Event(seq=seq, time=float(seq), scenario=None, resource=resource, verb=verb, object=object)


def pod(restarts: int, state: dict[str, Any], last: dict[str, Any] | None = None) -> dict[str, Any]:
    """A pod restarted in place."""
    container = {"name": "c", "restartCount": restarts, "state": state, "lastState": last or {}}
    return {
        "metadata": {"name": "j-worker-0", "uid": "u"},
        "status": {"phase": "Running", "containerStatuses": [container]},
    }


def test_the_states_of_the_job_follow_one_another(entries: tuple[Entry, ...]) -> None:
    timeline = extract(entries)
    assert [span.state for span in timeline.states] == ["New", "Created", "Running", "Restarting", "Running"]
    assert all(a.end == b.start for a, b in zip(timeline.states, timeline.states[1:], strict=False))
    assert timeline.states[0].start == timeline.start
    assert timeline.states[-1].end == timeline.end


def test_each_uid_is_a_life_of_its_own(entries: tuple[Entry, ...]) -> None:
    replicas = extract(entries).replicas()
    assert list(replicas) == ["ps-0", "worker-0", "worker-1", "worker-2"]
    first, second = replicas["worker-0"]
    assert (first.gone, second.gone) == (True, False)
    assert first.uid != second.uid
    assert first.end < second.start
    assert [mark.kind for mark in first.marks] == ["started", "exited", "deleting", "deleted"]
    assert [mark.code for mark in first.marks if mark.kind == "exited"] == [137]
    assert [span.state for span in first.phases] == ["Pending", "Running", "Failed"]
    assert [len(lives) for lives in replicas.values()] == [1, 2, 1, 1]


def test_a_restart_in_place_is_told_once() -> None:
    ended = {"terminated": {"exitCode": 7, "reason": "Error", "containerID": "a"}}
    lives = extract(
        [
            event(1, "pods", pod(0, {"running": {"startedAt": "1"}}), "ADDED"),
            event(2, "pods", pod(0, ended)),
            event(3, "pods", pod(0, {"waiting": {"reason": "CrashLoopBackOff"}}, ended)),
            event(4, "pods", pod(1, {"running": {"startedAt": "2"}}, ended)),
            event(5, "pods", pod(1, {"running": {"startedAt": "2"}}, ended)),
        ],
        job="j",
    ).lives
    assert [(mark.kind, mark.seq) for mark in lives[0].marks] == [("started", 1), ("exited", 2), ("restarted", 4)]
    assert lives[0].restarts == 1
    assert lives[0].replica == "worker-0"


def test_labels_tell_the_replica_where_the_name_does_not() -> None:
    labels = {"training.kubeflow.org/replica-type": "Worker", "training.kubeflow.org/replica-index": "3"}
    named = event(1, "pods", {"metadata": {"name": "odd", "uid": "u", "labels": labels}}, "ADDED")
    bare = event(2, "pods", {"metadata": {"name": "odder", "uid": "v"}}, "ADDED")
    assert [life.replica for life in extract([named, bare], job="j").lives] == ["worker-3", "odder"]


def test_a_job_of_kubernetes_has_a_lane_for_each_index_and_says_how_it_ended() -> None:
    owners = [{"kind": "Job", "name": "j", "controller": True}]
    annotations = {"batch.kubernetes.io/job-completion-index": "1"}
    first = {"metadata": {"name": "j-x7k2p", "uid": "u", "ownerReferences": owners}}
    second = {"metadata": {"name": "j-1-abcde", "uid": "v", "ownerReferences": owners, "annotations": annotations}}
    complete = {"type": "Complete", "status": "True"}
    job = {"kind": "Job", "metadata": {"name": "j", "uid": "w"}, "status": {"conditions": [complete]}}
    told = [event(1, "pods", first, "ADDED"), event(2, "pods", second, "ADDED"), event(3, "jobs", job)]
    timeline = extract(told, job="j")
    assert [life.replica for life in timeline.lives] == ["worker-0", "worker-1"]
    assert [span.state for span in timeline.states] == ["Succeeded"]


@pytest.mark.parametrize(
    "object",
    [
        {},
        {"metadata": None},
        {"metadata": [], "status": 7},
        {"metadata": {"name": 3, "uid": {}, "labels": "no"}, "status": {"conditions": {"a": 1}}},
        {"metadata": {"name": ""}, "status": {"containerStatuses": [None, 4, {"state": []}], "phase": []}},
        {"status": {"containerStatuses": [{"state": {"terminated": {"exitCode": "x"}}, "restartCount": "9"}]}},
        {"status": {"conditions": [{}, {"type": 1, "status": "True"}], "replicaStatuses": [1]}},
        {"involvedObject": "x", "reason": {}, "message": 5},
    ],
)
def test_odd_objects_are_passed_over(object: dict[str, Any]) -> None:
    odd: list[Entry] = [event(n, r, object) for n, r in enumerate(("pods", "tfjobs", "services", "events", "x"))]
    timeline = extract(odd)
    assert draw(timeline, odd, {0: {"EXIT-01": Verdict.PASS}}).lanes
    assert "service/" in text_timeline(odd, [1])


def test_the_text_shows_what_decided_and_what_was_around_it(entries: tuple[Entry, ...]) -> None:
    ended = next(e for e in entries if isinstance(e, Event) and e.object["status"].get("phase") == "Failed")
    lines = text_timeline(entries, [ended.seq], around=1).splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("  … ")
    assert lines[4].startswith("  … ")
    assert [line.startswith(">") for line in lines[1:4]] == [False, True, False]
    assert f"#{ended.seq} " in lines[2]
    assert f"pod/{NAME}-worker-0" in lines[2]
    assert "Failed, exit code 137 Error (uid 00000002)" in lines[2]
    assert " 1.100 s " in lines[2]


def test_the_whole_text_tells_the_story_in_order(entries: tuple[Entry, ...]) -> None:
    story = text_timeline(entries, around=None)
    told = [
        "harness",
        "appeared, New",
        "Created",
        "appeared, Pending",
        "Running, container running",
        "exit code 137",
        "Restarting",
        "being deleted",
        "deleted",
        "appeared, Pending",
        "complete",
    ]
    place = 0
    for words in told:
        place = story.index(words, place)
    assert "more …" not in story


def test_nothing_recorded_is_said() -> None:
    assert text_timeline([]) == "(nothing was recorded)"
    assert extract([]).lives == ()


def test_what_the_harness_tidies_up_is_no_part_of_the_time_line(entries: tuple[Entry, ...]) -> None:
    last = entries[-1]
    assert isinstance(last, Action)
    assert last.action == "complete"
    later = Event(
        seq=last.seq + 1,
        time=last.time + 1,
        scenario=NAME,
        resource="tfjobs",
        verb="DELETED",
        object={"metadata": {"name": NAME}},
    )
    assert text_timeline([*entries, later], around=None) == text_timeline(entries, around=None)


def test_text_from_a_cluster_cannot_move_the_cursor() -> None:
    told = text_timeline([event(1, "events", {"message": "a\x1b[2J\n\u202eb" + "x" * 1000, "reason": "\x07"})])
    assert told.isprintable()
    assert len(told) < 300


def test_the_drawing_keeps_within_its_bounds(entries: tuple[Entry, ...]) -> None:
    seqs = {entry.seq: {"EXIT-03": Verdict.PASS} for entry in entries}
    drawing = draw(extract(entries), entries, seqs)
    assert [lane.name for lane in drawing.lanes] == ["job", "ps-0", "worker-0", "worker-1", "worker-2"]
    for bar in drawing.bars:
        assert drawing.left <= bar.x <= bar.x + bar.width <= WIDTH
        assert 0 <= bar.y <= drawing.lanes_end
    assert [glyph.text for glyph in drawing.glyphs if glyph.kind == "bad"] == ["137"]
    assert sum(glyph.kind == "gone" for glyph in drawing.glyphs) == 1
    assert len(drawing.deciding) == len(entries)
    assert drawing.ticks[0][1] == "0 s"
    assert len(drawing.ticks) <= 11
    assert "worker-0: 2 pods, exit codes 137" in drawing.title


def test_pods_that_are_there_at_the_same_time_are_drawn_apart() -> None:
    one = event(1, "pods", {"metadata": {"name": "j-worker-0", "uid": "a"}}, "ADDED")
    two = event(2, "pods", {"metadata": {"name": "j-worker-0", "uid": "b"}}, "ADDED")
    drawing = draw(extract([one, two], job="j"), [one, two], {})
    assert len({bar.y for bar in drawing.bars}) == 2
