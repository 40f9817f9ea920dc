"""The suite as its users run it: the command and plain pytest, live on the embedded cluster and from a recording."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from exitcode_fixtures.certification_run import plugin_arguments

SMALL = "tfjob-worker-exit1-worker1 or tfjob-worker-exit137-worker1 or tfjob-worker-exit128-worker1"
"""One permanent code, one retryable, one on which the two published contracts disagree."""


def run(*arguments: str, out: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """`exitcode-conformance run`, as a process of its own."""
    command = [sys.executable, "-m", "exitcode_fixtures.command_line", "run", "--out", str(out), *arguments]
    return subprocess.run(command, cwd=folder, text=True, capture_output=True, timeout=300, check=False)


def plain_pytest(recording: Path, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """`pytest --pyargs exitcode_conformance` over a recording, in a folder of its own."""
    command = [sys.executable, "-m", "pytest", "--pyargs", "exitcode_conformance"]
    command += [*plugin_arguments(), "--cluster", f"recording:{recording}", *arguments]
    environment = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(
        command, cwd=folder, text=True, capture_output=True, timeout=300, check=False, env=environment
    )


def lines(out: Path) -> list[dict[str, Any]]:
    """The lines of a run's recording."""
    return [json.loads(line) for line in (out / "recording.jsonl").read_text().splitlines()]


def verdicts(out: Path) -> Mapping[str, str]:
    """`EXIT-03[…]` → verdict."""
    return {f"{x['requirement']}[{x['subject']}]": x["verdict"] for x in lines(out) if x["type"] == "verdict"}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run of the reference controller."""
    folder = tmp_path_factory.mktemp("good")
    result = run("-k", SMALL, out=folder / "out", folder=folder)
    # Only a part of the plan ran: nothing failed, and nothing is decided.
    assert result.returncode == 2, result.stdout + result.stderr
    assert "UNDECIDED" in result.stdout
    return folder / "out"


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run of the operator that replaces every failed pod."""
    folder = tmp_path_factory.mktemp("bad")
    result = run("-k", SMALL, "--operator", "always-restart", out=folder / "out", folder=folder)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "NOT CONFORMANT" in result.stdout
    return folder / "out"


def test_a_run_leaves_its_reports(good: Path) -> None:
    names = {path.name for path in good.iterdir()}
    assert {"index.html", "recording.jsonl", "junit.xml", "allure-results", "operator.log"} <= names


def test_every_case_of_the_selection_is_judged_and_passes(good: Path) -> None:
    found = verdicts(good)
    assert found["EXIT-02[tfjob-worker-exit1-worker1]"] == "pass"
    assert found["EXIT-03[tfjob-worker-exit137-worker1]"] == "pass"
    assert set(found.values()) == {"pass"}
    planned = [case for case in lines(good)[0]["plan"] if case["planned"] == "run"]
    assert len(planned) == len(found)


def test_each_scenario_runs_once(good: Path) -> None:
    submitted = [x["scenario"] for x in lines(good) if x["type"] == "action" and x["action"] == "submit"]
    assert sorted(submitted) == sorted(set(submitted))
    assert len(submitted) == 3


def test_scenarios_run_at_the_same_time(good: Path) -> None:
    actions = [x for x in lines(good) if x["type"] == "action" and x["scenario"]]
    last_submit = max(x["time"] for x in actions if x["action"] == "submit")
    assert last_submit < min(x["time"] for x in actions if x["action"] == "complete")


def test_every_absence_has_a_witness(good: Path) -> None:
    seen = [x["seen"] for x in lines(good) if x["type"] == "verdict" and x["requirement"] == "EXIT-02"]
    assert seen
    assert all("after it the operator" in text for text in seen)


def test_junit_names_the_cases(good: Path) -> None:
    root = ElementTree.parse(good / "junit.xml").getroot()
    names = {case.get("name") for case in root.iter("testcase")}
    assert "EXIT-03[tfjob-worker-exit137-worker1]" in names


