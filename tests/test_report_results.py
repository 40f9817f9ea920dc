"""What a recording comes to: one failed MUST is enough, SHOULD and INFO never are, and nothing is not a success."""

from pathlib import Path

import pytest
from recording_support import planned, recorded, scenarios

from exitcode_conformance.verdict import Verdict
from exitcode_reports.header import Level
from exitcode_reports.results import CaseResult, Overall, case_results, overall, overall_of
from exitcode_reports.summary import summarise

KNOWN = scenarios([0, 126, 137])
NAMES = list(KNOWN)


def results(*pairs: tuple[Level, str]) -> list[CaseResult]:
    """Results of these levels and verdicts."""
    case = planned("EXIT-02", "subject")
    return [
        CaseResult(case=case.model_copy(update={"level": level}), verdict=Verdict(verdict), line=None)
        for level, verdict in pairs
    ]


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([], Overall.UNDECIDED),
        ([("MUST", "pass")], Overall.CONFORMANT),
        ([("MUST", "pass"), ("MUST", "not-supported"), ("MUST", "waived")], Overall.CONFORMANT),
        ([("MUST", "not-supported")], Overall.UNDECIDED),
        ([("MUST", "waived")], Overall.UNDECIDED),
        ([("SHOULD", "pass")], Overall.UNDECIDED),
        ([("INFO", "pass")], Overall.UNDECIDED),
        ([("MUST", "pass"), ("SHOULD", "fail")], Overall.CONFORMANT),
        ([("MUST", "pass"), ("SHOULD", "unknown"), ("SHOULD", "not-run")], Overall.CONFORMANT),
        ([("MUST", "pass"), ("INFO", "fail"), ("INFO", "error")], Overall.CONFORMANT),
        ([("MUST", "pass"), ("MUST", "fail")], Overall.NOT_CONFORMANT),
        ([("MUST", "fail"), ("MUST", "error"), ("MUST", "unknown")], Overall.NOT_CONFORMANT),
        ([("MUST", "pass"), ("MUST", "unknown")], Overall.UNDECIDED),
        ([("MUST", "pass"), ("MUST", "not-run")], Overall.UNDECIDED),
        ([("MUST", "pass"), ("MUST", "error"), ("MUST", "unknown")], Overall.HARNESS_FAILED),
        ([("MUST", "pass"), ("SHOULD", "error")], Overall.HARNESS_FAILED),
    ],
)
def test_what_the_verdicts_come_to(pairs: list[tuple[Level, str]], expected: Overall) -> None:
    assert overall_of(results(*pairs), partial=False) is expected


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [("pass", Overall.UNDECIDED), ("fail", Overall.NOT_CONFORMANT), ("error", Overall.HARNESS_FAILED)],
)
def test_a_partial_recording_is_never_conformant(verdict: str, expected: Overall) -> None:
    assert overall_of(results(("MUST", verdict)), partial=True) is expected


def test_the_values_are_the_exit_statuses() -> None:
    assert [int(value) for value in Overall] == [0, 1, 2, 3]


def test_every_planned_case_has_a_result(tmp_path: Path) -> None:
    recording = recorded(tmp_path / "r.jsonl", known=KNOWN, unjudged=[NAMES[0]])
    found = case_results(recording)
    assert [result.case for result in found] == list(recording.header.plan)
    unjudged = [result for result in found if result.case.subject == NAMES[0]]
    assert {result.verdict for result in unjudged} == {Verdict.NOT_RUN}
    assert unjudged[0].seen == "The recording has no verdict on it."
    assert unjudged[0].expected == unjudged[0].case.sentence
    unsupported = found[-1]
    assert unsupported.verdict is Verdict.NOT_SUPPORTED
    assert unsupported.seen == "The operator claims no such thing."
    assert found[0].name == f"EXIT-01[{NAMES[0]}]"
    assert found[0].group == "EXIT"


def test_a_good_operator_is_conformant(tmp_path: Path) -> None:
    recording = recorded(tmp_path / "r.jsonl", known=KNOWN)
    summary = summarise(recording)
    assert overall(recording) is summary.overall is Overall.CONFORMANT
    assert summary.heading == "Conformant"
    assert summary.sentence.startswith("reference 0.1.0 meets 8 MUST requirements of contract kubeflow-docs 1 in ")
    assert [group.name for group in summary.groups] == ["EXIT", "RESTART", "STATE", "INV"]


def test_a_wrong_operator_is_not_and_the_sentence_says_by_what(tmp_path: Path) -> None:
    summary = summarise(recorded(tmp_path / "r.jsonl", known=KNOWN, restarts=[126, 137]))
    assert summary.overall is Overall.NOT_CONFORMANT
    assert summary.sentence == "reference 0.1.0 breaks 1 MUST requirement of contract kubeflow-docs 1: EXIT-02."
    exit_02 = next(one for one in summary.groups[0].requirements if one.id == "EXIT-02")
    assert exit_02.verdict is Verdict.FAIL
    assert exit_02.counts == {Verdict.FAIL: 4}


def test_what_is_missing_is_told(tmp_path: Path) -> None:
    summary = summarise(
        recorded(tmp_path / "r.jsonl", known=KNOWN, unknown=NAMES[:1], unjudged=NAMES[1:2], finish=False)
    )
    assert summary.overall is Overall.UNDECIDED
    assert summary.sentence == (
        "Nothing is decided about reference 0.1.0: the evidence is too weak in 6 MUST cases, "
        "6 MUST cases were not run and the recording is partial."
    )
    assert "This recording is partial: it ends after line" in summary.notices[0]
    assert "no certification is claimed" in summary.notices[1]


def test_an_error_of_the_harness_says_nothing_of_the_operator(tmp_path: Path) -> None:
    summary = summarise(recorded(tmp_path / "r.jsonl", known=KNOWN, errors=NAMES[:1]))
    assert summary.overall is Overall.HARNESS_FAILED
    assert summary.sentence == "The harness failed in 7 cases, so the run says nothing of reference 0.1.0."
