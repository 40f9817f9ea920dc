"""What is compared of a pod's statuses on two clusters: everything but clocks, names of nodes, addresses and hashes."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

Json = dict[str, Any]
_HEXADECIMAL = re.compile(r"[0-9a-f]{64}")


def observed_status(pod: Mapping[str, Any]) -> Json:
    """One state of a pod's object, ready to compare."""
    status = pod["status"]
    shown: Json = {"phase": status["phase"]}
    if pod["metadata"].get("deletionTimestamp"):
        shown["deleting"] = pod["metadata"].get("deletionGracePeriodSeconds")
    if pod["spec"].get("nodeName"):
        shown["bound"] = True
    for key in ("reason", "message"):
        if status.get(key):
            shown[key] = status[key]
    shown["has"] = sorted(status.keys() - {"phase", "reason", "message", "conditions"})
    shown["conditions"] = {c["type"]: _condition(c) for c in status.get("conditions") or ()}
    for key in ("initContainerStatuses", "containerStatuses"):
        if status.get(key):
            shown[key] = [_container(c, pod) for c in status[key]]
    return shown


def _condition(condition: Mapping[str, Any]) -> str:
    parts = (condition["status"], condition.get("reason"), condition.get("message"))
    return ": ".join(part for part in parts if part)


def _container(container: Mapping[str, Any], pod: Mapping[str, Any]) -> Json:
    shown: Json = {
        "name": container["name"],
        "state": _state(container["state"], pod),
        "image": container["image"],
        "ready": container["ready"],
        "restarts": container["restartCount"],
        "started": container.get("started"),
        "has": sorted(key for key in ("imageID", "containerID") if container.get(key)),
    }
    if container.get("lastState"):
        shown["last"] = _state(container["lastState"], pod)
    return shown


def _state(state: Mapping[str, Any], pod: Mapping[str, Any]) -> Json:
    shown: Json = {}
    for kind, detail in state.items():
        shown[kind] = {key: _detail(key, value, pod) for key, value in sorted(detail.items()) if value is not None}
    return shown


def _detail(key: str, value: Any, pod: Mapping[str, Any]) -> Any:
    if key in ("startedAt", "finishedAt"):
        return value if value.startswith("1970-01-01") else "some time"
    if key == "containerID":
        return _HEXADECIMAL.sub("HASH", value)
    if isinstance(value, str):
        return value.replace(pod["metadata"]["uid"], "UID").replace(pod["metadata"]["namespace"], "NAMESPACE")
    return value


def observed_sequence(pods: Iterable[Mapping[str, Any]]) -> list[Json]:
    """The states of one pod, in order, without repetitions."""
    sequence: list[Json] = []
    for pod in pods:
        shown = observed_status(pod)
        if not sequence or sequence[-1] != shown:
            sequence.append(shown)
    return sequence


def observed_event(event: Mapping[str, Any], pod: Mapping[str, Any]) -> str:
    """An event about the pod in one line; empty for what belongs to the cluster and not to the pod."""
    is_about_cluster = event["reason"] in ("FailedMount", "SandboxChanged", "TaintManagerEviction")
    if is_about_cluster or event["message"].startswith("skip schedule deleting pod"):
        return ""
    text = f"{event['type']} {event['reason']}: {event['message']}"
    for name in (pod["metadata"]["uid"], pod["metadata"]["namespace"], pod["spec"].get("nodeName") or ""):
        text = text.replace(name, "…") if name else text
    return text


def transition_faults(pods: Iterable[Mapping[str, Any]]) -> list[str]:
    """Conditions whose lastTransitionTime moved without a change of status."""
    faults = []
    before: dict[str, Mapping[str, Any]] = {}
    for pod in pods:
        for condition in pod["status"].get("conditions") or ():
            old = before.get(condition["type"])
            before[condition["type"]] = condition
            if old is None or old["lastTransitionTime"] == condition["lastTransitionTime"]:
                continue
            if old["status"] == condition["status"]:
                faults.append(f"{pod['metadata']['name']}: {condition['type']} stayed {old['status']}")
    return faults
