"""What cleanPodPolicy says of each pod of a job that has ended: which have to go, which have to stay."""

from collections.abc import Sequence

from exitcode_conformance.entry import Event
from exitcode_conformance.history import History, Moment
from exitcode_conformance.pods import Incarnation


def clean_pod_policy(history: History) -> str | None:
    """The policy in force: the job's own, else the default that the operator declares; None where it declares none."""
    declared = history.declared
    default = declared.clean_pod_policy_of.get(history.kind.name, declared.clean_pod_policy)
    found = history.scenario.run_policy.get("cleanPodPolicy", default)
    return None if found is None else str(found)


def pods_at_end(history: History) -> tuple[Incarnation, ...]:
    """The pod of each replica that there was when the job had been decided. One that was deleted for a restart is not
    among them; one that was deleted to clean up is, even if that came before the job said that it had ended."""
    terminal = history.terminal
    if terminal is None:
        return ()
    result = []
    for replica in history.scenario.replica_names():
        pods = [pod for pod in history.incarnations_of(replica) if pod.created.seq <= terminal[1].seq]
        if pods and not _was_to_be_replaced(history, pods[-1], terminal[1]):
            result.append(pods[-1])
    return tuple(result)


def _was_to_be_replaced(history: History, pod: Incarnation, end: Moment) -> bool:
    """Whether the pod had failed and was deleted while the job still said Restarting for it."""
    asked = pod.deletion_asked
    if asked is None or asked.seq > end.seq or pod.failed_by_itself is None:
        return False
    return any(name == "Restarting" and moment.seq < end.seq for name, moment in history.states)


def has_finished(pod: Incarnation) -> bool:
    """Whether the pod had come to its end by itself, before anybody asked for its deletion."""
    finished, asked = pod.finished, pod.deletion_asked
    return finished is not None and (asked is None or finished.seq < asked.seq)


def has_to_go(policy: str, pod: Incarnation) -> bool:
    """Whether the policy removes the pod. One that is pending would run later, and counts as running."""
    return policy == "All" or (policy == "Running" and not has_finished(pod))


def service_of(history: History, pod: Incarnation) -> Event | None:
    """The first sign of the service of the pod's name."""
    return next((event for event in history.services if event.metadata.get("name") == pod.name), None)


def service_removal(history: History, service: Event) -> Moment | None:
    """When the service was removed, or marked for it."""
    for event in history.services:
        if event.metadata.get("uid") == service.metadata.get("uid") and (
            event.verb == "DELETED" or event.metadata.get("deletionTimestamp")
        ):
            return Moment(seq=event.seq, time=event.time, what=f"service {service.metadata['name']} was removed")
    return None


def is_cleaned(history: History) -> bool:
    """Whether everything that the policy removes is removed or marked for it, services of such pods included."""
    policy = clean_pod_policy(history)
    leaving: Sequence[Incarnation] = [p for p in pods_at_end(history) if policy is not None and has_to_go(policy, p)]
    for pod in leaving:
        service = service_of(history, pod)
        if pod.deletion_asked is None or (service is not None and service_removal(history, service) is None):
            return False
    return True
