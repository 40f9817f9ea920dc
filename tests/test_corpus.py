"""Runs on a real cluster, recorded once (`corpus_recording.py`) and judged again here: the verdicts stay as they were.

What each subject fails is written down as well, so that a check and its recorded verdicts cannot drift together.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from cluster_support import environment, run_command
from corpus_support import CORPUS, failed, judged_again, verdicts

FAILS: Mapping[str, set[str]] = {
    "all-replicas-restarted": {"INV-04", "RESTART-03"},
    "always-restart": {"EXIT-02"},
    "completed-replica-restarted": {"INV-04", "INV-06", "RESTART-03", "RESTART-10"},
    "completion-time-missing": {"STATE-07"},
    "environment-lost-on-restart": {"IDENT-05", "RESTART-08"},
    "general-error-retried": {"EXIT-02"},
    "null": {"IDENT-01", "STATE-01"},
    "owner-not-controller": {"IDENT-03"},
    "reference": set(),
    "restart-in-place": {"EXIT-02", "RESTART-01", "RESTART-04"},
    "restarting-never-shown": {"STATE-03"},
    "sigkill-permanent": {"EXIT-03", "EXIT-12"},
    "user-code-permanent": {"EXIT-04"},
}
STATUS = {True: 1, False: 2}
"""Exit status by whether something failed: most cases were left out, so nothing can be conformant."""


@pytest.mark.parametrize("name", sorted(FAILS))
def test_the_verdicts_are_those_of_the_cluster(name: str, tmp_path: Path) -> None:
    source, again, status = judged_again(name, tmp_path)
    then, now = verdicts(source), verdicts(again)
    # Requirements that came later are judged as well; those of then are all still there.
    assert {case: now.get(case) for case in then} == then
    assert failed(now) == FAILS[name]
    assert status == STATUS[bool(FAILS[name])]


def test_every_recording_is_judged() -> None:
    assert {path.name.removesuffix(".jsonl.xz") for path in CORPUS.iterdir()} == set(FAILS)


def test_another_contract_asks_for_something_else(tmp_path: Path) -> None:
    # 138 is the user's own code by the documentation, and one of those from 128 up by the comment in the API.
    source, again, _ = judged_again("user-code-permanent", tmp_path, "--contract", "kubeflow-api")
    assert failed(verdicts(source)) == {"EXIT-04"}
    assert failed(verdicts(again)) == {"EXIT-03"}
    header = json.loads(again.read_text("utf-8").partition("\n")[0])
    assert header["contract"]["id"] == "kubeflow-api"


@pytest.mark.parametrize("name", sorted(FAILS))
def test_a_report_by_another_contract_leaves_that_of_its_own(name: str, tmp_path: Path) -> None:
    source, _, _ = judged_again(name, tmp_path)
    words = ("report", str(source), "--contract", "kubeflow-api")
    ran = run_command(*words, env=environment(tmp_path), cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    folder = tmp_path / "kubeflow-api"
    assert "kubeflow-api" in (folder / "index.html").read_text("utf-8")
    again, whole = verdicts(folder / "recording.jsonl"), verdicts(source)
    # Of the scenarios in the corpus it asks another thing of 138 only: EXIT-04 is of the documentation's contract.
    expected = {f"EXIT-03[{c[8:-1]}]" if c.startswith("EXIT-04") else c: v for c, v in whole.items()}
    assert {case: again.get(case) for case in expected} == expected
    assert not (tmp_path / "index.html").exists()


def test_the_reports_come_of_the_recording_alone(tmp_path: Path) -> None:
    source, _, _ = judged_again("always-restart", tmp_path)
    ran = run_command("report", str(source), "--out", str(tmp_path / "report"), env=environment(tmp_path), cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "always-restart" in (tmp_path / "report" / "index.html").read_text("utf-8")
