"""Faults in how a restart is made, of what, and when."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from exitcode_reference_controller.identity import INDEX_LABEL, TYPE_LABEL
from exitcode_reference_controller.job import Job, ReplicaSpec
from exitcode_reference_controller.mutants.registry import variant
from exitcode_reference_controller.plan import Action, Announcement, Create, Delete, Plan, Thing
from exitcode_reference_controller.reconcile import Reconciler, Situation
from exitcode_reference_controller.standing import Replica, Standing
from exitcode_reference_controller.status import Draft

# ---- what the kubelet is told ----------------------------------------------------------------------------------------


class _TellsKubelet(Reconciler):
    """Some replica policies become another pod policy."""

    told: ClassVar[Mapping[str, str]]

    def pod_restart_policy(self, job: Job, spec: ReplicaSpec) -> str:
        return self.told.get(spec.restart_policy) or super().pod_restart_policy(job, spec)


@variant("restart-in-place", "Leaves ExitCode to the kubelet as OnFailure, which restarts in place whatever the code.")
class RestartInPlace(_TellsKubelet):
    told = {"ExitCode": "OnFailure"}


@variant(
    "pod-policy-unset",
    "Sets no pod restartPolicy under ExitCode, which means Always; the first change of tf-operator that restarted by"
    " exit code did (pull request 638).",
)
class PodPolicyUnset(_TellsKubelet):
    told = {"ExitCode": "Always"}


@variant("always-as-on-failure", "Takes Always for OnFailure, so that a replica that exits 0 is not run again.")
class AlwaysAsOnFailure(_TellsKubelet):
    told = {"Always": "OnFailure"}


@variant("on-failure-as-always", "Takes OnFailure for Always, so that a replica that has completed is run again.")
class OnFailureAsAlways(_TellsKubelet):
    told = {"OnFailure": "Always"}


@variant(
    "on-failure-as-never", "Restarts OnFailure replicas itself, by new pods, in place of letting the kubelet do it."
)
class OnFailureAsNever(_TellsKubelet):
    told = {"OnFailure": "Never"}


@variant("never-restarted-once", "Gives a replica of restartPolicy Never another attempt if its code is retryable.")
class NeverRestarted(Reconciler):
    def is_restarted(self, job: Job, spec: ReplicaSpec, code: int | None) -> bool:
        if spec.restart_policy == "Never":
            return code is not None and self.is_retryable(code)
        return super().is_restarted(job, spec, code)


@variant("template-policy-wins", "Lets the pod template's restartPolicy win over the replica's.")
class TemplatePolicyWins(Reconciler):
    def pod_restart_policy(self, job: Job, spec: ReplicaSpec) -> str:
        return spec.template["spec"].get("restartPolicy") or super().pod_restart_policy(job, spec)


# ---- which replicas --------------------------------------------------------------------------------------------------


class _RestartsMore(Reconciler):
    """A restart takes others with it."""

    dragged: ClassVar[tuple[Standing, ...]]

    def victims(self, situation: Situation) -> tuple[Replica, ...]:
        failed = super().victims(situation)
        return (*failed, *situation.standing(*self.dragged)) if failed else ()


@variant("all-replicas-restarted", "Restarts the whole job for one failed replica, as gang-restarting operators do.")
class AllReplicasRestarted(_RestartsMore):
    dragged = (Standing.PENDING, Standing.RUNNING)


@variant("completed-replica-restarted", "Runs replicas that have completed again when a sibling is restarted.")
class CompletedReplicaRestarted(_RestartsMore):
    dragged = (Standing.SUCCEEDED,)


@variant("restart-waits-for-siblings", "Restarts a replica only when none of its siblings runs any more.")
class RestartWaitsForSiblings(Reconciler):
    def victims(self, situation: Situation) -> tuple[Replica, ...]:
        return () if situation.standing(Standing.RUNNING) else super().victims(situation)


@variant(
    "deleted-pod-fails-job",
    "Takes a pod that somebody has deleted for a failed one (kubeflow/trainer issue 1560).",
)
class DeletedPodFailsJob(Reconciler):
    def __init__(self) -> None:
        self._pods: dict[tuple[str, str], str] = {}
        """UID of the last pod that was seen of a job's replica: a pod may be gone before anybody sees it go."""

    def fatal(self, situation: Situation) -> tuple[Replica, ...]:
        lost = tuple(replica for replica in situation.replicas if self._is_lost(situation, replica))
        return (*super().fatal(situation), *lost)

    def _is_lost(self, situation: Situation, replica: Replica) -> bool:
        place = (situation.job.uid, replica.name)
        if replica.pod is not None:
            self._pods[place] = replica.pod_uid
        gone = replica.standing in (Standing.LEAVING, Standing.MISSING) and place in self._pods
        return gone and not situation.ledger.holds(replica.key, self._pods[place])


# ---- how -------------------------------------------------------------------------------------------------------------


