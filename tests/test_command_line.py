"""The command: what it prints, the exit status of each way to end, and that nothing outlives it."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cluster_support import (
    PATIENCE_S,
    await_no_process,
    command,
    environment,
    marked_processes,
    real_kubeconfig,
    run_command,
    write_kubeconfig,
)

from exitcode_fixtures.api import connected
from exitcode_fixtures.command_line import main
from exitcode_fixtures.errors import ExitStatus
from exitcode_fixtures.run_namespace import NAMESPACES, RUN_LABEL

SCENARIO = "tfjob-worker-exit0-worker1"


@pytest.fixture
def env(tmp_path: Path) -> Iterator[dict[str, str]]:
    yield environment(tmp_path)
    assert await_no_process(tmp_path, within_s=5) == {}


def status_of(*arguments: str) -> int:
    """Run the command in this process; its exit status."""
    try:
        return main(arguments)
    except SystemExit as end:  # argparse ends so
        return int(end.code or 0)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "the following arguments are required: COMMAND"),
        (("certify",), "invalid choice: 'certify'"),
        (("plan", "--colour"), "unrecognized arguments: --colour"),
        (("run", "--max-pods", "many"), "argument --max-pods: invalid int value: 'many'"),
        (("report",), "the following arguments are required: RECORDING"),
        (("plan", "--operator", "nobody"), "There is no operator 'nobody'."),
        (("plan", "--profile", "huge"), "There is no profile 'huge'."),
        (("plan", "--contract", "huge"), "There is no contract 'huge'"),
        (("plan", "--cluster", "minikube"), "--cluster 'minikube' is no cluster."),
        (("plan", "--cluster", "recording:absent"), "absent"),
        (("report", "absent"), "absent"),
        (("report", "/dev/null"), "/dev/null"),
        (("run", "--operator", "nobody"), "There is no operator 'nobody'."),
        (("run", "--timeout-scale", "0.5"), "--timeout-scale 0.5 is out of range."),
        (("run", "--operator", "/dev/null"), "The operator description /dev/null is not a regular file."),
        (("controller", "--kubeconfig", "absent"), "The kubeconfig absent does not exist."),
        (("cleanup", "--kubeconfig", "absent"), "The kubeconfig absent does not exist."),
    ],
)
def test_wrong_usage_is_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], sentence: str
) -> None:
    assert status_of(*arguments) == ExitStatus.USAGE
    said = capsys.readouterr()
    assert said.out == ""
    assert sentence in said.err.splitlines()[-1]
    assert "Traceback" not in said.err


def test_help_names_every_command_and_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("--help") == 0
    text = capsys.readouterr().out
    for name in ("run", "plan", "report", "cluster", "controller", "cleanup", "doctor"):
        assert re.search(rf"^    {name}\b", text, re.MULTILINE)
    statuses = "0 conformant, 1 not conformant, 2 undecided, 3 the harness failed, 4 wrong usage"
    assert statuses in " ".join(text.split())
    assert status_of("--version") == 0
    assert capsys.readouterr().out.startswith("exitcode-conformance ")


def test_the_plan_says_what_would_run_and_why_the_rest_would_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("plan") == 0
    whole = capsys.readouterr().out
    assert whole.startswith("reference 0.1.0 on embedded\nprofile core, contract kubeflow-docs")
    assert f"\n  {SCENARIO}\n" in whole
    assert re.search(r"^\d+ cases in \d+ scenarios; 0 not supported$", whole, re.MULTILINE)
    assert status_of("plan", "--operator", "null") == 0
    assert re.search(r"^  not supported: .*operator-process.* \(\d+ cases?\)$", capsys.readouterr().out, re.MULTILINE)
    assert status_of("plan", "--operator", "null") == 0
    reasons = re.findall(r"^  not supported: .*", capsys.readouterr().out, re.MULTILINE)
    assert len(reasons) < 20, "once for each requirement, not for each of its cases"


def test_a_reader_that_goes_away_is_no_fault(tmp_path: Path, env: dict[str, str]) -> None:
    line = f"{' '.join(command('plan'))} | head -1"
    ran = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], env=env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.stdout == "reference 0.1.0 on embedded\n"
    assert (ran.returncode, ran.stderr) == (0, "")


@contextmanager
def running(*arguments: str, env: dict[str, str], cwd: Path) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        command(*arguments), env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_embedded_cluster_runs_until_it_is_told_to_end(
    tmp_path: Path, env: dict[str, str], number: signal.Signals
) -> None:
    with running("cluster", env=env, cwd=tmp_path) as process:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        assert line.startswith("export KUBECONFIG=")
        with connected(Path(line.partition("=")[2])) as api:
            assert api.list("/apis/kubeflow.org/v1/tfjobs")["items"] == []
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == 0
    assert marked_processes(tmp_path) == {}
    assert list((tmp_path / "runtime").iterdir()) == []
    assert list((tmp_path / "temporary").iterdir()) == []


def test_nothing_outlives_a_command_that_is_killed(tmp_path: Path, env: dict[str, str]) -> None:
    with running("cluster", env=env, cwd=tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    assert await_no_process(tmp_path, within_s=5) == {}
    assert len(list((tmp_path / "runtime" / "exitcode-conformance").glob("run-*"))) == 1
    ran = run_command("cleanup", env=env, cwd=tmp_path)
    assert re.search(r"^removed folder .*/run-", ran.stdout, re.MULTILINE)
    assert ran.returncode == 0
    assert list((tmp_path / "runtime").iterdir()) == []
    assert "Nothing was left behind." in run_command("cleanup", env=env, cwd=tmp_path).stdout


def test_the_controller_says_in_one_sentence_that_there_is_no_cluster(tmp_path: Path, env: dict[str, str]) -> None:
    path = write_kubeconfig(tmp_path / "config", "http://127.0.0.1:9")
    ran = run_command("controller", "--kubeconfig", str(path), "--namespace", "default", env=env, cwd=tmp_path)
    assert ran.returncode == ExitStatus.HARNESS_FAILED
    assert "Traceback" not in ran.stderr


def await_action(out: Path, process: "subprocess.Popen[str]", action: str) -> None:
    """Read the recording of a run until it has this action."""
    deadline = time.monotonic() + PATIENCE_S
    recording = out / "recording.jsonl"
    while time.monotonic() < deadline:
        lines = recording.read_text(encoding="utf-8").splitlines() if recording.exists() else []
        if any(f'"action":"{action}"' in line.replace(" ", "") for line in lines):
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)  # a recording is read while it is written
    pytest.fail(f"the run did not come to {action}: {lines[-3:]}")


def cluster_arguments(name: str) -> list[str]:
    return [] if name == "embedded" else ["--cluster", f"kubeconfig:{real_kubeconfig()}", "--install-crds"]


@pytest.mark.parametrize("cluster", ["embedded", pytest.param("real", marks=pytest.mark.real_cluster)])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_remains_of_a_run_that_is_interrupted(
    tmp_path: Path, env: dict[str, str], cluster: str, number: signal.Signals
) -> None:
    out = tmp_path / "out"
    arguments = ["run", *cluster_arguments(cluster), "-k", SCENARIO, "--out", str(out)]
    with running(*arguments, env=env, cwd=tmp_path) as process:
        await_action(out, process, "submit")
        process.send_signal(number)
        output = process.communicate(timeout=2 * PATIENCE_S)
    assert process.returncode == ExitStatus.HARNESS_FAILED, output
    assert "Aborted." in output[1]
    assert marked_processes(tmp_path) == {}
    assert list((tmp_path / "runtime").iterdir()) == []
    assert list((tmp_path / "temporary").iterdir()) == []
    header = json.loads((out / "recording.jsonl").read_text(encoding="utf-8").splitlines()[0])
    if cluster == "real":
        with connected(real_kubeconfig()) as api:
            assert not api.exists(f"{NAMESPACES}/{header['namespace']}")
    reported = run_command(
        "report", str(out / "recording.jsonl"), "--out", str(tmp_path / "again"), env=env, cwd=tmp_path
    )
    assert reported.returncode == 0
    assert "is partial" in reported.stderr
    assert (tmp_path / "again" / "index.html").exists()


@pytest.mark.real_cluster
def test_a_killed_run_leaves_only_what_cleanup_removes(tmp_path: Path, env: dict[str, str]) -> None:
    out = tmp_path / "out"
    arguments = ["run", *cluster_arguments("real"), "-k", SCENARIO, "--out", str(out)]
    with running(*arguments, env=env, cwd=tmp_path) as process:
        await_action(out, process, "submit")
        process.send_signal(signal.SIGKILL)
    assert await_no_process(tmp_path, within_s=5) == {}
    namespace = json.loads((out / "recording.jsonl").read_text(encoding="utf-8").splitlines()[0])["namespace"]
    with connected(real_kubeconfig()) as api:
        before = {item["metadata"]["name"] for item in api.list(NAMESPACES)["items"]}
        assert namespace in before
        ran = run_command("cleanup", "--kubeconfig", str(real_kubeconfig()), env=env, cwd=tmp_path)
        assert ran.returncode == 0
        assert f"removed namespace {namespace}" in ran.stdout
        assert not api.exists(f"{NAMESPACES}/{namespace}")
        for name in before - {namespace}:
            if api.exists(f"{NAMESPACES}/{name}"):
                assert RUN_LABEL not in (api.get(f"{NAMESPACES}/{name}")["metadata"].get("labels") or {})
    assert list((tmp_path / "runtime").iterdir()) == []


def test_kubectl_sees_the_embedded_cluster(tmp_path: Path, env: dict[str, str]) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("there is no kubectl on PATH: the command `cluster` is not tried with it")
    with running("cluster", env=env, cwd=tmp_path) as process:
        assert process.stdout is not None
        kubeconfig = process.stdout.readline().strip().partition("=")[2]
        ran = subprocess.run(
            ["kubectl", "get", "tfjobs", "-A"],
            env={**env, "KUBECONFIG": kubeconfig, "HOME": str(tmp_path), "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=False,
        )
        assert "No resources found" in ran.stderr
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE_S)
