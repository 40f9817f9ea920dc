"""Premises: what has to have happened before a requirement says anything. Each raises Undecided where it has not."""

from collections.abc import Iterable

from exitcode_conformance import selection
from exitcode_conformance.contract import Contract
from exitcode_conformance.entry import Event
from exitcode_conformance.history import History, Moment
from exitcode_conformance.judging import Undecided
from exitcode_conformance.pods import Attempt, ContainerEnd, Incarnation
from exitcode_conformance.scenario import UntilTerminal


def moment_of_end(attempt: Attempt, ended: ContainerEnd) -> Moment:
    """The end of an attempt as a moment."""
    return Moment(
        seq=ended.seq, time=ended.time, what=f"attempt {attempt.number} of {attempt.replica} ended with {ended.code}"
    )


def must_have_been_submitted(history: History) -> Moment:
    """The job was submitted, the API server showed it, and the watches missed nothing of it."""
    submitted = history.submitted
    if submitted is None or not history.job_versions:
        raise Undecided("the job was never seen in the cluster")
    must_have_seen_all(history, history.kind.plural, "pods")
    second = history.second_job
    if second is not None:
        raise Undecided(f"there was a second job of the same name, {second.uid}: whose are the pods?", second.seq)
    return submitted


def must_have_seen_all(history: History, *resources: str) -> None:
    """The watches on these resources were never interrupted. An event that is missing, or that was made up for
    afterwards, could turn any verdict."""
    gap = history.gap(*resources)
    if gap is not None:
        resource = gap.detail["resource"]
        raise Undecided(f"the watch on {resource} was interrupted: something may have been missed", gap.seq)


def must_have_status(history: History) -> None:
    """The operator wrote a status for the job at least once; with a condition, where the API has one from the start."""
    must_have_been_submitted(history)
    if not any(
        version.conditions if history.kind.says_its_start else version.status for version in history.job_versions
    ):
        what = "a condition into the job's status" if history.kind.says_its_start else "a status of the job"
        raise Undecided(f"the operator never wrote {what}")


def must_have_pods(history: History) -> tuple[Incarnation, ...]:
    """The operator created at least one pod."""
    must_have_been_submitted(history)
    if not history.incarnations:
        raise Undecided("the operator never created a pod for the job")
    return history.incarnations


def must_have_run(history: History) -> None:
    """The operator created a pod for the job and wrote a status: it says something of something."""
    must_have_pods(history)
    must_have_status(history)


def must_have_come_to_its_end(history: History, contract: Contract) -> None:
    """A job that has to end by its scripts, under the contract, did become terminal."""
    scenario = history.scenario
    if history.terminal is not None or not any(isinstance(step, UntilTerminal) for step in scenario.steps):
        return
    if selection.may_go_on(scenario, contract):
        return
    raise Undecided("the job never became Succeeded or Failed, so that nothing is known of its end", history.end.seq)


def must_have_ended(history: History, replica: str, number: int = 1) -> tuple[Attempt, ContainerEnd, Moment]:
    """The `number`-th attempt of a replica ended, and in the way that its script asked for."""
    must_have_been_submitted(history)
    attempt = history.attempt(replica, number)
    if attempt is None:
        raise Undecided(f"attempt {number} of {replica} was never created")
    if attempt.ended is None:
        raise Undecided(f"attempt {number} of {replica} was never seen to end", attempt.created_seq)
    if attempt.ended.stopped:
        raise Undecided(
            f"the pod of attempt {number} of {replica} was deleted before it was seen to end", attempt.ended.seq
        )
    if not history.did_as_told(attempt):
        raise Undecided(
            f"attempt {number} of {replica} ended with {attempt.ended.code}, which is not what its script was told: "
            "the outcome was set too late, or somebody stopped it",
            attempt.ended.seq,
        )
    return attempt, attempt.ended, moment_of_end(attempt, attempt.ended)


def not_kept_from(history: History, missing: Iterable[str]) -> list[str]:
    """Of the names that nothing of the job has, those that it could have had, sorted. Raises Undecided if there are
    such names, and pods of a former job held them all to the end: that these go is the node's work."""
    wanted = set(missing)
    last: dict[str, Event] = {}
    for entry in history.former:
        if isinstance(entry, Event) and entry.resource == "pods":
            last[str(entry.metadata.get("name"))] = entry
    held = {name: event for name, event in last.items() if event.verb != "DELETED" and name in wanted}
    free = sorted(wanted - held.keys())
    if held and not free:
        name, event = next(iter(held.items()))
        raise Undecided(
            f"a pod of the former job held the name {name} to the end: the node has not removed it", event.seq
        )
    return free
