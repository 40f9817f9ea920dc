"""Which class an operator showed for an exit code: what it did after one attempt of one replica ended."""

from dataclasses import dataclass, replace

from exitcode_conformance.contract import ObservedClass
from exitcode_conformance.history import History, Moment
from exitcode_conformance.job_end import comes_to, ended_otherwise
from exitcode_conformance.judging import Undecided
from exitcode_conformance.pods import Attempt
from exitcode_conformance.premise import must_have_ended
from exitcode_conformance.temporal import Finding, eventually, never, seconds


@dataclass(frozen=True, kw_only=True, slots=True)
class Aftermath:
    """What followed the end of one attempt."""

    attempt: Attempt
    code: int
    ended: Moment
    successor: Attempt | None
    """The next attempt of the same replica, wherever it ran."""
    failure: Moment | None
    """The job's failure, whatever it was for."""
    failed: Moment | None
    """The job's failure, unless another failure explains it."""

    @property
    def restarted(self) -> Moment | None:
        """The appearance of the successor."""
        next_one = self.successor
        if next_one is None:
            return None
        how = "was started again in place" if next_one.in_place else "was created again"
        return Moment(seq=next_one.created_seq, time=next_one.created_time, what=f"{next_one.replica} {how}")


def aftermath(history: History, replica: str, number: int = 1) -> Aftermath:
    """What followed the `number`-th attempt of a replica. Raises Undecided if that attempt did not end as scripted, or
    if the job was over by then."""
    attempt, end, ended = must_have_ended(history, replica, number)
    terminal = history.terminal
    if terminal is not None and terminal[1].seq < ended.seq:
        raise Undecided(f"the job was {terminal[0]} before {ended.what}", terminal[1].seq, ended.seq)
    failure = history.first_state("Failed")
    return Aftermath(
        attempt=attempt,
        code=end.code,
        ended=ended,
        successor=history.attempt(replica, number + 1),
        failure=failure,
        failed=None if failure is not None and _explained_otherwise(history, ended, failure) else failure,
    )


def _explained_otherwise(history: History, ended: Moment, failure: Moment) -> bool:
    """Whether something else failed between this end and the job's failure, or failed unasked at any time before it."""
    later = any(ended.seq < moment.seq <= failure.seq for _, moment in history.own_failures)
    return later or history.unscripted_failure(failure.seq) is not None


def not_restarted(history: History, after: Aftermath) -> Finding:
    """Whether the replica was left alone for the whole window, which begins when the job's failure was seen."""
    terminal = history.terminal
    later = terminal[1] if terminal and terminal[1].seq > after.ended.seq else None
    offence = after.restarted or history.nameless_after(after.ended.seq)
    return never(history, since=after.ended, offence=offence, until=later, absent="no new attempt")


def restarted_in_time(history: History, after: Aftermath) -> Finding:
    """Whether the replica was restarted within the bound `restart`.

    An operator that has asked for the old pod's deletion in time has done its part; until the node has removed the pod
    it can do no more, so the bound counts from the removal. In a job that has succeeded instead nothing is restarted
    any more.
    """
    since, missing = after.ended, f"{after.attempt.replica} was not restarted"
    over = ended_otherwise(history, "Failed", since=after.ended) if after.restarted is None else None
    if over is not None:
        seen = f"{missing}: {_later(over, after.ended)}"
        return Finding(holds=False, seen=seen, deciding=(after.ended.seq, over.seq))
    old = next(i for i in history.incarnations_of(after.attempt.replica) if i.uid == after.attempt.uid)
    asked, gone = old.deletion_asked, old.deleted
    if asked is not None and asked.time - after.ended.time <= seconds(history, "restart"):
        if gone is None:
            return Finding(
                holds=None,
                seen=f"the deletion of {old.name} was asked for, but the node has not removed it",
                deciding=(after.ended.seq, asked.seq),
            )
        since = Moment(seq=gone.seq, time=gone.time, what=f"the old pod {old.name} was removed")
    found = eventually(history, since=since, bound="restart", found=after.restarted, missing=missing)
    return replace(found, deciding=tuple(dict.fromkeys((after.ended.seq, *found.deciding))))


def failed_in_time(history: History, after: Aftermath) -> Finding:
    """Whether the job failed within the bound `terminal`, for whatever reason."""
    return comes_to(history, "Failed", since=after.ended)


def observed_class(history: History, after: Aftermath) -> ObservedClass | None:
    """The class that the operator showed; None where the evidence does not tell."""
    if after.code == 0:
        return _class_of_success(history, after)
    if after.successor is not None:
        if after.failed is not None:
            return ObservedClass.RESTARTED_AND_FAILED
        return ObservedClass.RESTARTED_IN_PLACE if after.successor.in_place else ObservedClass.RETRYABLE
    alone = not_restarted(history, after)
    if after.failure is not None:
        return ObservedClass.PERMANENT if alone.holds and after.failed is not None else None
    observed = history.end.time - after.ended.time
    enough = observed >= _longest(history) or ended_otherwise(history, "Failed", since=after.ended) is not None
    return ObservedClass.IGNORED if alone.holds and enough else None


def _longest(history: History) -> float:
    """The seconds that an operator has for whatever it does about an end."""
    return max(seconds(history, "restart"), seconds(history, "terminal"))


def _class_of_success(history: History, after: Aftermath) -> ObservedClass | None:
    if after.successor is not None:
        return ObservedClass.RESTARTED_IN_PLACE if after.successor.in_place else ObservedClass.RETRYABLE
    return ObservedClass.SUCCESS if not_restarted(history, after).holds and after.failed is None else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Sighting:
    """The class that an operator showed, and what showed it."""

    observed: ObservedClass | None
    """None where the evidence does not tell."""
    seen: str
    """What was seen, or what is missing, for a person."""
    deciding: tuple[int, ...]


def sighting(history: History, after: Aftermath) -> Sighting:
    """The class of an aftermath, with the events that show it."""
    observed = observed_class(history, after)
    parts: list[str] = []
    deciding: list[int] = [after.ended.seq]
    restarted = after.restarted
    if restarted is not None:
        parts.append(_later(restarted, after.ended))
        deciding.append(restarted.seq)
    else:
        alone = not_restarted(history, after)
        parts.append(f"it was not restarted: {alone.seen}")
        deciding += alone.deciding
    if after.failure is not None:
        other = ", for which another failure may be the reason" if after.failed is None else ""
        parts.append(f"{_later(after.failure, after.ended)}{other}")
        deciding.append(after.failure.seq)
    elif after.code == 0 or restarted is not None:
        parts.append("the job did not fail")
    else:
        watched = history.end.time - after.ended.time
        told = f"the job did not become Failed in the {watched:.1f} s that were observed"
        parts.append(told if observed else f"{told}, and it may have {_longest(history):g} s")
    return Sighting(observed=observed, seen="; ".join(parts), deciding=tuple(dict.fromkeys(deciding)))


def _later(moment: Moment, ended: Moment) -> str:
    return f"{moment.what}, {max(0.0, moment.time - ended.time):.1f} s after {ended.what}"
