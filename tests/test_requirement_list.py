"""The published list of requirements is that of the registry."""

from pathlib import Path

from exitcode_conformance.requirement_list import requirements_markdown

PAGE = Path(__file__).parent.parent / "docs" / "requirements.md"


def test_the_page_is_what_the_registry_says() -> None:
    assert PAGE.read_text("utf-8") == requirements_markdown(), (
        "make it anew: python -m exitcode_conformance.requirement_list > docs/requirements.md"
    )
