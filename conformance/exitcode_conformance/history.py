"""A history: the ordered record of one scenario's run, and the questions that checks ask of it.

Nothing here judges. The watches of different resources are delivered independently of each other, so what arrived first
need not have happened first; see `ordering`. A history is cut at its `complete` action, so that what the harness does
afterwards (it deletes the job to make room) can never count for or against the operator.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from exitcode_conformance.adapters import adapter_of
from exitcode_conformance.entry import Action, Entry, Event
from exitcode_conformance.frozen import Frozen
from exitcode_conformance.kinds import KINDS, JobKind, KindTraits
from exitcode_conformance.ordering import in_order
from exitcode_conformance.pods import Attempt, Incarnation, PodVersion
from exitcode_conformance.scenario import RecreateJob, Scenario, is_outcome
from exitcode_conformance.timeouts import Timeouts
from exitcode_conformance.witness import Witness

TERMINAL_STATES = ("Succeeded", "Failed")
ACTIVE_STATES = ("Running", "Restarting", "Suspended")
DOCUMENTED_STATES = ("Created", *ACTIVE_STATES, *TERMINAL_STATES)
"""Every condition type of the job API. An operator may keep others; they say nothing of the job's state."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Moment:
    """A point of the history: a line of the recording, its time in seconds, and what happened, for a person."""

    seq: int
    time: float
    what: str


@dataclass(frozen=True, kw_only=True, slots=True)
class JobVersion:
    """The job as one watch event showed it."""

    seq: int
    time: float
    verb: str
    object: Mapping[str, Any]
    kind: JobKind

    @property
    def uid(self) -> str:
        """metadata.uid."""
        return str(self.object["metadata"]["uid"])

    @property
    def status(self) -> Mapping[str, Any]:
        """The status, empty when there is none yet."""
        found = self.object.get("status")
        return found if isinstance(found, Mapping) else {}

    @property
    def conditions(self) -> Sequence[Mapping[str, Any]]:
        """status.conditions in the order in which the operator keeps them."""
        found = self.status.get("conditions")
        return [c for c in found if isinstance(c, Mapping)] if isinstance(found, list) else []

    @property
    def true_conditions(self) -> Sequence[str]:
        """The documented conditions that are True, in the order in which the operator keeps them; by their documented
        names, whatever the operator calls them."""
        types = [self.kind.documented(str(c.get("type"))) for c in self.conditions if c.get("status") == "True"]
        return [name for name in types if name in DOCUMENTED_STATES]

    def is_true(self, condition: str) -> bool:
        """Whether a documented condition of that type has status "True"."""
        return condition in self.true_conditions

    @property
    def state(self) -> str | None:
        """The job's current state: a terminal condition if one is True, else the last active one, else Created.

        It does not follow from the place of a condition in the list alone: the API does not promise an order.
        """
        true = self.true_conditions
        ends = [name for name in true if name in TERMINAL_STATES]
        active = [name for name in true if name in ACTIVE_STATES]
        return next(iter((*ends, *reversed(active), *true)), None)

    @property
    def replica_statuses(self) -> Mapping[str, Mapping[str, Any]]:
        """Replica type → `active`, `succeeded`, `failed`; empty when the status has none."""
        return adapter_of(self.kind.name).replica_statuses(self.status, self.kind)

    def count(self, replica_type: str, what: str) -> int:
        """A number of replicaStatuses such as `succeeded`; one that is left out is 0, and so is what is no number."""
        found = self.replica_statuses.get(replica_type, {}).get(what)
        return found if isinstance(found, int) and not isinstance(found, bool) else 0


class Declared(Frozen):
    """What the operator's description says of it that a check has to know."""

    clean_pod_policy: str | None = None
    """What happens to the pods of a finished job without a cleanPodPolicy; None where nothing is declared."""
    clean_pod_policy_of: dict[str, str] = {}
    """The same for the job kinds of which it is another."""
    labels: str | None = None
    """Which generation of labels pods have, a key of `pods.LABELS`; None where nothing is declared."""
    traits: dict[str, KindTraits] = {}
    """Job kind → what the operator has otherwise than the published API."""

    def kind(self, name: str) -> JobKind:
        """A job kind as the operator has it; KeyError for one that is not known."""
        return KINDS[name].with_traits(self.traits[name]) if name in self.traits else KINDS[name]


