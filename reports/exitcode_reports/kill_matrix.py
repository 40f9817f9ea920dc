"""What came of running the broken controllers: which requirement failed on which of them, and whether it is enough."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from pydantic import AwareDatetime

from exitcode_conformance.adapters import ADAPTERS
from exitcode_conformance.frozen import Frozen
from exitcode_conformance.kills import KillList, Mutant
from exitcode_conformance.kinds import AdapterName
from exitcode_conformance.registry import Requirement
from exitcode_conformance.verdict import Verdict
from exitcode_reports.header import Level
from exitcode_reports.summary import GROUP_TITLES

REFERENCE = "reference"
"""The name of the unchanged controller."""


class Kill(Frozen):
    """A case that failed."""

    requirement: str
    subject: str
    expected: str
    seen: str


def title_of(name: str, part: str) -> str:
    """What tells a run from every other: the controller, and which part of its runs it is, if it has several."""
    return f"{name}-{part}" if part else name


class MutantResult(Frozen):
    """One controller, run through the scenarios of its entry."""

    name: str
    part: str = ""
    """Where it was run more than once: the job API that it was the controller of, or the scenario that it was run
    through by itself."""
    sentence: str
    """What is wrong with it, in its own words."""
    mutant: Mutant
    """Its entry in the list."""
    kills: tuple[Kill, ...] = ()
    """Every case that failed, in the order of the requirements."""
    undecided: tuple[str, ...] = ()
    """Requirements of which a case was unknown and none failed. That is never a kill."""
    verdicts: dict[Verdict, int] = {}
    seconds: float = 0.0
    runs: int = 1
    """How often it was run; the last time is told."""
    error: str | None = None
    """What kept the harness from judging it."""

    @property
    def title(self) -> str:
        """What tells this run from every other."""
        return title_of(self.name, self.part)

    @property
    def killed_by(self) -> tuple[str, ...]:
        """The requirements that failed, sorted."""
        return tuple(sorted({kill.requirement for kill in self.kills}))

    @property
    def was_run(self) -> bool:
        """Whether there is a scenario for it."""
        return bool(self.mutant.scenarios)

    @property
    def is_void(self) -> bool:
        """Nothing that was observed differs from what is right."""
        return self.was_run and self.error is None and not self.kills and not self.undecided

    @property
    def is_open(self) -> bool:
        """The evidence was too weak to say whether it is as its entry wants it."""
        if self.mutant.target is None:
            return not self.kills and bool(self.undecided)
        return self.mutant.target in self.undecided

    def kill_of(self, requirement: str) -> Kill | None:
        """The case to be shown for a requirement: one that names the bound that was exceeded, if there is one."""
        found = [kill for kill in self.kills if kill.requirement == requirement]
        telling = [kill for kill in found if self.mutant.bound and f"`{self.mutant.bound}`" in kill.seen]
        return next(iter((*telling, *found)), None)


class ProvenRequirement(Frozen):
    """A requirement of the registry, and the mutants that failed it."""

    id: str
    level: Level
    sentence: str
    killers: dict[AdapterName, tuple[str, ...]]
    """Job API → the mutants that failed it in jobs of that API, those that were built for it first. An API in whose
    jobs it makes no sense is not here."""

    @property
    def unproven(self) -> tuple[AdapterName, ...]:
        """The APIs in whose jobs no mutant failed it."""
        return tuple(name for name, killers in self.killers.items() if not killers)


class KillMatrix(Frozen):
    """The result of the command `mutants`; kill-matrix.json holds it whole."""

    format: Literal[2] = 2
    suite_version: str
    cluster: str
    started_at: AwareDatetime
    seconds: float
    complete: bool
    """All mutants were run. Otherwise nothing is said of the requirements."""
    reference: tuple[MutantResult, ...]
    """The unchanged controller in the scenarios of all faults; none where it was not asked for."""
    mutants: tuple[MutantResult, ...]
    requirements: tuple[ProvenRequirement, ...]
    problems: tuple[str, ...]
    """One sentence for each rule that does not hold."""
    changes: tuple[str, ...]
    """One sentence for each mutant that fails other requirements than the list says."""
    acknowledged: bool = False
    """The list was made to say what is so now."""
    notes: tuple[str, ...]
    """What is missing, and breaks no rule."""

    @property
    def holds(self) -> bool:
        """Whether every rule does."""
        return not self.problems and (self.acknowledged or not self.changes)

    @property
    def harness_failed(self) -> bool:
        """Whether some of it says nothing."""
        return any(result.error is not None for result in (*self.reference, *self.mutants))

    @property
    def reference_killed_by(self) -> tuple[str, ...]:
        """The requirements that the unchanged controller fails, sorted."""
        return tuple(sorted({name for result in self.reference for name in result.killed_by}))


def proven_requirements(
    results: Iterable[MutantResult], requirements: Mapping[str, Requirement]
) -> tuple[ProvenRequirement, ...]:
    """Each requirement that is judged at all with the mutants that fail it."""
    found = list(results)
    rows = []
    order = {name: number for number, name in enumerate(GROUP_TITLES)}
    judged = (one for one in requirements.values() if one.level != "INFO")
    for one in sorted(judged, key=lambda one: (order.get(one.group, len(order)), one.id)):
        killers = {name: _killers(one.id, name, found) for name, api in ADAPTERS.items() if one.id not in api.without}
        rows.append(ProvenRequirement(id=one.id, level=one.level, sentence=one.sentence, killers=killers))
    return tuple(rows)


def _killers(requirement: str, adapter: AdapterName, results: Sequence[MutantResult]) -> tuple[str, ...]:
    found = [one for one in results if one.mutant.adapter == adapter and requirement in one.killed_by]
    found.sort(key=lambda result: result.mutant.target != requirement)
    return tuple(result.name for result in found)


def problems_of(
    kills: KillList,
    *,
    reference: Sequence[MutantResult],
    results: Sequence[MutantResult],
    requirements: Mapping[str, Requirement],
    variants: Iterable[str],
    complete: bool,
) -> Iterator[str]:
    """One sentence for each rule that does not hold. `variants` are the names of all controllers that there are."""
    known = set(variants)
    for name in sorted(known - kills.mutants.keys() - {REFERENCE}) if complete else ():
        yield f"{name} is not in the list: add it, with the requirement that it was built for."
    for name in sorted(kills.mutants.keys() - known):
        yield f"{name} is in the list, and there is no such controller."
    for result in (*reference, *results):
        if result.error is not None:
            yield f"{result.name}: the harness failed: {result.error}"
    for kill in (kill for result in reference for kill in result.kills):
        yield f"The unchanged controller fails {kill.requirement} in {kill.subject}: {kill.seen}."
    for result in results:
        if result.error is None and result.was_run:
            yield from _wrong_with(result, requirements)
    if complete:
        for row in proven_requirements(results, requirements):
            for adapter in row.unproven if row.level == "MUST" else ():
                yield f"{row.id} is unproven in jobs of the adapter {adapter}: no mutant fails it."


def _wrong_with(result: MutantResult, requirements: Mapping[str, Requirement]) -> Iterator[str]:
    mutant, name = result.mutant, result.name
    if mutant.target is None:
        for kill in result.kills:
            yield f"{name} keeps every bound, but fails {kill.requirement} in {kill.subject}: {kill.seen}."
        if result.undecided:
            yield f"{name} keeps every bound, but {', '.join(result.undecided)} came out unknown."
        return
    if mutant.target in requirements:
        if result.is_void:
            yield f"{name} is void: nothing that was observed differs from what is right."
            return
        telling = result.kill_of(mutant.target)
        if telling is None:
            why = " (unknown)" if mutant.target in result.undecided else ""
            yield f"{name} is not killed by {mutant.target}, which it names{why}."
        elif mutant.bound is not None and f"`{mutant.bound}`" not in telling.seen:
            yield f"{name} fails {mutant.target} without a word of the bound `{mutant.bound}`: {telling.seen}."


def changes_of(results: Iterable[MutantResult]) -> Iterator[str]:
    """One sentence for each mutant that fails other requirements than its entry says. What is unknown is no change."""
    for result in results:
        if result.error is not None or not result.was_run:
            continue
        new, old = set(result.killed_by), set(result.mutant.kills) - set(result.undecided)
        changes = [f"now fails {', '.join(sorted(new - old))}"] if new - old else []
        changes += [f"no longer fails {', '.join(sorted(old - new))}"] if old - new else []
        if changes:
            yield f"{result.name} {' and '.join(changes)}: look into it, and acknowledge it."


def notes_of(
    results: Sequence[MutantResult], requirements: Mapping[str, Requirement], *, complete: bool
) -> Iterator[str]:
    """What is missing, and breaks no rule."""
    waiting: dict[str, list[str]] = {}
    for result in results:
        target = result.mutant.target
        if target is not None and target not in requirements:
            waiting.setdefault(target, []).append(result.name)
    for target, names in sorted(waiting.items()):
        yield f"{target} is not registered yet; it is named by {', '.join(names)}."
    idle = [result.name for result in results if not result.was_run and result.mutant.target in requirements]
    if idle:
        yield f"No scenario is named for {', '.join(idle)}."
    twice = [result.name for result in results if result.runs > 1]
    if twice:
        yield f"The evidence was too weak at first, and they were run again: {', '.join(twice)}."
    if not complete:
        yield "Only a part of the mutants was run: nothing is said of the requirements as a whole."
