"""What is said of a campaign: which rules hold, what has changed, and the page and the lines that show it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from browser_support import browser, visit
from rich.console import Console

from exitcode_conformance.kills import KillList, Mutant
from exitcode_conformance.requirements import REQUIREMENTS
from exitcode_conformance.verdict import Verdict
from exitcode_reports.kill_matrix import (
    Kill,
    KillMatrix,
    MutantResult,
    changes_of,
    notes_of,
    problems_of,
    proven_requirements,
)
from exitcode_reports.kill_page import render_kill_matrix
from exitcode_reports.kill_report import write_kill_matrix
from exitcode_reports.kill_table import print_kill_matrix
from exitcode_reports.recording_error import RecordingError

FEW = {name: REQUIREMENTS[name] for name in ("EXIT-02", "EXIT-03", "STATE-03")}


def kill(requirement: str, seen: str = "it was restarted") -> Kill:
    return Kill(requirement=requirement, subject="a-scenario", expected="another thing", seen=seen)


def result(name: str, target: str | None, *kills: Kill, **more: Any) -> MutantResult:
    """A fault that was built for a requirement, and what was found of it; its entry says the same."""
    told: dict[str, Any] = {"kind": "fault" if target else "slow", "target": target, "scenarios": ("a-scenario",)}
    listed = {"kills": tuple(sorted({one.requirement for one in kills}))}
    entry = Mutant.model_validate(told | listed | more.pop("entry", {}))
    return MutantResult(name=name, sentence=f"Does {name}.", mutant=entry, kills=kills, **more)


def problems(*results: MutantResult, complete: bool = False, **more: Any) -> list[str]:
    kills = KillList(version=1, mutants={one.name: one.mutant for one in results})
    told = {"reference": (), "requirements": FEW, "variants": [one.name for one in results]}
    return list(problems_of(kills, results=results, complete=complete, **(told | more)))


def matrix(*results: MutantResult, complete: bool = True, **more: Any) -> KillMatrix:
    values: dict[str, Any] = {
        "suite_version": "1",
        "cluster": "embedded",
        "started_at": datetime(2026, 3, 1, tzinfo=UTC),
        "seconds": 60,
        "complete": complete,
        "reference": (),
        "mutants": results,
        "requirements": proven_requirements(results, FEW),
        "problems": problems(*results, complete=complete),
        "changes": tuple(changes_of(results)),
        "notes": tuple(notes_of(results, FEW, complete=complete)),
    }
    return KillMatrix.model_validate(values | more)


GOOD = (
    result("a", "EXIT-02", kill("EXIT-02"), kill("EXIT-03")),
    result("b", "EXIT-03", kill("EXIT-03")),
    result(
        "c", "STATE-03", kill("STATE-03", "late; the bound `state` is 10 s"), entry={"kind": "slow", "bound": "state"}
    ),
    result("d", None),
    result("e", "EXIT-02", kill("EXIT-02"), kill("EXIT-03"), entry={"adapter": "batch"}),
)


def test_a_campaign_in_which_every_rule_holds() -> None:
    found = matrix(*GOOD)
    assert (found.problems, found.changes, found.notes, found.holds) == ((), (), (), True)
    assert {row.id: row.killers for row in found.requirements} == {
        "EXIT-02": {"kubeflow": ("a",), "batch": ("e",)},
        "EXIT-03": {"kubeflow": ("b", "a"), "batch": ("e",)},
        "STATE-03": {"kubeflow": ("c",)},
    }


@pytest.mark.parametrize(
    ("one", "sentence"),
    [
        (result("a", "EXIT-02"), "a is void: nothing that was observed differs from what is right."),
        (result("a", "EXIT-02", kill("EXIT-03")), "a is not killed by EXIT-02, which it names."),
        (
            result("a", "EXIT-02", undecided=("EXIT-02",)),
            "a is not killed by EXIT-02, which it names (unknown).",
        ),
        (result("a", None, kill("EXIT-02")), "a keeps every bound, but fails EXIT-02 in a-scenario: it was restarted."),
        (result("a", None, undecided=("EXIT-02",)), "a keeps every bound, but EXIT-02 came out unknown."),
        (
            result("a", "STATE-03", kill("STATE-03"), entry={"kind": "slow", "bound": "state"}),
            "a fails STATE-03 without a word of the bound `state`: it was restarted.",
        ),
        (result("a", "EXIT-02", error="no pods"), "a: the harness failed: no pods"),
    ],
)
def test_a_rule_that_does_not_hold_is_one_sentence(one: MutantResult, sentence: str) -> None:
    assert problems(one) == [sentence]


def test_what_waits_for_its_requirement_breaks_no_rule() -> None:
    waiting = result("a", "LIMIT-99", kill("EXIT-02"))
    idle = result("b", "EXIT-02", entry={"scenarios": (), "kills": ()})
    assert problems(waiting, idle) == []
    assert list(notes_of((waiting, idle), FEW, complete=True)) == [
        "LIMIT-99 is not registered yet; it is named by a.",
        "No scenario is named for b.",
    ]


def test_each_must_has_to_be_shown_to_fail_where_all_were_run() -> None:
    assert problems(GOOD[1], complete=True) == [
        "EXIT-02 is unproven in jobs of the adapter kubeflow: no mutant fails it.",
        "EXIT-02 is unproven in jobs of the adapter batch: no mutant fails it.",
        "EXIT-03 is unproven in jobs of the adapter batch: no mutant fails it.",
        "STATE-03 is unproven in jobs of the adapter kubeflow: no mutant fails it.",
    ]
    assert problems(GOOD[1]) == []


def test_the_list_and_the_controllers_have_to_agree() -> None:
    told = problems(*GOOD, complete=True, variants=["a", "b", "c", "e", "new", "reference"])
    assert told == [
        "new is not in the list: add it, with the requirement that it was built for.",
        "d is in the list, and there is no such controller.",
    ]


def test_the_unchanged_controller_fails_nothing() -> None:
    broken = result("reference", None, kill("EXIT-03"))
    assert problems(*GOOD, complete=True, reference=[broken]) == [
        "The unchanged controller fails EXIT-03 in a-scenario: it was restarted."
    ]


def test_a_change_is_a_sentence_and_counts_until_it_is_acknowledged() -> None:
    other = result("a", "EXIT-02", kill("EXIT-02"), entry={"kills": ("EXIT-03", "STATE-03")})
    found = matrix(other, complete=False)
    change = "a now fails EXIT-02 and no longer fails EXIT-03, STATE-03: look into it, and acknowledge it."
    assert (found.changes, found.problems, found.holds) == ((change,), (), False)
    assert found.model_copy(update={"acknowledged": True}).holds


def test_what_is_unknown_is_no_change_and_no_proof() -> None:
    weak = result("a", "EXIT-02", kill("EXIT-02"), undecided=("EXIT-03",), entry={"kills": ("EXIT-02", "EXIT-03")})
    assert (matrix(weak, complete=False).holds, weak.is_open) == (True, False)
    weaker = result("b", "EXIT-03", undecided=("EXIT-03",), runs=2, entry={"kills": ("EXIT-03",)})
    assert weaker.is_open
    found = matrix(weaker, complete=False)
    assert (found.changes, found.problems) == ((), ("b is not killed by EXIT-03, which it names (unknown).",))
    assert "The evidence was too weak at first, and they were run again: b." in found.notes
    assert result("c", None, undecided=("EXIT-03",)).is_open
    assert not result("c", None).is_open


def test_a_void_mutant_cannot_be_acknowledged() -> None:
    found = matrix(result("a", "EXIT-02", entry={"kills": ("EXIT-02",)}), complete=False, acknowledged=True)
    assert not found.holds


def printed(found: KillMatrix, capsys: pytest.CaptureFixture[str]) -> Sequence[str]:
    print_kill_matrix(found, Console())
    return capsys.readouterr().out.splitlines()


def test_the_lines_say_by_what_each_was_found(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(matrix(*GOOD, reference=[result("reference", None)]), capsys)
    assert lines[:5] == [
        "a  killed by EXIT-02 a-scenario: it was restarted (and EXIT-03)",
        "b  killed by EXIT-03 a-scenario: it was restarted",
        "c  killed by STATE-03 a-scenario: late; the bound `state` is 10 s",
        "d  conformant, as it has to be",
        "e  killed by EXIT-02 a-scenario: it was restarted (and EXIT-03)",
    ]
    assert "EXIT-03     MUST    kubeflow  shown to fail by b, a" in lines
    assert "EXIT-03     MUST    batch     shown to fail by e" in lines
    assert lines[-1] == (
        "PROVEN  4 of 4 mutants killed in 60 s; 3 of 3 requirements shown to fail;"
        " the unchanged controller fails nothing."
    )


def test_the_lines_say_what_does_not_hold(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(matrix(result("a", "EXIT-02"), result("b", "EXIT-03", kill("EXIT-02"))), capsys)
    assert lines[:2] == ["a  void", "b  not killed by EXIT-03; fails EXIT-02"]
    assert "STATE-03    MUST    kubeflow  unproven" in lines
    assert lines[-1].startswith("NOT PROVEN  1 of 2 mutants killed")


def test_the_page_shows_each_kill_with_its_sentence() -> None:
    page = render_kill_matrix(matrix(*GOOD, reference=[result("reference", None, verdicts={Verdict.PASS: 3})]))
    assert page.count('class="built"') == 5  # with the legend
    assert page.count('class="also"') == 3
    assert "<title>EXIT-03 × a. a-scenario: it was restarted</title>" in page
    assert '<a href="mutants/a/index.html">' in page
    assert "http://" not in page
    assert "https://" not in page
    assert page == render_kill_matrix(matrix(*GOOD, reference=[result("reference", None, verdicts={Verdict.PASS: 3})]))


def test_the_page_marks_what_should_have_failed_and_what_is_unproven() -> None:
    page = render_kill_matrix(matrix(result("a", "EXIT-02"), result("b", "EXIT-03", error="no <b>pods</b>")))
    assert "<title>EXIT-02 × a. not killed</title>" in page
    assert "EXIT-03 × b" not in page
    assert '<b class="unproven">unproven</b>' in page
    assert "no &lt;b&gt;pods&lt;/b&gt;" in page
    assert "<h1>Harness failed</h1>" in page


@pytest.mark.skipif(browser() is None, reason="no chromium on this machine")
def test_a_square_leads_to_what_was_seen_and_the_page_asks_for_nothing(tmp_path: Path) -> None:
    hostile = "</title><script>alert(1)</script> {{ 7*7 }} \u202egnp"
    found = matrix(*GOOD, result("f", "EXIT-02", kill("EXIT-02", hostile), error=hostile), notes=(hostile,))
    page = write_kill_matrix(found, tmp_path)
    program = browser()
    assert program is not None
    shown = "[...document.querySelectorAll('details[open]')].map((one) => one.id)"
    follow = "document.querySelector('.kills a[href=\"#m-b\"]').dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    seen = visit(
        program,
        page,
        tmp_path / "profile",
        (
            "document.querySelectorAll('script').length",
            f"{follow} && new Promise((done) => setTimeout(() => done({shown}), 100))",
            "document.documentElement.scrollWidth <= innerWidth",
        ),
        width=400,
    )
    assert seen.answers == [1, ["m-b"], True]
    assert seen.requests == [page.as_uri()]
    assert seen.complaints == []


def test_the_files_are_written_whole_or_a_sentence_says_why_not(tmp_path: Path) -> None:
    found = matrix(*GOOD)
    assert write_kill_matrix(found, tmp_path) == tmp_path / "kill-matrix.html"
    assert KillMatrix.model_validate_json((tmp_path / "kill-matrix.json").read_bytes()) == found
    with pytest.raises(RecordingError, match="cannot be written"):
        write_kill_matrix(found, tmp_path / "absent")
