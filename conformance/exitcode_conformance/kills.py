"""Which broken controllers fail which requirements: the proof that a requirement can fail, recorded in `kills.yaml`.

The file is the frozen result of `exitcode-conformance mutants`, and the order for it: which scenarios each mutant is
run through, and what it has to fail. A requirement that no mutant fails is unproven: nobody has seen that its check
finds anything, so it does not count.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from textwrap import fill
from typing import Literal, Self

import yaml
from pydantic import Field, model_validator

from exitcode_conformance.adapters import adapter_of
from exitcode_conformance.frozen import Frozen
from exitcode_conformance.kinds import AdapterName
from exitcode_conformance.temporal import BoundName
from exitcode_conformance.yaml_model import read_yaml

FILE = "kills.yaml"
WIDTH = 120


class Mutant(Frozen):
    """One variant of the reference controller, and what is known of it."""

    kind: Literal["fault", "slow"] = "fault"
    """A slow one is right and late."""
    adapter: AdapterName = "kubeflow"
    """Of the job API in whose jobs it is wrong: what fails there is shown to fail in these, and in no others."""
    target: str | None = None
    """The requirement that it names: the fault that it was built for is found by this one at least. None for a slow
    one that keeps every bound and has to come out conformant."""
    bound: BoundName | None = None
    """The duration that a slow one exceeds; the sentence of its target has to name it."""
    scenarios: tuple[str, ...] = ()
    """The few that it is run through; none as long as there is none that shows the fault."""
    kills: tuple[str, ...] = ()
    """Every requirement that failed, sorted."""

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.kind == "fault" and self.target is None:
            raise ValueError("a fault names the requirement that finds it: target is missing")
        if (self.bound is None) != (self.kind == "fault" or self.target is None):
            raise ValueError("bound belongs to a slow one that exceeds it, and its target with it")
        return self


class KillList(Frozen):
    """The whole file."""

    version: Literal[1]
    mutants: dict[str, Mutant] = Field(min_length=1)

    def scenarios(self, adapter: AdapterName) -> tuple[str, ...]:
        """Every scenario of a job API that some fault is run through: those in which the unchanged controller has to
        fail nothing. In the order of the list, each once."""
        faults = (one for one in self.mutants.values() if one.kind == "fault" and one.adapter == adapter)
        return tuple(dict.fromkeys(name for mutant in faults for name in mutant.scenarios))

    def proofs(self, adapter: AdapterName) -> dict[str, tuple[str, ...]]:
        """Requirement → the mutants that fail it in jobs of an API; those that were built for it first."""
        found: dict[str, list[str]] = {}
        for built_for_it in (True, False):
            for name, mutant in self.mutants.items():
                for requirement in mutant.kills if mutant.adapter == adapter else ():
                    if (mutant.target == requirement) is built_for_it:
                        found.setdefault(requirement, []).append(name)
        return {requirement: tuple(names) for requirement, names in found.items()}

    def with_kills(self, kills: Mapping[str, Iterable[str]]) -> Self:
        """The same list with other kills for some mutants."""
        changed = {name: self.mutants[name].model_copy(update={"kills": tuple(sorted(k))}) for name, k in kills.items()}
        return self.model_copy(update={"mutants": {**self.mutants, **changed}})

    def text(self) -> str:
        """The list as the file has it."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield "# What each broken controller is run through, which requirement it was built for, and which ones fail."
        yield "# docs/mutants.md explains it. `exitcode-conformance mutants --acknowledge` writes the lines `kills`."
        yield f"version: {self.version}"
        yield "mutants:"
        for name, mutant in self.mutants.items():
            yield f"  {_quoted(name)}:"
            if mutant.kind != "fault":
                yield f"    kind: {mutant.kind}"
            adapter = None if mutant.adapter == "kubeflow" else mutant.adapter
            for key, value in (("adapter", adapter), ("target", mutant.target), ("bound", mutant.bound)):
                if value is not None:
                    yield f"    {key}: {value}"
            yield _list("scenarios", mutant.scenarios)
            yield _list("kills", mutant.kills)


def _quoted(name: str) -> str:
    """A key that YAML takes for a string; `null` would be none."""
    return name if yaml.safe_load(name) == name else f'"{name}"'


def _list(key: str, values: Iterable[str]) -> str:
    text = f"{key}: [{', '.join(values)}]"
    return fill(
        text,
        WIDTH,
        initial_indent=" " * 4,
        subsequent_indent=" " * 6,
        break_long_words=False,
        break_on_hyphens=False,
    )


def proofs_of(kinds: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Requirement → what it is shown to fail by in jobs of these kinds. One that is shown in jobs of one API only is
    unproven where an operator is judged by another, too."""
    found: dict[str, tuple[str, ...]] | None = None
    for adapter in dict.fromkeys(adapter_of(kind).name for kind in kinds):
        shown = published_kills().proofs(adapter)
        found = shown if found is None else {name: (*found[name], *shown[name]) for name in found if name in shown}
    return found or {}


@cache
def published_kills() -> KillList:
    """The list that this version of the suite was published with."""
    return read_yaml((resources.files("exitcode_conformance") / FILE).read_text("utf-8"), KillList)
