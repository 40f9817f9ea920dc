"""What is known of a run so far, sorted by scenario: the place where histories come from, live or read from a file."""

from collections.abc import Iterable, Mapping
from typing import Any

from exitcode_conformance.entry import Action, Entry, Event
from exitcode_conformance.history import Declared, History, Moment
from exitcode_conformance.kinds import BY_PLURAL
from exitcode_conformance.scenario import Scenario
from exitcode_conformance.timeouts import Timeouts
from exitcode_conformance.witness import Witness, kind_of_job, operator_act


class RunRecord:
    """Entries of a run in the order of the recording. Not thread-safe: whoever shares it brings the lock."""

    def __init__(
        self,
        *,
        scenarios: Mapping[str, Scenario],
        timeouts: Timeouts,
        declared: Declared | None = None,
        entries: Iterable[Entry] = (),
    ) -> None:
        self._scenarios = scenarios
        self._timeouts = timeouts
        self._declared = declared
        self._by_scenario: dict[str, list[Entry]] = {}
        self._witnesses: list[Witness] = []
        self._run_actions: list[Action] = []
        self._strays: list[Moment] = []
        self._witness_jobs: list[str] = []
        self._last: dict[str, Mapping[str, Any]] = {}
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Takes the next entry of the recording."""
        if entry.scenario is not None:
            self._by_scenario.setdefault(entry.scenario, []).append(entry)
        elif isinstance(entry, Action):
            self._run_actions.append(entry)
            if entry.action == "witness-submitted":
                self._witness_jobs.append(str(entry.detail.get("name")))
        if isinstance(entry, Event):
            self._look_for_a_witness(entry)
            self._look_for_a_stray(entry)

    def _look_for_a_stray(self, event: Event) -> None:
        if event.scenario is not None or event.resource != "pods" or event.verb != "ADDED":
            return
        name = str(event.metadata.get("name", ""))
        if kind_of_job(event) is None and not any(name.startswith(f"{job}-") for job in self._witness_jobs):
            what = f"pod {name}, which belongs to no job, was created"
            self._strays.append(Moment(seq=event.seq, time=event.time, what=what))

    def _look_for_a_witness(self, event: Event) -> None:
        uid = str(event.metadata.get("uid", ""))
        what = operator_act(event, self._last.get(uid))
        if what is not None:
            kind = self._scenarios[event.scenario].kind if event.scenario is not None else kind_of_job(event)
            witness = Witness(seq=event.seq, time=event.time, scenario=event.scenario, kind=kind, what=what)
            self._witnesses.append(witness)
        if event.resource in BY_PLURAL:
            self._last[uid] = event.object

    def history(self, scenario: str) -> History:
        """The history of a scenario as far as it has come."""
        return History(
            scenario=self._scenarios[scenario],
            timeouts=self._timeouts,
            entries=self._by_scenario.get(scenario, ()),
            witnesses=self._witnesses,
            run_actions=self._run_actions,
            strays=self._strays,
            declared=self._declared,
        )

    def entries(self, scenario: str) -> tuple[Entry, ...]:
        """What was recorded for a scenario, what came after its end included."""
        return tuple(self._by_scenario.get(scenario, ()))
