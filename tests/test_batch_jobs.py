"""Jobs of Kubernetes itself through the front door: certified on the embedded cluster, and on one that is too old for
what their scenarios ask."""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from cluster_support import embedded, real_kubeconfig
from request_log import Change, logged

from exitcode_conformance.kills import published_kills
from exitcode_fixtures.verification import verify
from exitcode_reports.recording import Recording, read_recording

CHOSEN = " or ".join(
    f"[{name}]"
    for name in (
        "job-worker-exit1-worker1",
        "job-worker-exit137-worker1",
        "job-worker1-exit138-worker3",
        "job-worker-onfailure137-worker1",
        "job-worker-never1-worker1",
    )
)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """Folders of runs of the test's own."""
    (tmp_path / "runtime").mkdir(mode=0o700)
    return {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path / "runtime")}


def run(
    env: dict[str, str], out: Path, *more: str, operator: str = "reference-jobs"
) -> "subprocess.CompletedProcess[str]":
    """`run`; with the reference controller as a controller of Jobs, where no other operator is named."""
    return command("run", "--operator", operator, "--out", str(out), *more, env=env)


def command(*words: str, env: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """`exitcode-conformance` with these words."""
    line = [sys.executable, "-P", "-m", "exitcode_fixtures.command_line", *words]
    return subprocess.run(
        line, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=300
    )


def verdicts(recording: Recording) -> dict[str, str]:
    """Case → verdict."""
    return {f"{line.requirement}[{line.subject}]": line.verdict for line in recording.verdicts}


def test_a_controller_of_jobs_is_certified_by_what_makes_sense_for_them(tmp_path: Path, env: dict[str, str]) -> None:
    ran = run(env, tmp_path / "out", "-k", CHOSEN)
    assert ran.returncode == 2, ran.stdout + ran.stderr  # most of the plan was left out
    recording = read_recording(tmp_path / "out" / "recording.jsonl")
    found = verdicts(recording)
    assert set(found.values()) == {"pass"}
    assert found["EXIT-02[job-worker-exit1-worker1]"] == "pass"
    assert found["EXIT-03[job-worker-exit137-worker1]"] == "pass"
    assert found["EXIT-04[job-worker1-exit138-worker3]"] == "pass"
    assert found["RESTART-03[job-worker1-exit138-worker3]"] == "pass"
    assert found["RESTART-06[job-worker-onfailure137-worker1]"] == "pass"
    assert found["RESTART-07[job-worker-never1-worker1]"] == "pass"
    planned = {case.requirement: case for case in recording.header.plan if case.planned == "not-supported"}
    assert planned["RESTART-01"].reason == "a Job keeps its failed pods, and names each pod anew"
    assert recording.header.shown_to_fail == published_kills().proofs("batch")
    assert "unproven" not in ran.stdout
    assert verify(recording.path).differences == ()
    copied = tmp_path / "copied.jsonl"
    copied.write_bytes(recording.path.read_bytes())
    for words in (
        ("report", str(recording.path)),
        ("compare", str(recording.path), str(copied)),
        ("run", "--cluster", f"recording:{recording.path}"),
    ):
        again = command(*words, "--contract", "kubeflow-api", "--out", str(tmp_path / "again"), env=env)
        assert again.returncode == 4, again.stdout + again.stderr
        assert "The adapter batch cannot be judged by kubeflow-api" in again.stderr


@pytest.fixture
def behind(tmp_path: Path) -> Iterator[Path]:
    """The kubeconfig of an embedded cluster."""
    with embedded(tmp_path / "cluster") as cluster:
        yield cluster.kubeconfig


@contextmanager
def proxied(kubeconfig: Path, folder: Path, change: Change) -> Iterator[str]:
    """The address of the cluster as whoever stands before it makes it look."""
    content = yaml.safe_load(kubeconfig.read_text("utf-8"))
    server = content["clusters"][0]["cluster"]
    authority = base64.b64decode(server.pop("certificate-authority-data")).decode()
    with logged(server["server"], authority, change=change) as proxy:
        server["server"] = proxy.url
        path = folder / "proxied"
        path.write_text(json.dumps(content), "utf-8")
        yield f"kubeconfig:{path}"


def without_policy(body: bytes) -> bytes:
    """What a server makes of a Job that knows no podFailurePolicy."""
    job = json.loads(body)
    job["spec"].pop("podFailurePolicy", None)
    return json.dumps(job).encode()


def test_a_cluster_that_is_too_old_is_told_and_not_judged(tmp_path: Path, env: dict[str, str], behind: Path) -> None:
    def old(method: str, target: str, body: bytes) -> bytes:
        return without_policy(body) if method == "POST" and "/jobs" in target else body

    with proxied(behind, tmp_path, old) as address:
        ran = run(env, tmp_path / "out", "--cluster", address, "-k", "[job-worker-exit1-worker1]")
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert "knows no podFailurePolicy (1.26 and later do): 1 of 1 scenarios cannot be run" in ran.stderr
    recording = read_recording(tmp_path / "out" / "recording.jsonl")
    assert recording.header.scenarios == {}
    case = next(
        c for c in recording.header.plan if (c.requirement, c.subject) == ("EXIT-02", "job-worker-exit1-worker1")
    )
    assert case.planned == "not-run"
    assert case.reason is not None
    assert "knows no podFailurePolicy" in case.reason
    assert "pass" not in verdicts(recording).values()


def test_no_other_contract_is_held_against_jobs(tmp_path: Path, env: dict[str, str]) -> None:
    ran = run(env, tmp_path / "out", "--contract", "kubeflow-api")
    assert ran.returncode == 4
    assert "The adapter batch cannot be judged by kubeflow-api" in ran.stderr


@pytest.mark.real_cluster
def test_the_jobs_of_a_real_cluster_are_certified_as_far_as_it_knows_them(tmp_path: Path, env: dict[str, str]) -> None:
    kubeconfig = real_kubeconfig()
    names = ("job-worker-exit1-worker1", "job-worker-onfailure137-worker1", "job-worker-never1-worker1")
    chosen = " or ".join(f"[{name}]" for name in names)
    cluster = f"kubeconfig:{kubeconfig}"
    ran = run(env, tmp_path / "out", "--cluster", cluster, "-k", chosen, operator="kubernetes-job")
    assert ran.returncode == 2, ran.stdout + ran.stderr
    recording = read_recording(tmp_path / "out" / "recording.jsonl")
    found = verdicts(recording)
    assert found["RESTART-06[job-worker-onfailure137-worker1]"] == "pass"
    assert found["RESTART-07[job-worker-never1-worker1]"] == "pass"
    assert recording.header.operator.version == recording.header.cluster.server_version
    minor = int("".join(filter(str.isdigit, recording.header.cluster.server_version.split(".")[1])))
    case = "EXIT-02[job-worker-exit1-worker1]"
    if minor >= 26:
        assert found[case] == "pass"
    else:
        assert "knows no podFailurePolicy (1.26 and later do): 1 of 3 scenarios" in ran.stderr
        assert found.get(case, "not-run") == "not-run"
    assert "fail" not in found.values()
