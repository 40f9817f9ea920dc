"""Jobs and pods for the tests of the reference controller, and a small world in which its plans come true."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from exitcode_reference_controller.kinds import API_VERSION, KINDS
from exitcode_reference_controller.ledger import ANNOTATION
from exitcode_reference_controller.plan import Action, Announcement, Create, Delete, DeleteJob, Observed, Plan
from exitcode_reference_controller.reconcile import Reconciler

Thing = dict[str, Any]
START = datetime(2024, 5, 1, 12, 0, 0, tzinfo=UTC)


def replicas(kind: str, number: int = 1, policy: str | None = "ExitCode", **pod_spec: Any) -> Thing:
    """One entry of a job's replica specs."""
    spec: Thing = {
        "replicas": number,
        "template": {"spec": {"containers": [{"name": KINDS[kind].container, "image": "busybox"}], **pod_spec}},
    }
    if policy is not None:
        spec["restartPolicy"] = policy
    return spec


def job_manifest(kind: str, specs: Thing, *, run_policy: Thing | None = None, **spec: Any) -> Thing:
    """A job named `j` in the namespace `n`."""
    manifest: Thing = {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"namespace": "n", "name": "j", "uid": "job-uid", "resourceVersion": "1"},
        "spec": {KINDS[kind].spec_field: specs, **spec},
    }
    if run_policy is not None:
        manifest["spec"]["runPolicy"] = run_policy
    return manifest


def workers(number: int = 1, policy: str = "ExitCode", **run_policy: Any) -> Thing:
    """A TFJob of workers."""
    return job_manifest("TFJob", {"Worker": replicas("TFJob", number, policy)}, run_policy=run_policy)


@dataclass(kw_only=True)
class World:
    """A job and what it owns, changed by plans as an API server would, and by the test as a kubelet would."""

    job: Thing
    reconciler: Reconciler = field(default_factory=Reconciler)
    now: datetime = START
    pods: dict[str, Thing] = field(default_factory=dict)
    services: dict[str, Thing] = field(default_factory=dict)
    states: list[str] = field(default_factory=list)
    """What STATE showed, each change once."""
    created: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    told: dict[tuple[str, str], Announcement] = field(default_factory=dict)
    rejection: str | None = None
    job_is_deleted: bool = False
    _uids: Any = field(default_factory=lambda: count(1))

    def plan(self) -> Plan:
        """What the reconciler wants; it must not write on what it sees."""
        seen = (self.job, tuple(self.pods.values()), tuple(self.services.values()))
        before = copy.deepcopy(seen)
        observed = Observed(job=seen[0], pods=seen[1], services=seen[2], now=self.now, rejection=self.rejection)
        plan = self.reconciler.reconcile(KINDS[self.job["kind"]], observed)
        assert seen == before
        return plan

    def step(self, writes: int | None = None) -> Plan:
        """One pass; the controller is killed after so many writes, or never."""
        plan = self.plan()
        todo: list[Callable[[], None]] = []
        if plan.ledger is not None:
            annotation = plan.ledger.annotation()
            todo.append(lambda: self.job["metadata"].setdefault("annotations", {}).update({ANNOTATION: annotation}))
        if plan.status != self.job.get("status", {}):
            todo.append(lambda: self.write_status(plan.status))
        todo += [lambda action=action: self.act(action) for action in plan.actions]  # type: ignore[misc]
        for write in todo[:writes]:
            write()
        if writes is None:
            for announcement in plan.announcements:
                self.told.setdefault((announcement.reason, announcement.key), announcement)
        return plan

    def settle(self) -> None:
        """Passes until nothing is wanted any more; pods that are being deleted go at once."""
        for _ in range(10):
            plan = self.step()
            self.let_go()
            if not plan.actions and plan == self.plan():
                return
        raise AssertionError("the controller does not come to rest")

    def let_go(self) -> None:
        """What is being deleted is gone."""
        self.pods = {n: p for n, p in self.pods.items() if "deletionTimestamp" not in p["metadata"]}
        self.services = {n: s for n, s in self.services.items() if "deletionTimestamp" not in s["metadata"]}

    def write_status(self, status: Mapping[str, Any]) -> None:
        """As the API server does."""
        self.job["status"] = copy.deepcopy(dict(status))
        if not self.states or self.states[-1] != self.state:
            self.states.append(self.state)

    def act(self, action: Action) -> None:
        """As the API server does."""
        match action:
            case Create():
                self.create(copy.deepcopy(dict(action.manifest)))
            case Delete(resource=resource, name=name, uid=uid):
                thing = (self.pods if resource == "pods" else self.services)[name]
                assert thing["metadata"]["uid"] == uid
                thing["metadata"]["deletionTimestamp"] = "2024-05-01T12:00:00Z"
                self.deleted.append(f"{resource}/{name}")
            case DeleteJob():
                self.job_is_deleted = True

    def create(self, manifest: Thing) -> None:
        """As the API server creates it."""
        things = self.pods if manifest["kind"] == "Pod" else self.services
        name = manifest["metadata"]["name"]
        assert name not in things, f"{name} exists already"
        manifest["metadata"]["uid"] = f"uid-{next(self._uids)}"
        things[name] = manifest
        self.created.append(f"{manifest['kind']}/{name}")

    def run(self, *names: str) -> None:
        """The kubelet starts these pods; all if none is named."""
        for name in names or tuple(self.pods):
            self.phase(name, "Running", {"running": {}})

    def exit(self, name: str, code: int, *, sidecar: int | None = None) -> None:
        """The containers of a pod end."""
        phase = "Failed" if code or sidecar else "Succeeded"
        self.phase(name, phase, {"terminated": {"exitCode": code}})
        if sidecar is not None:
            other = {"name": "sidecar", "restartCount": 0, "state": {"terminated": {"exitCode": sidecar}}}
            self.pods[name]["status"]["containerStatuses"].insert(0, other)

    def phase(self, name: str, phase: str, state: Thing, restarts: int = 0) -> None:
        """Writes a pod's status."""
        container = KINDS[self.job["kind"]].container
        self.pods[name]["status"] = {
            "phase": phase,
            "containerStatuses": [{"name": container, "restartCount": restarts, "state": state}],
        }

    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.now += timedelta(seconds=seconds)

    @property
    def state(self) -> str:
        """The STATE column."""
        return str(self.job["status"]["conditions"][-1]["type"])

    def condition(self, condition_type: str) -> str | None:
        """Status of a condition, None if the job has none of that type."""
        conditions = self.job["status"]["conditions"]
        return next((str(c["status"]) for c in conditions if c["type"] == condition_type), None)

    def counts(self, replica_type: str) -> tuple[int, int, int]:
        """(active, succeeded, failed)."""
        counts = self.job["status"]["replicaStatuses"][replica_type]
        return counts["active"], counts["succeeded"], counts["failed"]

    def reasons(self) -> list[str]:
        """Reasons of the events, in order."""
        return [reason for reason, _ in self.told]


def running(job: Thing) -> World:
    """A job all of whose pods run."""
    world = World(job=job)
    world.settle()
    world.run()
    world.settle()
    assert world.state == "Running"
    return world
