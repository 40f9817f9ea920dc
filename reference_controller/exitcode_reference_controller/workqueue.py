"""The queue of keys to be reconciled: each key once, and never in two hands at a time.

A key that is added while it waits is one piece of work; one that is added while it is worked on comes again
afterwards. Failures come back with exponentially growing delays, timers (deadline, TTL) at their time.
"""

import heapq
import threading
import time
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

_FIRST_DELAY = 0.005
_LONGEST_DELAY = 30.0


class WorkQueue(Generic[Key]):
    """Thread-safe. All delays in seconds on the monotonic clock."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[Key, None] = {}
        """Insertion order is the order of work."""
        self._working: set[Key] = set()
        self._again: set[Key] = set()
        self._delayed: list[tuple[float, int, Key]] = []
        self._due: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}
        self._sequence = 0
        self._closed = False

    def add(self, key: Key) -> None:
        """Asks for the key to be worked on as soon as possible."""
        with self._changed:
            self._add(key)

    def add_after(self, key: Key, delay: float) -> None:
        """Asks for the key to be worked on after a while; of several such wishes the earliest counts."""
        with self._changed:
            due = time.monotonic() + max(delay, 0.0)
            if self._due.get(key, due + 1) <= due:
                return
            self._due[key] = due
            self._sequence += 1
            heapq.heappush(self._delayed, (due, self._sequence, key))
            self._changed.notify()

    def retry(self, key: Key) -> float:
        """Asks for another attempt after a failure; answers with the delay, doubled at each failure in a
        row."""
        with self._changed:
            failures = self._failures.get(key, 0)
            self._failures[key] = failures + 1
        delay: float = min(_FIRST_DELAY * 2.0 ** min(failures, 30), _LONGEST_DELAY)
        self.add_after(key, delay)
        return delay

    def forget(self, key: Key) -> None:
        """Ends the row of failures."""
        with self._changed:
            self._failures.pop(key, None)

    def take(self) -> Key | None:
        """The next key, which `done` has to give back; None once the queue is closed. Waits."""
        with self._changed:
            while True:
                if self._closed:
                    return None
                next_due = self._release()
                if self._waiting:
                    key = next(iter(self._waiting))
                    del self._waiting[key]
                    self._working.add(key)
                    return key
                self._changed.wait(None if next_due is None else max(next_due - time.monotonic(), 0.0))

    def done(self, key: Key) -> None:
        """Says that the work on a key has ended, well or not."""
        with self._changed:
            self._working.discard(key)
            if key in self._again:
                self._again.discard(key)
                self._add(key)

    def close(self) -> None:
        """Ends every `take`, those that wait as well."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _add(self, key: Key) -> None:
        if key in self._working:
            self._again.add(key)
        elif key not in self._waiting:
            self._waiting[key] = None
            self._changed.notify()

    def _release(self) -> float | None:
        """Moves what is due to the waiting keys; answers with the time of the next one."""
        now = time.monotonic()
        while self._delayed:
            due, _, key = self._delayed[0]
            if self._due.get(key) != due:
                heapq.heappop(self._delayed)  # an earlier wish has overtaken this one
            elif due <= now:
                heapq.heappop(self._delayed)
                del self._due[key]
                self._add(key)
            else:
                return due
        return None
