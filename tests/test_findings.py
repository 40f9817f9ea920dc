"""Published operators on a real cluster, recorded once (`corpus_recording.py`): what they are known to fail is what
they are still judged to fail, under both contracts.

The list in docs/findings.yaml is what a certification of today is held to. The cases below are written down on their
own, so that a check, the list and the recordings cannot drift together.
"""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from cluster_support import environment
from corpus_support import FINDINGS, judged_again, verdicts

ROOT = Path(__file__).parents[1]
CONTRACTS = ("kubeflow-docs", "kubeflow-api")
JUDGED: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "training-operator-1.9.0": {
        "EXIT-02[tfjob-worker-exit139-worker1]": ("fail", "absent"),
        "EXIT-03[tfjob-worker-exit139-worker1]": ("absent", "pass"),
        "EXIT-04[tfjob-worker-exit138-ps1-worker3]": ("pass", "absent"),
        "EXIT-03[tfjob-worker-exit138-ps1-worker3]": ("absent", "pass"),
        "EXIT-12[pytorchjob-worker-then-138-139-master1-worker2]": ("fail", "absent"),
        "STATE-03[tfjob-ps-exit138-ps1-worker3]": ("fail", "fail"),
        "STATE-07[pytorchjob-master-exit1-master1]": ("fail", "fail"),
    },
    "training-operator-1.4.0": {
        "EXIT-02[pytorchjob-master-exit1-master1]": ("fail", "fail"),
        "EXIT-03[tfjob-worker-exit137-ps1-worker3]": ("fail", "fail"),
        "EXIT-04[tfjob-worker-exit138-ps1-worker3]": ("fail", "absent"),
        "EXIT-03[tfjob-worker-exit138-ps1-worker3]": ("absent", "fail"),
        "EXIT-04[tfjob-worker-exit138-worker1]": ("pass", "absent"),
        "STATE-03[tfjob-ps-exit138-ps1-worker3]": ("fail", "fail"),
    },
}
"""Operator → case → its verdict under each contract."""


def test_every_recording_is_judged() -> None:
    assert {path.name.removesuffix(".jsonl.xz") for path in FINDINGS.iterdir()} == set(JUDGED)


@pytest.mark.parametrize("contract", CONTRACTS)
@pytest.mark.parametrize("name", sorted(JUDGED))
def test_what_is_known_to_fail_fails(name: str, contract: str, tmp_path: Path) -> None:
    _, again, status = judged_again(name, tmp_path, "--contract", contract, kept=FINDINGS)
    assert status == 1
    found = verdicts(again)
    expected = {case: both[CONTRACTS.index(contract)] for case, both in JUDGED[name].items()}
    assert {case: found.get(case, "absent") for case in expected} == expected
    compare = [str(ROOT / "bench" / "compare_findings.py"), str(ROOT / "docs" / "findings.yaml"), str(again)]
    ran = subprocess.run(
        [sys.executable, "-P", *compare],
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        text=True,
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
