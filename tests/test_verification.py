"""Whoever is handed a recording can see whether its verdicts are what its events give."""

import json
import lzma
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cluster_support import environment, run_command

from exitcode_fixtures.errors import ExitStatus
from exitcode_fixtures.verify_command import NAMED
from exitcode_reports.recording import read_recording

RUN_S = 180.0
CORPUS = Path(__file__).parent / "data" / "corpus"


def lines_of(name: str) -> list[str]:
    return lzma.decompress((CORPUS / f"{name}.jsonl.xz").read_bytes()).decode().splitlines(keepends=True)


def sealed(folder: Path, lines: list[str]) -> Path:
    """The lines as a whole recording, with a footer that fits: a forger can do that too."""
    body, footer = lines[:-1], json.loads(lines[-1])
    verdicts: dict[str, int] = {}
    for line in map(json.loads, body):
        if line["type"] == "verdict":
            verdicts[line["verdict"]] = verdicts.get(line["verdict"], 0) + 1
    footer |= {"verdicts": verdicts, "sha256": sha256("".join(body).encode()).hexdigest()}
    path = folder / "recording.jsonl"
    path.write_text("".join([*body, json.dumps(footer) + "\n"]), encoding="utf-8")
    return path


def verified(folder: Path, path: Path) -> tuple[int, str]:
    ran = run_command("verify", str(path), env=environment(folder), cwd=folder)
    assert "Traceback" not in ran.stderr, ran.stderr
    return ran.returncode, ran.stdout + ran.stderr


@pytest.mark.parametrize("name", ["reference", "always-restart", "null"])
def test_what_a_cluster_has_shown_comes_out_again(name: str, tmp_path: Path) -> None:
    status, said = verified(tmp_path, sealed(tmp_path, lines_of(name)))
    number = sum(1 for line in lines_of(name) if line.startswith('{"type":"verdict"'))
    assert f"{number} of {number} verdicts come out again." in said
    assert "recorded as" not in said
    # The corpus is of a few scenarios only.
    assert status == ExitStatus.UNDECIDED
    assert "without a verdict: " in said
    assert all(line.count("; ") <= NAMED for line in said.splitlines()), "of many cases the first are named"


def test_a_whole_run_is_verified(tmp_path: Path) -> None:
    words = ("run", "--operator", "reference", "--out", str(tmp_path / "out"))
    ran = run_command(*words, env=environment(tmp_path), cwd=tmp_path, within_s=RUN_S)
    # Beside other tests the machine may have no time for it: that makes a case unknown, and nothing else.
    assert ran.returncode in (ExitStatus.CONFORMANT, ExitStatus.UNDECIDED), ran.stdout
    path = tmp_path / "out" / "recording.jsonl"
    assert {line.verdict for line in read_recording(path).verdicts} <= {"pass", "unknown"}
    status, said = verified(tmp_path, path)
    assert (status, "without" in said, "not asked" in said) == (ExitStatus.CONFORMANT, False, False)
    # One verdict taken out, by somebody who makes the rest fit.
    lines = path.read_text("utf-8").splitlines(keepends=True)
    taken = next(line for line in reversed(lines) if line.startswith('{"type":"verdict"'))
    lines.remove(taken)
    body = [lines[0], *(json.dumps({**json.loads(x), "seq": n}) + "\n" for n, x in enumerate(lines[1:-1], start=1))]
    footer = json.loads(lines[-1])
    footer["lines"]["verdict"] -= 1
    status, said = verified(tmp_path, sealed(tmp_path, [*body, json.dumps(footer)]))
    gone = json.loads(taken)
    assert status == ExitStatus.UNDECIDED
    assert f"without a verdict: {gone['requirement']}[{gone['subject']}]" in said


def test_a_failure_is_not_waived_by_saying_so(tmp_path: Path) -> None:
    lines = [line.replace('"verdict":"fail"', '"verdict":"waived"') for line in lines_of("always-restart")]
    status, said = verified(tmp_path, sealed(tmp_path, lines))
    assert status == ExitStatus.NOT_CONFORMANT
    assert "recorded as waived, judged as fail" in said


def test_a_verdict_that_was_changed_does_not(tmp_path: Path) -> None:
    lines = lines_of("always-restart")
    changed: list[dict[str, str]] = []
    for number, line in enumerate(lines):
        if line.startswith('{"type":"verdict"') and json.loads(line)["verdict"] == "fail":
            changed.append(json.loads(line))
            lines[number] = line.replace('"verdict":"fail"', '"verdict":"pass"')
    assert changed
    status, said = verified(tmp_path, sealed(tmp_path, lines))
    assert status == ExitStatus.NOT_CONFORMANT
    for verdict in changed:
        assert f"{verdict['requirement']}[{verdict['subject']}]: recorded as pass, judged as fail" in said


def test_a_requirement_that_was_left_out_is_named(tmp_path: Path) -> None:
    header, *rest = lines_of("always-restart")
    content = json.loads(header)
    content["plan"] = [case for case in content["plan"] if case["requirement"] != "EXIT-02"]
    kept = [line for line in rest if not ('"type":"verdict"' in line[:20] and '"requirement":"EXIT-02"' in line)]
    for number, line in enumerate(kept[:-1], start=1):
        kept[number - 1] = json.dumps({**json.loads(line), "seq": number}) + "\n"
    footer = json.loads(kept[-1])
    footer["lines"]["verdict"] -= len(rest) - len(kept)
    status, said = verified(tmp_path, sealed(tmp_path, [json.dumps(content) + "\n", *kept[:-1], json.dumps(footer)]))
    assert status == ExitStatus.UNDECIDED
    assert "not asked: " in said
    assert "EXIT-02" in said


def easier(name: str, header: dict[str, Any]) -> None:
    """Changes a header so that less is asked, as a forger would."""
    match name:
        case "contract":
            header["contract"]["claims"]["137"] = "permanent"
        case "window":
            header["timeouts"]["never"] = 0.001
        case "level":
            header["plan"] = [{**case, "level": "INFO"} for case in header["plan"]]
        case "proof":
            header["shown_to_fail"] = {}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("contract", "its contract kubeflow-docs has other classes than the published one"),
        ("window", "its window `never` is 0.001 s, and at least 15 s are due"),
        ("level", "EXIT-02 is INFO in it, and MUST by this version"),
        ("proof", "EXIT-02 does not count in it, and does by this version"),
    ],
)
def test_what_a_header_makes_easier_is_named(name: str, told: str, tmp_path: Path) -> None:
    first, *rest = lines_of("reference")
    assert "less is asked" not in verified(tmp_path, sealed(tmp_path, [first, *rest]))[1]
    header = json.loads(first)
    easier(name, header)
    status, said = verified(tmp_path, sealed(tmp_path, [json.dumps(header) + "\n", *rest]))
    assert status == ExitStatus.UNDECIDED
    assert told in said


def test_a_damaged_one_is_refused(tmp_path: Path) -> None:
    path = sealed(tmp_path, lines_of("reference"))
    path.write_text(path.read_text("utf-8").replace('"exit 137"', '"exit 138"').replace("Running", "Sunning"), "utf-8")
    status, said = verified(tmp_path, path)
    assert status == ExitStatus.USAGE
    assert "come out again" not in said
