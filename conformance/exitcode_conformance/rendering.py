"""A scenario as the objects that are submitted: the job's manifest, and the ConfigMap that tells its containers how to
end.

A replacement pod has the same name and no memory, so the number of its attempt has to come from outside. The kubelet
resolves the ConfigMap's key each time it starts a container; the harness changes it once it sees an attempt running.
"""

import copy
import re
import shlex
from collections.abc import Mapping
from typing import Any

from exitcode_conformance.kinds import KINDS
from exitcode_conformance.scenario import (
    ExitOutcome,
    MissingCommand,
    Outcome,
    ReplicaGroup,
    RunUntilStopped,
    Scenario,
    SignalOutcome,
)
from exitcode_conformance.timeouts import Timeouts

DEFAULT_IMAGE = "busybox:1.36"
OUTCOME_VARIABLE = "EXITCODE_OUTCOME"
SCENARIO_LABEL = "exitcode-conformance/scenario"
"""On the pod template, so that it can be seen whether a replacement carries the user's labels too."""
SIDECAR, INIT = "sidecar", "init"
"""Names of the containers beside the training container."""
MISSING_COMMAND = "/no/such/command"
NO_NODE = {"exitcode-conformance/no-node-has-this": "true"}
"""A nodeSelector that keeps pods Pending."""
MANIFEST_SECONDS_PER_UNIT = 2.0
"""How many seconds of a foreign manifest's sleep are one unit of `Timeouts.dwell`."""

SCRIPT = """\
trap 'exit 0' TERM
index=${POD_NAME##*-}
for word in $EXITCODE_OUTCOME; do
  case $word in "$index="*) outcome=${word#*=} ;; esac
done
kind=${outcome:=run:0} kind=${kind%%:*} rest=${outcome#*:}
argument=${rest%%:*} seconds=${rest#*:}
case $kind in run) trap 'exit "$argument"' TERM ;; esac
echo "outcome $outcome"
case $kind in
exit)
  sleep "$seconds" & wait $!
  exit "$argument" ;;
signal)
  sleep "$seconds" & wait $!
  sh -c "kill -$argument \\$\\$"
  exit $? ;;
run)
  while :; do sleep 3600 & wait $!; done ;;
esac
echo "this outcome is not known: $outcome" >&2
exit 64
"""
"""What every container runs; busybox and dash accept it. A signal hits a child, because PID 1 of a container ignores
every signal that it has no handler for."""


def outcome_word(outcome: Outcome, timeouts: Timeouts) -> str:
    """An outcome as the container's script reads it: `exit:137:0.5`, `signal:KILL:0.5`, `run:0`."""
    match outcome:
        case ExitOutcome():
            return f"exit:{outcome.code}:{outcome.dwell * timeouts.dwell:g}"
        case SignalOutcome():
            return f"signal:{outcome.signal}:{outcome.dwell * timeouts.dwell:g}"
        case RunUntilStopped():
            return f"run:{outcome.code}"
        case MissingCommand():
            return "none"


def outcome_data(scenario: Scenario, attempts: Mapping[str, int], timeouts: Timeouts) -> dict[str, str]:
    """The ConfigMap's data: replica type in lower case → `0=exit:137:0.5 1=run …`. `attempts` is the number of the
    next attempt of each replica, 1 where it is not named."""
    result = {}
    for group in scenario.groups:
        kind = group.type.lower()
        names = [f"{kind}-{i}" for i in range(group.replicas)]
        words = (outcome_word(scenario.outcome_of(n, attempts.get(n, 1)), timeouts) for n in names)
        result[kind] = " ".join(f"{i}={word}" for i, word in enumerate(words))
    return result


def config_map_name(scenario: Scenario) -> str:
    """Name of the scenario's ConfigMap."""
    return f"outcome-{scenario.id}"


