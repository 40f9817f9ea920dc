"""A pod of one of Kubernetes' own Jobs: how it is made, and what its end means."""

import copy
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from exitcode_reference_controller.kinds import BATCH_JOB
from exitcode_reference_controller.plan import Thing
from exitcode_reference_controller.status import parse_timestamp

INDEX = "batch.kubernetes.io/job-completion-index"
_LONGEST_PREFIX = 58
_ENDED = ("Succeeded", "Failed")


def pod_manifest(job: Thing, index: int | None) -> Thing:
    """A new pod; the API server completes its name. `index` None: it has no number."""
    metadata, template = job["metadata"], job["spec"]["template"]
    own = template.get("metadata") or {}
    labels, annotations = dict(own.get("labels") or {}), dict(own.get("annotations") or {})
    spec = copy.deepcopy(dict(template["spec"]))
    prefix = f"{metadata['name']}-"
    if index is not None:
        labels[INDEX] = annotations[INDEX] = str(index)
        spec["hostname"] = f"{metadata['name']}-{index}"
        prefix = f"{metadata['name'][: _LONGEST_PREFIX - len(f'-{index}-')]}-{index}-"
        origin = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}
        for container in (*spec.get("initContainers", ()), *spec["containers"]):
            others = [one for one in container.get("env") or () if one["name"] != "JOB_COMPLETION_INDEX"]
            container["env"] = [*others, {"name": "JOB_COMPLETION_INDEX", "valueFrom": origin}]
    owner = {
        "apiVersion": BATCH_JOB.api_version,
        "kind": BATCH_JOB.name,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": prefix,
            "namespace": metadata["namespace"],
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owner],
        },
        "spec": spec,
    }


def is_owned(job: Thing, pod: Thing) -> bool:
    """Whether the Job is the owner that controls a pod."""
    references = pod["metadata"].get("ownerReferences") or ()
    return any(one.get("controller") and one.get("uid") == job["metadata"]["uid"] for one in references)


def completion_index(pod: Thing) -> int | None:
    """The number of a pod, None if it has none."""
    text = (pod["metadata"].get("annotations") or {}).get(INDEX, "")
    return int(text) if text.isdecimal() else None


def is_active(pod: Thing) -> bool:
    """Whether a pod has neither ended nor been told to."""
    return _phase(pod) not in _ENDED and "deletionTimestamp" not in pod["metadata"]


def is_terminating(pod: Thing) -> bool:
    """Whether a pod has been told to end and has not."""
    return _phase(pod) not in _ENDED and "deletionTimestamp" in pod["metadata"]


def is_ready(pod: Thing) -> bool:
    """Whether all its containers run."""
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def has_failed(pod: Thing, *, waits_for_end: bool) -> bool:
    """Whether a pod is a failure; one that is on its way out is one at once unless its end is waited for."""
    return _phase(pod) == "Failed" or (not waits_for_end and is_terminating(pod))


def when_ended(pod: Thing) -> datetime:
    """The moment from which a replacement is delayed."""
    metadata = pod["metadata"]
    ends = [
        (one.get("state") or {}).get("terminated") or {} for one in pod.get("status", {}).get("containerStatuses") or ()
    ]
    finished = [one["finishedAt"] for one in ends if one.get("finishedAt")]
    if finished and len(finished) == len(ends):
        return parse_timestamp(max(finished))
    if "deletionTimestamp" in metadata:
        grace = timedelta(seconds=metadata.get("deletionGracePeriodSeconds") or 0)
        return parse_timestamp(metadata["deletionTimestamp"]) - grace
    return parse_timestamp(metadata["creationTimestamp"])


def failure_action(policy: Mapping[str, Any] | None, pod: Thing) -> tuple[str, str]:
    """What the first rule that a failed pod meets wants done (Count if it meets none), and why."""
    where = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    for number, rule in enumerate((policy or {}).get("rules") or ()):
        action = rule["action"]
        if rule.get("onExitCodes"):
            for container, code in _codes(pod):
                if _meets(rule["onExitCodes"], container, code):
                    why = f"failed with exit code {code} matching {action} rule at index {number}"
                    return action, f"Container {container} for pod {where} {why}"
        for one in pod.get("status", {}).get("conditions") or ():
            wanted = {(pattern["type"], pattern["status"]) for pattern in rule.get("onPodConditions") or ()}
            if (one["type"], one["status"]) in wanted:
                return action, f"Pod {where} has condition {one['type']} matching {action} rule at index {number}"
    return "Count", ""


def _codes(pod: Thing) -> Iterable[tuple[str, int]]:
    """Container → exit code, of those that have failed."""
    for field in ("containerStatuses", "initContainerStatuses"):
        for one in pod.get("status", {}).get(field) or ():
            code = ((one.get("state") or {}).get("terminated") or {}).get("exitCode", 0)
            if code:
                yield one["name"], code


def _meets(requirement: Mapping[str, Any], container: str, code: int) -> bool:
    if requirement.get("containerName") not in (None, container):
        return False
    is_listed = code in requirement["values"]
    return is_listed if requirement["operator"] == "In" else not is_listed


def indexes_text(indexes: Iterable[int]) -> str:
    """Indexes as `status.completedIndexes` has them: `0,2-4`; two neighbours are joined by a comma."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(_run_text(run) for run in runs)


def _run_text(run: list[int]) -> str:
    if len(run) > 2:
        return f"{run[0]}-{run[-1]}"
    return ",".join(str(index) for index in run)


def _phase(pod: Thing) -> str:
    return str(pod.get("status", {}).get("phase", "Pending"))
