"""What a census makes of the histories of its jobs, and which published contract fits best."""

import pytest
from history_builder import CONTRACTS, Story

from exitcode_conformance.census import (
    census_code,
    census_kind,
    census_scenario,
    fits,
    judge_code,
    sentence_of,
    source_of,
)
from exitcode_conformance.code_list import EVERY_CODE, UnreadableCodes, list_codes, parse_codes
from exitcode_conformance.contract import CodeClass, ObservedClass
from exitcode_conformance.kinds import KINDS, TFJOB
from exitcode_conformance.verdict import Verdict

DOCS, API = CONTRACTS["kubeflow-docs"], CONTRACTS["kubeflow-api"]


def ended(code: int) -> Story:
    """The job of a code, whose one worker has ended with it."""
    return Story(census_scenario(TFJOB, code)).begin().wait(0.5).ends("worker-0", code)


def seen(told: Story, promised: CodeClass) -> tuple[Verdict, str | None]:
    """The verdict, and the class that was seen."""
    judgement = judge_code(told.history(), promised)
    return judgement.verdict, judgement.observed_class


def test_every_kind_has_a_job_of_one_pod_for_each_code() -> None:
    for kind in KINDS.values():
        jobs = [census_scenario(kind, code) for code in EVERY_CODE]
        assert len({job.id for job in jobs}) == 256
        assert {job.pod_count() for job in jobs} == {1}
        assert [census_code(job) for job in jobs] == list(EVERY_CODE)
        assert {job.group_of(job.target or "").restart_policy for job in jobs} == {"ExitCode"}


def test_the_kind_is_the_first_that_the_operator_claims() -> None:
    assert census_kind(("PyTorchJob", "TFJob")) is TFJOB
    assert census_kind(("PyTorchJob",)) is KINDS["PyTorchJob"]
    assert census_kind(("OtherJob",)) is None


def test_what_keeps_the_promise_passes_and_what_does_not_fails() -> None:
    restarted = ended(137).says("Restarting").replace("worker-0").says("Running").complete()
    failed = ended(137).says("Failed").complete()
    for promised, of_restarted, of_failed in (
        (CodeClass.RETRYABLE, Verdict.PASS, Verdict.FAIL),
        (CodeClass.USER_RETRYABLE, Verdict.PASS, Verdict.FAIL),
        (CodeClass.PERMANENT, Verdict.FAIL, Verdict.PASS),
        (CodeClass.SUCCESS, Verdict.FAIL, Verdict.FAIL),
        (CodeClass.UNDEFINED, Verdict.PASS, Verdict.PASS),
    ):
        assert seen(restarted, promised) == (of_restarted, "retryable")
        assert seen(failed, promised) == (of_failed, "permanent")
    succeeded = ended(0).says("Succeeded").complete()
    assert seen(succeeded, CodeClass.SUCCESS) == (Verdict.PASS, "success")
    assert seen(ended(0).replace("worker-0").complete(), CodeClass.SUCCESS) == (Verdict.FAIL, "retryable")


def test_the_other_classes_keep_no_promise_but_that_of_a_restart() -> None:
    in_place = ended(137).restarts_in_place("worker-0").complete()
    assert seen(in_place, CodeClass.RETRYABLE) == (Verdict.PASS, "restarted-in-place")
    assert seen(in_place, CodeClass.PERMANENT) == (Verdict.FAIL, "restarted-in-place")
    both = ended(1).says("Restarting").replace("worker-0").says("Failed").complete()
    for promised in (CodeClass.PERMANENT, CodeClass.RETRYABLE):
        assert seen(both, promised) == (Verdict.FAIL, "restarted-and-failed")
    neither = ended(1).says().wait(11).complete()
    assert seen(neither, CodeClass.PERMANENT) == (Verdict.FAIL, "ignored")


@pytest.mark.parametrize("promised", list(CodeClass))
def test_too_little_evidence_is_unknown_whatever_is_promised(promised: CodeClass) -> None:
    for told in (
        ended(3).says("Failed").complete(witnessed=False),
        ended(3).says("Failed").complete(window=1),
        ended(3).complete(),
        ended(3).says("Failed"),
        Story(census_scenario(TFJOB, 3)).submit().complete(),
        Story(census_scenario(TFJOB, 3)).begin().ends("worker-0", 4).says("Failed").complete(),
    ):
        assert seen(told, promised) == (Verdict.UNKNOWN, None)


def test_what_was_not_run_and_what_the_harness_failed_in_say_so() -> None:
    assert seen(Story(census_scenario(TFJOB, 3)), CodeClass.PERMANENT) == (Verdict.NOT_RUN, None)
    failed = Story(census_scenario(TFJOB, 3)).submit().act("harness-error", detail={"problem": "refused"})
    judgement = judge_code(failed.history(), CodeClass.PERMANENT)
    assert judgement.verdict is Verdict.ERROR
    assert "refused" in judgement.seen


