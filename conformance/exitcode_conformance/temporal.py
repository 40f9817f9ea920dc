"""`eventually` and `never`: the only two ways in which a check may speak of time.

Both need more than an absence of news. `eventually` fails only if the whole bound was observed and nothing came in it,
and the harness was not held up meanwhile; `never` holds only if the whole window was observed and a witness shows that
the operator was alive in the window's second half. Everything else is unknown.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from exitcode_conformance.entry import Action
from exitcode_conformance.history import History, Moment
from exitcode_conformance.witness import Witness

LEARNING = 0.5
"""In which part of the window `never` an operator has to have learnt that its job was removed."""

LOOK = 1.0
"""Seconds that the harness looks back on each time that it says for how long there was no processor."""

BoundName = Literal[
    "created", "running", "restart", "kubelet_restart", "state", "terminal", "removal", "cleanup", "never"
]

CLUSTERS_WORK: frozenset[BoundName] = frozenset({"running", "kubelet_restart", "cleanup"})
"""Bounds on what the kubelet or the garbage collector does: that they are late says nothing of an operator."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """The answer to a question about time. `holds` is None where the evidence decides nothing."""

    holds: bool | None
    seen: str
    deciding: tuple[int, ...] = ()
    delay: float | None = None
    """Seconds from the start to what was waited for, where it came."""
    bound: BoundName | None = None
    """The duration that was asked about; None where the answer is not about time."""
    absence: bool = False
    """Whether it was asked that something does not come."""


def elapsed(since: float, until: float) -> float:
    """Seconds from one time to another that cannot be before it. Watches do not wait for each other: of two events the
    later one may be told first, and then the time between them is not known to be more than none."""
    return max(0.0, until - since)


def seconds(history: History, name: BoundName) -> float:
    """The duration of that name under which the history was recorded."""
    return float(getattr(history.timeouts, name))


def eventually(history: History, *, since: Moment, bound: BoundName, found: Moment | None, missing: str) -> Finding:
    """Whether `found` came at most `bound` after `since`. `missing` is the sentence for its absence."""
    limit = seconds(history, bound)
    if found is not None:
        delay = elapsed(since.time, found.time)
        deciding = (since.seq, found.seq)
        if delay <= limit:
            # Another watch may have told of it sooner, although it came later.
            when = "before" if found.seq < since.seq else f"{delay:.1f} s after"
            seen = f"{found.what}, {when} {since.what}"
            return Finding(holds=True, seen=seen, deciding=deciding, delay=delay, bound=bound)
        excuse = _held_up(history, since.time, found.time) or _starved(history, since.time, found.time, delay - limit)
        if excuse is None and bound in CLUSTERS_WORK:
            excuse = f"the bound `{bound}` is {limit:g} s, but the cluster alone did it: too slow to tell"
        late = excuse or f"the bound `{bound}` is {limit:g} s"
        seen = f"{found.what}, but {delay:.1f} s after {since.what}; {late}"
        return Finding(holds=None if excuse else False, seen=seen, deciding=deciding, delay=delay, bound=bound)
    observed = history.end.time - since.time
    lost = sum(lasted for lasted, _ in _delays(history, since.time, history.end.time))
    lost += starved(history, since.time, history.end.time)
    held_up = _held_up(history, since.time, since.time + limit) or _starved(history, since.time, history.end.time, 0)
    if held_up is not None and observed - lost < limit:
        return Finding(holds=None, seen=f"{missing}, but {held_up}", deciding=(since.seq, history.end.seq), bound=bound)
    if observed >= limit:
        return Finding(
            holds=False,
            seen=f"{missing} within the {limit:g} s (`{bound}`) after {since.what}",
            deciding=(since.seq, history.end.seq),
            bound=bound,
        )
    return Finding(
        holds=None,
        seen=f"{missing}, but only {observed:.1f} s of the {limit:g} s (`{bound}`) after {since.what} were observed",
        deciding=(since.seq, history.end.seq),
        bound=bound,
    )


def _delays(history: History, begin: float, end: float) -> Iterator[tuple[float, Action]]:
    """When the harness or the API server was too slow between two times, and for how many seconds each time."""
    for action in history.run_actions:
        if action.action == "held-up":
            lasted = float(action.detail["seconds"])
            if action.time - lasted <= end and action.time >= begin:
                yield lasted, action


def held_up_at(history: History, time: float) -> float:
    """For how many seconds the harness or the API server had been held up when something was recorded at that time: it
    may have happened by so much sooner."""
    return sum(lasted for lasted, _ in _delays(history, time - LOOK, time))


def starved(history: History, begin: float, end: float) -> float:
    """For how many seconds between two times the processes under test were ready to run and had no processor. Of a look
    that began before the first of them, a part counts."""
    return sum(
        float(action.detail["seconds"]) * min(1.0, (action.time - begin) / LOOK)
        for action in history.run_actions
        if action.action == "starved" and begin <= action.time <= end
    )


def _starved(history: History, begin: float, end: float, late: float) -> str | None:
    """Why a delay of `late` seconds more than allowed may be the machine's: the processes waited for as long."""
    lost = starved(history, begin, end)
    if lost <= 0 or lost < late:
        return None
    return f"for {lost:.1f} s of that time there was no processor for the operator: the machine was too slow to tell"


