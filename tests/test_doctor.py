"""The doctor: what is there, what is missing, and what to do about it."""

from pathlib import Path

import pytest
from cluster_support import address_of, embedded, environment, run_command

from exitcode_conformance.kinds import KINDS, KUBEFLOW_KINDS
from exitcode_fixtures.api import connected
from exitcode_fixtures.clusters.address import ClusterAddress
from exitcode_fixtures.crds import install_bundled
from exitcode_fixtures.doctor import Finding, examine
from exitcode_fixtures.errors import ExitStatus


def found(address: ClusterAddress | None) -> dict[str, Finding]:
    return {finding.subject: finding for finding in examine(address)}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without tools and without a kubeconfig."""
    for key, value in environment(tmp_path, PATH=str(tmp_path / "none"), HOME=str(tmp_path)).items():
        monkeypatch.setenv(key, value)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return tmp_path


def test_everything_that_is_missing_comes_with_advice(machine: Path) -> None:
    findings = found(None)
    for subject in ("kind", "docker", "kubectl", "cluster"):
        assert findings[subject].state == "missing"
        assert findings[subject].advice
    assert findings["busybox"].state == "limited"
    assert findings["system"].state == "ok"
    assert findings["pytest-kind"].seen
    assert findings["left on this machine"].seen == "nothing"
    assert list((machine / "runtime").iterdir()) == []


def test_a_tool_that_does_not_answer_is_told_from_one_that_is_not_there(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (machine / "bin").mkdir()
    for name, script in (("docker", "exit 1"), ("kind", "echo kind v9")):
        (machine / "bin" / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (machine / "bin" / name).chmod(0o700)
    monkeypatch.setenv("PATH", str(machine / "bin"))
    findings = found(None)
    assert findings["docker"].seen == "is there but does not answer"
    assert (findings["kind"].state, findings["kind"].seen) == ("ok", "kind v9")


def test_a_cluster_is_looked_at_as_a_run_would(machine: Path) -> None:
    (machine / "state").mkdir(mode=0o700)
    with embedded(machine / "state") as cluster, connected(cluster.kubeconfig) as api:
        findings = found(address_of(cluster.kubeconfig))
        assert findings["cluster"].state == "ok"
        assert findings["rights"].state == "ok"
        missing = [f"{kind.plural}.{kind.group}" for kind in map(KINDS.__getitem__, KUBEFLOW_KINDS)]
        assert findings["CRDs"].seen == f"There is no {' and no '.join(missing)}."
        install_bundled(api)
        assert found(address_of(cluster.kubeconfig))["CRDs"].state == "ok"


def test_the_command_prints_findings_and_says_whether_anything_can_run(tmp_path: Path) -> None:
    ran = run_command("doctor", "--kubeconfig", str(tmp_path / "absent"), env=environment(tmp_path), cwd=tmp_path)
    assert ran.returncode == ExitStatus.CONFORMANT
    assert "ok       system: Python 3." in ran.stdout
    assert f"missing  cluster: The kubeconfig {tmp_path / 'absent'} does not exist." in ran.stdout
    assert ran.stderr == ""