def test_allure_has_labels_parameters_and_the_time_line(good: Path) -> None:
    results = [json.loads(p.read_text()) for p in (good / "allure-results").glob("*-result.json")]
    one = next(r for r in results if r["name"] == "EXIT-03[tfjob-worker-exit137-worker1]")
    assert {"name": "feature", "value": "restart-policy-exit-code"} in one["labels"]
    assert any(label["name"] == "story" and label["value"].startswith("EXIT-03 ") for label in one["labels"])
    assert {p["name"] for p in one["parameters"]} >= {"operator", "cluster", "scenario"}
    attachment = good / "allure-results" / one["attachments"][0]["source"]
    text = attachment.read_text()
    assert "tfjob-worker-exit137-worker1" in text
    assert "Restarting" in text


def test_allure_pytest_writes_the_same_for_plain_pytest(bad: Path, tmp_path: Path) -> None:
    result = plain_pytest(bad / "recording.jsonl", "-k", "EXIT-02 and exit1-", "--alluredir", "allure", folder=tmp_path)
    assert result.returncode == 1
    (path,) = (tmp_path / "allure").glob("*-result.json")
    one = json.loads(path.read_text())
    ours = next(
        r
        for p in (bad / "allure-results").glob("*-result.json")
        if (r := json.loads(p.read_text()))["name"] == one["name"]
    )
    assert one["name"] == "EXIT-02[tfjob-worker-exit1-worker1]"
    assert one["status"] == ours["status"] == "failed"
    named = [
        {label["name"]: label["value"] for label in r["labels"] if label["name"] in ("feature", "story", "level")}
        for r in (one, ours)
    ]
    assert named[0] == named[1]
    assert {p["name"] for p in one["parameters"]} >= {"operator", "cluster", "scenario"}
    assert "Restarting" in (tmp_path / "allure" / one["attachments"][0]["source"]).read_text()


def test_judged_again_from_the_recording_everything_comes_out_the_same(good: Path, bad: Path, tmp_path: Path) -> None:
    for name, source, status in (("good", good, 2), ("bad", bad, 1)):
        again = tmp_path / name
        result = run("--cluster", f"recording:{source / 'recording.jsonl'}", "-k", SMALL, out=again, folder=tmp_path)
        assert result.returncode == status, result.stdout + result.stderr
        assert verdicts(again) == verdicts(source)


