"""IDENT-05: the environment by which the replicas of a job find each other."""

import json
from collections.abc import Mapping

from exitcode_conformance.contract import Contract
from exitcode_conformance.history import History
from exitcode_conformance.judging import Undecided, failed, passed
from exitcode_conformance.pods import Incarnation
from exitcode_conformance.premise import must_have_pods
from exitcode_conformance.registry import requirement
from exitcode_conformance.scenario import Scenario
from exitcode_conformance.verdict import Judgement


def _is_told(scenario: Scenario, contract: Contract) -> bool:
    return scenario.kind in ("TFJob", "PyTorchJob")


@requirement(
    "IDENT-05",
    "TF_CONFIG, or MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK, are right for each replica, after a restart too.",
    feature="cluster-environment",
    source="TensorFlow, tf.distribute cluster resolvers; PyTorch, torch.distributed environment initialisation",
    applies=_is_told,
)
def cluster_is_described(history: History, contract: Contract) -> Judgement:
    expected = "every pod is told the whole cluster, and its own place in it"
    pods = [p for p in must_have_pods(history) if p.replica in history.scenario.replica_names()]
    if not pods:
        raise Undecided("no pod stands for a replica of the job")
    problem_of = _tensorflow_problem if history.kind.name == "TFJob" else _pytorch_problem
    open_ones: list[Undecided] = []
    for pod in pods:
        try:
            problem = problem_of(history, pod)
        except Undecided as undecided:
            open_ones.append(undecided)
            continue
        if problem:
            return failed(expected, f"{pod.name}: {problem}", pod.created.seq)
    if open_ones:
        raise open_ones[0]
    return passed(expected, f"{len(pods)} pod(s), all right", *(p.created.seq for p in pods[:3]))


def _environment(history: History, pod: Incarnation, *names: str) -> Mapping[str, str]:
    """The variables of these names that the training container is given. Raises Undecided where one of them is taken
    from an object that the recording does not hold."""
    found: dict[str, str] = {}
    for container in pod.first["spec"]["containers"]:
        if container.get("name") != history.kind.container:
            continue
        for variable in container.get("env") or []:
            if variable.get("name") in names:
                if "valueFrom" in variable:
                    raise Undecided(f"{pod.name} takes {variable['name']} from elsewhere", pod.created.seq)
                found[variable["name"]] = str(variable.get("value") or "")
        if container.get("envFrom") and not set(names) <= set(found):
            raise Undecided(f"{pod.name} takes its environment from elsewhere", pod.created.seq)
    return found


def _tensorflow_problem(history: History, pod: Incarnation) -> str | None:
    text = _environment(history, pod, "TF_CONFIG").get("TF_CONFIG")
    if text is None:
        # A job of one replica is not distributed: from release 1.0 on it gets none.
        return "no TF_CONFIG" if history.scenario.pod_count() > 1 else None
    try:
        config = json.loads(text)
        task, cluster = config["task"], config["cluster"]
        seen_task = (str(task["type"]).lower(), int(task["index"]))
        hosts = {str(kind).lower(): [str(host) for host in hosts] for kind, hosts in cluster.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"TF_CONFIG is not readable: {text[:200]}"
    kind, _, index = (pod.replica or "").rpartition("-")
    if seen_task != (kind, int(index)):
        return f"TF_CONFIG says that it is {seen_task[0]} {seen_task[1]}"
    for group in history.scenario.groups:
        if group.type == "Evaluator" and "evaluator" not in hosts:
            continue  # it looks on from outside: TensorFlow does not count it as part of the cluster
        names = [f"{history.job_name}-{group.type.lower()}-{i}" for i in range(group.replicas)]
        found = hosts.pop(group.type.lower(), [])
        if [host.split(".")[0].split(":")[0] for host in found] != names:
            return f"TF_CONFIG lists {found} for {group.type}"
        if any(host.rpartition(":")[2] != str(history.kind.port) for host in found):
            return f"TF_CONFIG lists {found}: the port is {history.kind.port}"
    return f"TF_CONFIG lists types that the job does not have: {sorted(hosts)}" if hosts else None


def _pytorch_problem(history: History, pod: Incarnation) -> str | None:
    seen = _environment(history, pod, "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")
    kind, _, index = (pod.replica or "").rpartition("-")
    has_master = any(g.type == "Master" for g in history.scenario.groups)
    rank = int(index) + (1 if kind == "worker" and has_master else 0)
    wanted = {"MASTER_PORT": str(history.kind.port), "WORLD_SIZE": str(history.scenario.pod_count()), "RANK": str(rank)}
    for name, value in wanted.items():
        if seen.get(name) != value:
            return f"{name} is {seen.get(name)!r}, expected {value!r}"
    first = f"{history.job_name}-{'master' if has_master else 'worker'}-0"
    address = seen.get("MASTER_ADDR", "")
    # Release 0.x and the master itself may say localhost: it listens there.
    if address.split(".")[0] != first and not (address == "localhost" and rank == 0):
        return f"MASTER_ADDR is {address!r}, expected {first!r}"
    return None
