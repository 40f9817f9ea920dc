"""What published operators fail is held against what is known of them: `bench/compare_findings.py`."""

import lzma
import subprocess
import sys
from pathlib import Path

import pytest
from cluster_support import environment

ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "tests" / "data" / "corpus" / "always-restart.jsonl.xz"
"""It fails EXIT-02 under kubeflow-docs, and no other requirement."""


def compared(folder: Path, known: str, *arguments: str) -> tuple[int, str]:
    """The exit status of the comparison, or of what else the arguments ask for, and all that it printed."""
    recording, findings = folder / "recording.jsonl", folder / "findings.yaml"
    recording.write_bytes(lzma.decompress(RECORDED.read_bytes()))
    findings.write_text(known, "utf-8")
    compare = [str(ROOT / "bench" / "compare_findings.py"), str(findings), *(arguments or [str(recording)])]
    ran = subprocess.run(
        [sys.executable, "-P", *compare],
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        text=True,
        capture_output=True,
        check=False,
    )
    assert "Traceback" not in ran.stderr, ran.stderr
    return ran.returncode, ran.stdout + ran.stderr


def known(entry: str) -> str:
    """A file that knows this of the operator."""
    return f"always-restart: {{shown_by: [one, two], contracts: {{kubeflow-docs: {entry}}}}}\n"


@pytest.mark.parametrize(
    ("entry", "status", "told"),
    [
        ("{runs: 3, always: [EXIT-02]}", 0, "1 MUST requirements fail, 1 are known to"),
        ("{runs: 3, always: []}", 1, "which is new"),
        ("{runs: 3, always: [EXIT-02, EXIT-04]}", 1, "EXIT-04 failed in each of 3 runs, and does not"),
        ("{runs: 3, always: [], races: {EXIT-02: who is first}}", 0, "cases this time: who is first"),
        ("{runs: 3, always: [EXIT-02], races: {EXIT-04: who is first}}", 0, "EXIT-04 does not fail this time"),
    ],
)
def test_what_fails_has_to_be_what_is_known(entry: str, status: int, told: str, tmp_path: Path) -> None:
    found, words = compared(tmp_path, known(entry))
    assert (found, told in words) == (status, True), words


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (known("{runs: 1, always: [EXIT-02]}"), "greater than or equal to 2"),
        (known("{always: [EXIT-02]}"), "runs"),
        (known("[EXIT-02]"), "kubeflow-docs"),
        (known("{runs: 3, always: []}").replace("docs", "api"), "says nothing of always-restart under"),
        ("always-restart: {contracts: {kubeflow-docs: {runs: 3, always: [EXIT-02]}}}\n", "shown_by"),
        ("null: {}\n", "valid string"),
        ("", "says nothing of always-restart"),
    ],
)
def test_what_says_nothing_or_too_little_is_refused(text: str, told: str, tmp_path: Path) -> None:
    found, words = compared(tmp_path, text)
    assert (found, told in words) == (4, True), words


def test_the_cases_that_show_what_is_known_are_told_as_a_selection(tmp_path: Path) -> None:
    entry = known("{runs: 3, always: []}")
    assert compared(tmp_path, entry, "--selection", "always-restart") == (0, "[one] or [two]\n")
    found, words = compared(tmp_path, entry, "--selection", "null")
    assert (found, "says nothing of null" in words) == (4, True), words