def render_config_map(scenario: Scenario, namespace: str, timeouts: Timeouts) -> dict[str, Any]:
    """The ConfigMap with the first outcome of every replica."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": config_map_name(scenario), "namespace": namespace},
        "data": outcome_data(scenario, {}, timeouts),
    }


def render_job(scenario: Scenario, namespace: str, timeouts: Timeouts, image: str = DEFAULT_IMAGE) -> dict[str, Any]:
    """The job's manifest. `image` has to hold a POSIX shell and `sleep`."""
    if scenario.manifest is not None:
        return _scaled(scenario, namespace, timeouts, image)
    kind = KINDS[scenario.kind]
    spec: dict[str, Any] = {"runPolicy": copy.deepcopy(scenario.run_policy)} if scenario.run_policy else {}
    if scenario.success_policy is not None:
        spec["successPolicy"] = scenario.success_policy
    spec[kind.replica_specs] = {g.type: _replica_spec(scenario, g, image, timeouts) for g in scenario.groups}
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": scenario.id, "namespace": namespace},
        "spec": spec,
    }


def _replica_spec(scenario: Scenario, group: ReplicaGroup, image: str, timeouts: Timeouts) -> dict[str, Any]:
    told = {"configMapKeyRef": {"name": config_map_name(scenario), "key": group.type.lower()}}
    training = _container(KINDS[scenario.kind].container, image, {"valueFrom": told})
    first = [scenario.outcome_of(f"{group.type.lower()}-{i}", 1) for i in range(group.replicas)]
    if any(isinstance(outcome, MissingCommand) for outcome in first):
        training["command"] = [MISSING_COMMAND]
    if group.message is not None:
        # What it prints becomes its message, so that it need not write to a file of the node.
        training["terminationMessagePolicy"] = "FallbackToLogsOnError"
        training["command"] = ["sh", "-c", f"echo {shlex.quote(group.message)}\n{SCRIPT}"]
    # The script asks the API for nothing; a token would only cost the node a volume and a watch for each pod.
    pod: dict[str, Any] = {
        "terminationGracePeriodSeconds": 5,
        "automountServiceAccountToken": False,
        "containers": [training],
    }
    for name, outcome, containers in ((SIDECAR, group.sidecar, "containers"), (INIT, group.init, "initContainers")):
        if outcome is not None:
            words = " ".join(f"{i}={outcome_word(outcome, timeouts)}" for i in range(group.replicas))
            pod.setdefault(containers, []).append(_container(name, image, {"value": words}))
    if group.pending:
        pod["nodeSelector"] = dict(NO_NODE)
    if group.template_restart_policy is not None:
        pod["restartPolicy"] = group.template_restart_policy
    template = {"metadata": {"labels": {SCENARIO_LABEL: scenario.id}}, "spec": pod}
    return {"replicas": group.replicas, "restartPolicy": group.restart_policy, "template": template}


def _container(name: str, image: str, told: Mapping[str, Any]) -> dict[str, Any]:
    """A container of the script; `told` is where it finds its outcome."""
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", SCRIPT],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": OUTCOME_VARIABLE, **told},
        ],
    }


def _scaled(scenario: Scenario, namespace: str, timeouts: Timeouts, image: str) -> dict[str, Any]:
    """A foreign manifest: every `sleep Ns` scaled, and cpu limits made small enough for a node of two processors."""
    job = copy.deepcopy(scenario.manifest)
    assert job is not None
    job["metadata"] = {**job["metadata"], "name": scenario.id, "namespace": namespace}
    factor = timeouts.dwell / MANIFEST_SECONDS_PER_UNIT
    for spec in job["spec"][KINDS[scenario.kind].replica_specs].values():
        for container in spec["template"]["spec"]["containers"]:
            container["image"] = image
            container["command"] = [_sleeps_scaled(word, factor) for word in container["command"]]
            limits = (container.get("resources") or {}).get("limits") or {}
            if "cpu" in limits:
                limits["cpu"] = "50m"
    return job


def _sleeps_scaled(script: str, factor: float) -> str:
    return re.sub(r"\bsleep (\d+)s\b", lambda match: f"sleep {int(match[1]) * factor:g}", script)
