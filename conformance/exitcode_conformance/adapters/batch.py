"""The Job of Kubernetes itself, batch/v1: one pod template, a backoffLimit, and a podFailurePolicy for exit codes.

What a scenario calls restartPolicy ExitCode is for a Job the table of the contract `kubeflow-docs`, written down as the
job's own podFailurePolicy: permanent codes fail the job, retryable ones are ignored, which has the pod replaced and
nothing counted. Never is a backoffLimit of 0. More than one replica are the indexes of an Indexed Job.

Source: Kubernetes API reference, batch/v1; Kubernetes documentation, Jobs (pod failure policy, completion mode).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from exitcode_conformance.adapters.adapter import Change
from exitcode_conformance.container import pod_template
from exitcode_conformance.contract import CodeClass, load_contract
from exitcode_conformance.kinds import JobKind
from exitcode_conformance.pods import labels_of
from exitcode_conformance.scenario import Scenario
from exitcode_conformance.timeouts import Timeouts

TABLE = "kubeflow-docs"
"""The contract whose codes are in the podFailurePolicy."""
INDEX = "batch.kubernetes.io/job-completion-index"
"""Annotation, and from Kubernetes 1.28 on label, of a pod of an Indexed Job."""
COUNTS = ("active", "succeeded", "failed")

_NO_TYPES = "a Job has one pod template, and no replica types"
_NAMES = "the pods of a Job have generated names, and labels of Kubernetes' own"
_FAILED_STAY = "a Job keeps its failed pods, and names each pod anew"
_NO_SERVICES = "a Job has no services"
_NO_POLICY = "a Job has no cleanPodPolicy: its pods stay when it ends, but for those that still run"
_NO_STATES = "the conditions of a Job tell of its end only, not of running or restarting"
_EVENTS = "the events of the training operator are not promised for a Job"

WITHOUT: Mapping[str, str] = MappingProxyType(
    {
        "EXIT-05": "what an undefined code does is up to the job's own podFailurePolicy",
        "EXIT-13": "what a failure without a code does is up to the job's own podFailurePolicy",
        "EXIT-14": "a Job counts how a deleted pod ended, and the suite's containers end with 0 when they are stopped",
        "EXIT-15": "a pod of a Job succeeds only if all of its containers do",
        "RESTART-01": _FAILED_STAY,
        "RESTART-02": _FAILED_STAY,
        "RESTART-05": "the API refuses a Job whose restartPolicy is Always",
        "STATE-01": _NO_STATES,
        "STATE-02": _NO_STATES,
        "STATE-03": _NO_STATES,
        "STATE-04": _NO_STATES,
        "STATE-06": _NO_STATES,
        "STATE-07": "a Job has a completionTime only if it succeeds",
        "STATE-08": "a Job does not count the failures that its podFailurePolicy ignores",
        "STATE-10": _NO_TYPES,
        "STATE-11": "kubectl prints no state of a Job before Kubernetes 1.30",
        "LIMIT-02": "failures that the podFailurePolicy ignores do not count towards a Job's backoffLimit",
        "LIMIT-05": "a Job always has a backoffLimit",
        "CLEAN-01": _NO_POLICY,
        "CLEAN-02": _NO_POLICY,
        "CLEAN-03": _NO_SERVICES,
        "CLEAN-04": _NO_POLICY,
        "IDENT-01": _NAMES,
        "IDENT-02": _NAMES,
        "IDENT-04": _NO_TYPES,
        "IDENT-05": "a Job tells its pods nothing of each other",
        "IDENT-06": _NO_SERVICES,
        "IDENT-07": "the restartPolicy of a Job is that of its pod template",
        "EVENT-01": _EVENTS,
        "EVENT-02": _EVENTS,
        "EVENT-03": _EVENTS,
        "EVENT-04": _EVENTS,
        "EVENT-05": _EVENTS,
    }
)


class BatchAdapter:
    """Jobs of batch/v1."""

    name: Literal["batch"] = "batch"
    contracts: tuple[str, ...] | None = (TABLE,)
    without = WITHOUT
    prunes = True

    @property
    def nonsense(self) -> Mapping[str, Change]:
        """A restartPolicy that does not exist; there are no kinds of replica."""
        return {"nonsense-policy": _of_no_policy}

    def spec(self, scenario: Scenario, kind: JobKind, timeouts: Timeouts, image: str) -> dict[str, Any]:
        """See `Adapter.spec`."""
        (group,) = scenario.groups
        indexed = group.replicas > 1
        field = {"fieldRef": {"fieldPath": f"metadata.annotations['{INDEX}']"}}
        index = {"valueFrom": field} if indexed else {"value": "0"}
        template = pod_template(scenario, group, container=kind.container, image=image, timeouts=timeouts, index=index)
        under_exit_code = group.restart_policy == "ExitCode"
        template["spec"]["restartPolicy"] = "Never" if under_exit_code else group.restart_policy
        spec: dict[str, Any] = {"parallelism": group.replicas, "completions": group.replicas, "template": template}
        if indexed:
            spec["completionMode"] = "Indexed"
        if under_exit_code:
            spec["podFailurePolicy"] = _failure_policy(kind.container)
        if group.restart_policy == "Never":
            spec["backoffLimit"] = 0
        return {**spec, **scenario.run_policy}

    def replica_of(self, pod: Mapping[str, Any], _job: str, /) -> str | None:
        """By its completion index; a pod without one is that of a Job with one completion."""
        annotations = pod["metadata"].get("annotations") or {}
        index = annotations.get(INDEX) or labels_of(pod).get(INDEX) or "0"
        return f"worker-{index}" if str(index).isdecimal() else None

    def replica_statuses(self, status: Mapping[str, Any], kind: JobKind, /) -> Mapping[str, Mapping[str, Any]]:
        """The counts of the status, which are those of the only type; one that is left out is 0."""
        return {kind.replica_types[0]: {name: status.get(name, 0) for name in COUNTS}} if status else {}


def _failure_policy(container: str) -> dict[str, Any]:
    table = load_contract(TABLE)
    classes = {code: table.class_of(code) for code in range(1, 256)}
    permanent = [code for code, found in classes.items() if found is CodeClass.PERMANENT]
    retryable = [code for code, found in classes.items() if found.restarts]
    actions = (("FailJob", permanent), ("Ignore", retryable))
    return {
        "rules": [
            {"action": action, "onExitCodes": {"containerName": container, "operator": "In", "values": codes}}
            for action, codes in actions
        ]
    }


def _of_no_policy(spec: dict[str, Any], _kind: JobKind) -> None:
    spec["template"]["spec"]["restartPolicy"] = "Sometimes"
