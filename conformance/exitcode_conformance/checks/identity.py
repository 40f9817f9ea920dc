"""IDENT: names, labels and owners of pods and services."""

from collections.abc import Mapping
from typing import Any

from exitcode_conformance import selection
from exitcode_conformance.contract import Contract
from exitcode_conformance.entry import Event
from exitcode_conformance.history import History, Moment
from exitcode_conformance.judging import Undecided, failed, judged, passed
from exitcode_conformance.pods import LABEL_GENERATIONS, LABELS, labels_of
from exitcode_conformance.premise import must_have_been_submitted, must_have_pods, must_have_seen_all, not_kept_from
from exitcode_conformance.registry import requirement
from exitcode_conformance.scenario import Scenario
from exitcode_conformance.success_rule import deciding_replicas
from exitcode_conformance.temporal import eventually, seconds
from exitcode_conformance.verdict import Judgement

SOURCE = "training-operator, the controllers of all releases"


@requirement(
    "IDENT-01",
    "Pods are named <job>-<type>-<index>, one for each index.",
    feature="identity",
    source=SOURCE,
    applies=selection.everything,
)
def pods_are_named(history: History, contract: Contract) -> Judgement:
    wanted = {f"{history.job_name}-{replica}" for replica in history.scenario.replica_names()}
    expected = f"pods named {', '.join(sorted(wanted))}, and no others"
    submitted = max([must_have_been_submitted(history), *_old_pods_gone(history)], key=lambda moment: moment.time)
    first: dict[str, Moment] = {}
    for pod in history.incarnations:
        if pod.name not in wanted:
            return failed(expected, f"a pod named {pod.name}", pod.created.seq)
        first.setdefault(pod.name, Moment(seq=pod.created.seq, time=pod.created.time, what=f"{pod.name} was created"))
    missing = not_kept_from(history, wanted - set(first))
    stopped = history.terminal[1] if history.terminal else history.job_deletion
    if missing and stopped is not None and first and stopped.time - submitted.time < seconds(history, "created"):
        raise Undecided(f"the job ended before {', '.join(missing)} was created", stopped.seq)
    last = None if missing else max(first.values(), key=lambda m: m.seq)
    found = eventually(
        history, since=submitted, bound="created", found=last, missing=f"no pod named {', '.join(missing)}"
    )
    return judged(expected, [found])


def _old_pods_gone(history: History) -> list[Moment]:
    """When the pods of a former job of the same name were removed: as long as they hold the names, nobody can have
    them, and that they go is the node's work."""
    gone = (e for e in history.former if isinstance(e, Event) and e.resource == "pods" and e.verb == "DELETED")
    return [Moment(seq=e.seq, time=e.time, what=f"the former pod {e.metadata.get('name')} was gone") for e in gone]


@requirement(
    "IDENT-02",
    "Labels of every pod carry job, type, index, and operator or group.",
    feature="identity",
    source=f"{SOURCE}; label keys of each generation",
    applies=selection.everything,
)
def pods_are_labelled(history: History, contract: Contract) -> Judgement:
    declared = history.declared.labels
    keys_declared = LABELS.get(declared or "")
    generations = LABEL_GENERATIONS if keys_declared is None else (keys_declared,)
    which = "one known generation" if keys_declared is None else f"the declared generation {declared}"
    expected = f"labels of {which} with the job's name, the replica's type and index, and the operator"
    pods = must_have_pods(history)
    for pod in pods:
        problems = [_label_problem(labels_of(pod.first), keys, history.job_name, pod.replica) for keys in generations]
        if all(problems):
            return failed(expected, f"{pod.name}: {problems[0]}", pod.created.seq)
    return passed(expected, f"{len(pods)} pod(s), all labelled", *(p.created.seq for p in pods[:3]))


def _label_problem(labels: Mapping[str, str], keys: Mapping[str, str], job: str, replica: str | None) -> str | None:
    kind, _, index = (replica or "").rpartition("-")
    for what, wanted in (("job", job), ("type", kind), ("index", index)):
        seen = labels.get(keys[what])
        if seen is None or (seen.lower() if what == "type" else seen) != wanted:
            return f"label {keys[what]} is {seen!r}, expected {wanted!r}"
    return None if labels.get(keys["operator"]) else f"no label {keys['operator']}"


