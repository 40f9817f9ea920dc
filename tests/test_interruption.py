"""A run that is cut short, by Ctrl-C or by SIGKILL: what is left of it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from process_tree import descendants

SMALL = "tfjob-worker-exit1-worker1 or tfjob-ps-exit137-ps1-worker3"


def until(condition: Callable[[], bool], *, within_s: float, what: str) -> None:
    """Waits for what no event tells of: another process's file or end."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {within_s} s: {what}"
        time.sleep(0.02)


@pytest.fixture
def running(tmp_path: Path) -> subprocess.Popen[str]:
    """A run whose scenarios have pods."""
    command = [
        sys.executable,
        "-m",
        "exitcode_fixtures.command_line",
        "run",
        "--out",
        str(tmp_path / "out"),
        "-k",
        SMALL,
    ]
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    process = subprocess.Popen(
        command, cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
    )
    recording = tmp_path / "out" / "recording.jsonl"
    until(
        lambda: process.poll() is not None or (recording.exists() and '"phase":"Running"' in recording.read_text()),
        within_s=120,
        what="a pod runs",
    )
    assert process.poll() is None, process.communicate()[0]
    return process


LOST = """
import signal
import threading
from exitcode_fixtures.interruption import interruptible

class Finalized:
    def __del__(self):
        signal.raise_signal(signal.{number})

try:
    with interruptible():
        Finalized()
        threading.Event().wait(60)
except KeyboardInterrupt as error:
    print("came as", error)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_that_comes_while_something_is_finalized_is_not_lost(number: signal.Signals) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", LOST.format(number=number.name)], text=True, capture_output=True, timeout=50, check=False
    )
    assert (ran.stdout, ran.stderr) == (f"came as {number.name}\n", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_removes_everything_and_says_that_it_is_partial(
    running: subprocess.Popen[str], number: signal.Signals, tmp_path: Path
) -> None:
    seen = descendants(running.pid)
    assert len(seen) > 4, "there is nothing to be left behind"
    running.send_signal(number)
    output = running.communicate(timeout=120)[0]
    assert running.returncode == 3, output
    assert "Aborted" in output
    assert "Traceback" not in output
    until(lambda: not any(p.is_alive() for p in seen), within_s=5, what="no process of the run lives")
    assert [p.name for p in (tmp_path / "exitcode-conformance").glob("run-*")] == []
    lines = (tmp_path / "out" / "recording.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["type"] != "footer"
    report = subprocess.run(
        [sys.executable, "-m", "exitcode_fixtures.command_line", "report", str(tmp_path / "out" / "recording.jsonl")],
        text=True,
        capture_output=True,
        check=False,
    )
    assert report.returncode == 0
    assert "partial" in report.stderr
    assert "partial" in (tmp_path / "out" / "index.html").read_text()


def test_after_sigkill_no_process_lives_longer_than_5_s_and_cleanup_removes_the_rest(
    running: subprocess.Popen[str], tmp_path: Path
) -> None:
    seen = descendants(running.pid)
    running.kill()
    running.communicate(timeout=20)
    until(lambda: not any(p.is_alive() for p in seen), within_s=5, what="no process of the run lives")
    assert list((tmp_path / "exitcode-conformance").glob("run-*")) != []
    result = subprocess.run(
        [sys.executable, "-m", "exitcode_fixtures.command_line", "cleanup"],
        text=True,
        capture_output=True,
        check=False,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
    )
    assert result.returncode == 0, result.stderr
    assert list((tmp_path / "exitcode-conformance").glob("run-*")) == []