def test_plain_pytest_passes_with_readable_ids(good: Path, tmp_path: Path) -> None:
    result = plain_pytest(good / "recording.jsonl", "-v", "-k", "EXIT-03", folder=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "test_exit.py::EXIT-03[tfjob-worker-exit137-worker1] PASSED" in result.stdout


def test_a_failure_tells_requirement_expected_seen_and_the_time_line(bad: Path, tmp_path: Path) -> None:
    result = plain_pytest(bad / "recording.jsonl", "-k", "EXIT-02 and exit1-", folder=tmp_path)
    assert result.returncode == 1
    text = result.stdout
    assert "EXIT-02[tfjob-worker-exit1-worker1]: fail" in text
    assert "MUST: A permanent code is not restarted, and the job fails." in text
    assert "expected: worker-0 ends with 1, is not restarted, and the job becomes Failed" in text
    assert "seen:     worker-0 was created again" in text
    assert any(line.lstrip().startswith(">") for line in text.splitlines()), "no deciding event is marked"
    assert "Traceback" not in text


def test_pytest_options_do_what_they_do_elsewhere(bad: Path, tmp_path: Path) -> None:
    recording = bad / "recording.jsonl"
    stopped = plain_pytest(recording, "-x", "-q", folder=tmp_path)
    assert stopped.returncode == 1
    assert "stopping after 1 failures" in stopped.stdout
    whole = plain_pytest(recording, "-q", folder=tmp_path)
    failed = next(line for line in whole.stdout.splitlines() if " failed" in line and " passed" in line)
    last_failed = plain_pytest(recording, "-q", "--lf", folder=tmp_path)
    assert failed.split(" failed")[0].split()[-1] + " failed" in last_failed.stdout
    assert " passed" not in last_failed.stdout.splitlines()[-1]
    without = [
        word
        for name in ("cacheprovider", "terminal", "allure_pytest", "junitxml", "logging")
        for word in ("-p", f"no:{name}")
    ]
    result = plain_pytest(recording, *without, "-k", "EXIT-03", folder=tmp_path)
    assert result.returncode == 0, (result.stdout, result.stderr)


def test_another_contract_judges_the_same_recording_otherwise(good: Path, tmp_path: Path) -> None:
    recording = good / "recording.jsonl"
    docs = plain_pytest(recording, "-q", "-k", "exit128", folder=tmp_path)
    assert docs.returncode == 0, docs.stdout
    other = plain_pytest(recording, "-q", "-k", "exit128", "--contract", "kubeflow-api", folder=tmp_path)
    # 128 is permanent by the documentation and retryable by the comment in the API.
    assert other.returncode == 1
    assert "EXIT-03[tfjob-worker-exit128-worker1]" in other.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--operator", "nobody"], "There is no operator 'nobody'"),
        (["--cluster", "moon"], "--cluster 'moon' is no cluster"),
        (["--profile", "all"], "There is no profile 'all'"),
        (["--contract", "mine"], "There is no contract 'mine'"),
        (["--timeout-scale", "0.5"], "--timeout-scale 0.5 is out of range"),
        (["--max-pods", "0"], "--max-pods 0 is out of range"),
        (["--cluster", "recording:nothing.jsonl"], "There is no file nothing.jsonl"),
    ],
)
def test_a_wrong_option_is_one_sentence_and_status_4(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    result = run(*arguments, out=tmp_path / "out", folder=tmp_path)
    assert result.returncode == 4
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr + result.stdout
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--operator", "null"], "The recording is of the operator reference, and --operator names null."),
        (["--timeout-scale", "2"], "--timeout-scale changes nothing about a recording"),
    ],
)
def test_what_a_recording_cannot_heed_is_refused(
    arguments: list[str], sentence: str, good: Path, tmp_path: Path
) -> None:
    result = run(
        "--cluster", f"recording:{good / 'recording.jsonl'}", *arguments, out=tmp_path / "out", folder=tmp_path
    )
    assert result.returncode == 4
    assert sentence in result.stderr


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"identity"', '"no-such-feature"', "an operator that claims no-such-feature, which this version"),
        ('"started_at":"2', '"started_at":"1', "is no year of a run"),
    ],
)
def test_a_recording_of_another_time_is_one_sentence(
    old: str, new: str, sentence: str, good: Path, tmp_path: Path
) -> None:
    header, *rest, footer = (good / "recording.jsonl").read_text().splitlines(keepends=True)
    assert old in header
    header = header.replace(old, new, 1)
    digest = sha256("".join([header, *rest]).encode()).hexdigest()
    source = tmp_path / "another.jsonl"
    source.write_text("".join([header, *rest, json.dumps({**json.loads(footer), "sha256": digest}) + "\n"]))
    result = run("--cluster", f"recording:{source}", "-k", SMALL, out=tmp_path / "out", folder=tmp_path)
    assert result.returncode == 4, result.stderr
    assert sentence in result.stderr


def test_a_recording_keeps_its_operator(good: Path, tmp_path: Path) -> None:
    recorded = (good / "recording.jsonl").read_text().replace('"name":"reference"', '"name":"another"')
    header, *rest, footer = recorded.splitlines(keepends=True)
    digest = sha256("".join([header, *rest]).encode()).hexdigest()
    source = tmp_path / "another.jsonl"
    source.write_text("".join([header, *rest, json.dumps({**json.loads(footer), "sha256": digest}) + "\n"]))
    out = tmp_path / "out"
    assert run("--cluster", f"recording:{source}", "-k", SMALL, out=out, folder=tmp_path).returncode == 2
    assert lines(out)[0]["operator"]["name"] == "another"
    parameters = json.loads(next((out / "allure-results").glob("*-result.json")).read_text())["parameters"]
    assert {"name": "operator", "value": "another 0.1.0"} in parameters