@requirement(
    "IDENT-03",
    "Pods and services have exactly one controller owner: the job, by UID.",
    feature="identity",
    source=f"{SOURCE}; Kubernetes documentation, owners and dependents",
    applies=selection.everything,
)
def owner_is_the_job(history: History, contract: Contract) -> Judgement:
    expected = f"one ownerReference with controller true, whose uid is the job's: {history.job_uid}"
    must_have_pods(history)
    must_have_seen_all(history, "services")
    owned = [e for e in history.events if e.resource in ("pods", "services")]
    for event in owned:
        problem = _owner_problem(event, history.job_uid)
        if problem:
            return failed(expected, f"{event.resource[:-1]} {event.object['metadata']['name']}: {problem}", event.seq)
    created = [e for e in owned if e.verb == "ADDED"]
    return passed(expected, f"{len(created)} objects, all owned by the job", *(e.seq for e in created[:3]))


def _owner_problem(event: Event, uid: str | None) -> str | None:
    references: list[Mapping[str, Any]] = event.object["metadata"].get("ownerReferences") or []
    controllers = [r for r in references if r.get("controller") is True]
    if len(controllers) != 1:
        return f"{len(controllers)} controller owners"
    if controllers[0].get("uid") != uid:
        return f"its owner is {controllers[0].get('kind')} {controllers[0].get('uid')}"
    return None


@requirement(
    "IDENT-04",
    "The role label `master` marks the chief's or master's pod, or worker 0 where there is none.",
    feature="identity",
    source=f"{SOURCE}; label job-role",
    applies=selection.everything,
)
def master_is_marked(history: History, contract: Contract) -> Judgement:
    leaders = _leaders(history)
    expected = f"the role label master on {', '.join(leaders)} and on no other pod"
    pods = must_have_pods(history)
    keys = [generation["role"] for generation in LABEL_GENERATIONS]
    for pod in pods:
        marked = any(labels_of(pod.first).get(key) == "master" for key in keys)
        if marked != (pod.replica in leaders):
            return failed(expected, f"{pod.name} is {'' if marked else 'not '}marked as master", pod.created.seq)
    missing = [leader for leader in leaders if not history.incarnations_of(leader)]
    if missing:
        raise Undecided(f"{', '.join(missing)} was never created")
    return passed(expected, f"{', '.join(leaders)} marked, the others not", pods[0].created.seq)


def _leaders(history: History) -> tuple[str, ...]:
    has_leader = any(g.type in history.kind.leaders for g in history.scenario.groups)
    return deciding_replicas(history.scenario) if has_leader else ("worker-0",)


def _has_template_policy(scenario: Scenario, contract: Contract) -> bool:
    return any(group.template_restart_policy is not None for group in scenario.groups)


@requirement(
    "IDENT-07",
    "A restartPolicy in the pod template is overwritten by the replica's.",
    feature="identity",
    source="training-operator, the function that sets the pod's restart policy: the template's is overwritten",
    profile="extended",
    applies=_has_template_policy,
)
def template_policy_is_overwritten(history: History, contract: Contract) -> Judgement:
    groups = {g.type.lower(): g for g in history.scenario.groups if g.template_restart_policy is not None}
    expected = "spec.restartPolicy of every pod is that of its replica, and not that of the template"
    found = []
    for pod in must_have_pods(history):
        group = groups.get((pod.replica or "").rpartition("-")[0])
        if group is None:
            continue
        wanted = "Never" if group.restart_policy == "ExitCode" else group.restart_policy
        seen = pod.first["spec"].get("restartPolicy")
        if seen != wanted:
            told = f"{pod.name} has restartPolicy {seen}; its template says {group.template_restart_policy}"
            return failed(expected, f"{told}, its replica {group.restart_policy}", pod.created.seq)
        found.append(pod)
    if not found:
        raise Undecided("no pod stands for a replica whose template has a restartPolicy")
    return passed(expected, f"{len(found)} pod(s), all right", *(p.created.seq for p in found[:3]))
