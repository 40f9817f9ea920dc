"""Records what the tests judge again, on a real cluster: python tests/corpus_recording.py KUBECONFIG [NAME…]

tests/data/corpus: the reference, the two control subjects and ten mutants, each on the same few scenarios, for
test_corpus.py. tests/data/findings: published operators on those that show what they are known to fail, for
test_findings.py; only where they are named, since their programs have to be found by PATH. To be run by hand, where the
format or the scenarios have changed; the cluster needs the CRDs.
"""

import lzma
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

import yaml
from corpus_support import CORPUS, FINDINGS

SCENARIOS = (
    "tfjob-worker-exit1-worker1",
    "tfjob-worker-exit137-worker1",
    "tfjob-worker-exit138-ps1-worker3",
    "tfjob-worker-exit137-sibling0-worker3",
    "tfjob-worker-then-137-0-worker1",
    "pytorchjob-master-exit0-master1-worker2",
)
MUTANTS = (
    "general-error-retried",
    "sigkill-permanent",
    "user-code-permanent",
    "restart-in-place",
    "all-replicas-restarted",
    "completed-replica-restarted",
    "restarting-never-shown",
    "completion-time-missing",
    "environment-lost-on-restart",
    "owner-not-controller",
)
SUBJECTS = ("reference", "null", "always-restart", *MUTANTS)
PUBLISHED: dict[str, list[str]] = {
    name: found["shown_by"]
    for name, found in yaml.safe_load((Path(__file__).parents[1] / "docs" / "findings.yaml").read_text("utf-8")).items()
}
"""Operator → the cases that show what it fails."""


def description(name: str, folder: Path) -> str:
    """What `--operator` is given: a bundled name, or the reference's description for the controller of a mutant."""
    if name not in MUTANTS:
        return name
    text = (files("exitcode_fixtures") / "operators" / "reference.yaml").read_text("utf-8")
    described = text.replace("name: reference\n", f"name: {name}\n")
    described = described.replace('    - "{namespace}"\n', f'    - "{{namespace}}"\n    - --variant\n    - {name}\n')
    assert "--variant" in described, "the reference's description has changed"
    path = folder / f"{name}.yaml"
    path.write_text(described, "utf-8")
    return str(path)


def record(name: str, kubeconfig: str) -> None:
    """One subject. The run's own verdict is not asked for here."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-P", "-m", "exitcode_fixtures.command_line", "run"]
        command += ["--operator", description(name, Path(folder)), "--cluster", f"kubeconfig:{kubeconfig}"]
        subjects = PUBLISHED.get(name, SCENARIOS)
        command += ["-k", " or ".join(f"[{subject}]" for subject in subjects), "--out", f"{folder}/out"]
        ran = subprocess.run(command, stdin=subprocess.DEVNULL, text=True, capture_output=True, check=False)
        print(f"{name}: exit status {ran.returncode}", flush=True)
        if ran.returncode not in (1, 2):  # conformant it cannot be: most cases were left out
            sys.exit(ran.stdout + ran.stderr)
        recording = (Path(folder) / "out" / "recording.jsonl").read_bytes()
    kept = FINDINGS if name in PUBLISHED else CORPUS
    kept.mkdir(parents=True, exist_ok=True)
    (kept / f"{name}.jsonl.xz").write_bytes(lzma.compress(recording, preset=9))


if __name__ == "__main__":
    for subject in sys.argv[2:] or SUBJECTS:
        record(subject, sys.argv[1])
