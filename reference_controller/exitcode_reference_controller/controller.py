"""When to look at a job, and how to do safely what `reconcile` wants: the impure half of the operator.

Nothing here knows what an exit code is. The rules that keep a stale copy of the cluster from doing harm:
- names of replicas are deterministic, so the API server refuses a second pod of an index;
- every deletion names the UID it means;
- the ledger and the status are written before the actions that they tell of, each under the resourceVersion
  that the plan was made from, so a plan made from old news is refused as a whole;
- nothing is created without proof, in the same pass, that the job still exists and has not ended.

Rights needed: list, watch on the job kinds, get, patch, delete on them; update on their status; list, watch,
create, delete on pods and services; create on events.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from exitcode_reference_controller.api import Api, ApiError, Unreachable, collection_path, object_path
from exitcode_reference_controller.identity import JOB_LABEL, OPERATOR_LABEL
from exitcode_reference_controller.informer import Bucket, Informer, Store
from exitcode_reference_controller.kinds import BATCH_JOB, KINDS_BY_OPERATOR_NAME, Kind
from exitcode_reference_controller.ledger import ANNOTATION
from exitcode_reference_controller.plan import (
    Action,
    Announcement,
    Create,
    Delete,
    Observed,
    Plan,
    Thing,
)
from exitcode_reference_controller.recorder import Recorder
from exitcode_reference_controller.slowness import Pace, Slowness
from exitcode_reference_controller.workqueue import WorkQueue

log = logging.getLogger(__name__)

_NOT_FOUND, _CONFLICT = 404, 409
_INVALID = (400, 422)
_STOP_SECONDS = 5.0


class Key(NamedTuple):
    """What the queue holds: a job's address, never the job itself."""

    kind: str
    namespace: str
    name: str


KindT = TypeVar("KindT", bound=Kind)
KindT_contra = TypeVar("KindT_contra", bound=Kind, contravariant=True)