@variant(
    "create-before-delete",
    "Creates the replacement, under a name of its own, before it deletes the failed pod, as a rolling update does.",
)
class CreateBeforeDelete(Reconciler):
    def advance(self, draft: Draft, situation: Situation) -> Plan:
        plan = super().advance(draft, situation)
        if self.has_ended(plan.status):
            return plan
        early = tuple(self._replacement(situation, replica) for replica in self.victims(situation))
        return Plan(
            ledger=plan.ledger,
            status=plan.status,
            actions=(*early, *plan.actions),
            announcements=plan.announcements,
            wake_at=plan.wake_at,
        )

    def survey(self, job: Job, pods: Mapping[str, Thing]) -> tuple[Replica, ...]:
        """Looks at the last pod of each index, whatever it is called."""
        last: dict[str, Thing] = {}
        for pod in sorted(pods.values(), key=self._liveliness):
            labels = pod["metadata"]["labels"]
            last[f"{job.name}-{labels[TYPE_LABEL]}-{labels[INDEX_LABEL]}"] = pod
        return super().survey(job, last)

    def deletions(self, victims: Iterable[Replica]) -> Iterable[Action]:
        for replica in victims:
            if replica.pod is not None:
                yield Delete(resource="pods", name=replica.pod["metadata"]["name"], uid=replica.pod_uid)

    def _replacement(self, situation: Situation, replica: Replica) -> Create:
        pod = self.pod(situation.job, replica.spec, replica.index)
        pod["metadata"]["name"] += f"-{replica.pod_uid[-5:]}"
        return Create(manifest=pod)

    def _liveliness(self, pod: Thing) -> tuple[bool, bool]:
        return "deletionTimestamp" not in pod["metadata"], pod.get("status", {}).get("phase") != "Failed"


class _SpoilsReplacement(Reconciler):
    """A replacement is made another way than the first pod."""

    def creations(self, situation: Situation) -> Iterable[Create]:
        again = {replica.name for replica in situation.replicas if replica.key in situation.ledger.replicas}
        for creation in super().creations(situation):
            manifest = creation.manifest
            if manifest["kind"] == "Pod" and manifest["metadata"]["name"] in again:
                yield Create(manifest=self.spoilt(situation, manifest))
            else:
                yield creation

    def spoilt(self, situation: Situation, pod: Thing) -> Thing:
        raise NotImplementedError


def _with_environment(pod: Thing, told: Mapping[str, str | None]) -> Thing:
    """The pod with these variables in every container that had them; None takes one away."""

    def changed(container: Mapping[str, Any]) -> dict[str, Any]:
        kept = [entry for entry in container.get("env") or [] if told.get(entry["name"], "") is not None]
        return {**container, "env": [{**e, "value": told[e["name"]]} if e["name"] in told else e for e in kept]}

    return {**pod, "spec": {**pod["spec"], "containers": [changed(c) for c in pod["spec"]["containers"]]}}


def _variables(pod: Thing) -> dict[str, str]:
    entries = (entry for container in pod["spec"]["containers"] for entry in container.get("env") or [])
    return {entry["name"]: entry["value"] for entry in entries if "value" in entry}


_CLUSTER_VARIABLES = ("TF_CONFIG", "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")


@variant(
    "environment-lost-on-restart",
    "Sets the cluster's variables when the job is first seen, and makes replacements from the bare template.",
)
class EnvironmentLostOnRestart(_SpoilsReplacement):
    def spoilt(self, situation: Situation, pod: Thing) -> Thing:  # noqa: ARG002
        return _with_environment(pod, dict.fromkeys(_CLUSTER_VARIABLES))


@variant(
    "environment-wrong-after-restart",
    "Counts a replacement behind all replicas, as an elastic launcher hands out ranks, so that its index is wrong.",
)
class EnvironmentWrongAfterRestart(_SpoilsReplacement):
    def spoilt(self, situation: Situation, pod: Thing) -> Thing:
        variables, last = _variables(pod), situation.job.replicas
        told: dict[str, str | None] = {}
        if "RANK" in variables:
            told["RANK"] = str(last)
        if "TF_CONFIG" in variables:
            index = pod["metadata"]["labels"][INDEX_LABEL]
            told["TF_CONFIG"] = variables["TF_CONFIG"].replace(f'"index": {index}', f'"index": {last}')
        return _with_environment(pod, told)


@variant("labels-lost-on-restart", "Makes a replacement with the operator's own labels and without the template's.")
class LabelsLostOnRestart(_SpoilsReplacement):
    def spoilt(self, situation: Situation, pod: Thing) -> Thing:
        job, labels = situation.job, pod["metadata"]["labels"]
        kind = next(spec.type for spec in job.replica_specs if spec.type.lower() == labels[TYPE_LABEL])
        own = self.labels(job, kind, int(labels[INDEX_LABEL]))
        return {**pod, "metadata": {**pod["metadata"], "labels": own}}


@variant(
    "restarts-after-the-end", "Goes on restarting failed replicas, and creating missing ones, of a job that has ended."
)
class RestartsAfterTheEnd(Reconciler):
    def settle(self, draft: Draft, situation: Situation, said: tuple[Announcement, ...]) -> Plan:
        plan = super().settle(draft, situation, said)
        if situation.job.run_policy.clean_pod_policy != "None" or plan.actions:
            return plan
        more = (*self.deletions(self.victims(situation)), *self.creations(situation))
        return Plan(status=plan.status, actions=more, announcements=plan.announcements, wake_at=plan.wake_at)

    def admits_pods(self, status: Thing) -> bool:  # noqa: ARG002
        return True