def test_an_operator_that_is_not_ready_is_one_sentence_and_no_table(tmp_path: Path) -> None:
    description = (files("exitcode_fixtures") / "operators" / "reference.yaml").read_text()
    before, _, rest = description.partition("start:\n")
    start = """start:
  mode: process
  command: [sh, -c, "echo almost; exec sleep 60"]
  ready: {log_line: ^ready$}
  ready_within_s: 1
"""
    silent = f"{before}{start}kinds:{rest.partition(chr(10) + 'kinds:')[2]}"
    (tmp_path / "silent.yaml").write_text(silent)
    result = run("--operator", "silent.yaml", "-k", SMALL, out=tmp_path / "out", folder=tmp_path)
    assert result.returncode == 3
    assert "was not ready within 1 s" in result.stderr
    assert "(its last words: almost)" in result.stderr
    assert result.stdout.splitlines()[0] == "No case was judged."
    why = "the harness failed (The operator"
    assert "its last words: almost" in (tmp_path / "out" / "index.html").read_text("utf-8")
    suites = ElementTree.parse(tmp_path / "out" / "junit.xml").getroot()
    assert suites.attrib["errors"] == "1", "whoever reads nothing else has to see that nothing was certified"
    (error,) = suites.iter("error")
    assert why in error.attrib["message"]


def test_a_recording_without_its_end_decides_nothing_however_often_it_is_judged(good: Path, tmp_path: Path) -> None:
    whole = (good / "recording.jsonl").read_text().splitlines(keepends=True)
    part = tmp_path / "part.jsonl"
    part.write_text("".join(whole[:-1]))
    result = run("--cluster", f"recording:{part}", "-k", SMALL, out=tmp_path / "out", folder=tmp_path)
    assert result.returncode == 2, result.stdout
    assert "CONFORMANT" not in result.stdout
    assert "partial" in result.stdout


def test_a_run_that_does_not_begin_shows_no_report_of_another(good: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    again = run("--cluster", f"recording:{good / 'recording.jsonl'}", "-k", SMALL, out=out, folder=tmp_path)
    assert again.returncode == 2
    nothing = tmp_path / "nothing.yaml"
    nothing.write_text(
        "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],"
        " clusters: [{name: a, cluster: {server: 'http://127.0.0.1:9'}}], users: [{name: a, user: {token: abc}}]}"
    )
    result = run("--cluster", f"kubeconfig:{nothing}", out=out, folder=tmp_path)
    assert result.returncode == 3
    assert "cannot be reached" in result.stderr
    assert result.stdout == ""
    assert not (out / "index.html").exists()


def test_an_output_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for out in (tmp_path / "file", tmp_path / "folder" / ".." / "file"):
        result = run("-k", SMALL, out=out, folder=tmp_path)
        assert result.returncode == 4
        assert "cannot be written" in result.stderr
        assert "Traceback" not in result.stderr


def test_files_of_the_current_folder_take_no_part(good: Path, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("raise SystemExit('no')\n")
    (tmp_path / "logging.py").write_text("raise RuntimeError('shadowed')\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --nonsense\n")
    command = [sys.executable, "-P", "-m", "exitcode_fixtures.command_line", "run", "--out", str(tmp_path / "out")]
    command += ["--cluster", f"recording:{good / 'recording.jsonl'}", "-k", SMALL]
    result = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, timeout=300, check=False)
    assert result.returncode == 2, result.stderr
    assert "UNDECIDED" in result.stdout
