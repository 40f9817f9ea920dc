"""The command `mutants` from its options to its files, and the list that it is held to."""

import signal
import subprocess
from pathlib import Path

import pytest
from cluster_support import await_no_process, command, environment, run_command

from exitcode_conformance.adapters import ADAPTERS, Adapter, adapter_of
from exitcode_conformance.kills import KillList, Mutant, published_kills
from exitcode_conformance.requirements import REQUIREMENTS
from exitcode_conformance.scenarios import SCENARIOS
from exitcode_conformance.scenarios.solitary import SOLITARY
from exitcode_conformance.yaml_model import UnreadableYaml, read_yaml
from exitcode_fixtures.variants import list_variants
from exitcode_reports.kill_matrix import REFERENCE, KillMatrix
from exitcode_reports.recording import read_recording

SMALL = """\
version: 1
mutants:
  "null":
    target: IDENT-01
    scenarios: [tfjob-worker-exit137-worker1]
    kills: [IDENT-01, STATE-01]
  general-error-retried:
    target: EXIT-02
    scenarios: [tfjob-worker-exit1-worker1]
    kills: [EXIT-03]
  sigkill-permanent:
    target: EXIT-03
    scenarios: [tfjob-worker-exit137-worker1]
    kills: [EXIT-03]
  batch-message-decides:
    adapter: batch
    target: EXIT-10
    scenarios: [job-worker-exit137-message-worker1]
    kills: [EXIT-10]
"""


def test_mutants_are_run_side_by_side_and_what_has_changed_is_acknowledged(tmp_path: Path) -> None:
    listed, out = tmp_path / "list.yaml", tmp_path / "out"
    listed.write_text(SMALL)
    run = run_command(
        *("mutants", "-k", "general-*", "sigkill-permanent", "batch-*", "--out", str(out)),
        *("--kills", str(listed), "--acknowledge"),
        env=environment(tmp_path),
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stderr
    said = run.stdout.splitlines()
    assert any(line.startswith("general-error-retried  killed by EXIT-02 tfjob-worker-exit1-wor") for line in said)
    assert any(line.startswith("sigkill-permanent      killed by EXIT-03 tfjob-worker-exit137-w") for line in said)
    assert any(line.startswith("batch-message-decides  killed by EXIT-10 job-worker-exit137-m") for line in said)
    change = "general-error-retried now fails EXIT-02 and no longer fails EXIT-03: look into it, and acknowledge it."
    assert change in said
    assert "Only a part of the mutants was run: nothing is said of the requirements as a whole." in said

    matrix = KillMatrix.model_validate_json((out / "kill-matrix.json").read_text())
    names = ["general-error-retried", "sigkill-permanent", "batch-message-decides"]
    assert [result.name for result in matrix.mutants] == names
    assert (matrix.changes, matrix.problems, matrix.acknowledged) == ((change,), (), True)
    assert change in (out / "kill-matrix.html").read_text()
    for result in matrix.mutants:
        recording = read_recording(out / "mutants" / result.name / "recording.jsonl")
        assert recording.header.operator.name == result.name
        assert recording.header.reproduce == ("exitcode-conformance", "mutants", "-k", result.name)
        assert {line.requirement for line in recording.verdicts if line.verdict == "fail"} == set(result.killed_by)
        assert (out / "mutants" / result.name / "index.html").is_file()

    now = read_yaml(listed.read_text(), KillList)
    assert now.mutants["general-error-retried"].kills == ("EXIT-02",)
    assert now.mutants["null"] == read_yaml(SMALL, KillList).mutants["null"]
    assert await_no_process(tmp_path, within_s=5) == {}
    assert list((tmp_path / "runtime").iterdir()) == []


def test_a_campaign_that_is_aborted_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "list.yaml").write_text(SMALL)
    arguments = command("mutants", "-k", "null", "--kills", str(tmp_path / "list.yaml"), "--out", str(tmp_path / "out"))
    with subprocess.Popen(arguments, env=environment(tmp_path), cwd=tmp_path, stderr=subprocess.PIPE) as process:
        recording = tmp_path / "out" / "mutants" / "null" / "recording.jsonl"
        assert process.stderr is not None
        try:
            _await_line(recording, b'"operator-started"', process)
            process.send_signal(signal.SIGTERM)
            said = process.stderr.read().decode()
        finally:
            process.terminate()
    assert (process.returncode, said) == (
        3,
        "exitcode-conformance: Aborted. What the run had started has been removed.\n",
    )
    assert await_no_process(tmp_path, within_s=5) == {}
    assert list((tmp_path / "runtime").iterdir()) == []
    assert read_recording(recording, allow_partial=True).partial


