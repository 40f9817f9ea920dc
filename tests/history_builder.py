"""Histories written down as a readable script: what an operator, a kubelet and the harness do, event by event.

A `Story` keeps the objects of one job and tells every change as the API server's watches would, with one revision
counter over all of them. It is honest by default: what is not said otherwise is done as a conforming operator does it.
Every method tells what happens at `now`; `wait` lets time pass.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Self

from job_objects import Generation, JobObjects, Json, copied

from exitcode_conformance.container import SIDECAR
from exitcode_conformance.contract import contract_ids, load_contract
from exitcode_conformance.entry import Action, Entry, Event, WatchVerb
from exitcode_conformance.history import Declared, History
from exitcode_conformance.judge import judge
from exitcode_conformance.plan import Case
from exitcode_conformance.run_record import RunRecord
from exitcode_conformance.scenario import Scenario
from exitcode_conformance.scenarios import SCENARIOS
from exitcode_conformance.timeouts import Timeouts
from exitcode_conformance.verdict import Judgement, Verdict

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
TICK = 0.01
"""Seconds between two events that follow each other."""
CONTRACTS = {name: load_contract(name) for name in contract_ids()}
ACTIVE = ("Running", "Restarting")
ENDS = ("Succeeded", "Failed")


@dataclass(kw_only=True)
class Pod:
    """A pod as it stands."""

    object: Json
    runs: int = 0
    """How many containers it has started."""


def story(scenario: str, **options: Any) -> "Story":
    """The story of a scenario of the suite."""
    return Story(SCENARIOS[scenario], **options)


def compare(requirement: str, *stories: "Story", contract: str = "kubeflow-docs") -> Judgement:
    """The judgement on a requirement that compares scenarios."""
    names = tuple(s.scenario.id for s in stories)
    case = Case(requirement=requirement, subject="compared", scenarios=names)
    return judge(case, [s.history() for s in stories], CONTRACTS[contract])


class Story(JobObjects):
    """One scenario's history in the making."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        timeouts: Timeouts | None = None,
        generation: Generation = "v1.6",
        has_services: bool = True,
        default_policy: str | None = "None",
    ) -> None:
        super().__init__(scenario, generation)
        self.declared = Declared(clean_pod_policy=default_policy)
        self.timeouts = timeouts or Timeouts()
        self.has_services = has_services
        self.now = 1.0
        self.entries: list[Entry] = []
        self.job: Json | None = None
        self.pods: dict[str, Pod] = {}
        """By name: the pods that exist."""
        self.service_objects: dict[str, Json] = {}
        self.status: Json = {}
        self._seq = count(1)
        self._revisions = count(100)
        self._uids = count(1)
        self._held: set[str] = set()
        self._kept: list[tuple[str, WatchVerb, Json]] = []
        self._elsewhere = count(1)

    # --- the record --------------------------------------------------------------------------------------------

    def wait(self, seconds: float) -> Self:
        """Time passes."""
        self.now += seconds
        return self

    def event(self, resource: str, verb: WatchVerb, item: Json, *, scenario: str | None = "") -> Self:
        """The API server changes an object; its watch tells, at once or when it is no longer held back."""
        self.now += TICK
        item["metadata"]["resourceVersion"] = str(next(self._revisions))
        if resource in self._held:
            self._kept.append((resource, verb, copied(item)))
        else:
            self._record(resource, verb, item, self.scenario.id if scenario == "" else scenario)
        return self

    def _record(self, resource: str, verb: WatchVerb, item: Json, scenario: str | None) -> None:
        self.entries.append(
            Event(
                seq=next(self._seq),
                time=self.now,
                scenario=scenario,
                resource=resource,
                verb=verb,
                object=copied(item),
            )
        )

    @contextmanager
    def held_back(self, *resources: str) -> Iterator[None]:
        """The watches of these resources are slow: what they have to tell arrives after the block."""
        self._held |= set(resources)
        yield
        self._held -= set(resources)
        kept, self._kept = self._kept, []
        for resource, verb, item in kept:
            self.now += TICK
            self._record(resource, verb, item, self.scenario.id)

    def act(self, action: str, *, of_the_run: bool = False, detail: Mapping[str, object] | None = None) -> Self:
        """The harness does or notices something."""
        self.now += TICK
        fields = {"seq": next(self._seq), "time": self.now, "scenario": None if of_the_run else self.scenario.id}
        self.entries.append(Action.model_validate({**fields, "action": action, "detail": dict(detail or {})}))
        return self

    def witness(self, kind: str | None = None) -> Self:
        """The operator does something for another job, of the same kind if none is named."""
        number = next(self._elsewhere)
        owner = {"kind": kind or self.scenario.kind, "controller": True}
        metadata = {"name": f"witness-{number}-worker-0", "uid": f"elsewhere-{number}", "ownerReferences": [owner]}
        return self.event("pods", "ADDED", {"metadata": metadata, "spec": {}}, scenario=None)

    def record(self) -> RunRecord:
        """What a run of this one scenario would have recorded."""
        return RunRecord(
            scenarios={self.scenario.id: self.scenario},
            timeouts=self.timeouts,
            declared=self.declared,
            entries=self.entries,
        )

    def history(self) -> History:
        """The scenario's history."""
        return self.record().history(self.scenario.id)

    def judge(self, requirement: str, contract: str = "kubeflow-docs") -> Judgement:
        """The judgement on a requirement of a single scenario."""
        case = Case(requirement=requirement, subject=self.scenario.id, scenarios=(self.scenario.id,))
        return judge(case, [self.history()], CONTRACTS[contract])

    def passes(self, requirement: str, *words: str, contract: str = "kubeflow-docs") -> None:
        """The requirement is met."""
        self._must_be(Verdict.PASS, requirement, words, contract)

    def fails(self, requirement: str, *words: str, contract: str = "kubeflow-docs") -> None:
        """The requirement is violated, and what was seen is told in these words."""
        self._must_be(Verdict.FAIL, requirement, words, contract)

    def is_unknown(self, requirement: str, *words: str, contract: str = "kubeflow-docs") -> None:
        """The evidence decides nothing, for the reason that these words give."""
        self._must_be(Verdict.UNKNOWN, requirement, words, contract)

    def _must_be(self, wanted: Verdict, requirement: str, words: tuple[str, ...], contract: str) -> None:
        found = self.judge(requirement, contract)
        assert found.verdict is wanted, f"{requirement} is {found.verdict}, not {wanted}: {found.seen}"
        missing = [word for word in words if word not in found.seen]
        assert not missing, f"{missing} is not in {found.seen!r}"

    # --- the harness -------------------------------------------------------------------------------------------

    def submit(self) -> Self:
        """The harness submits the job, and the API server shows it."""
        self.act("submit")
        metadata = {"name": self.scenario.id, "namespace": "run", "uid": self.job_uid}
        self.job = {"apiVersion": self.kind.api_version, "kind": self.kind.name, "metadata": metadata, "spec": {}}
        return self.event(self.kind.plural, "ADDED", self.job)

    def delete_job(self) -> Self:
        """The harness deletes the job; the API server removes it at once."""
        return self.act("delete-job").job_removed()

    def annotated(self, name: str, value: str) -> Self:
        """An annotation of the job is changed."""
        assert self.job is not None
        self.job["metadata"].setdefault("annotations", {})[name] = value
        return self.event(self.kind.plural, "MODIFIED", self.job)

    def forget(self) -> Self:
        """The job that is submitted next is another one of the same name."""
        self.job_uid = f"{self.job_uid}-again"
        self.status = {}
        return self

    def job_removed(self) -> Self:
        """The job object goes."""
        assert self.job is not None
        return self.event(self.kind.plural, "DELETED", self.job)

    def complete(self, *, witnessed: bool = True, window: float | None = None) -> Self:
        """The settle window passes, with a witness in its second half, and the harness has seen enough."""
        window = self.timeouts.never if window is None else window
        self.wait(window * 0.75)
        if witnessed:
            self.witness()
        self.wait(window * 0.25 + 0.5)
        return self.act("complete")

    # --- the job's status --------------------------------------------------------------------------------------

    def timestamp(self) -> str:
        """The time as Kubernetes writes it."""
        return (BEGIN + timedelta(seconds=int(self.now))).strftime("%Y-%m-%dT%H:%M:%SZ")

    def conditions(self) -> list[Json]:
        """The conditions, to be changed in place."""
        found: list[Json] = self.status.setdefault("conditions", [])
        return found

    def is_true(self, name: str) -> bool:
        """Whether the condition is True."""
        return any(c["type"] == name and c["status"] == "True" for c in self.conditions())

    def put(self, name: str, status: str = "True", *, at: str | None = None) -> Self:
        """A condition as it is to be, the newest last; nothing is written yet."""
        time = at or self.timestamp()
        others = [c for c in self.conditions() if c["type"] != name]
        condition = {"type": name, "status": status, "reason": f"{self.kind.name}{name}", "message": name}
        condition |= {"lastUpdateTime": time, "lastTransitionTime": time}
        self.status["conditions"] = [*others, condition]
        return self

    def drop(self, *names: str) -> Self:
        """Conditions are taken away; nothing is written yet."""
        self.status["conditions"] = [c for c in self.conditions() if c["type"] not in names]
        return self

    def write(self, **fields: Any) -> Self:
        """The operator writes the status, with these fields in it; one that is None is taken away."""
        assert self.job is not None
        for name, value in fields.items():
            self.status[name] = value
            if value is None:
                del self.status[name]
        self.job["status"] = copied(self.status)
        return self.event(self.kind.plural, "MODIFIED", self.job)

    def says(self, *names: str) -> Self:
        """The operator makes conditions True by the documented rules, and writes the status."""
        for name in names:
            if not self.is_true(name):
                self.turns(name)
        self.status.setdefault("startTime", self.timestamp())
        if any(name in ENDS for name in names):
            self.status.setdefault("completionTime", self.timestamp())
        return self.write(replicaStatuses=self.counts())

    def turns(self, name: str) -> Self:
        """A condition becomes True by the documented rules; nothing is written yet."""
        if name in ACTIVE:
            self.drop(*ACTIVE)
        if name in ENDS:
            for condition in self.conditions():
                if condition["type"] in ACTIVE:
                    condition |= {"status": "False", "lastTransitionTime": self.timestamp()}
        return self.put(name)

    def counts(self) -> Json:
        """replicaStatuses as the pods are."""
        result: Json = {g.type: {"active": 0, "succeeded": 0, "failed": 0} for g in self.scenario.groups}
        words = {"Running": "active", "Succeeded": "succeeded", "Failed": "failed"}
        for group in self.scenario.groups:
            for index in range(group.replicas):
                pod = self.pods.get(f"{self.scenario.id}-{group.type.lower()}-{index}")
                word = words.get(pod.object["status"]["phase"]) if pod else None
                if word:
                    result[group.type][word] += 1
        return result

    # --- the pods ----------------------------------------------------------------------------------------------

    def pod(self, replica: str) -> Pod:
        """The pod that stands for a replica."""
        return self.pods[f"{self.scenario.id}-{replica}"]

    def create(self, *replicas: str, manifest: Json | None = None) -> Self:
        """The operator creates pods; `manifest` is one that is not as it should be."""
        for replica in replicas:
            item = copied(manifest) if manifest is not None else self.manifest(replica)
            item["metadata"] |= {"uid": f"pod-{next(self._uids)}", "namespace": "run"}
            item["status"] = {"phase": "Pending"}
            self.pods[item["metadata"]["name"]] = Pod(object=item)
            self.event("pods", "ADDED", item)
        return self

    def services(self, *replicas: str) -> Self:
        """The operator creates services."""
        for replica in replicas:
            name = f"{self.scenario.id}-{replica}"
            metadata = {"name": name, "labels": self.labels(replica), "ownerReferences": self.owners()}
            spec = {"clusterIP": "None", "selector": self.selector(replica)}
            item: Json = {"metadata": {**metadata, "uid": f"service-{next(self._uids)}"}, "spec": spec}
            self.service_objects[name] = item
            self.event("services", "ADDED", item)
        return self

    def drops_service(self, replica: str) -> Self:
        """A replica's service is removed, if it has one."""
        service = self.service_objects.pop(f"{self.scenario.id}-{replica}", None)
        return self.event("services", "DELETED", service) if service is not None else self

    def tells(self, reason: str, message: str, *, kind: str = "Normal", count: int = 1, late: float = 0) -> Self:
        """The operator records a Kubernetes event about the job, so many seconds after it happened."""
        involved = {"kind": self.kind.name, "name": self.scenario.id, "uid": self.job_uid}
        metadata = {"name": f"{self.scenario.id}.{next(self._uids)}", "uid": f"event-{next(self._uids)}"}
        time = (BEGIN + timedelta(seconds=int(self.now - late))).strftime("%Y-%m-%dT%H:%M:%SZ")
        item: Json = {"metadata": metadata, "involvedObject": involved, "type": kind, "count": count}
        item |= {"firstTimestamp": time, "lastTimestamp": time}
        return self.event("events", "ADDED", {**item, "reason": reason, "message": message})

    def prints(self, **cells: str) -> Self:
        """The harness asks the API server for the table of the job as it is."""
        assert self.job is not None
        version = self.job["metadata"]["resourceVersion"]
        return self.act("table", detail={"resource_version": version, "cells": cells})

    def touch(self, replica: str, *, phase: str | None = None, container: Json | None = None) -> Self:
        """The kubelet writes a pod's status."""
        pod = self.pod(replica)
        if phase is not None:
            pod.object["status"]["phase"] = phase
        if container is not None:
            statuses = [{"name": self.kind.container, **container}]
            sidecar = self.scenario.group_of(replica).sidecar if replica in self.replicas else None
            if sidecar is not None and pod.runs:
                ended = {"terminated": {"exitCode": sidecar.code}}
                statuses.append({"name": SIDECAR, "restartCount": 0, "state": ended})
            pod.object["status"]["containerStatuses"] = statuses
        return self.event("pods", "MODIFIED", pod.object)

    def _ended(self, replica: str, pod: Pod, code: int) -> Json:
        reason = "Completed" if code == 0 else "Error"
        container = f"containerd://{pod.object['metadata']['uid']}-{pod.runs}"
        ended: Json = {"exitCode": code, "reason": reason, "containerID": container}
        message = self.scenario.group_of(replica).message if replica in self.replicas else None
        return {"terminated": ended if message is None else {**ended, "message": message}}

    def runs(self, *replicas: str) -> Self:
        """The kubelet starts the containers of pods that have not run yet."""
        for replica in replicas:
            self.pod(replica).runs = 1
            self.touch(replica, phase="Running", container={"restartCount": 0, "state": {"running": {}}})
        return self

    def ends(self, replica: str, code: int, *, phase: str | None = None) -> Self:
        """The training container ends; the phase follows from the pod's restartPolicy unless it is given."""
        pod = self.pod(replica)
        pod.runs = max(pod.runs, 1)
        policy = pod.object["spec"].get("restartPolicy", "Always")
        again = policy == "Always" or (policy == "OnFailure" and code != 0)
        failed = code or (replica in self.replicas and self.scenario.group_of(replica).sidecar_fails)
        phase = phase or ("Running" if again else "Failed" if failed else "Succeeded")
        state = self._ended(replica, pod, code)
        return self.touch(replica, phase=phase, container={"restartCount": pod.runs - 1, "state": state})

    def fails_early(self, replica: str) -> Self:
        """The pod fails before its training container has run."""
        waiting = {"restartCount": 0, "state": {"waiting": {"reason": "PodInitializing"}}}
        return self.touch(replica, phase="Failed", container=waiting)

    def waits_for_restart(self, replica: str) -> Self:
        """The kubelet holds a restart in place back: CrashLoopBackOff."""
        pod = self.pod(replica)
        last = pod.object["status"]["containerStatuses"][0]["state"]
        state = {"waiting": {"reason": "CrashLoopBackOff"}}
        return self.touch(replica, container={"restartCount": pod.runs - 1, "state": state, "lastState": last})

    def restarts_in_place(self, replica: str) -> Self:
        """The kubelet starts the container again."""
        pod = self.pod(replica)
        before = pod.object["status"]["containerStatuses"][0]
        last = before["state"] if "terminated" in before["state"] else before["lastState"]
        pod.runs += 1
        container = {"restartCount": pod.runs - 1, "state": {"running": {}}, "lastState": last}
        return self.touch(replica, phase="Running", container=container)

    def asks_deletion(self, *replicas: str) -> Self:
        """Somebody deletes pods; they are marked."""
        for replica in replicas:
            self.pod(replica).object["metadata"]["deletionTimestamp"] = self.timestamp()
            self.touch(replica)
        return self

    def gone(self, *replicas: str) -> Self:
        """Pods are removed."""
        for replica in replicas:
            self.event("pods", "DELETED", self.pods.pop(f"{self.scenario.id}-{replica}").object)
        return self

    def replace(self, replica: str) -> Self:
        """The operator deletes a pod and, once it is gone, creates another, which runs."""
        return self.asks_deletion(replica).gone(replica).create(replica).runs(replica)

    # --- whole passages ----------------------------------------------------------------------------------------

    @property
    def replicas(self) -> Sequence[str]:
        """All replicas of the job."""
        return self.scenario.replica_names()

    def begin(self) -> Self:
        """Submitted, Created, everything created, everything running, Running."""
        self.submit().says("Created")
        if self.has_services:
            self.services(*self.replicas)
        return self.create(*self.replicas).runs(*self.replicas).says("Running")

    def restart(self, replica: str, code: int) -> Self:
        """A retryable end and all that follows: Restarting, a new pod, Running."""
        self.wait(self.timeouts.dwell).ends(replica, code).says("Restarting")
        return self.replace(replica).says("Running")

    def collect(self) -> Self:
        """The garbage collector removes what the job owned."""
        for name in list(self.pods):
            replica = name.removeprefix(f"{self.scenario.id}-")
            self.asks_deletion(replica).gone(replica)
        for service in self.service_objects.values():
            self.event("services", "DELETED", service)
        self.service_objects.clear()
        return self
