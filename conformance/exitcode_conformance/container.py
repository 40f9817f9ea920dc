"""The containers of a scenario's pods: one script, which is told from outside how to end.

A replacement pod has the same name and no memory, so the number of its attempt has to come from outside. The kubelet
resolves the ConfigMap's key each time it starts a container; the harness changes it once it sees an attempt running.
"""

import shlex
from collections.abc import Mapping
from typing import Any

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

OUTCOME_VARIABLE = "EXITCODE_OUTCOME"
SCENARIO_LABEL = "exitcode-conformance/scenario"
"""On the pod template, so that it can be seen whether a replacement carries the user's labels too."""
SIDECAR, INIT = "sidecar", "init"
"""Names of the containers beside the training container."""
MISSING_COMMAND = "/no/such/command"
NO_NODE = {"exitcode-conformance/no-node-has-this": "true"}
"""A nodeSelector that keeps pods Pending."""

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
every signal that it has no handler for. POD_NAME is anything whose last part after a hyphen is the replica's index."""
BY_POD_NAME: Mapping[str, Any] = {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
"""Where a container finds its replica's index if its pod is named after it."""


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


def pod_template(
    scenario: Scenario,
    group: ReplicaGroup,
    *,
    container: str,
    image: str,
    timeouts: Timeouts,
    index: Mapping[str, Any] = BY_POD_NAME,
) -> dict[str, Any]:
    """The pod template of a group; `container` is the training container's name, `index` the source of POD_NAME."""
    told = {"configMapKeyRef": {"name": config_map_name(scenario), "key": group.type.lower()}}
    training = _container(container, image, {"valueFrom": told}, index)
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
            pod.setdefault(containers, []).append(_container(name, image, {"value": words}, index))
    if group.pending:
        pod["nodeSelector"] = dict(NO_NODE)
    if group.template_restart_policy is not None:
        pod["restartPolicy"] = group.template_restart_policy
    return {"metadata": {"labels": {SCENARIO_LABEL: scenario.id}}, "spec": pod}


def _container(name: str, image: str, told: Mapping[str, Any], index: Mapping[str, Any]) -> dict[str, Any]:
    """A container of the script; `told` is where it finds its outcome."""
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", SCRIPT],
        "env": [{"name": "POD_NAME", **index}, {"name": OUTCOME_VARIABLE, **told}],
    }
