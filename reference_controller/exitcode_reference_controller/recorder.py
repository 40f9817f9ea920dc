"""Events about jobs: recorded once each, in the background, so that a slow event never holds a job back.

An event's name is derived from what it tells. A controller that tells the same again after it was restarted
finds the name taken, and the event is not repeated; so the number of events is bounded by what happens, and
not by how often it is looked at.
"""

import hashlib
import logging
import queue
import threading
import time
from collections import OrderedDict
from datetime import UTC, datetime

from exitcode_reference_controller.api import Api, ApiError, Unreachable, collection_path
from exitcode_reference_controller.kinds import Kind
from exitcode_reference_controller.plan import Announcement, Thing
from exitcode_reference_controller.status import timestamp

log = logging.getLogger(__name__)

_REMEMBERED = 20_000
_LONGEST_BACKLOG = 10_000
"""Events are a service to the reader: when the server cannot keep up, they are dropped and jobs go on."""
_CONFLICT = 409
_WRITERS = 4
"""One would fall behind where many jobs are made at once: it waits for each answer."""


class Recorder:
    """Writes events. Thread-safe."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._backlog: queue.Queue[tuple[str, dict[str, object]] | None] = queue.Queue(_LONGEST_BACKLOG)
        self._told: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._run, name="events", daemon=True) for _ in range(_WRITERS)]

    def start(self) -> None:
        """Begins to write."""
        for thread in self._threads:
            thread.start()

    def close(self, timeout: float) -> None:
        """Writes what is left, for at most `timeout` seconds."""
        until = time.monotonic() + timeout
        try:
            for _ in self._threads:
                self._backlog.put_nowait(None)
        except queue.Full:
            return
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def tell(self, kind: Kind, job: Thing, announcement: Announcement) -> None:
        """Records the event, unless it has been told before."""
        metadata = job["metadata"]
        facts = "\n".join((metadata["uid"], announcement.reason, announcement.key))
        name = f"{metadata['name'][:200]}.{hashlib.sha1(facts.encode(), usedforsecurity=False).hexdigest()[:16]}"
        with self._lock:
            if f"{metadata['namespace']}/{name}" in self._told:
                return
            self._told[f"{metadata['namespace']}/{name}"] = None
            if len(self._told) > _REMEMBERED:
                self._told.popitem(last=False)
        now = timestamp(datetime.now(UTC))
        event: dict[str, object] = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": metadata["namespace"]},
            "involvedObject": {
                "apiVersion": kind.api_version,
                "kind": kind.name,
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            },
            "type": announcement.type,
            "reason": announcement.reason,
            "message": announcement.message,
            "source": {"component": kind.operator_name},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        try:
            self._backlog.put_nowait((collection_path("events", metadata["namespace"]), event))
        except queue.Full:
            log.warning("event dropped: %s %s", announcement.reason, announcement.message)

    def _run(self) -> None:
        while (entry := self._backlog.get()) is not None:
            path, event = entry
            try:
                self._api.create(path, event)
            except ApiError as refusal:
                if refusal.status != _CONFLICT:
                    log.info("event %s not recorded: %s", event["reason"], refusal)
            except Unreachable as problem:
                log.info("event %s not recorded: %s", event["reason"], problem)
