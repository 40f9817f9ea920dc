"""What a job needs now: from what is observed to what is to be done, without clock, network or memory.

The order of decisions is the heart of it. A job that is being deleted is left alone. A job that has ended is
only cleaned up. Otherwise: what fails the job goes before what completes it, and both go before restarts;
restarts go before creations; and a restart is a deletion in one pass and, once the old pod is gone, a
creation in a later one.

`Reconciler` is made of small rules, each in the module of its subject: `identity`, `manifests`, `standing`,
`status`, `limits`. A variant (package `mutants`) overrides one of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from exitcode_reference_controller.job import InvalidJob, Job, parse_job
from exitcode_reference_controller.kinds import JobKind
from exitcode_reference_controller.ledger import BrokenLedger, RestartLedger
from exitcode_reference_controller.limits import Limits
from exitcode_reference_controller.manifests import Manifests
from exitcode_reference_controller.plan import (
    Action,
    Announcement,
    Create,
    Delete,
    DeleteJob,
    Observed,
    Plan,
    Thing,
)
from exitcode_reference_controller.standing import Replica, Standing, Standings
from exitcode_reference_controller.status import Draft, Statuses

_UNFINISHED_PHASES = ("Pending", "Running", "Unknown")


@dataclass(frozen=True, kw_only=True)
class Situation:
    """A job with everything that the rules decide on."""

    job: Job
    ledger: RestartLedger
    observed: Observed
    pods: Mapping[str, Thing]
    services: Mapping[str, Thing]
    replicas: tuple[Replica, ...]
    taken: frozenset[str]
    """Names held by what is not the job's, such as a pod of an earlier job of its name that is still on its way out."""

    def standing(self, *standings: Standing) -> tuple[Replica, ...]:
        """The replicas that stand so."""
        return tuple(replica for replica in self.replicas if replica.standing in standings)


