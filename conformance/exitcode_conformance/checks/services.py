"""IDENT-06: the services by which the replicas of a job find each other."""

from collections.abc import Iterable, Mapping

from exitcode_conformance import selection
from exitcode_conformance.contract import Contract
from exitcode_conformance.entry import Event
from exitcode_conformance.history import History, Moment
from exitcode_conformance.judging import Undecided, failed, judged
from exitcode_conformance.pods import Incarnation, labels_of
from exitcode_conformance.premise import must_have_pods, must_have_seen_all, not_kept_from
from exitcode_conformance.registry import requirement
from exitcode_conformance.temporal import eventually, seconds
from exitcode_conformance.verdict import Judgement


@requirement(
    "IDENT-06",
    "Each replica has a headless service of its own name that selects its pod, and no other.",
    feature="services",
    source="training-operator, the controllers of all releases; Kubernetes documentation, headless services",
    applies=selection.everything,
)
def replicas_have_services(history: History, contract: Contract) -> Judgement:
    wanted = {f"{history.job_name}-{replica}" for replica in history.scenario.replica_names()}
    expected = f"headless services {', '.join(sorted(wanted))}, each of which selects the pod of its name"
    pods = must_have_pods(history)
    if not first_pods(history):
        raise Undecided("no pod stands for a replica of the job")
    must_have_seen_all(history, "services")
    first: dict[str, Event] = {}
    for event in history.services:
        first.setdefault(str(event.metadata["name"]), event)
    for pod in pods:
        named = first.get(pod.name)
        problem = _problem(named, pod, pods) if named is not None else None
        if named is not None and problem is not None:
            return failed(expected, f"service {pod.name} {problem}", named.seq, pod.created.seq)
    missing = not_kept_from(history, wanted - set(first))
    created = [e for name, e in first.items() if name in wanted]
    stopped = history.terminal[1] if history.terminal else history.job_deletion
    begin = Moment(seq=pods[0].created.seq, time=pods[0].created.time, what=f"pod {pods[0].name} was created")
    if missing and created and stopped is not None and stopped.time - begin.time < seconds(history, "created"):
        raise Undecided(f"the job ended before the service {', '.join(missing)} was created", stopped.seq)
    if missing:
        # They come before the pods that look for them: what is not there when the pods have been for long is missing.
        newest = max(first_pods(history), key=lambda moment: moment.seq)
        absent = f"there was no service {', '.join(missing)}"
        return judged(expected, [eventually(history, since=newest, bound="never", found=None, missing=absent)])
    # Each is held against its own pod: a replica whose name is still taken by a pod of an older job comes late itself.
    waited = [(born, first[name]) for name, born in _first_pods(history).items()]
    born, service = max(waited, key=lambda two: two[1].time - two[0].time)
    found = Moment(seq=service.seq, time=service.time, what=f"service {service.metadata['name']} was created")
    return judged(expected, [eventually(history, since=born, bound="created", found=found, missing="")])


def first_pods(history: History) -> list[Moment]:
    """The creation of the first pod of each replica."""
    return list(_first_pods(history).values())


def _first_pods(history: History) -> dict[str, Moment]:
    pods = [found[0] for r in history.scenario.replica_names() if (found := history.incarnations_of(r))]
    return {p.name: Moment(seq=p.created.seq, time=p.created.time, what=f"pod {p.name} was created") for p in pods}


def _problem(event: Event, pod: Incarnation, pods: Iterable[Incarnation]) -> str | None:
    spec = event.object.get("spec") or {}
    if spec.get("clusterIP") != "None":
        return f"has the address {spec.get('clusterIP')}: it is not headless"
    selector = spec.get("selector") or {}
    if not selector:
        return "selects nothing"
    different = [f"{key}={value}" for key, value in selector.items() if labels_of(pod.first).get(key) != value]
    if different:
        return f"selects {', '.join(different)}, which its pod is not"
    others = sorted({other.name for other in pods if other.name != pod.name and _selects(selector, other)})
    return f"selects {', '.join(others)} too" if others else None


def _selects(selector: Mapping[str, str], pod: Incarnation) -> bool:
    labels = labels_of(pod.first)
    return all(labels.get(key) == value for key, value in selector.items())
