"""The controller's queue of keys and its local copy of the cluster: nothing twice, nothing lost, nothing backwards."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from exitcode_reference_controller.informer import Store
from exitcode_reference_controller.workqueue import WorkQueue

Queue = WorkQueue[str]


def taken(queue: Queue) -> str | None:
    """The next key, given back at once."""
    key = queue.take()
    if key is not None:
        queue.done(key)
    return key


def test_a_key_that_waits_is_one_piece_of_work() -> None:
    queue = Queue()
    for key in ("a", "b", "a"):
        queue.add(key)
    queue.add_after("end", 0)
    assert [taken(queue), taken(queue), taken(queue)] == ["a", "b", "end"]


def test_a_key_that_is_added_while_it_is_worked_on_comes_again_afterwards_and_not_before() -> None:
    queue = Queue()
    queue.add("a")
    assert queue.take() == "a"
    queue.add("a")
    queue.add("b")
    assert queue.take() == "b"
    queue.done("a")
    assert queue.take() == "a"


def test_of_several_timers_of_a_key_the_earliest_counts() -> None:
    queue = Queue()
    queue.add_after("a", 3600)
    queue.add_after("a", 0.01)
    queue.add_after("a", 3600)
    assert taken(queue) == "a"
    queue.add_after("b", 0.02)
    assert taken(queue) == "b"


def test_failures_in_a_row_wait_longer_and_success_ends_the_row() -> None:
    queue = Queue()
    delays = [queue.retry("a") for _ in range(14)]
    assert delays[:3] == [0.005, 0.01, 0.02]
    assert delays == sorted(delays)
    assert delays[-1] == 30
    queue.forget("a")
    assert queue.retry("a") == 0.005


def test_closing_ends_everybody_who_waits() -> None:
    queue = Queue()
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(queue.take) for _ in range(4)]
        queue.close()
        assert [future.result(timeout=10) for future in waiting] == [None] * 4


def test_no_key_is_ever_in_two_hands() -> None:
    queue = Queue()
    lock, in_hand = threading.Lock(), set[str]()
    worked: dict[str, int] = dict.fromkeys("abc", 0)
    enough = threading.Event()

    def work() -> None:
        while (key := queue.take()) is not None:
            with lock:
                assert key not in in_hand
                in_hand.add(key)
                worked[key] += 1
            queue.add(key)
            with lock:
                in_hand.remove(key)
                if min(worked.values()) >= 200:
                    enough.set()
            queue.done(key)

    with ThreadPoolExecutor(4) as pool:
        hands = [pool.submit(work) for _ in range(4)]
        for key in worked:
            queue.add(key)
        assert enough.wait(30)
        queue.close()
        for hand in hands:
            hand.result(timeout=10)


# ---- the store -------------------------------------------------------------------------------------------------------


def thing(version: int, uid: str = "u1", name: str = "p", job: str = "j") -> dict[str, Any]:
    """An object as the store sees it."""
    return {"metadata": {"namespace": "n", "name": name, "uid": uid, "resourceVersion": str(version), "job": job}}


@pytest.fixture
def store() -> Store:
    """An empty store, by job."""
    by_job: Callable[[Any], tuple[str, str]] = lambda o: ("n", o["metadata"]["job"])  # noqa: E731
    return Store(by_job)


def test_older_news_is_ignored(store: Store) -> None:
    assert store.put(thing(10))
    assert not store.put(thing(9))
    assert not store.put(thing(10))
    assert store.get("n", "p") == thing(10)


def test_what_was_deleted_never_comes_back_but_its_name_may(store: Store) -> None:
    store.put(thing(5))
    store.remove(thing(6))
    assert not store.put(thing(7))
    assert store.bucket(("n", "j")) == ()
    assert store.put(thing(8, uid="u2"))
    store.remove(thing(9))
    assert store.get("n", "p") == thing(8, uid="u2")


def test_a_bucket_holds_what_is_put_in_it(store: Store) -> None:
    store.put(thing(1, name="a", uid="a"))
    store.put(thing(2, name="b", uid="b"))
    store.put(thing(3, name="a", uid="a", job="other"))
    assert store.bucket(("n", "j")) == (thing(2, name="b", uid="b"),)
    assert store.bucket(("n", "other")) == (thing(3, name="a", uid="a", job="other"),)


def test_a_list_is_not_asked_about_what_was_written_after_it(store: Store) -> None:
    store.put(thing(5, name="old", uid="old"))
    store.put(thing(9, name="new", uid="new"))
    assert [t["metadata"]["name"] for t in store.older_than(7)] == ["old"]