class Reconciliation(Protocol[KindT_contra]):
    """What decides; it is asked again and again."""

    def reconcile(self, kind: KindT_contra, observed: Observed) -> Plan:
        """What is to be done for a job as it is observed."""

    def admits_pods(self, status: Thing) -> bool:
        """Whether pods and services may still be created for a job of this status."""

    def is_told(self, reason: str) -> bool:
        """Whether the controller records an event of its own."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """How the objects of some kinds are known, and the habits that those kinds share."""

    job_label: str
    """Label by which everything that a job owns names it."""
    kind_of: Callable[[Mapping[str, str]], Kind | None]
    """The kind of the job whose pod has these labels."""
    owned: tuple[str, ...]
    gives_up_on_invalid: bool
    """A job whose pods the API server calls invalid fails; otherwise they are tried again."""
    names_nouns: bool
    """Events are called SuccessfulCreatePod rather than SuccessfulCreate."""


TRAINING = Family(
    job_label=JOB_LABEL,
    kind_of=lambda labels: KINDS_BY_OPERATOR_NAME.get(labels.get(OPERATOR_LABEL, "")),
    owned=("pods", "services"),
    gives_up_on_invalid=True,
    names_nouns=True,
)
BATCH = Family(
    job_label="batch.kubernetes.io/job-name",
    kind_of=lambda _: BATCH_JOB,
    owned=("pods",),
    gives_up_on_invalid=False,
    names_nouns=False,
)


class Outdated(Exception):
    """The plan was made from old news; the news is on its way, and the key has to be looked at again."""


def _itself(thing: Thing) -> Bucket:
    return thing["metadata"]["namespace"], thing["metadata"]["name"]


class Controller(Generic[KindT]):
    """Watches jobs of some kinds and what they own, and reconciles each job whenever something about it
    changes."""

    def __init__(
        self,
        api: Api,
        reconciler: Reconciliation[KindT],
        *,
        family: Family,
        kinds: Mapping[str, KindT],
        namespace: str | None,
        workers: int,
        slowness: Slowness | None = None,
    ) -> None:
        """`namespace` None: all of them. `slowness` is for variants; None: everything is done at once."""
        self._api = api
        self._reconciler = reconciler
        self._family = family
        self._kinds = dict(kinds)
        self._pace = Pace(slowness) if slowness is not None else None
        self._queue: WorkQueue[Key] = WorkQueue()
        self._recorder = Recorder(api)
        self._rejections: dict[Key, tuple[str, str]] = {}
        """UID of the job that has this address, and why one of its pods or services was called invalid."""
        self._jobs = {
            kind.name: Informer(
                api,
                kind.plural,
                namespace=namespace,
                query={},
                store=Store(_itself),
                on_change=lambda job, name=kind.name: self._queue.add(Key(name, *_itself(job))),  # type: ignore[misc]
            )
            for kind in self._kinds.values()
        }
        self._owned = {
            resource: Informer(
                api,
                resource,
                namespace=namespace,
                query={"labelSelector": family.job_label},
                store=Store(self._job_of),
                on_change=self._owned_changed,
            )
            for resource in family.owned
        }
        self._threads = [
            threading.Thread(target=self._work, name=f"worker-{number}", daemon=True) for number in range(workers)
        ]

    def start(self) -> None:
        """Lists everything once, then follows it and begins to work. Raises CannotList, Unreachable."""
        for informer in (*self._owned.values(), *self._jobs.values()):
            informer.start()
        self._recorder.start()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Finishes what is in hand, for a few seconds at most, and takes nothing new."""
        for informer in [*self._owned.values(), *self._jobs.values()]:
            informer.stop()
        self._queue.close()
        for thread in self._threads:
            thread.join(_STOP_SECONDS)
        self._recorder.close(_STOP_SECONDS)

    # ---- when to look --------------------------------------------------------------------------------------

    def _job_of(self, thing: Thing) -> Bucket:
        labels = thing["metadata"].get("labels") or {}
        return thing["metadata"]["namespace"], labels.get(self._family.job_label, "")

    def _owned_changed(self, thing: Thing) -> None:
        kind = self._family.kind_of(thing["metadata"].get("labels") or {})
        if kind is not None and kind.name in self._kinds:
            self._queue.add(Key(kind.name, *self._job_of(thing)))

    def _work(self) -> None:
        while (key := self._queue.take()) is not None:
            try:
                self._look_at(key)
            finally:
                self._queue.done(key)

    def _look_at(self, key: Key) -> None:
        try:
            self._reconcile(key)
        except Outdated as news:
            log.debug("%s %s/%s: %s; again in %.3f s", *key, news, self._queue.retry(key))
        except (ApiError, Unreachable) as problem:
            log.warning("%s %s/%s: %s; again in %.3f s", *key, problem, self._queue.retry(key))
        except Exception:
            # A fault of the controller's own in one job must neither end the worker nor touch the other jobs.
            log.exception("%s %s/%s: cannot be reconciled; again in %.3f s", *key, self._queue.retry(key))
        else:
            self._queue.forget(key)

    # ---- doing it ------------------------------------------------------------------------------------------

    def _reconcile(self, key: Key) -> None:
        kind, bucket = self._kinds[key.kind], (key.namespace, key.name)
        job = self._jobs[key.kind].store.get(*bucket)
        if job is None:
            self._forget(key)
            return
        rejected_uid, rejection = self._rejections.get(key, ("", ""))
        plan = self._reconciler.reconcile(
            kind,
            Observed(
                job=job,
                pods=self._owned["pods"].store.bucket(bucket),
                services=self._owned["services"].store.bucket(bucket) if "services" in self._owned else (),
                now=datetime.now(UTC),
                rejection=rejection if rejected_uid == job["metadata"]["uid"] else None,
            ),
        )
        if self._pace is not None:
            plan, again = self._pace.apply(key, job, plan)
            if again is not None:
                self._queue.add_after(key, again)
        self._carry_out(key, kind, job, plan)
        if plan.wake_at is not None:
            self._queue.add_after(key, (plan.wake_at - datetime.now(UTC)).total_seconds())

    def _forget(self, key: Key) -> None:
        self._rejections.pop(key, None)
        if self._pace is not None:
            self._pace.forget(key)

    def _carry_out(self, key: Key, kind: KindT, job: Thing, plan: Plan) -> None:
        written = self._write_ledger(key, kind, job, plan)
        written = self._write_status(key, kind, written, plan)
        for announcement in plan.announcements:
            self._recorder.tell(kind, written, announcement)
        alive = written is not job
        held_up: Outdated | None = None
        for action in plan.actions:
            if isinstance(action, Create) and not alive:
                self._prove_alive(key, kind, job)
                alive = True
            try:
                self._act(key, kind, written, action)
            except Outdated as news:
                held_up = news  # one name that is taken holds up nothing else
        if held_up is not None:
            raise held_up

    def _write_ledger(self, key: Key, kind: KindT, job: Thing, plan: Plan) -> Thing:
        if plan.ledger is None:
            return job
        change = {
            "metadata": {
                "resourceVersion": job["metadata"]["resourceVersion"],
                "annotations": {ANNOTATION: plan.ledger.annotation()},
            }
        }
        return self._write_job(key, lambda path: self._api.patch(path, change), kind)

    def _write_status(self, key: Key, kind: KindT, job: Thing, plan: Plan) -> Thing:
        if plan.status == (job.get("status") or {}):
            return job
        manifest = {**job, "apiVersion": kind.api_version, "kind": kind.name, "status": dict(plan.status)}
        return self._write_job(key, lambda path: self._api.replace(f"{path}/status", manifest), kind)

    def _write_job(self, key: Key, write: Callable[[str], dict[str, Any]], kind: KindT) -> Thing:
        try:
            written = write(object_path(kind.plural, key.namespace, key.name))
        except ApiError as refusal:
            if refusal.status in (_CONFLICT, _NOT_FOUND):
                raise Outdated(refusal.message) from refusal
            raise
        self._jobs[key.kind].store.put(written)
        return written

    def _prove_alive(self, key: Key, kind: KindT, job: Thing) -> None:
        try:
            now = self._api.get(object_path(kind.plural, key.namespace, key.name))
        except ApiError as refusal:
            if refusal.status == _NOT_FOUND:
                raise Outdated("the job is gone") from refusal
            raise
        if (
            now["metadata"]["uid"] != job["metadata"]["uid"]
            or "deletionTimestamp" in now["metadata"]
            or not self._reconciler.admits_pods(now.get("status") or {})
        ):
            raise Outdated("the job is not to be run any more")

    def _act(self, key: Key, kind: KindT, job: Thing, action: Action) -> None:
        match action:
            case Create():
                self._create(key, kind, job, action.manifest)
            case Delete():
                self._delete(kind, job, action)
            case _:
                self._remove(object_path(kind.plural, key.namespace, key.name), job["metadata"]["uid"])

    def _create(self, key: Key, kind: KindT, job: Thing, manifest: Thing) -> None:
        noun = manifest["kind"]
        name = manifest["metadata"].get("name") or manifest["metadata"]["generateName"]
        resource = f"{noun.lower()}s"
        try:
            made = self._api.create(collection_path(resource, manifest["metadata"]["namespace"]), manifest)
        except ApiError as refusal:
            if refusal.status == _CONFLICT:
                raise Outdated(f"{noun} {name} exists already") from refusal
            if refusal.status in _INVALID and self._family.gives_up_on_invalid:
                self._rejections[key] = (job["metadata"]["uid"], refusal.message)
                raise Outdated(refusal.message) from refusal
            message = f"Error creating: {refusal.message}"
            self._announce(kind, job, "Warning", self._reason("FailedCreate", noun), message, name)
            raise
        self._owned[resource].store.put(made)
        message = f"Created {noun.lower()}: {made['metadata']['name']}"
        self._announce(kind, job, "Normal", self._reason("SuccessfulCreate", noun), message, made["metadata"]["uid"])

    def _delete(self, kind: KindT, job: Thing, action: Delete) -> None:
        path = object_path(action.resource, job["metadata"]["namespace"], action.name)
        answer = self._remove(path, action.uid)
        if answer is None:
            return
        noun = "Pod" if action.resource == "pods" else "Service"
        if answer.get("kind") == noun and "deletionTimestamp" in answer["metadata"]:
            self._owned[action.resource].store.put(answer)
        message = f"Deleted {noun.lower()}: {action.name}"
        self._announce(kind, job, "Normal", self._reason("SuccessfulDelete", noun), message, action.uid)

    def _reason(self, what: str, noun: str) -> str:
        return f"{what}{noun}" if self._family.names_nouns else what

    def _remove(self, path: str, uid: str) -> dict[str, Any] | None:
        try:
            return self._api.delete(path, uid)
        except ApiError as refusal:
            if refusal.status in (_NOT_FOUND, _CONFLICT):
                return None  # it is gone, and perhaps another one has its name: that is what was wanted
            raise

    def _announce(
        self, kind: KindT, job: Thing, event_type: Literal["Normal", "Warning"], reason: str, message: str, key: str
    ) -> None:
        if not self._reconciler.is_told(reason):
            return
        announcement = Announcement(type=event_type, reason=reason, message=message, key=key)
        self._recorder.tell(kind, job, announcement)
