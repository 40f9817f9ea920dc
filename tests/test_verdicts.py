"""All verdicts on all scenarios: every right style of an operator passes, and no operator that does nothing does."""

from collections import Counter
from functools import cache

import pytest
from history_builder import CONTRACTS, Story
from operator_simulation import Simulation, Style

from exitcode_conformance.history import History
from exitcode_conformance.judge import judge
from exitcode_conformance.kinds import KUBEFLOW_KINDS
from exitcode_conformance.plan import Case, Claims, build_plan
from exitcode_conformance.registry import FEATURES
from exitcode_conformance.requirements import REQUIREMENTS
from exitcode_conformance.scenarios import SCENARIOS
from exitcode_conformance.timeouts import Timeouts
from exitcode_conformance.verdict import Verdict

EVERYTHING = Claims(kinds=KUBEFLOW_KINDS, features=tuple(FEATURES))
STYLES = {
    "reference": Style(),
    "release 1.4": Style(generation="v1.4", cleans="Running", says_running_early=True),
    "release 1.0": Style(generation="v1.0", cleans="All", has_services=False, pods_are_late=True),
    "release 0.5": Style(generation="v0.5", completion="after", starts_late=True, omits_zeros=True),
    "another order": Style(completion="before", newest_first=True, foreign=True, pods_are_late=True),
    "tidy": Style(cleans="All", cleans_first=True, foreign=True, completion="after"),
}
SOME = tuple(
    name
    for number, (name, scenario) in enumerate(SCENARIOS.items())
    if number % 14 == 0
    or scenario.target is None
    or any(word in name for word in ("-then-", "always", "onfailure", "sibling0", "tftest", "exit138-master1"))
    or scenario.profile == "extended"
)
"""Scenarios of every shape; not every code of each."""


@cache
def plan(contract: str) -> tuple[Case, ...]:
    """All cases."""
    return build_plan(claims=EVERYTHING, contract=CONTRACTS[contract], profile="extended")


def verdicts(histories: dict[str, History], contract: str) -> dict[str, list[str]]:
    """Requirement → the verdicts in all cases that these histories are enough for, and why where it is no pass."""
    found: dict[str, list[str]] = {}
    for case in plan(contract):
        if set(case.scenarios) <= set(histories):
            judgement = judge(case, [histories[s] for s in case.scenarios], CONTRACTS[contract])
            said = judgement.verdict.value
            if judgement.verdict is not Verdict.PASS:
                said += f" {case.name}: {judgement.seen}"
            found.setdefault(case.requirement, []).append(said)
    return found


def simulated(style: Style, contract: str, names: tuple[str, ...], timeouts: Timeouts) -> dict[str, History]:
    """What a conforming operator of that style would make of the scenarios."""
    return {name: Simulation(SCENARIOS[name], CONTRACTS[contract], style, timeouts).run() for name in names}


def test_a_conforming_operator_passes_everywhere() -> None:
    found = verdicts(simulated(Style(), "kubeflow-docs", tuple(SCENARIOS), Timeouts()), "kubeflow-docs")
    assert [line for lines in found.values() for line in lines if line != "pass"] == []
    assert set(found) == set(REQUIREMENTS)


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_no_verdict_depends_on_how_an_operator_does_what_is_right(style: Style) -> None:
    found = verdicts(simulated(style, "kubeflow-docs", SOME, Timeouts()), "kubeflow-docs")
    if not style.has_services:
        unclaimed = found.pop("IDENT-06") + found.pop("CLEAN-03")
        assert {line.split()[0] for line in unclaimed} == {"fail", "unknown"}, "the style does not claim the feature"
    assert [line for lines in found.values() for line in lines if line != "pass"] == []
    assert set(found) >= set(REQUIREMENTS) - {"EXIT-07", "EXIT-06", "EXIT-09", "IDENT-06", "CLEAN-03"}


def test_no_verdict_depends_on_the_speed_of_a_cluster_or_on_the_contract() -> None:
    real = Timeouts.default("real")
    found = verdicts(simulated(Style(pods_are_late=True), "kubeflow-api", SOME, real), "kubeflow-api")
    assert [line for lines in found.values() for line in lines if line != "pass"] == []


def unmoved(told: Story) -> History:
    """A long time passes, and the harness gives up."""
    told.wait(30).act("step-timed-out", detail={"kind": "terminal", "why": "nothing happened"})
    return told.complete().history()


def submitted(name: str) -> Story:
    """A job that the API server has, with an operator that runs."""
    return Story(SCENARIOS[name]).act("operator-started", of_the_run=True, detail={"mode": "process"}).submit()


def counted(histories: dict[str, History]) -> dict[str, Counter[str]]:
    """How often each verdict was given."""
    found = verdicts(histories, "kubeflow-docs")
    return {name: Counter(line.partition(" ")[0] for line in lines) for name, lines in found.items()}


def test_a_job_that_was_never_touched_passes_nothing() -> None:
    found = counted({name: unmoved(submitted(name)) for name in SCENARIOS})
    assert {name for name, verdict in found.items() if verdict["fail"]} == {"IDENT-01", "STATE-01"}
    # That the process ran is true of an operator that does nothing, and is all that INV-08 says.
    assert {name for name, verdict in found.items() if verdict["pass"]} == {"INV-08"}
    assert not any(verdict["error"] for verdict in found.values())


def test_a_job_that_got_a_status_and_nothing_else_passes_on_that_status_alone() -> None:
    found = counted({name: unmoved(submitted(name).says("Created")) for name in SCENARIOS})
    assert {name for name, verdict in found.items() if verdict["pass"]} == {"INV-08", "STATE-01", "STATE-12"}
    assert {name for name, verdict in found.items() if verdict["fail"]} == {"IDENT-01"}


def test_a_job_that_got_pods_and_nothing_else_passes_on_those_pods_alone() -> None:
    found = counted({name: unmoved(submitted(name).create(*SCENARIOS[name].replica_names())) for name in SCENARIOS})
    passed = {name for name, verdict in found.items() if verdict["pass"]}
    of_the_pods = {"IDENT-01", "IDENT-02", "IDENT-03", "IDENT-04", "IDENT-05", "IDENT-07", "INV-04", "RESTART-04"}
    assert passed == {"INV-08", "INV-03", "INV-10", "RESTART-11", *of_the_pods}
    assert {name for name, verdict in found.items() if verdict["fail"]} == {
        "STATE-01",
        "IDENT-06",
        "EVENT-02",
        "EVENT-04",
    }


def test_nothing_is_said_of_what_was_cut_short() -> None:
    histories = {}
    for name in SOME:
        told = Simulation(SCENARIOS[name], CONTRACTS["kubeflow-docs"], Style(), Timeouts())
        told.run()
        told.story.entries.pop()
        histories[name] = told.story.history()
    assert {verdict for found in counted(histories).values() for verdict in found} == {"unknown"}


def test_nothing_is_claimed_to_be_absent_without_a_witness() -> None:
    histories = {}
    for name in SOME:
        told = Simulation(SCENARIOS[name], CONTRACTS["kubeflow-docs"], Style(), Timeouts())
        told.run()
        told.story.entries = [entry for entry in told.story.entries if entry.scenario is not None]
        histories[name] = told.story.history()
    found = counted(histories)
    assert not any(verdict["fail"] for verdict in found.values())
    needs_one = {"EXIT-01", "EXIT-02", "EXIT-12", "RESTART-03", "RESTART-07", "RESTART-10", "CLEAN-05"}
    assert {name for name in needs_one if found[name]["pass"]} == set()
