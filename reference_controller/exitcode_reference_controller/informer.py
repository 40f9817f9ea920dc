"""A local copy of one collection, kept true by list and watch, that never goes back in time.

The client's own informer hands out model objects and cannot take in what the controller itself has just
written. A controller that acts on a copy older than its own last write does things twice; here the answer to
each write enters the copy at once, and older news about the same object is ignored.

Resource versions are compared as numbers: they are etcd revisions in every Kubernetes, and officially
comparable since 1.35 (KEP-5504). A UID that has been seen deleted never comes back.
"""

import logging
import random
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from exitcode_reference_controller.api import Api, ApiError, Unreachable, collection_path
from exitcode_reference_controller.plan import Thing

log = logging.getLogger(__name__)

Bucket = tuple[str, str]
"""What things are looked up by; see `Store`."""
_REMEMBERED_DELETIONS = 10_000
_FIRST_DELAY, _LONGEST_DELAY = 0.1, 5.0


class Store:
    """Objects by namespace and name, and by the bucket that `bucket_of` puts them in. Thread-safe."""

    def __init__(self, bucket_of: Callable[[Thing], Bucket]) -> None:
        self._lock = threading.Lock()
        self._bucket_of = bucket_of
        self._things: dict[Bucket, Thing] = {}
        self._buckets: defaultdict[Bucket, dict[Bucket, Thing]] = defaultdict(dict)
        self._deleted: OrderedDict[str, None] = OrderedDict()

    def get(self, namespace: str, name: str) -> Thing | None:
        """The object, None if there is none."""
        with self._lock:
            return self._things.get((namespace, name))

    def bucket(self, bucket: Bucket) -> tuple[Thing, ...]:
        """All objects of a bucket."""
        with self._lock:
            return tuple(self._buckets[bucket].values()) if bucket in self._buckets else ()

    def put(self, thing: dict[str, Any]) -> bool:
        """Takes an object in, and over; unless something newer is known. Answers whether it did."""
        metadata = thing["metadata"]
        metadata.pop("managedFields", None)  # a third of an object's size, and nobody here reads it
        key = (metadata["namespace"], metadata["name"])
        with self._lock:
            known = self._things.get(key)
            if metadata["uid"] in self._deleted or (known is not None and _version(thing) <= _version(known)):
                return False
            if known is not None:
                self._drop(key, known)
            self._things[key] = thing
            self._buckets[self._bucket_of(thing)][key] = thing
            return True

    def remove(self, thing: Thing) -> None:
        """Forgets an object that has been deleted, and nothing that has taken its name since."""
        metadata = thing["metadata"]
        key = (metadata["namespace"], metadata["name"])
        with self._lock:
            self._deleted[metadata["uid"]] = None
            if len(self._deleted) > _REMEMBERED_DELETIONS:
                self._deleted.popitem(last=False)
            known = self._things.get(key)
            if known is not None and known["metadata"]["uid"] == metadata["uid"]:
                self._drop(key, known)

    def older_than(self, version: int) -> tuple[Thing, ...]:
        """Everything that was last written at or before a version: what a list of that version has to
        contain."""
        with self._lock:
            return tuple(thing for thing in self._things.values() if _version(thing) <= version)

    def _drop(self, key: Bucket, known: Thing) -> None:
        bucket = self._bucket_of(known)
        del self._things[key]
        del self._buckets[bucket][key]
        if not self._buckets[bucket]:
            del self._buckets[bucket]


class CannotList(Exception):
    """The API server refused the first list of a collection, so that there is nothing to begin with."""

    def __init__(self, resource: str, refusal: ApiError) -> None:
        super().__init__(f"list of {resource}: {refusal}")
        self.resource = resource
        self.refusal = refusal


class Informer:
    """Keeps a store true, and tells `on_change` of each object that has changed or gone."""

    def __init__(
        self,
        api: Api,
        resource: str,
        *,
        namespace: str | None,
        query: Mapping[str, str],
        store: Store,
        on_change: Callable[[Thing], None],
    ) -> None:
        self._api = api
        self._resource = resource
        self._path = collection_path(resource, namespace)
        self._query = dict(query)
        self._on_change = on_change
        self._stop = threading.Event()
        self._version = ""
        self._delay = _FIRST_DELAY
        self.store = store

    def synchronise(self) -> None:
        """Lists the collection and makes the store agree with it. Raises ApiError, Unreachable."""
        answer = self._api.list(self._path, self._query)
        version = str(answer["metadata"]["resourceVersion"])
        listed = set()
        for thing in answer.get("items") or []:
            listed.add(thing["metadata"]["uid"])
            self._take_in(thing)
        for thing in self.store.older_than(int(version)):
            if thing["metadata"]["uid"] not in listed:
                self.store.remove(thing)
                self._on_change(thing)
        self._version = version

    def start(self) -> None:
        """Lists the collection, then follows it in a thread that ends with the process. Raises CannotList,
        Unreachable."""
        try:
            self.synchronise()
        except ApiError as refusal:
            raise CannotList(self._resource, refusal) from refusal
        threading.Thread(target=self._follow, name=f"watch-{self._resource}", daemon=True).start()

    def stop(self) -> None:
        """Takes nothing more in."""
        self._stop.set()

    def _follow(self) -> None:
        while not self._stop.is_set():
            try:
                if not self._version:
                    self.synchronise()
                self._watch()
            except (ApiError, Unreachable) as problem:
                if isinstance(problem, ApiError):
                    self._version = ""  # 410 Gone, or whatever else the server does not want to resume from
                log.warning("watch of %s: %s; again in %.1f s", self._resource, problem, self._delay)
            # A watch that ends at once, well or not, is not asked for again at once; nor by all at one moment.
            self._stop.wait(self._delay * random.uniform(0.5, 1.0))
            self._delay = min(self._delay * 2, _LONGEST_DELAY)

    def _watch(self) -> None:
        query = {**self._query, "resourceVersion": self._version}
        for event in self._api.watch(self._path, query, self._stop):
            thing: dict[str, Any] = event["object"]
            match event["type"]:
                case "ADDED" | "MODIFIED":
                    self._take_in(thing)
                case "DELETED":
                    self.store.remove(thing)
                    self._on_change(thing)
                case "ERROR":
                    raise ApiError(thing.get("code", 500), thing.get("reason", ""), thing.get("message", ""))
            self._version = thing["metadata"]["resourceVersion"]
            self._delay = _FIRST_DELAY

    def _take_in(self, thing: dict[str, Any]) -> None:
        if self.store.put(thing):
            self._on_change(thing)


def _version(thing: Thing) -> int:
    return int(thing["metadata"]["resourceVersion"])