def test_what_was_seen_is_told_with_the_events_that_show_it() -> None:
    told = ended(137).says("Restarting").replace("worker-0").says("Running").complete()
    judgement = judge_code(told.history(), CodeClass.RETRYABLE)
    assert judgement.seen.startswith("worker-0 was created again, 0.")
    assert judgement.seen.endswith("; the job did not fail")
    by_line = {entry.seq: entry for entry in told.entries}
    assert [by_line[seq].type for seq in judgement.deciding] == ["event", "event"]
    judgement = judge_code(ended(1).says("Failed").complete().history(), CodeClass.PERMANENT)
    assert judgement.expected == "worker-0 ends with 1: it is not restarted, and the job becomes Failed"
    assert judgement.seen.startswith("it was not restarted: no new attempt in the 4.5 s after")
    assert "after it the operator created pod witness-1-worker-0; the job says Failed, 0.0 s after" in judgement.seen
    judgement = judge_code(ended(1).complete().history(), CodeClass.PERMANENT)
    assert "the job did not become Failed in the 4.5 s that were observed, and it may have 10 s" in judgement.seen


def test_the_contract_is_told_with_meaning_and_source() -> None:
    text = "kubeflow-docs 1 calls 137 (ended by SIGKILL) retryable: it is restarted, and the job does not fail because"
    assert sentence_of(137, DOCS).startswith(text)
    assert sentence_of(3, DOCS).startswith("kubeflow-docs 1 does not define 3")
    assert sentence_of(3, API).startswith("kubeflow-api 1 calls 3 permanent")
    assert "retryable" in source_of(137, DOCS)
    assert source_of(3, DOCS) == DOCS.source


def observed(restarted: range, codes: tuple[int, ...] = EVERY_CODE) -> dict[int, ObservedClass | None]:
    """What an operator shows that restarts these codes and no other."""
    found: dict[int, ObservedClass | None] = {
        code: ObservedClass.RETRYABLE if code in restarted else ObservedClass.PERMANENT for code in codes
    }
    return {**found, 0: ObservedClass.SUCCESS} if 0 in codes else found


def test_the_contract_that_fits_best_comes_first() -> None:
    by_range = fits(observed(range(128, 256)), CONTRACTS.values(), claimed="kubeflow-docs")
    assert [fit.contract for fit in by_range] == ["kubeflow-api", "kubeflow-docs"]
    assert (len(by_range[0].agreeing), by_range[0].differing) == (256, ())
    assert (len(by_range[1].agreeing), by_range[1].differing) == (9, (128, 139))
    never = fits(observed(range(0)), CONTRACTS.values(), claimed="kubeflow-docs")
    assert (never[0].contract, never[0].differing) == ("kubeflow-docs", (130, 137, 138, 143))


def test_of_two_that_fit_alike_the_one_that_is_claimed_comes_first() -> None:
    codes = (0, 1, 137)
    for claimed in CONTRACTS:
        found = fits(observed(range(128, 256), codes), CONTRACTS.values(), claimed=claimed)
        assert found[0].contract == claimed
        assert {fit.agreeing for fit in found} == {codes}


def test_what_is_not_known_counts_for_no_contract() -> None:
    known: dict[int, ObservedClass | None] = {**observed(range(128, 256)), 5: None, 139: None}
    api, docs = fits(known, CONTRACTS.values(), claimed="kubeflow-docs")
    assert (api.unknown, api.differing, api.defined) == ((5, 139), (), 256)
    assert (docs.unknown, docs.differing) == ((139,), (128,))
    nothing = fits({3: ObservedClass.RETRYABLE}, [DOCS], claimed="kubeflow-docs")
    assert (nothing[0].defined, nothing[0].share) == (0, 0.0)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("0-2,137", (0, 1, 2, 137)),
        (" 255 , 3 - 4,3", (3, 4, 255)),
        ("0-255", EVERY_CODE),
        ("7-7", (7,)),
    ],
)
def test_codes_are_read_as_people_write_them(text: str, codes: tuple[int, ...]) -> None:
    assert parse_codes(text) == codes
    assert parse_codes(list_codes(codes)) == codes


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "'' is neither"),
        ("1,,2", "'' is neither"),
        ("-1", "'-1' is neither"),
        ("1.5", "'1.5' is neither"),
        ("٣", "is neither"),
        ("256", "256 is no exit code"),
        ("0-999", "999 is no exit code"),
        ("9-3", "The range 9-3 ends before it begins"),
    ],
)
def test_what_is_no_list_of_codes_is_refused(text: str, problem: str) -> None:
    with pytest.raises(UnreadableCodes, match=problem):
        parse_codes(text)


def test_neighbours_are_written_as_a_range() -> None:
    assert list_codes([]) == ""
    assert list_codes([5, 3, 1, 2, 130, 131, 3]) == "1-3, 5, 130, 131"
