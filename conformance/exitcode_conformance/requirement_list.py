"""The page docs/requirements.md, made from the registry by `python -m exitcode_conformance.requirement_list`."""

from collections.abc import Iterator

from exitcode_conformance.contract import contract_ids, load_contract
from exitcode_conformance.kills import published_kills
from exitcode_conformance.kinds import KINDS
from exitcode_conformance.plan import Claims, build_plan
from exitcode_conformance.registry import FEATURES
from exitcode_conformance.requirements import REQUIREMENTS


def requirements_markdown() -> str:
    """The list as a page: each requirement with its sentence, level, profile, feature, source, and number of cases."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    proofs = published_kills().proofs()
    counts = {name: _cases(name) for name in contract_ids()}
    yield "# Requirements"
    yield ""
    yield "Made from the registry by `python -m exitcode_conformance.requirement_list`; a test fails when they drift."
    yield "Each requirement is judged by exactly one check. The number of cases is that of an operator that claims"
    yield "everything; it depends on the contract. [mutants.md](mutants.md) says what one is shown to fail by."
    group = ""
    for requirement in REQUIREMENTS.values():
        if requirement.group != group:
            group = requirement.group
            yield ""
            yield f"## {group}"
        yield ""
        yield f"### {requirement.id}"
        yield ""
        yield f"{requirement.level}: {requirement.sentence}"
        yield ""
        yield f"- profile: {requirement.profile}"
        yield f"- feature: `{requirement.feature}`, {FEATURES[requirement.feature]}"
        yield f"- source: {requirement.source}"
        cases = ", ".join(f"{found.get(requirement.id, 0)} under `{name}`" for name, found in counts.items())
        yield f"- cases: {cases}"
        if requirement.level != "INFO":
            shown = ", ".join(f"`{name}`" for name in proofs.get(requirement.id, ()))
            yield f"- shown to fail by: {shown or 'no mutant yet, so it is unproven and does not count'}"


def _cases(contract: str) -> dict[str, int]:
    claims = Claims(kinds=tuple(KINDS), features=tuple(FEATURES))
    counts: dict[str, int] = {}
    for case in build_plan(claims=claims, contract=load_contract(contract), profile="extended"):
        counts[case.requirement] = counts.get(case.requirement, 0) + 1
    return counts


if __name__ == "__main__":
    print(requirements_markdown(), end="")