def _held_up(history: History, begin: float, end: float) -> str | None:
    """Why a delay between two times may be nobody's fault."""
    for lasted, action in _delays(history, begin, end):
        return f"{action.detail['what']} took {lasted:.1f} s at that time: the machine was too slow to tell"
    return None


def never(
    history: History,
    *,
    since: Moment,
    offence: Moment | None,
    until: Moment | None = None,
    absent: str = "nothing of the kind",
) -> Finding:
    """Whether nothing offended from `since` through the window `never`, or up to `until` if that is later.

    An offence after the window counts as well: it was seen. `since` has to be the moment from which a wrong operator
    would act. `absent` says what did not come.
    """

    def answer(holds: bool | None, seen: str, *deciding: int) -> Finding:
        return Finding(holds=holds, seen=seen, deciding=deciding, bound="never", absence=True)

    def after(moment: Moment | Witness) -> str:
        return f"{elapsed(since.time, moment.time):.1f} s after"

    if offence is not None:
        return answer(False, f"{offence.what}, {after(offence)} {since.what}", since.seq, offence.seq)
    window, end = seconds(history, "never"), history.end
    begin = max(since.time, until.time if until else since.time)
    if end.time < begin + window:
        observed = elapsed(begin, end.time)
        seen = f"only {observed:.1f} s of the window `never` of {window:g} s were observed"
        return answer(None, seen, since.seq, end.seq)
    witness = history.witness(begin + window / 2, end.time)
    if witness is None:
        seen = f"{absent} for {window:g} s after {since.what}, but nothing shows that the operator was alive then"
        return answer(None, seen, since.seq)
    stray = next((m for m in history.strays if since.time <= m.time <= end.time), None)
    if stray is not None:
        seen = f"{absent}, but {stray.what} {after(stray)} {since.what}: it may be one"
        return answer(None, seen, since.seq, stray.seq)
    seen = f"{absent} in the {end.time - since.time:.1f} s after {since.what} that were observed; "
    return answer(True, f"{seen}{after(witness)} it the operator {witness.what}", since.seq, witness.seq)


def first_creation_after(history: History, removed: Moment, *resources: str) -> Finding | None:
    """What is to be said of the creation of one of the job's objects after the job itself was removed; None if there
    was none.

    An operator learns of the removal a moment later, and a request of it may be on its way. So what it creates at once
    may be no fault, and the garbage collector takes it; what it creates later, or once more, is one.
    """
    created = [e for e in history.events if e.seq > removed.seq and e.resource in resources and e.verb == "ADDED"]
    if not created:
        return None
    names = [f"{e.resource[:-1]} {e.object['metadata']['name']}" for e in created]
    again = [e for position, e in enumerate(created) if names[position] in names[:position]]
    late = [e for e in created if e.time - removed.time > seconds(history, "never") * LEARNING]
    event = next(iter((*again, *late, *created)))
    name, delay = f"{event.resource[:-1]} {event.object['metadata']['name']}", elapsed(removed.time, event.time)
    held_up = _held_up(history, removed.time, event.time)
    certain = bool(again) or (bool(late) and held_up is None)
    seen = f"{name} was created{' once more' if again else ''} {delay:.1f} s after {removed.what}"
    if not certain:
        seen += f"; {held_up}" if late else ": it may have been on its way"
    return Finding(holds=False if certain else None, seen=seen, deciding=(removed.seq, event.seq))
