"""Embedded clusters for tests: as a process of its own, which is how everybody uses them."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STOP_S = 20


@contextmanager
def embedded_process(state: Path, *options: str) -> Iterator[tuple[Path, "subprocess.Popen[str]"]]:
    """A running embedded cluster's kubeconfig and process. What it complains of fails the test."""
    command = [sys.executable, "-m", "exitcode_fixtures.embedded", "--state-dir", str(state)]
    complaints = state.with_suffix(".stderr")
    with complaints.open("w") as stderr:
        process = subprocess.Popen(
            [*command, "--until-stdin-closes", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, complaints.read_text()
        yield Path(json.loads(line)["kubeconfig"]), process
    finally:
        process.stdin.close()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        finally:
            process.stdout.close()
    assert complaints.read_text() == ""
