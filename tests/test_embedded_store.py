"""The store keeps its promises to watchers: nothing missed, nothing twice, in order, encoded once."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from exitcode_fixtures.embedded.store import Compacted, Event, Key, KeyMissing, KeyTaken, Store, Subscription


def thing(name: str, **fields: Any) -> dict[str, Any]:
    return {"kind": "Thing", "apiVersion": "v1", "metadata": {"name": name}, **fields}


def key(name: str, namespace: str = "ns", resource: str = "things") -> Key:
    return Key(resource, namespace, name)


def nothing() -> None:
    """A watcher that looks by itself."""


def seen(events: list[Event]) -> list[tuple[str, str, int]]:
    return [(event.verb, event.record.key.name, event.revision) for event in events]


def watch(store: Store, since: int | None = None, namespace: str | None = None) -> Subscription:
    return store.watch("things", namespace, nothing, since=since)[0]


def test_every_change_takes_the_next_revision_and_carries_it() -> None:
    store = Store()
    created = store.create(key("a"), thing("a"))
    updated = store.update(key("a"), thing("a", data=1))
    deleted = store.delete(key("a"))
    versions = [record.object["metadata"]["resourceVersion"] for record in (created, updated, deleted)]
    assert versions == ["1", "2", "3"]
    assert deleted.object["data"] == 1
    assert store.revision == 3


def test_a_key_is_taken_once_and_missing_when_it_is() -> None:
    store = Store()
    store.create(key("a"), thing("a"))
    with pytest.raises(KeyTaken):
        store.create(key("a"), thing("a"))
    with pytest.raises(KeyMissing):
        store.update(key("b"), thing("b"))
    with pytest.raises(KeyMissing):
        store.delete(key("b"))
    assert store.revision == 1


def test_records_are_sorted_by_namespace_and_name() -> None:
    store = Store()
    for namespace, name in (("b", "1"), ("a", "2"), ("a-b", "0"), ("a", "10")):
        store.create(key(name, namespace), thing(name))
    store.create(key("x", "a", "others"), thing("x"))
    assert [(r.key.namespace, r.key.name) for r in store.records("things")] == [
        ("a", "10"),
        ("a", "2"),
        ("a-b", "0"),
        ("b", "1"),
    ]
    assert [r.key.name for r in store.records("things", "a")] == ["10", "2"]
    assert store.records("things", "c") == []
    assert store.records("nothing") == []


def test_a_watcher_sees_what_is_there_and_then_each_change_once() -> None:
    store = Store()
    store.create(key("a"), thing("a"))
    subscription, present = store.watch("things", None, nothing)
    store.update(key("a"), thing("a", data=1))
    store.create(key("b"), thing("b"))
    store.delete(key("a"))
    assert [record.revision for record in present] == [1]
    assert seen(subscription.take()) == [("MODIFIED", "a", 2), ("ADDED", "b", 3), ("DELETED", "a", 4)]
    assert subscription.take() == []


@pytest.mark.parametrize("since", range(9))
def test_a_watcher_that_comes_back_misses_and_repeats_nothing(since: int) -> None:
    store = Store()
    for number in range(4):
        store.create(key(str(number)), thing(str(number)))
    subscription = watch(store, since)
    for number in range(4):
        store.delete(key(str(number)))
    assert [event.revision for event in subscription.take()] == list(range(since + 1, 9))


def test_watchers_are_kept_to_their_resource_and_namespace() -> None:
    store = Store()
    one, everything = watch(store, namespace="ns"), store.watch(None, None, nothing)[0]
    store.create(key("a"), thing("a"))
    store.create(key("a", "other"), thing("a"))
    store.create(key("a", "ns", "others"), thing("a"))
    assert [event.revision for event in one.take()] == [1]
    assert [event.revision for event in everything.take()] == [1, 2, 3]


def test_a_watcher_is_woken_when_something_waits() -> None:
    store, woken = Store(), []
    subscription, _ = store.watch("things", None, lambda: woken.append(store.revision))
    store.create(key("a"), thing("a"))
    store.create(key("b"), thing("b"))
    assert woken == [1]
    subscription.take()
    store.delete(key("a"))
    assert woken == [1, 3]


def test_a_closed_watcher_hears_nothing() -> None:
    store = Store()
    subscription = watch(store)
    subscription.close()
    subscription.close()
    store.create(key("a"), thing("a"))
    assert subscription.take() == []


def test_a_watcher_may_close_another_while_an_event_goes_round() -> None:
    store = Store()
    later: list[Callable[[], None]] = []
    store.watch("things", None, lambda: later[0]())
    second, third = watch(store), watch(store)
    later.append(second.close)
    store.create(key("a"), thing("a"))
    assert len(third.take()) == 1


def test_a_watcher_that_is_too_slow_is_told_so() -> None:
    store = Store(backlog=2)
    subscription = watch(store)
    for number in range(3):
        store.create(key(str(number)), thing(str(number)))
    assert subscription.overrun
    store.create(key("more"), thing("more"))
    assert len(subscription.take()) == 2


def test_forgotten_history_is_refused_and_the_rest_is_not() -> None:
    store = Store()
    for number in range(4):
        store.create(key(str(number)), thing(str(number)))
    store.compact(2)
    with pytest.raises(Compacted) as refused:
        watch(store, 1)
    assert (refused.value.wanted, refused.value.oldest) == (1, 2)
    with pytest.raises(Compacted):
        store.records("things", at=1)
    assert [event.revision for event in watch(store, 2).take()] == [3, 4]


def test_history_is_forgotten_by_itself_and_never_the_newest() -> None:
    store = Store(history=10)
    store.create(key("a"), thing("a"))
    for number in range(100):
        store.update(key("a"), thing("a", number=number))
    assert 90 <= store.compacted < store.revision
    assert [event.revision for event in watch(store, store.compacted).take()] == list(
        range(store.compacted + 1, store.revision + 1)
    )


def test_a_list_of_an_earlier_revision_is_what_it_was_then() -> None:
    store, then = Store(), {}

    def note() -> None:
        then[store.revision] = [json.loads(b"{" + record.encoded) for record in store.records("things")]

    steps: list[Callable[[], object]] = [
        lambda: store.create(key("b"), thing("b", data=1)),
        lambda: store.create(key("a"), thing("a")),
        lambda: store.update(key("b"), thing("b", data=2)),
        lambda: store.create(key("x", resource="others"), thing("x")),
        lambda: store.delete(key("a")),
        lambda: store.create(key("a", "z"), thing("a")),
        lambda: store.delete(key("b")),
    ]
    for step in steps:
        step()
        note()
    for revision, objects in then.items():
        assert [json.loads(b"{" + r.encoded) for r in store.records("things", at=revision)] == objects


def test_an_object_is_encoded_once_without_kind_and_version() -> None:
    store = Store()
    first, second = watch(store), watch(store)
    store.create(key("a"), thing("a", text="ä\ud800"))
    encoded = first.take()[0].record.encoded
    assert encoded is second.take()[0].record.encoded
    assert json.loads(b"{" + encoded) == {"metadata": {"name": "a", "resourceVersion": "1"}, "text": "ä?"}
