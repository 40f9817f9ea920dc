"""The pytest modules that users run: `pytest --pyargs exitcode_conformance`.

A test function stands for a requirement and is named as it; the plugin gives it one case for each scenario, or group of
scenarios, in which the requirement is judged. The certification waits for the histories and lets the check judge.
"""

from collections.abc import Callable
from typing import Protocol

import pytest

from exitcode_conformance.plan import Case
from exitcode_conformance.requirements import Requirement, by_group
from exitcode_conformance.verdict import Judged, Verdict


class Certification(Protocol):
    """What a test needs of the session; the plugin's fixture of this name has it."""

    def judged(self, case: Case) -> Judged:
        """The judgement on a case; waits until its scenarios are complete."""

    def is_proven(self, requirement: str) -> bool:
        """Whether the requirement is known to fail on some broken controller of such jobs as are judged."""


RequirementTest = Callable[[Certification, Case], None]


def requirement_tests(group: str) -> dict[str, RequirementTest]:
    """One test function for each requirement of a group, by the requirement's id."""
    return {requirement.id: _test_of(requirement) for requirement in by_group(group)}


def _test_of(requirement: Requirement) -> RequirementTest:
    def test(certification: Certification, exitcode_case: Case) -> None:
        must_be_met(requirement, certification.judged(exitcode_case), proven=certification.is_proven(requirement.id))

    test.__doc__ = requirement.sentence
    test.__test__ = True  # type: ignore[attr-defined] # this is how pytest takes a function whatever its name is
    test.requirement_id = requirement.id  # type: ignore[attr-defined] # the plugin finds the cases by it
    return test


def must_be_met(requirement: Requirement, judged: Judged, *, proven: bool) -> None:
    """Turns the judgement on a case into the outcome of a test. Only a pass passes; nothing else can look like one.
    What is no MUST, or unproven, turns nothing red."""
    match judged.judgement.verdict:
        case Verdict.PASS:
            return
        case Verdict.NOT_SUPPORTED | Verdict.NOT_RUN:
            pytest.skip(judged.text)
        case Verdict.WAIVED:
            pytest.xfail(judged.text)
        case Verdict.FAIL | Verdict.UNKNOWN if requirement.level != "MUST":
            pytest.xfail(judged.text)
        case Verdict.FAIL | Verdict.UNKNOWN if not proven:
            pytest.xfail(f"{judged.text}\nNot counted: no broken controller is known to fail {requirement.id}.")
        case _:
            pytest.fail(judged.text, pytrace=False)
