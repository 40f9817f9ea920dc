"""The lists of requirements, made from the registry by `python -m exitcode_conformance.requirement_list page` (for
docs/requirements.md) and `… yaml` (for requirement_list.yaml, see `frozen_list`)."""

import sys
from collections.abc import Iterable, Iterator

from exitcode_conformance.frozen_list import FrozenRequirement, build_list
from exitcode_conformance.registry import FEATURES
from exitcode_conformance.requirements import REQUIREMENTS


def requirements_markdown() -> str:
    """The list as a page: each requirement with its sentence, level, profile, feature, source, and where it is
    judged."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Requirements"
    yield ""
    yield "Made from the registry by `python -m exitcode_conformance.requirement_list`; a test fails when they drift."
    yield "Each requirement is judged by exactly one check. The number of cases is that of an operator that claims"
    yield "everything; it depends on the contract. [mutants.md](mutants.md) says what one is shown to fail by."
    group = ""
    for identifier, entry in build_list().requirements.items():
        if REQUIREMENTS[identifier].group != group:
            group = REQUIREMENTS[identifier].group
            yield ""
            yield f"## {group}"
        yield ""
        yield f"### {identifier}"
        yield ""
        yield from _entry(identifier, entry)


def _entry(identifier: str, entry: FrozenRequirement) -> Iterator[str]:
    yield f"{entry.level}: {entry.sentence}"
    yield ""
    yield f"- profile: {entry.profile}"
    yield f"- feature: `{entry.feature}`, {FEATURES[REQUIREMENTS[identifier].feature]}"
    yield f"- source: {entry.source}"
    yield f"- cases: {', '.join(f'{count} under `{name}`' for name, count in entry.cases.items())}"
    judged = entry.scenarios
    where = [f"`{name}`" for name in judged.names] or [f"{count} {name}" for name, count in judged.families.items()]
    yield f"- scenarios: {judged.count}: {', '.join(where)}"
    if entry.level != "INFO":
        yield f"- shown to fail by: {_shown(entry.mutants)}"
    jobs = f"{entry.batch} cases" if isinstance(entry.batch, int) else f"not supported, {entry.batch}"
    if isinstance(entry.batch, int) and entry.level != "INFO":
        jobs += f", shown to fail by {_shown(entry.batch_mutants)}"
    yield f"- of a Job of batch/v1: {jobs}"


def _shown(mutants: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in mutants) or "no mutant yet, so it is unproven and does not count"


if __name__ == "__main__":
    print(build_list().text() if sys.argv[1:] == ["yaml"] else requirements_markdown(), end="")