class Reconciler(Manifests, Standings, Statuses, Limits):
    """The reference behaviour."""

    def reconcile(self, kind: JobKind, observed: Observed) -> Plan:
        """What is to be done for the job as it is observed."""
        status = observed.job.get("status") or {}
        if "deletionTimestamp" in observed.job["metadata"]:
            return Plan(status=status)
        draft = self.draft(kind.name, status, observed.now)
        try:
            situation = self.situation(kind, observed)
        except (InvalidJob, BrokenLedger) as problem:
            return self.refuse(draft, observed, str(problem))
        if self.has_ended(status):
            return self.settle(draft, situation, ())
        return self.advance(draft, situation)

    def situation(self, kind: JobKind, observed: Observed) -> Situation:
        """Everything that the rules decide on. Raises InvalidJob, BrokenLedger."""
        job = parse_job(kind, observed.job)
        pods = {pod["metadata"]["name"]: pod for pod in observed.pods if self.owns(job, pod)}
        strangers = (thing for thing in (*observed.pods, *observed.services) if not self.owns(job, thing))
        return Situation(
            job=job,
            ledger=self.ledger(observed),
            observed=observed,
            pods=pods,
            services={s["metadata"]["name"]: s for s in observed.services if self.owns(job, s)},
            replicas=self.survey(job, pods),
            taken=frozenset(thing["metadata"]["name"] for thing in strangers),
        )

    def ledger(self, observed: Observed) -> RestartLedger:
        """The restarts that were made so far. Raises BrokenLedger."""
        return RestartLedger.read(observed.job)

    # ---- a job that is not to be run -----------------------------------------------------------------------

    def refuse(self, draft: Draft, observed: Observed, problem: str) -> Plan:
        """Fails a job that can never run."""
        if self.has_ended(draft.status):
            return Plan(status=draft.status)
        name = observed.job["metadata"]["name"]
        self.begin(draft, name)
        self.end(draft, "Failed", f"{draft.kind_name} {name} is invalid: {problem}.")
        return Plan(status=draft.status, announcements=(self.ending(draft, observed),))

    # ---- a job that has not ended --------------------------------------------------------------------------

    def advance(self, draft: Draft, situation: Situation) -> Plan:
        """One step of a job that has not ended."""
        job, replicas = situation.job, situation.replicas
        self.begin(draft, job.name)
        said = list(self.exits(situation))
        victims = self.victims(situation)
        ledger = situation.ledger
        for replica in victims:
            ledger = ledger.with_restart(replica.key, replica.pod_uid)
        failure = self.failure(situation, ledger, draft)
        if failure is not None:
            self.end(draft, "Failed", failure)
        elif self.is_successful(situation):
            self.end(draft, "Succeeded", f"{job.kind.name} {job.name} successfully completed.")
        if self.has_ended(draft.status):
            return self.settle(draft, situation, (*said, self.ending(draft, situation.observed)))
        if victims:
            said.append(self.restarting(situation, victims))
            self.say(draft, "Restarting", said[-1].message)
        elif self.is_running(replicas):
            self.say(draft, "Running", f"{job.kind.name} {job.name} is running.")
        self.count(draft, job, replicas, ended=False)
        creations = tuple(self.creations(situation))
        return Plan(
            ledger=self.ledger_to_write(situation, ledger),
            status=draft.status,
            actions=(*self.deletions(victims), *creations),
            announcements=(*said, *self.overruled(situation, creations)),
            wake_at=self.deadline(job, draft.status),
        )

    def ledger_to_write(self, situation: Situation, ledger: RestartLedger) -> RestartLedger | None:
        """The ledger if it has to be written, before any pod that it counts is deleted."""
        return ledger if ledger != situation.ledger else None

    def victims(self, situation: Situation) -> tuple[Replica, ...]:
        """The replicas whose pods are to be replaced."""
        return situation.standing(Standing.RETRYABLE)

    def failure(self, situation: Situation, intended: RestartLedger, draft: Draft) -> str | None:
        """Why the job has failed, None if it has not. `intended` counts the restarts that are about to be
        made."""
        job, name = situation.job, f"{situation.job.kind.name} {situation.job.name}"
        if situation.observed.rejection:
            return f"{name} is invalid: {situation.observed.rejection}"
        failed = self.fatal(situation)
        if failed:
            types = ", ".join(dict.fromkeys(replica.spec.type for replica in failed))
            return f"{name} has failed because {len(failed)} {types} replica(s) failed."
        if self.kubelet_limit_reached(job, situation.replicas) or (
            intended != situation.ledger and self.restarts_exhausted(job, intended)
        ):
            return f"{name} has failed because it has reached the specified backoff limit."
        deadline = self.deadline(job, draft.status)
        if deadline is not None and draft.now >= deadline and not self.is_successful(situation):
            return f"{name} has failed because it was active longer than specified deadline."
        return None

    def fatal(self, situation: Situation) -> tuple[Replica, ...]:
        """The replicas whose failure fails the job."""
        return situation.standing(Standing.FAILED)

    def is_successful(self, situation: Situation) -> bool:
        """Whether the replicas that decide have all succeeded. Parameter servers and evaluators never
        decide."""
        deciding = self.deciding(situation)
        return bool(deciding) and all(replica.standing is Standing.SUCCEEDED for replica in deciding)

    def deciding(self, situation: Situation) -> tuple[Replica, ...]:
        """The leaders; without one worker 0 or all workers, as the kind and the job's successPolicy have
        it."""
        job = situation.job
        if job.leaders:
            return tuple(replica for replica in situation.replicas if replica.spec.type in job.leaders)
        workers = tuple(replica for replica in situation.replicas if replica.spec.type == "Worker")
        first_only = job.kind.without_leader == "first-worker" and not job.all_workers
        return workers[:1] if first_only else workers

    def deletions(self, victims: Iterable[Replica]) -> Iterable[Action]:
        """The first half of a restart; the second comes when the pod is gone and its replica is missing."""
        for replica in victims:
            yield Delete(resource="pods", name=replica.name, uid=replica.pod_uid)

    def creations(self, situation: Situation) -> Iterable[Create]:
        """What is missing: services first, so that a container finds the names of the others. A name that is taken
        is waited for."""
        for replica in situation.replicas:
            if replica.name not in situation.services and replica.name not in situation.taken:
                yield Create(manifest=self.service(situation.job, replica.spec, replica.index))
        for replica in situation.standing(Standing.MISSING):
            if replica.name not in situation.taken:
                yield Create(manifest=self.pod(situation.job, replica.spec, replica.index))

    # ---- a job that has ended ------------------------------------------------------------------------------

    def settle(self, draft: Draft, situation: Situation, said: tuple[Announcement, ...]) -> Plan:
        """Keeps the counts true, cleans up, and removes the job when its time has come."""
        job = situation.job
        ended_before = self.has_ended(situation.observed.job.get("status") or {})
        self.count(draft, job, situation.replicas, ended=ended_before)
        expiry = self.expiry(job, draft.status)
        if expiry is not None and draft.now >= expiry:
            return Plan(status=draft.status, actions=(DeleteJob(),), announcements=said)
        return Plan(
            status=draft.status,
            actions=tuple(self.cleaning(situation)),
            announcements=said,
            wake_at=expiry,
        )

    def cleaning(self, situation: Situation) -> Iterable[Action]:
        """Removes the pods that cleanPodPolicy names, and each service whose pod does not stay."""
        if situation.job.run_policy.clean_pod_policy == "None":
            return
        staying = set()
        for name, pod in situation.pods.items():
            leaving = "deletionTimestamp" in pod["metadata"]
            if not leaving and self.is_kept(situation.job, pod):
                staying.add(name)
            elif not leaving:
                yield Delete(resource="pods", name=name, uid=pod["metadata"]["uid"])
        for name, service in situation.services.items():
            if name not in staying and "deletionTimestamp" not in service["metadata"]:
                yield Delete(resource="services", name=name, uid=service["metadata"]["uid"])

    def is_kept(self, job: Job, pod: Thing) -> bool:
        """Whether a pod outlives its job. One that is pending would run later, and counts as running."""
        phase = pod.get("status", {}).get("phase", "Pending")
        return job.run_policy.clean_pod_policy == "Running" and phase not in _UNFINISHED_PHASES

    # ---- what the controller asks while it carries a plan out -----------------------------------------------

    def admits_pods(self, status: Thing) -> bool:
        """Whether pods and services may still be created for a job of this status."""
        return not self.has_ended(status)

    def is_told(self, reason: str) -> bool:  # noqa: ARG002
        """Whether the controller records an event of its own, such as SuccessfulCreatePod."""
        return True

    # ---- what is announced ---------------------------------------------------------------------------------

    def exits(self, situation: Situation) -> Iterable[Announcement]:
        """The exit code of each pod that has ended."""
        job = situation.job
        for replica in situation.standing(Standing.SUCCEEDED, Standing.RETRYABLE, Standing.FAILED):
            code = self.training_code(job, replica.pod) if replica.pod else None
            if code is not None:
                yield Announcement(
                    type="Normal",
                    reason="ExitedWithCode",
                    message=f"Pod: {job.namespace}.{replica.name} exited with code {code}",
                    key=replica.pod_uid,
                )

    def restarting(self, situation: Situation, victims: tuple[Replica, ...]) -> Announcement:
        """Why the job says Restarting."""
        job = situation.job
        types = ", ".join(dict.fromkeys(replica.spec.type for replica in victims))
        return Announcement(
            type="Warning",
            reason=f"{job.kind.name}Restarting",
            message=f"{job.kind.name} {job.name} is restarting because {types} replica(s) failed.",
            key=",".join(replica.pod_uid for replica in victims),
        )

    def overruled(self, situation: Situation, creations: Iterable[Create]) -> Iterable[Announcement]:
        """That a template's restartPolicy is overwritten, once for each replica type."""
        if not any(creation.manifest["kind"] == "Pod" for creation in creations):
            return
        for spec in situation.job.replica_specs:
            if self.overrides_template_policy(spec):
                yield Announcement(
                    type="Warning",
                    reason="SettedPodTemplateRestartPolicy",
                    message="Restart policy in pod template will be overwritten by restart policy in replica spec",
                    key=spec.type,
                )

    def ending(self, draft: Draft, observed: Observed) -> Announcement:
        """How the job has ended."""
        last = draft.conditions[-1]
        return Announcement(
            type="Normal" if last["type"] == "Succeeded" else "Warning",
            reason=last["reason"],
            message=last["message"],
            key=str(observed.job["metadata"]["uid"]),
        )
