"""The command `census`: on the embedded cluster, from a recording, and the exit status of each way to end."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from census_support import make_census
from cluster_support import PATIENCE_S, await_no_process, command, environment, marked_processes, run_command
from recording_support import make_recording, scenarios

from exitcode_fixtures.census_run import census_undertaking
from exitcode_fixtures.command_line import main
from exitcode_fixtures.errors import ExitStatus
from exitcode_fixtures.operators.description import load_description
from exitcode_fixtures.request import read_request
from exitcode_reports.recording import read_recording

CODES = "0-2,137"


def lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a recording."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def status_of(*arguments: str) -> int:
    """Run the command in this process; its exit status."""
    try:
        return main(("census", *arguments))
    except SystemExit as end:  # argparse ends so
        return int(end.code or 0)


@pytest.fixture
def env(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment of the test's own, in which no process is left."""
    yield environment(tmp_path)
    assert await_no_process(tmp_path, within_s=5) == {}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A census of a few codes under the reference controller."""
    folder = tmp_path_factory.mktemp("good")
    ran = run_command("census", "--codes", CODES, "--out", "out", env=environment(folder), cwd=folder)
    assert ran.returncode == ExitStatus.CONFORMANT, ran.stdout + ran.stderr
    assert ran.stderr == ""
    (folder / "printed").write_text(ran.stdout, "utf-8")
    assert marked_processes(folder) == {}
    return folder


def test_a_census_prints_its_map_and_leaves_recording_and_page(good: Path) -> None:
    printed = (good / "printed").read_text("utf-8").splitlines()
    assert printed[1].split() == ["0", "S", "F", "F", *["."] * 13]
    assert printed[2].split() == ["128", *["."] * 9, "R", *["."] * 6]
    assert printed[-2] == (
        "NO CODE LEAVES THE CONTRACT: reference 0.1.0 does what kubeflow-docs 1 says about all 4 codes that it defines."
    )
    assert printed[-1] == "census: out/census.html"
    assert {path.name for path in (good / "out").iterdir()} >= {"recording.jsonl", "census.html", "operator.log"}
    assert not (good / "out" / "index.html").exists()


def test_the_recording_is_strict_and_has_a_verdict_for_each_code(good: Path) -> None:
    recording = read_recording(good / "out" / "recording.jsonl")
    assert recording.header.profile == "census"
    assert recording.header.reproduce[:2] == ("exitcode-conformance", "census")
    assert recording.header.reproduce[-2:] == ("--codes", "0-2,137")
    found = {f"{line.requirement}[{line.subject}]": line.observed_class for line in recording.verdicts}
    assert found == {
        "CENSUS[exit0]": "success",
        "CENSUS[exit1]": "permanent",
        "CENSUS[exit2]": "permanent",
        "CENSUS[exit137]": "retryable",
    }
    assert {line.verdict for line in recording.verdicts} == {"pass"}
    assert all(
        "after it the operator" in line.seen for line in recording.verdicts if line.observed_class != "retryable"
    )
    assert recording.footer is not None
    assert recording.footer.exit_status == 0


def test_each_code_has_one_pod_and_at_most_one_restart(good: Path) -> None:
    pods: dict[str, set[str]] = {}
    for line in lines(good / "out" / "recording.jsonl"):
        if line["type"] == "event" and line["resource"] == "pods" and line["scenario"]:
            pods.setdefault(line["scenario"], set()).add(line["object"]["metadata"]["uid"])
    assert {name: len(uids) for name, uids in pods.items()} == {
        "tfjob-census-exit0-worker1": 1,
        "tfjob-census-exit1-worker1": 1,
        "tfjob-census-exit2-worker1": 1,
        "tfjob-census-exit137-worker1": 2,
    }


def test_an_operator_that_leaves_its_contract_ends_with_1(tmp_path: Path, env: dict[str, str]) -> None:
    ran = run_command("census", "--operator", "always-restart", "--codes", "1,137", env=env, cwd=tmp_path)
    assert ran.returncode == ExitStatus.NOT_CONFORMANT, ran.stdout + ran.stderr
    assert "!R" in ran.stdout
    assert "1 CODE LEAVES THE CONTRACT" in ran.stdout
    # By the comment in the API as by the table, 1 is permanent and 137 is not.
    assert "The published contracts kubeflow-docs 1 and kubeflow-api 1 fit equally well." in ran.stdout
    assert (tmp_path / "conformance-census" / "census.html").exists()


def test_the_job_is_of_a_kind_that_the_operator_claims(tmp_path: Path) -> None:
    description = load_description("reference").model_dump(mode="json", exclude_none=True)
    (tmp_path / "torch.yaml").write_text(yaml.safe_dump({**description, "kinds": ["PyTorchJob"]}), "utf-8")
    settings, _ = read_request(
        operator=str(tmp_path / "torch.yaml"), cluster="embedded", profile="core", contract="kubeflow-docs"
    )
    undertaking = census_undertaking(settings, (3, 143))
    assert list(undertaking.scenarios) == ["pytorchjob-census-exit3-master1", "pytorchjob-census-exit143-master1"]
    assert [(case.subject, case.level) for case in undertaking.plan] == [("exit3", "INFO"), ("exit143", "MUST")]


def test_a_recorded_census_is_shown_again_without_a_cluster(
    good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = good / "out" / "recording.jsonl"
    assert status_of("--from", str(recording), "--out", str(tmp_path / "again")) == ExitStatus.CONFORMANT
    printed = capsys.readouterr().out.splitlines()
    assert printed[:-1] == (good / "printed").read_text("utf-8").splitlines()[:-1]
    for command_of in (["census", "--from"], ["report"]):
        out = tmp_path / command_of[0]
        assert main([*command_of, str(recording), "--out", str(out)]) == 0
        assert (out / "census.html").read_text("utf-8") == (good / "out" / "census.html").read_text("utf-8")
    assert f"The report is {tmp_path / 'report' / 'census.html'}" in capsys.readouterr().out


def test_a_recorded_census_is_judged_under_another_contract(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording = make_census(tmp_path / "recording.jsonl", {0: "success", 128: "permanent", 139: "permanent"})
    assert status_of("--from", str(recording)) == ExitStatus.CONFORMANT
    assert status_of("--from", str(recording), "--contract", "kubeflow-api") == ExitStatus.NOT_CONFORMANT
    assert "about 2 of the 3 codes that it defines: 128, 139." in capsys.readouterr().out
    assert "kubeflow-api 1 calls 128 retryable" in (tmp_path / "census.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("behaviours", "status"),
    [
        ({1: "permanent", 3: "unknown"}, ExitStatus.UNDECIDED),
        ({1: "permanent", 3: "broken"}, ExitStatus.HARNESS_FAILED),
        ({1: "ignored", 3: "unknown"}, ExitStatus.NOT_CONFORMANT),
    ],
)
def test_the_exit_status_says_what_came_of_it(
    tmp_path: Path, behaviours: dict[int, str], status: ExitStatus, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of("--from", str(make_census(tmp_path / "recording.jsonl", behaviours))) == status
    assert capsys.readouterr().err == ""


def test_a_partial_census_decides_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording = make_census(tmp_path / "recording.jsonl", {1: "permanent"}, finish=False)
    assert status_of("--from", str(recording)) == ExitStatus.UNDECIDED
    assert "This recording is partial" in capsys.readouterr().out


def test_a_census_is_not_taken_for_a_certification_nor_the_other_way_round(
    good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    census = str(good / "out" / "recording.jsonl")
    for name in ("run", "plan"):
        assert main([name, "--cluster", f"recording:{census}"]) == ExitStatus.USAGE
        assert "is the recording of a census, not of a certification." in capsys.readouterr().err
    run = make_recording(tmp_path / "run.jsonl", known=scenarios([0]))
    assert status_of("--from", str(run)) == ExitStatus.USAGE
    assert "is the recording of a certification, not of a census." in capsys.readouterr().err
    assert not (tmp_path / "census.html").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--codes", "256"), "--codes '256': 256 is no exit code: they go from 0 to 255."),
        (("--codes", "one"), "--codes 'one': 'one' is neither a code nor a range of codes."),
        (("--operator", "nobody"), "There is no operator 'nobody'."),
        (("--contract", "mine"), "There is no contract 'mine'"),
        (("--cluster", "moon"), "--cluster 'moon' is no cluster."),
        (
            ("--cluster", "recording:r.jsonl"),
            "A census is taken on a cluster. Read one that was recorded with --from PATH.",
        ),
        (("--max-pods", "0"), "--max-pods 0 is out of range."),
        (("--from", "absent.jsonl"), "There is no file absent.jsonl."),
        (("--from", "r.jsonl", "--codes", "1"), "--codes changes nothing about a census that was recorded."),
        (("--from", "r.jsonl", "--max-pods", "9"), "--max-pods changes nothing about a census that was recorded."),
        (("--profile", "core"), "unrecognized arguments: --profile core"),
    ],
)
def test_wrong_usage_is_one_sentence(
    arguments: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of(*arguments) == ExitStatus.USAGE
    said = capsys.readouterr()
    assert said.out == ""
    assert sentence in said.err.splitlines()[-1]
    assert not Path("conformance-census").exists()


def test_an_operator_to_which_no_code_means_anything_has_no_census(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    description = load_description("reference").model_dump(mode="json", exclude_none=True)
    description["features"].remove("restart-policy-exit-code")
    (tmp_path / "plain.yaml").write_text(yaml.safe_dump(description), "utf-8")
    assert status_of("--operator", str(tmp_path / "plain.yaml")) == ExitStatus.USAGE
    assert "does not claim restart-policy-exit-code" in capsys.readouterr().err


def test_a_cluster_that_is_not_there_is_one_sentence(tmp_path: Path, env: dict[str, str]) -> None:
    (tmp_path / "empty").mkdir()
    for address, sentence in (
        ("kind", "There is no kind on this machine's PATH."),
        ("kubeconfig:absent", "absent"),
    ):
        started = time.monotonic()
        ran = run_command("census", "--cluster", address, env={**env, "PATH": str(tmp_path / "empty")}, cwd=tmp_path)
        assert ran.returncode in (ExitStatus.HARNESS_FAILED, ExitStatus.USAGE), ran.stdout + ran.stderr
        assert sentence in ran.stderr.splitlines()[-1]
        assert "Traceback" not in ran.stderr
        assert ran.stdout == ""
        assert time.monotonic() - started < PATIENCE_S
    assert list((tmp_path / "runtime").iterdir()) == []


def test_nothing_remains_of_a_census_that_is_interrupted(tmp_path: Path, env: dict[str, str]) -> None:
    recording = tmp_path / "out" / "recording.jsonl"
    with subprocess.Popen(
        command("census", "--codes", "1-9", "--out", "out"),
        env=env,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        deadline = time.monotonic() + PATIENCE_S
        while '"submit"' not in (recording.read_text("utf-8") if recording.exists() else ""):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.1)  # a recording is read while it is written
        os.kill(process.pid, signal.SIGINT)
        said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == ExitStatus.HARNESS_FAILED, said
    assert "Aborted." in said[1]
    assert marked_processes(tmp_path) == {}
    assert list((tmp_path / "runtime").iterdir()) == []
    assert not (tmp_path / "out" / "census.html").exists()
    assert status_of("--from", str(recording)) == ExitStatus.UNDECIDED
