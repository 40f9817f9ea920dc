"""In which order events happened, whatever order they arrived in."""

from typing import Any

from history_builder import story

from exitcode_conformance.entry import Action, Entry, Event
from exitcode_conformance.ordering import in_order


def event(seq: int, resource: str, version: object) -> Event:
    """A watch event with a resourceVersion."""
    item = {"metadata": {"name": f"{resource}-{version}", "resourceVersion": version}}
    return Event(seq=seq, time=seq, scenario="s", resource=resource, verb="MODIFIED", object=item)


def action(seq: int) -> Action:
    """Something the harness did."""
    return Action(seq=seq, time=seq, scenario="s", action="set-outcome")


def names(entries: tuple[Entry, ...]) -> list[Any]:
    """What stands there: names of objects, and names of actions."""
    return [e.metadata["name"] if isinstance(e, Event) else e.action for e in entries]


def test_an_order_that_is_right_stays_as_it_is() -> None:
    entries = (event(1, "pods", "5"), action(4), event(7, "tfjobs", "6"))
    assert in_order(entries) == (entries, {})
    assert in_order(()) == ((), {})


def test_what_happened_first_comes_first() -> None:
    ordered, lines = in_order((event(2, "tfjobs", "11"), event(5, "pods", "10"), event(9, "pods", "12")))
    assert names(ordered) == ["pods-10", "tfjobs-11", "pods-12"]
    assert [e.seq for e in ordered] == [2, 5, 9]
    assert lines == {2: 5, 5: 2}, "each number leads back to the line of the recording"
    assert [e.time for e in ordered] == [5, 2, 9], "the time stays that of its arrival"


def test_actions_and_core_events_keep_their_place_of_arrival() -> None:
    ordered, _ = in_order((event(1, "pods", "20"), action(2), event(3, "events", "7"), event(4, "tfjobs", "15")))
    assert names(ordered) == ["tfjobs-15", "pods-20", "set-outcome", "events-7"]


def test_an_action_stays_before_what_was_done_after_it() -> None:
    ordered, _ = in_order((event(1, "pods", "20"), action(2), event(3, "tfjobs", "22"), event(4, "pods", "21")))
    assert names(ordered) == ["pods-20", "set-outcome", "pods-21", "tfjobs-22"]


def test_versions_that_are_no_numbers_keep_their_place_of_arrival() -> None:
    for version in ("abc", "", None, "1.5", "-3"):
        ordered, _ = in_order((event(1, "pods", "20"), event(2, "tfjobs", version), event(3, "pods", "21")))
        assert names(ordered) == ["pods-20", f"tfjobs-{version}", "pods-21"]
    bare = Event(seq=2, time=2, scenario="s", resource="pods", verb="ADDED", object={})
    assert in_order((event(1, "pods", "20"), bare))[0] == (event(1, "pods", "20"), bare)


def test_long_versions_are_numbers_and_not_words() -> None:
    ordered, _ = in_order((event(1, "pods", "100"), event(2, "tfjobs", "99")))
    assert names(ordered) == ["tfjobs-99", "pods-100"]


def test_the_end_of_a_history_stays_its_end() -> None:
    told = story("tfjob-worker-exit1-worker1").begin()
    with told.held_back("pods"):
        told.ends("worker-0", 1).says("Failed")
    history = told.complete().history()
    assert isinstance(history.entries[-1], Action)
    assert history.entries[-1].action == "complete"
    terminal = history.terminal
    ended = history.attempts("worker-0")[0].ended
    assert terminal is not None
    assert ended is not None
    assert ended.seq < terminal[1].seq
    assert ended.time > terminal[1].time
    assert {history.lines[ended.seq], history.lines[terminal[1].seq]} == {ended.seq, terminal[1].seq}
