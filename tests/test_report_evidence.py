"""What the report says of how sure it is: what each requirement was shown to fail on, and what its verdicts rest on."""

import json
from pathlib import Path

from recording_support import planned, recorded, scenarios

from exitcode_conformance.entry import VerdictLine
from exitcode_conformance.judging import judged
from exitcode_conformance.temporal import Finding
from exitcode_conformance.timeouts import Timeouts
from exitcode_conformance.verdict import Trial, Verdict
from exitcode_reports.evidence import time_evidence
from exitcode_reports.html import render_html
from exitcode_reports.junit import render_junit
from exitcode_reports.recording import read_recording
from exitcode_reports.results import CaseResult, Overall, overall_of
from exitcode_reports.summary import RequirementResult, summarise
from exitcode_reports.verdict_table import plain_verdicts

KNOWN = scenarios([0, 126, 137])
PROOFS = dict.fromkeys(
    ("EXIT-01", "EXIT-03", "RESTART-01", "STATE-01", "STATE-04", "INV-01"), ("one", "two", "three", "four")
)


def line(*trials: Trial) -> VerdictLine:
    return VerdictLine(
        seq=1,
        time=0,
        requirement="EXIT-03",
        subject="s",
        scenarios=(),
        verdict="pass",
        expected="",
        seen="",
        trials=trials,
    )


def delay(seconds: float | None, *, holds: bool | None = True) -> Trial:
    return Trial(kind="eventually", bound="restart", holds=holds, delay=seconds)


def absence(*, holds: bool | None = True) -> Trial:
    return Trial(kind="never", bound="never", holds=holds)


# ---- delays and absences ---------------------------------------------------------------------------------------------


def test_a_judgement_keeps_every_question_about_time() -> None:
    findings = [
        Finding(holds=True, seen="it came", delay=0.12345, bound="restart"),
        Finding(holds=None, seen="no witness", bound="never", absence=True),
        Finding(holds=False, seen="the job became Failed"),
    ]
    judgement = judged("something", findings)
    assert judgement.verdict is Verdict.FAIL
    assert judgement.trials == (
        Trial(kind="eventually", bound="restart", holds=True, delay=0.123),
        Trial(kind="never", bound="never", holds=None),
    )


def test_delays_are_summed_up_with_their_bound_and_absences_with_their_window() -> None:
    lines = [line(delay(0.1), absence()), line(delay(0.3), delay(12.0, holds=False)), line(absence(holds=None))]
    assert [one.told for one in time_evidence(lines, Timeouts())] == [
        "Delay `restart`: 3 trials, median 0.30 s, maximum 12.00 s, 1 late or never; bound 10 s.",
        "Absence: 2 trials, 1 undecided; window 4 s.",
    ]


def test_what_never_came_has_no_delay() -> None:
    (only,) = time_evidence([line(delay(None, holds=False))], Timeouts())
    assert (only.median, only.longest) == (None, None)
    assert only.told == "Delay `restart`: 1 trial, 1 late or never; bound 10 s."
    (seen,) = time_evidence([line(absence(holds=False))], Timeouts())
    assert seen.told == "Absence: 1 trial, 1 seen; window 4 s."


def test_a_recording_keeps_them_and_one_of_an_earlier_version_has_none(tmp_path: Path) -> None:
    trials = (delay(0.25), absence())
    recording = recorded(tmp_path / "r.jsonl", known=KNOWN, trials=trials)
    assert {found.trials for found in recording.verdicts} == {trials}
    page = render_html(recording)
    assert "<br>Delay `restart`: 4 trials, median 0.25 s, maximum 0.25 s; bound 10 s." in page
    assert "<br>Absence: 4 trials; window 4 s." in page

    lines = [json.loads(text) for text in (tmp_path / "r.jsonl").read_text().splitlines()]
    for found in lines:
        found.pop("trials", None)
        found.pop("shown_to_fail", None)
    old = tmp_path / "old.jsonl"
    old.write_text("".join(f"{json.dumps(found)}\n" for found in lines[:-1]))
    earlier = read_recording(old, allow_partial=True)
    assert {found.trials for found in earlier.verdicts} == {()}
    assert earlier.header.shown_to_fail is None


# ---- shown to fail ---------------------------------------------------------------------------------------------------


def requirement(recording_path: Path, name: str, **options: object) -> RequirementResult:
    summary = summarise(recorded(recording_path, known=KNOWN, **options))
    return next(one for group in summary.groups for one in group.requirements if one.id == name)


def test_each_requirement_says_what_it_was_shown_to_fail_on(tmp_path: Path) -> None:
    page = render_html(recorded(tmp_path / "r.jsonl", known=KNOWN, shown_to_fail=PROOFS))
    assert "<small>shown to fail by one, two, three (+1)</small>" in page
    assert '<small class="unproven">unproven: not counted</small>' in page
    assert requirement(tmp_path / "again.jsonl", "EXIT-01", shown_to_fail=PROOFS).shown_to_fail == PROOFS["EXIT-01"]


def test_what_is_unproven_does_not_count(tmp_path: Path) -> None:
    recording = recorded(tmp_path / "r.jsonl", known=KNOWN, restarts=[126, 137], shown_to_fail=PROOFS)
    summary = summarise(recording)
    assert summary.overall is Overall.CONFORMANT
    assert summary.sentence.startswith("reference 0.1.0 meets 6 MUST requirements of contract kubeflow-docs 1 in ")
    assert summary.notices[-1] == (
        "3 requirements are unproven, and not counted: no broken controller is known to fail "
        "EXIT-02, RESTART-09, INV-04."
    )
    must = next(tally for tally in summary.tallies if tally.level == "MUST")
    assert sum(must.requirements.values()) == 6
    assert Verdict.FAIL not in must.cases
    told = plain_verdicts(summary)
    assert "4 fail (unproven: not counted)" in told
    junit = render_junit(recording)
    assert 'failures="0" errors="0"' in junit
    assert "unproven MUST fail: " in junit


def test_what_is_proven_counts_as_it_did(tmp_path: Path) -> None:
    proofs = {**PROOFS, "EXIT-02": ("one",)}
    recording = recorded(tmp_path / "r.jsonl", known=KNOWN, restarts=[126, 137], shown_to_fail=proofs)
    assert summarise(recording).overall is Overall.NOT_CONFORMANT


def test_a_run_of_unproven_requirements_alone_decides_nothing() -> None:
    case = planned("EXIT-02", "subject")
    for verdict in (Verdict.PASS, Verdict.FAIL, Verdict.ERROR):
        assert overall_of([CaseResult(case=case, verdict=verdict, line=None, proven=False)], partial=False) is (
            Overall.UNDECIDED
        )