def _await_line(path: Path, words: bytes, process: "subprocess.Popen[bytes]") -> None:
    """Waits until a file that is being written holds the words; nobody tells when that is so."""
    while not path.is_file() or words not in path.read_bytes():
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.05)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("-k", "no-such-one"), "No mutant is named no-such-one."),
        (("--kills", "absent.yaml"), "The list of kills absent.yaml cannot be read: "),
        (("--kills", "wrong.yaml"), "mutants.sigkill-permanent.targe: Extra inputs are not permitted"),
        (("--kills", "unknown.yaml"), "sigkill-permanent names the scenario no-such-scenario, which there is not."),
        (
            ("--kills", "strange.yaml"),
            "sigkill-permanent is of the adapter batch, and names the scenario tfjob-worker-exit137-worker1 of",
        ),
        (("--at-once", "0"), "--at-once 0 is out of range."),
    ],
)
def test_wrong_usage_is_one_sentence(tmp_path: Path, arguments: tuple[str, ...], sentence: str) -> None:
    (tmp_path / "wrong.yaml").write_text(SMALL.replace("target: EXIT-03", "targe: EXIT-03"))
    (tmp_path / "strange.yaml").write_text(SMALL.replace("target: EXIT-03", "target: EXIT-03\n    adapter: batch"))
    (tmp_path / "unknown.yaml").write_text(SMALL.replace("tfjob-worker-exit1-worker1", "no-such-scenario"))
    run = run_command("mutants", *arguments, env=environment(tmp_path), cwd=tmp_path)
    assert run.returncode == 4
    assert sentence.replace("sigkill-permanent names", "general-error-retried names") in run.stderr
    assert not (tmp_path / "kill-matrix").exists()


# ---- the list --------------------------------------------------------------------------------------------------------


def test_the_published_list_is_about_what_there_is() -> None:
    kills = published_kills()
    assert set(kills.mutants) == set(list_variants()) - {REFERENCE}
    for name, mutant in kills.mutants.items():
        assert set(mutant.scenarios) <= SCENARIOS.keys() | SOLITARY.keys(), name
        kinds = {(SCENARIOS | SOLITARY)[scenario].kind for scenario in mutant.scenarios}
        assert {adapter_of(kind).name for kind in kinds} <= {mutant.adapter}, name
        assert set(mutant.kills) <= REQUIREMENTS.keys(), name
        if mutant.scenarios and mutant.target in REQUIREMENTS:
            assert mutant.target in mutant.kills, name


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=lambda adapter: adapter.name)
def test_whatever_is_judged_of_jobs_of_an_api_is_shown_to_fail_in_them(adapter: Adapter) -> None:
    judged = {one.id for one in REQUIREMENTS.values() if one.level != "INFO" and one.id not in adapter.without}
    assert set(published_kills().proofs(adapter.name)) == judged


def test_a_list_is_read_as_it_was_written() -> None:
    kills = published_kills()
    assert read_yaml(kills.text(), KillList) == kills
    assert max(map(len, kills.text().splitlines())) <= 120


def test_the_mutants_that_were_built_for_a_requirement_come_first() -> None:
    kills = KillList(
        version=1,
        mutants={
            "other": Mutant(target="EXIT-02", scenarios=("a", "b"), kills=("EXIT-02", "EXIT-03")),
            "meant": Mutant(target="EXIT-03", scenarios=("b",), kills=("EXIT-03",)),
            "late": Mutant(kind="slow", scenarios=("c",)),
            "of-jobs": Mutant(adapter="batch", target="EXIT-03", scenarios=("d",), kills=("EXIT-03",)),
        },
    )
    assert kills.proofs("kubeflow") == {"EXIT-02": ("other",), "EXIT-03": ("meant", "other")}
    assert kills.proofs("batch") == {"EXIT-03": ("of-jobs",)}
    assert (kills.scenarios("kubeflow"), kills.scenarios("batch")) == (("a", "b"), ("d",))
    assert kills.with_kills({"meant": ["B", "A"]}).mutants["meant"].kills == ("A", "B")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("version: 2\nmutants: {a: {target: X}}", "version: Input should be 1"),
        ("version: 1\nmutants: {a: {kills: []}}", "target is missing"),
        ("version: 1\nmutants: {a: {kind: slow, bound: restart}}", "bound belongs to a slow one"),
        ("version: 1\nmutants: {a: {kind: slow, target: X}}", "bound belongs to a slow one"),
        ("version: 1\nmutants: {}", "mutants: "),
        ("version: [", "it is no YAML"),
    ],
)
def test_a_wrong_list_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(UnreadableYaml, match=sentence.replace("(", r"\(")):
        read_yaml(text, KillList)