class History:
    """One scenario's record. `entries` are in the order of the recording; `witnesses` are those of the whole run, in
    that order, and may still grow.

    Where the scenario has the job made again, the history is that of the second one, from its submission on.
    """

    def __init__(
        self,
        *,
        scenario: Scenario,
        timeouts: Timeouts,
        entries: Iterable[Entry],
        witnesses: Sequence[Witness] = (),
        run_actions: Sequence[Action] = (),
        strays: Sequence[Moment] = (),
        declared: Declared | None = None,
    ) -> None:
        self.scenario = scenario
        self.timeouts = timeouts
        self.declared = declared or Declared()
        self.former: tuple[Entry, ...] = ()
        """What is known of the job that was there before, where it was made again."""
        whole = tuple(_until_complete(entries))
        if any(isinstance(step, RecreateJob) for step in scenario.steps):
            self.former, whole = _lives(whole)
        self.entries, self.lines = in_order(whole)
        self._witnesses = witnesses
        self.strays = strays
        """Creations of pods that belong to no job, in the whole run: whatever they stand for, nobody can say."""
        self.run_actions = tuple(run_actions)

    @cached_property
    def kind(self) -> JobKind:
        """The scenario's job kind, as the operator has it."""
        return self.declared.kind(self.scenario.kind)

    @property
    def job_name(self) -> str:
        """The name of the job in the cluster."""
        return self.scenario.id

    @property
    def is_complete(self) -> bool:
        """Whether the harness saw the scenario to its end."""
        return any(a.action == "complete" for a in self.actions)

    @cached_property
    def actions(self) -> tuple[Action, ...]:
        """What the harness did for this scenario."""
        return tuple(e for e in self.entries if isinstance(e, Action))

    def action(self, name: str) -> Action | None:
        """The first action of that name."""
        return next((a for a in self.actions if a.action == name), None)

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """The watch events of this scenario's objects."""
        return tuple(e for e in self.entries if isinstance(e, Event))

    @property
    def end(self) -> Moment:
        """The last moment that was observed."""
        if not self.entries:
            return Moment(seq=0, time=0.0, what="nothing was recorded")
        last = self.entries[-1]
        return Moment(seq=last.seq, time=last.time, what="the observation ended")

    @property
    def submitted(self) -> Moment | None:
        """When the harness submitted the job."""
        action = self.action("submit")
        return Moment(seq=action.seq, time=action.time, what="the job was submitted") if action else None

    # --- the job -----------------------------------------------------------------------------------------------

    @cached_property
    def _job_events(self) -> tuple[JobVersion, ...]:
        return tuple(
            JobVersion(seq=e.seq, time=e.time, verb=e.verb, object=e.object, kind=self.kind)
            for e in self.events
            if e.resource == self.kind.plural
        )

    @cached_property
    def job_versions(self) -> tuple[JobVersion, ...]:
        """Every version of the job that the watch showed, its deletion included."""
        return tuple(v for v in self._job_events if v.uid == self.job_uid)

    @cached_property
    def second_job(self) -> JobVersion | None:
        """The first sign of another job of the same name, which the harness never makes; None if there was none."""
        return next((v for v in self._job_events if v.uid != self.job_uid), None)

    @cached_property
    def job_uid(self) -> str | None:
        """The job's UID; None before it was seen."""
        return self._job_events[0].uid if self._job_events else None

    @property
    def job_removal(self) -> Moment | None:
        """When the job object was removed; None while it exists."""
        removed = next((v for v in self.job_versions if v.verb == "DELETED"), None)
        return Moment(seq=removed.seq, time=removed.time, what="the job was removed") if removed else None

    @cached_property
    def states(self) -> tuple[tuple[str, Moment], ...]:
        """The states that the job went through, each with the moment it was first seen; no state twice in a row."""
        result: list[tuple[str, Moment]] = []
        for version in self.job_versions:
            state = version.state
            if state is not None and (not result or result[-1][0] != state):
                moment = Moment(seq=version.seq, time=version.time, what=f"the job says {state}")
                result.append((state, moment))
        return tuple(result)

    def first_state(self, *names: str, since: int = 0) -> Moment | None:
        """The first moment at or after line `since` at which the job says one of these states."""
        return next((m for s, m in self.states if s in names and m.seq >= since), None)

    @property
    def terminal(self) -> tuple[str, Moment] | None:
        """The first terminal state and its moment."""
        return next(((s, m) for s, m in self.states if s in TERMINAL_STATES), None)

    @property
    def job_deletion(self) -> Moment | None:
        """When the harness asked for the job's deletion."""
        action = self.action("delete-job")
        return Moment(seq=action.seq, time=action.time, what="the job's deletion was asked for") if action else None

    # --- the pods ----------------------------------------------------------------------------------------------

    @cached_property
    def incarnations(self) -> tuple[Incarnation, ...]:
        """Every pod of the job, by UID, in the order of creation."""
        versions: dict[str, list[PodVersion]] = {}
        for event in self.events:
            if event.resource == "pods":
                uid = str(event.object["metadata"]["uid"])
                versions.setdefault(uid, []).append(
                    PodVersion(seq=event.seq, time=event.time, verb=event.verb, object=event.object)
                )
        adapter = adapter_of(self.scenario.kind)
        return tuple(
            Incarnation(replica=adapter.replica_of(found[0].object, self.job_name), versions=tuple(found))
            for found in versions.values()
        )

    def nameless_after(self, line: int) -> Moment | None:
        """The first creation after that line of a pod of this job that stands for none of its replicas."""
        names = self.scenario.replica_names()
        found = (i for i in self.incarnations if i.created.seq > line and i.replica not in names)
        pod = next(found, None)
        if pod is None:
            return None
        what = f"pod {pod.name}, which stands for no replica, was created"
        return Moment(seq=pod.created.seq, time=pod.created.time, what=what)

    def incarnations_of(self, replica: str) -> tuple[Incarnation, ...]:
        """The pods that stood for one replica, in the order of creation."""
        return tuple(i for i in self.incarnations if i.replica == replica)

    def attempts(self, replica: str) -> tuple[Attempt, ...]:
        """Every attempt of the training container of a replica: over pods, and over restarts in place."""
        result: list[Attempt] = []
        for incarnation in self.incarnations_of(replica):
            result += incarnation.attempts(self.kind.container, first=len(result) + 1)
        return tuple(result)

    def attempt(self, replica: str, number: int) -> Attempt | None:
        """The `number`-th attempt, from 1."""
        return next((a for a in self.attempts(replica) if a.number == number), None)

    def did_as_told(self, attempt: Attempt) -> bool:
        """Whether an attempt that ended did so in the way its script asked for.

        The script learns from outside which attempt it is. An attempt that read an outdated outcome, or that somebody
        stopped, shows a code that nobody asked for, and says nothing about the operator.
        """
        if attempt.ended is None:
            return True
        told = self.scenario.outcome_of(attempt.replica, attempt.number)
        return is_outcome(told, attempt.ended.code) and not attempt.ended.stopped

    @cached_property
    def own_failures(self) -> tuple[tuple[Incarnation, Moment], ...]:
        """Every failure of a pod that nobody had asked to be deleted: a container that ended with another code than 0,
        or the phase Failed without one. In the order in which they happened."""
        result: list[tuple[Incarnation, Moment]] = []
        for pod in self.incarnations:
            for attempt in pod.attempts(self.kind.container, first=1):
                end = attempt.ended
                if end is not None and end.code != 0 and not end.stopped:
                    what = f"{pod.name} ended with {end.code}"
                    result.append((pod, Moment(seq=end.seq, time=end.time, what=what)))
            failed = pod.failed_by_itself
            if failed is not None and not any(p is pod and m.seq <= failed.seq for p, m in result):
                result.append((pod, Moment(seq=failed.seq, time=failed.time, what=f"{pod.name} failed")))
        return tuple(sorted(result, key=lambda found: found[1].seq))

    def unscripted_failure(self, until: int) -> Moment | None:
        """The first failure up to line `until` that no script asked for, such as that of a container out of memory.
        What the operator does after it may be right whatever it is."""
        for pod, moment in self.own_failures:
            replica = pod.replica or ""
            if moment.seq > until or replica not in self.scenario.replica_names():
                continue
            ends = [a for a in self.attempts(replica) if a.uid == pod.uid and a.ended and a.ended.seq == moment.seq]
            group = self.scenario.group_of(replica)
            asked_for = self.did_as_told(ends[0]) if ends else group.fails_without_code or group.sidecar_fails
            if not asked_for:
                return moment
        return None

    @cached_property
    def removed_by_harness(self) -> Mapping[str, Moment]:
        """UID of every pod that the harness deleted or evicted → when it asked for that."""
        return {
            str(a.detail["uid"]): Moment(seq=a.seq, time=a.time, what=f"the removal of {a.detail['pod']} was asked for")
            for a in self.actions
            if a.action == "remove-pod"
        }

    @cached_property
    def services(self) -> tuple[Event, ...]:
        """Watch events of the job's services."""
        return tuple(e for e in self.events if e.resource == "services")

    @cached_property
    def job_events(self) -> tuple[Event, ...]:
        """Watch events of the Kubernetes events about the job itself."""
        return tuple(
            e
            for e in self.events
            if e.resource == "events" and (e.object.get("involvedObject") or {}).get("kind") == self.kind.name
        )

    # --- the rest of the run -----------------------------------------------------------------------------------

    def gap(self, *resources: str) -> Action | None:
        """The first interruption of the watch on one of these resources while the scenario was observed: what happened
        then may be missing, or stand at another place."""
        return next((gap for gap in self._gaps if gap.detail.get("resource") in resources), None)

    @cached_property
    def _gaps(self) -> tuple[Action, ...]:
        if not self.entries:
            return ()
        first, last = self.entries[0].seq, self.entries[-1].seq
        return tuple(a for a in self.run_actions if a.action == "watch-gap" and first < a.seq < last)

    def witness(self, begin: float, end: float) -> Witness | None:
        """The last thing that the operator did for another job of the same kind between two times, in seconds of the
        run. Operators have a controller for each kind, and one may hang alone."""
        found = None
        for position in range(bisect_left(self._witnesses, begin, key=lambda w: w.time), len(self._witnesses)):
            witness = self._witnesses[position]
            if witness.time > end:
                break
            if witness.scenario != self.scenario.id and witness.kind == self.scenario.kind:
                found = witness
        return found


def _until_complete(entries: Iterable[Entry]) -> Iterator[Entry]:
    for entry in entries:
        yield entry
        if isinstance(entry, Action) and entry.action == "complete":
            return


def _lives(entries: tuple[Entry, ...]) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    """What is about the first job and what is about the second one: from its submission on, without what is still told
    of objects that were there before. Nothing is about a second one as long as none was submitted."""
    begins = [position for position, e in enumerate(entries) if isinstance(e, Action) and e.action == "submit"]
    if len(begins) < 2:
        return (), entries
    former, later = entries[: begins[1]], entries[begins[1] :]
    known = {e.metadata.get("uid") for e in former if isinstance(e, Event)}
    is_late = [isinstance(e, Event) and e.metadata.get("uid") in known for e in later]
    late = tuple(e for e, of_the_first in zip(later, is_late, strict=True) if of_the_first)
    return (*former, *late), tuple(e for e, of_the_first in zip(later, is_late, strict=True) if not of_the_first)
