"""CLEAN-05: what is left of a job that was deleted."""

from dataclasses import dataclass

from exitcode_conformance.contract import Contract
from exitcode_conformance.history import History, Moment
from exitcode_conformance.judging import Undecided, failed, judged
from exitcode_conformance.premise import must_have_pods, must_have_seen_all
from exitcode_conformance.registry import requirement
from exitcode_conformance.scenario import DeleteJob, Scenario
from exitcode_conformance.temporal import Finding, eventually, first_creation_after, never, seconds
from exitcode_conformance.verdict import Judgement

COLLECTORS_OWN = ("foregroundDeletion", "orphan")
"""Finalizers by which the garbage collector itself notes what it has to do."""


def _deletes_the_job(scenario: Scenario, contract: Contract) -> bool:
    return any(isinstance(step, DeleteJob) for step in scenario.steps)


@requirement(
    "CLEAN-05",
    "Deleting the job removes everything it owned, and nothing comes back.",
    feature="garbage-collection",
    source="Kubernetes documentation, garbage collection: dependents go with their owner",
    applies=_deletes_the_job,
)
def everything_goes(history: History, contract: Contract) -> Judgement:
    expected = "the job and every pod and service of it are removed, and none is created after that"
    second = history.second_job
    if second is not None and history.job_deletion is not None:
        return failed(expected, "the job came back, as another one of the same name", second.seq)
    must_have_pods(history)
    must_have_seen_all(history, "services")
    asked = history.job_deletion
    if asked is None:
        raise Undecided("the scenario never came to the point of deleting the job")
    left = _what_is_left(history, asked)
    missing = f"{', '.join(left.staying[:4])} did not go"
    findings = [eventually(history, since=asked, bound="cleanup", found=left.released, missing=missing)]
    if left.held:
        # The node has done its part: what keeps it is written on it.
        seen = f"the deletion of {', '.join(left.held[:4])} was asked for, but a finalizer keeps it"
        findings.append(_kept(history, asked, seen))
    if left.going:
        # Its deletion was asked for; that a node is slow to end its containers says nothing of the operator.
        seen = f"the deletion of {', '.join(left.going[:4])} was asked for, but the node has not removed it"
        findings.append(Finding(holds=None, seen=seen, deciding=(asked.seq, history.end.seq)))
    removed = history.job_removal
    missing = "the job itself was not removed"
    findings.append(eventually(history, since=asked, bound="cleanup", found=removed, missing=missing))
    if removed is not None:
        came_back = first_creation_after(history, removed, "pods", "services")
        findings.append(came_back or never(history, since=removed, offence=None, until=left.released))
    return judged(expected, findings)


def _kept(history: History, asked: Moment, seen: str) -> Finding:
    """What a finalizer keeps: for good, as far as the bound of the removal tells."""
    over = history.end.time - asked.time >= seconds(history, "cleanup")
    return Finding(holds=False if over else None, seen=seen, deciding=(asked.seq, history.end.seq))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Left:
    """What is left of a job's pods and services at the end."""

    released: Moment | None
    """When everything was removed or at least marked for deletion; None if that never came."""
    staying: list[str]
    going: list[str]
    """What only the node, or the cluster's own collector, has not let go yet."""
    held: list[str]
    """What has finalizers that somebody else has put there."""


def _what_is_left(history: History, asked: Moment) -> _Left:
    staying: dict[str, str] = {}
    going: dict[str, str] = {}
    held: dict[str, str] = {}
    released: Moment | None = asked
    for event in history.events:
        if event.resource not in ("pods", "services"):
            continue
        metadata = event.object["metadata"]
        uid, name = str(metadata["uid"]), f"{event.resource[:-1]} {metadata['name']}"
        for state in (staying, going, held):
            state.pop(uid, None)
        if event.verb != "DELETED":
            foreign = [one for one in metadata.get("finalizers") or () if one not in COLLECTORS_OWN]
            if not metadata.get("deletionTimestamp"):
                staying[uid] = name
            elif foreign:
                held[uid] = f"{name} ({foreign[0]})"
            else:
                going[uid] = name
        if staying:
            released = None
        elif released is None and event.seq > asked.seq:
            released = Moment(seq=event.seq, time=event.time, what="the last of it was marked for deletion or removed")
        elif released is None:
            released = asked
    return _Left(
        released=released, staying=sorted(staying.values()), going=sorted(going.values()), held=sorted(held.values())
    )
