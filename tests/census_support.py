"""Recordings of censuses, made of built histories: what an operator does about each code is written down in a word."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from history_builder import CONTRACTS, Story
from recording_support import STARTED, Clock, header

from exitcode_conformance.census import PROFILE, census_scenario, judge_code
from exitcode_conformance.contract import ObservedClass
from exitcode_conformance.entry import Event
from exitcode_conformance.kinds import TFJOB
from exitcode_conformance.run_record import RunRecord
from exitcode_conformance.scenario import Scenario
from exitcode_conformance.timeouts import Timeouts
from exitcode_reports.census import census_overall, planned_code
from exitcode_reports.recording import ContractIdentity, Recording, RecordingWriter, read_recording

TARGET = "worker-0"
BEHAVIOURS: Mapping[str, Callable[[Story], Story]] = {
    ObservedClass.SUCCESS: lambda told: told.says("Succeeded"),
    ObservedClass.PERMANENT: lambda told: told.says("Failed"),
    ObservedClass.RETRYABLE: lambda told: told.says("Restarting").replace(TARGET).says("Running"),
    ObservedClass.RESTARTED_IN_PLACE: lambda told: told.restarts_in_place(TARGET),
    ObservedClass.RESTARTED_AND_FAILED: lambda told: told.says("Restarting").replace(TARGET).says("Failed"),
    ObservedClass.IGNORED: lambda told: told.says().wait(12),
    "unknown": lambda told: told,
}
"""What follows after the container's end."""


def told_of(code: int, behaviour: str) -> Story:
    """The whole story of one code; `broken` is one that the harness did not get to its end."""
    story = Story(census_scenario(TFJOB, code))
    if behaviour == "broken":
        return story.submit().act("harness-error", detail={"problem": "the API server refused it"})
    return BEHAVIOURS[behaviour](story.begin().wait(0.5).ends(TARGET, code)).complete()


def make_census(
    path: Path, behaviours: Mapping[int, str], *, contract: str = "kubeflow-docs", finish: bool = True, **changes: Any
) -> Path:
    """Writes the recording of a census of these codes: code → what is done about it."""
    stories = [told_of(code, behaviour) for code, behaviour in behaviours.items()]
    known: dict[str, Scenario] = {story.scenario.id: story.scenario for story in stories}
    promised = CONTRACTS[contract]
    plan = [planned_code(scenario, promised) for scenario in known.values()]
    values = {"contract": ContractIdentity.of(promised), "profile": PROFILE, **changes}
    record = RunRecord(scenarios=known, timeouts=Timeouts())
    clock = Clock()
    entries = sorted((entry for story in stories for entry in story.entries), key=lambda entry: entry.time)
    with RecordingWriter(path, header(known, plan, **values), clock=clock, now=lambda: STARTED) as writer:
        for entry in entries:
            clock.now = entry.time
            record.add(
                writer.event(scenario=entry.scenario, resource=entry.resource, verb=entry.verb, object=entry.object)
                if isinstance(entry, Event)
                else writer.action(scenario=entry.scenario, action=entry.action, detail=entry.detail)
            )
        verdicts = []
        for case, story in zip(plan, stories, strict=True):
            code = int(case.subject.removeprefix("exit"))
            judgement = judge_code(record.history(story.scenario.id), promised.class_of(code))
            verdicts.append(judgement.verdict)
            writer.verdict(
                requirement=case.requirement,
                subject=case.subject,
                scenarios=case.scenarios,
                **judgement.model_dump(exclude={"trials"}),
            )
        if finish:
            writer.close(int(census_overall(verdicts, partial=False)))
    return path


def recorded_census(path: Path, behaviours: Mapping[int, str], **options: Any) -> Recording:
    """Writes one and reads it back."""
    return read_recording(make_census(path, behaviours, **options), allow_partial=True)


def by_range(first_retryable: int = 128, **others: str) -> dict[int, str]:
    """All codes under an operator to which codes from a number on are retryable; `others` as `c137="ignored"`."""
    found = {code: "retryable" if code >= first_retryable else "permanent" for code in range(256)}
    return {**found, 0: "success", **{int(name[1:]): behaviour for name, behaviour in others.items()}}
