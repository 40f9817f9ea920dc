"""The published lists of requirements are those of the registry."""

from pathlib import Path

import pytest

from exitcode_conformance.frozen_list import FILE, RequirementList, build_list, published_list
from exitcode_conformance.kills import published_kills
from exitcode_conformance.requirement_list import requirements_markdown
from exitcode_conformance.requirements import REQUIREMENTS
from exitcode_conformance.scenarios import SCENARIOS
from exitcode_conformance.yaml_model import UnreadableYaml, read_yaml

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "requirements.md"
LIST = ROOT / "conformance" / "exitcode_conformance" / FILE
MAKE = "python -m exitcode_conformance.requirement_list"


def test_the_page_is_what_the_registry_says() -> None:
    assert PAGE.read_text("utf-8") == requirements_markdown(), f"make it anew: {MAKE} page > docs/requirements.md"


def test_the_frozen_list_is_what_the_registry_says() -> None:
    path = LIST.relative_to(ROOT)
    assert LIST.read_text("utf-8") == build_list().text(), (
        f"make it anew, and say why it has changed: {MAKE} yaml > {path}"
    )
    assert published_list() == build_list()


def test_the_frozen_list_says_of_each_requirement_what_it_is_and_how_it_is_shown() -> None:
    found = published_list()
    assert list(found.requirements) == list(REQUIREMENTS)
    proofs, proofs_of_jobs = published_kills().proofs("kubeflow"), published_kills().proofs("batch")
    for identifier, entry in found.requirements.items():
        requirement = REQUIREMENTS[identifier]
        assert (entry.level, entry.profile, entry.feature) == (
            requirement.level,
            requirement.profile,
            requirement.feature,
        )
        assert (entry.sentence, entry.source) == (requirement.sentence, requirement.source)
        assert entry.mutants == proofs.get(identifier, ())
        assert entry.batch_mutants == proofs_of_jobs.get(identifier, ())
        assert entry.scenarios.count == sum(entry.scenarios.families.values())
        assert max(entry.cases.values()) > 0
        assert set(entry.scenarios.names) <= set(SCENARIOS)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("version: 2\nsuite: x\nrequirements: {}", "version: Input should be 1"),
        ("version: 1\nsuite: x\nrequirements: {EXIT-01: {level: MAY}}", "requirements.EXIT-01.level: Input should be"),
        ("version: 1\nsuite: x\ncolour: red\nrequirements: {}", "colour: Extra inputs are not permitted"),
        ("version: [", "it is no YAML"),
    ],
)
def test_what_is_no_list_is_refused(text: str, problem: str) -> None:
    with pytest.raises(UnreadableYaml, match=problem):
        read_yaml(text, RequirementList)
