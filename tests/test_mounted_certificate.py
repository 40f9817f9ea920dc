"""An operator with webhooks finds a certificate where its volume would be, and only as long as it runs."""

import signal
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from exitcode_fixtures.mounted_certificate import CERTIFICATE, KEY, OWNER
from exitcode_fixtures.process_identity import ProcessIdentity

PATIENCE_S = 30


def words(directory: Path, *command: str) -> list[str]:
    return [sys.executable, "-P", "-m", "exitcode_fixtures.mounted_certificate", str(directory), "--", *command]


def run(directory: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(words(directory, *command), text=True, capture_output=True, timeout=PATIENCE_S, check=False)


def test_the_command_finds_a_certificate_and_its_key(tmp_path: Path) -> None:
    directory = tmp_path / "deep" / "serving-certs"
    script = f"cat {directory}/{CERTIFICATE} > {tmp_path}/crt; cat {directory}/{KEY} > {tmp_path}/key; exit 5"
    assert run(directory, "sh", "-c", script).returncode == 5
    ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(tmp_path / "crt", tmp_path / "key")
    assert not (tmp_path / "deep").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_passed_on_and_nothing_is_left(tmp_path: Path, number: signal.Signals) -> None:
    directory = tmp_path / "certs"
    script = 'trap "exit 7" TERM INT; echo up; while :; do sleep 0.05; done'
    with subprocess.Popen(words(directory, "sh", "-c", script), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == 7
    assert not directory.exists()


def test_files_of_somebody_else_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / CERTIFICATE).write_text("mine")
    ran = run(tmp_path, "true")
    assert ran.returncode == 1
    assert f"{CERTIFICATE} of somebody else is there already" in ran.stderr
    assert (tmp_path / CERTIFICATE).read_text() == "mine"


def test_a_process_that_lives_keeps_its_own(tmp_path: Path) -> None:
    owner = ProcessIdentity.of_self()
    (tmp_path / OWNER).write_text(owner.model_dump_json())
    ran = run(tmp_path, "true")
    assert (ran.returncode, f"process {owner.pid} uses it" in ran.stderr) == (1, True)
    assert (tmp_path / OWNER).exists()


def test_what_a_killed_one_has_left_is_taken_over(tmp_path: Path) -> None:
    with subprocess.Popen(words(tmp_path, "sleep", "0"), stdout=subprocess.DEVNULL) as process:
        gone = ProcessIdentity.of_self().model_copy(update={"pid": process.pid, "started": 1})
    (tmp_path / OWNER).write_text(gone.model_dump_json())
    (tmp_path / KEY).write_text("old")
    assert run(tmp_path, "true").returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    ran = run(tmp_path / "certs", "/absent/operator")
    assert (ran.returncode, ran.stderr) == (127, "/absent/operator cannot be executed: No such file or directory.\n")
    assert not (tmp_path / "certs").exists()
