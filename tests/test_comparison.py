"""Recordings side by side, by the command: those of a real cluster (`corpus_recording.py`), and some altered ones."""

import json
import lzma
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cached_property
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import unquote

import pytest
from browser_support import browser, visit
from cluster_support import environment, run_command
from recording_support import HOSTILE, make_recording, scenarios
from test_docs import code, options_in, read, rows

from exitcode_fixtures.command_line import main

CORPUS = Path(__file__).parent / "data" / "corpus"
NAMES = ("reference", "always-restart", "restart-in-place", "null", "user-code-permanent")
EXIT1 = "tfjob-worker-exit1-worker1"
EXIT137 = "tfjob-worker-exit137-worker1"
EXIT138 = "tfjob-worker-exit138-ps1-worker3"
Line = dict[str, Any]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a folder for each of some recorded runs."""
    folder = tmp_path_factory.mktemp("corpus")
    for name in NAMES:
        (folder / name).mkdir()
        recording = lzma.decompress((CORPUS / f"{name}.jsonl.xz").read_bytes())
        (folder / name / "recording.jsonl").write_bytes(recording)
    return folder


class Compared:
    """What the command said and wrote."""

    def __init__(self, ran: "subprocess.CompletedProcess[str]", out: Path) -> None:
        assert "Traceback" not in ran.stderr, ran.stderr
        self.status, self.said, self.complaint, self.out = ran.returncode, ran.stdout, ran.stderr, out

    @cached_property
    def json(self) -> dict[str, Any]:
        return dict(json.loads((self.out / "comparison.json").read_text("utf-8")))

    @cached_property
    def page(self) -> str:
        return (self.out / "comparison.html").read_text("utf-8")

    def row(self, requirement: str, subject: str) -> dict[str, Any]:
        (found,) = [
            row
            for one in self.json["requirements"]
            if one["id"] == requirement
            for row in one["cases"]
            if row["subject"] == subject
        ]
        return dict(found)

    def verdicts(self, requirement: str, subject: str) -> tuple[str, list[str], list[str | None]]:
        """Likeness, verdicts and observed classes of a case."""
        row = self.row(requirement, subject)
        cells = row["cells"]
        return row["likeness"], [cell["verdict"] for cell in cells], [cell["observed_class"] for cell in cells]

    def named(self, likeness: str) -> set[str]:
        """The test ids of this likeness."""
        return {
            f"{one['id']}[{row['subject']}]"
            for one in self.json["requirements"]
            for row in one["cases"]
            if row["likeness"] == likeness
        }


def compared(folder: Path, *arguments: str | Path, out: Path | None = None) -> Compared:
    """Run the command, with an environment in the folder."""
    folder.mkdir(exist_ok=True)
    out = out or folder / "out"
    words = ["compare", *map(str, arguments), "--out", str(out)]
    return Compared(run_command(*words, env=environment(folder), cwd=folder), out)


@pytest.fixture(scope="module")
def two(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Compared:
    """The reference, and the control subject that restarts whatever failed."""
    return compared(tmp_path_factory.mktemp("two"), corpus / "reference", corpus / "always-restart" / "recording.jsonl")


@pytest.fixture(scope="module")
def three(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Compared:
    """The reference, one that restarts in place, and one that does nothing."""
    return compared(tmp_path_factory.mktemp("three"), *(corpus / name for name in ("reference", *NAMES[2:4])), "--all")


def lines_of(path: Path) -> Iterator[Line]:
    return (json.loads(line) for line in path.read_text("utf-8").splitlines())


def rewritten(source: Path, target: Path, change: Callable[[Line], None], *, finish: bool = True) -> Path:
    """The recording with each line changed, sealed again, or cut off before its footer."""
    target.parent.mkdir(parents=True, exist_ok=True)
    *lines, footer = lines_of(source)
    for line in lines:
        change(line)
    text = "".join(json.dumps(line) + "\n" for line in lines)
    footer["sha256"] = sha256(text.encode()).hexdigest()
    footer["verdicts"] = Counter(line["verdict"] for line in lines if line["type"] == "verdict")
    target.write_text(text + (json.dumps(footer) + "\n" if finish else ""), "utf-8")
    return target


def test_what_one_passed_and_another_failed_is_a_contradiction(two: Compared) -> None:
    assert two.status == 1
    assert two.verdicts("EXIT-02", EXIT1) == ("contradictory", ["pass", "fail"], ["permanent", "retryable"])
    assert two.verdicts("EXIT-03", EXIT137) == ("same", ["pass", "pass"], ["retryable", "retryable"])
    assert two.verdicts("STATE-05", EXIT1) == ("changed", ["pass", "unknown"], [None, None])
    assert two.named("contradictory") == {f"EXIT-02[{EXIT1}]"}
    assert two.named("changed") == {f"{name}[{EXIT1}]" for name in ("STATE-05", "STATE-07", "INV-03")}
    assert two.json["counts"] == {"same": 4257, "another-route": 0, "changed": 3, "contradictory": 1}
    assert two.json["sentence"] == "4261 cases: 1 contradictory (EXIT-02), 3 changed, 4257 the same."
    assert [one["overall"] for one in two.json["recordings"]] == ["Undecided", "Not conformant"]


def test_the_terminal_has_what_differs_and_says_the_same(two: Compared) -> None:
    lines = [" ".join(line.split()) for line in two.said.splitlines()]
    assert lines[0] == "1 reference 0.1.0 × kubeflow-docs 1 · kubeconfig v1.20.2 undecided"
    assert "EXIT-02 53 1 0 0 52" in lines
    assert f"EXIT-02[{EXIT1}] pass (job failed) fail (restarted) contradictory" in lines
    assert "1 1 job failed 1 restarted" in lines
    assert lines[-2] == f"CONTRADICTORY: {two.json['sentence']}"
    assert lines[-1] == f"comparison: {two.out / 'comparison.html'}"
    assert not [line for line in lines if EXIT137 in line or line.startswith("EXIT-03 49")]


def test_the_line_of_a_verdict_is_that_of_the_file(two: Compared, corpus: Path) -> None:
    for name, cell in zip(("reference", "always-restart"), two.row("EXIT-02", EXIT1)["cells"], strict=True):
        line = list(lines_of(corpus / name / "recording.jsonl"))[cell["line"] - 1]
        assert (line["requirement"], line["subject"], line["seen"]) == ("EXIT-02", EXIT1, cell["seen"])
    assert two.row("EXIT-02", "tfjob-worker-exit2-worker1")["cells"][0]["line"] is None


def test_the_codes_and_the_delays_are_those_of_the_verdicts(two: Compared, corpus: Path) -> None:
    codes = {row["code"]: (row["differs"], [cell["classes"] for cell in row["cells"]]) for row in two.json["codes"]}
    assert codes == {
        1: (True, [{"permanent": 1}, {"retryable": 1}]),
        137: (False, [{"retryable": 3}, {"retryable": 3}]),
        138: (False, [{"retryable": 1}, {"retryable": 1}]),
    }
    (row,) = [row for row in two.json["delays"] if (row["requirement"], row["bound"]) == ("RESTART-09", "restart")]
    for name, cell in zip(("reference", "always-restart"), row["cells"], strict=True):
        judged = [line for line in lines_of(corpus / name / "recording.jsonl") if line["type"] == "verdict"]
        trials = [trial for line in judged if line["requirement"] == "RESTART-09" for trial in line["trials"]]
        delays = [trial["delay"] for trial in trials if trial["bound"] == "restart"]
        assert (cell["trials"], cell["limit"]) == (len(delays), 60)
        assert (cell["median"], cell["longest"]) == (median(delays), max(delays))


def test_the_same_verdict_by_another_route_and_three_at_a_time(three: Compared) -> None:
    in_place = ["retryable", "restarted-in-place"]
    assert three.status == 1
    assert three.verdicts("EXIT-03", EXIT137) == ("changed", ["pass", "pass", "unknown"], [*in_place, None])
    assert three.verdicts("STATE-01", EXIT1) == ("contradictory", ["pass", "pass", "fail"], [None] * 3)
    assert three.verdicts("RESTART-01", EXIT138) == ("contradictory", ["pass", "fail", "unknown"], [None] * 3)
    codes = {row["code"]: [cell and cell["classes"] for cell in row["cells"]] for row in three.json["codes"]}
    assert codes[137] == [{"retryable": 3}, {"restarted-in-place": 3}, None]
    # All is printed, what is the same and what nobody ran too.
    assert "EXIT-02[tfjob-worker-exit2-worker1]" in three.said
    assert re.search(r"^INV-08\[tftest\] +not-run +not-run +not-supported +changed$", three.said, re.MULTILINE)


def test_another_route_is_no_difference(corpus: Path, tmp_path: Path) -> None:
    source = corpus / "reference" / "recording.jsonl"

    def in_place(line: Line) -> None:
        if line.get("observed_class") == "retryable":
            line["observed_class"] = "restarted-in-place"

    found = compared(tmp_path / "run", source, rewritten(source, tmp_path / "other" / "recording.jsonl", in_place))
    assert found.status == 0
    assert found.verdicts("EXIT-04", EXIT138)[0] == "another-route"
    assert found.json["counts"] == {"same": 4257, "another-route": 4, "changed": 0, "contradictory": 0}
    assert found.json["heading"] == "Alike"
    # Nothing but their paths tells them apart.
    labels = [one["label"] for one in found.json["recordings"]]
    assert labels == [
        f"reference 0.1.0 × kubeflow-docs 1 · kubeconfig v1.20.2 · {path}"
        for path in (source, tmp_path / "other" / "recording.jsonl")
    ]


def test_one_run_under_two_contracts(corpus: Path, tmp_path: Path) -> None:
    source = corpus / "user-code-permanent"
    arguments = ("--cluster", f"recording:{source / 'recording.jsonl'}", "--contract", "kubeflow-api")
    ran = run_command("run", *arguments, "--out", str(tmp_path / "api"), env=environment(tmp_path), cwd=tmp_path)
    assert ran.returncode == 1, ran.stderr
    found = compared(tmp_path / "apart", source, tmp_path / "api")
    assert found.status == 2
    assert found.verdicts("EXIT-04", EXIT138) == ("changed", ["fail", "absent"], ["permanent", None])
    assert found.verdicts("EXIT-03", EXIT138) == ("changed", ["absent", "fail"], [None, "permanent"])
    assert "judged by different contracts (kubeflow-docs 1, kubeflow-api 1)" in found.json["notices"][0]
    assert "changed that no recording has run (--all shows them)" in found.said
    # By one contract they are the same, and their verdicts stand in no file.
    again = compared(tmp_path / "together", source, tmp_path / "api", "--contract", "kubeflow-docs")
    assert again.status == 0
    assert again.json["counts"].keys() - {name for name, number in again.json["counts"].items() if number} == {
        "another-route",
        "changed",
        "contradictory",
    }
    assert [one["contract"] for one in again.json["recordings"]] == ["kubeflow-docs 1"] * 2
    assert {(one["judged_again"], one["path"]) for one in again.json["recordings"]} == {
        (True, str(folder / "recording.jsonl")) for folder in (source, tmp_path / "api")
    }
    assert [cell["line"] for cell in again.row("EXIT-04", EXIT138)["cells"]] == [None, None]


def test_a_verdict_leads_to_its_time_line(corpus: Path, tmp_path: Path) -> None:
    # Nothing of a path may be taken for a scheme, a query or a fragment.
    folder = tmp_path / "javascript:alert(1) #x?y%41"
    rewritten(corpus / "reference" / "recording.jsonl", folder / "recording.jsonl", lambda _line: None)
    reported = run_command("report", str(folder / "recording.jsonl"), env=environment(tmp_path), cwd=tmp_path)
    assert reported.returncode == 0, reported.stderr
    found = compared(tmp_path / "run", folder, corpus / "always-restart", out=tmp_path / "out")
    with_page, without = found.row("EXIT-02", EXIT1)["cells"]
    address, _, anchor = with_page["page"].partition("#")
    assert address.startswith("../javascript%3Aalert")
    page = (found.out / unquote(address)).resolve()
    assert page == folder / "index.html"
    assert anchor == f"s-{EXIT1}"
    assert f'id="{anchor}"' in page.read_text("utf-8")
    links = {value for tag in tags(found.page) for name, value in tag[1] if tag[0] == "a" and name == "href"}
    assert with_page["page"] in links
    assert all(link.startswith(("#", "../javascript%3A")) for link in links if link)
    assert without["page"] is None
    assert f"recording 2, line {without['line']}<" in found.page


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, list[tuple[str, str | None]]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, attrs))


def tags(page: str) -> list[tuple[str, list[tuple[str, str | None]]]]:
    parser = _Tags()
    parser.feed(page)
    return parser.found


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Compared:
    """Two operators with names, classes and sentences that mean harm."""
    folder = tmp_path_factory.mktemp("hostile")
    text = " ".join(text[:200] for text in HOSTILE)

    def harm(line: Line) -> None:
        if line["type"] == "header":
            line["operator"] |= {"name": text, "version": text}
            line["cluster"]["server_version"] = line["contract"]["version"] = text
            line["contract"]["claims"]["137"] = text
        if line["type"] == "verdict":
            line["seen"] = text
            line["observed_class"] = text if line["observed_class"] else None

    known = scenarios([0, 137])
    first = make_recording(folder / "first.jsonl", known=known)
    second = rewritten(first, folder / "second.jsonl", harm)
    third = rewritten(make_recording(folder / "x.jsonl", known=known, restarts=[]), folder / "third.jsonl", harm)
    return compared(folder / "run", first, second, third)


def test_nothing_hostile_gets_into_the_page_or_the_terminal(hostile: Compared) -> None:
    assert hostile.status == 1
    found = Counter(tag for tag, _ in tags(hostile.page))
    assert found["script"] == 1
    assert not {"img", "iframe", "object", "embed", "base", "form"} & set(found)
    assert not [name for _, attributes in tags(hostile.page) for name, _ in attributes if name.startswith("on")]
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", hostile.said + hostile.page)
    assert hostile.json["recordings"][1]["operator"].startswith(HOSTILE[0])


@pytest.mark.skipif(browser() is None, reason="no chromium on this machine")
def test_the_page_asks_for_nothing_and_its_filters_work(hostile: Compared, tmp_path: Path) -> None:
    program = browser()
    assert program is not None
    seen = visit(
        program,
        hostile.out / "comparison.html",
        tmp_path,
        (
            "document.querySelectorAll('script').length",
            "document.querySelector('[data-verdict=contradictory]').click()",
            "[...new Set([...document.querySelectorAll('#requirements tbody tr')]"
            ".filter((row) => row.checkVisibility()).map((row) => row.dataset.v))].join()",
            "document.documentElement.scrollWidth <= innerWidth",
        ),
    )
    assert seen.answers == [1, None, "contradictory", True]
    assert seen.requests == [(hostile.out / "comparison.html").as_uri()]
    assert seen.complaints == []


def test_what_is_missing_is_no_pass(corpus: Path, tmp_path: Path) -> None:
    source = corpus / "reference" / "recording.jsonl"
    cut = rewritten(source, tmp_path / "cut.jsonl", lambda _line: None, finish=False)
    place = next(n for n, line in enumerate(lines_of(cut)) if line.get("subject") == EXIT137 and "verdict" in line)
    # As an interrupted run leaves it: nothing after the line before the verdict.
    cut.write_text("".join(cut.read_text("utf-8").splitlines(keepends=True)[:place]), "utf-8")
    found = compared(tmp_path / "run", cut, source)
    assert found.status == 2, found.complaint
    assert found.verdicts("EXIT-03", EXIT137)[:2] == ("changed", ["not-run", "pass"])
    assert found.json["notices"] == ["Recording 1 is partial: what is missing of it counts as not run."]
    assert [one["partial"] for one in found.json["recordings"]] == [True, False]


def test_two_recordings_that_say_nothing_are_not_alike(tmp_path: Path) -> None:
    known = scenarios([0])
    paths = [make_recording(tmp_path / name, known=known, unjudged=known) for name in ("a.jsonl", "b.jsonl")]
    found = compared(tmp_path / "run", *paths)
    assert found.status == 2
    assert found.json["counts"]["same"] == len(known) * 7 + 1
    assert "there is nothing to compare" in found.json["sentence"]


def test_wrong_usage_and_what_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    known = scenarios([0])
    one, other = (make_recording(tmp_path / name / "recording.jsonl", known=known) for name in ("one", "other"))
    (tmp_path / "link.jsonl").symlink_to(one)

    def become_a_census(line: Line) -> None:
        if line["type"] == "header":
            line["profile"] = "census"

    census = rewritten(one, tmp_path / "census.jsonl", become_a_census)
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_bytes(one.read_bytes().replace(b"succeeded", b"SUCCEEDED", 1))
    for arguments, status, said in (
        ([one], 4, "nothing to compare with one recording"),
        ([one, one.parent], 4, "are the same file"),
        ([one, other, tmp_path / "link.jsonl"], 4, "are the same file"),
        ([one, census], 4, "is the recording of a census"),
        ([one, other, "--contract", "nonsense"], 4, "no contract 'nonsense'"),
        ([one, tmp_path / "nothing"], 3, f"There is no file {tmp_path / 'nothing'}"),
        ([one, tmp_path], 3, f"There is no file {tmp_path}"),
        ([one, damaged], 3, f"{damaged}: Line"),
    ):
        assert main(["compare", *map(str, arguments)]) == status
        assert said in capsys.readouterr().err
        assert not (tmp_path / "conformance-comparison").exists()


def test_json_alone_is_printed_and_nothing_else_in_the_folder_is_touched(corpus: Path, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    first = rewritten(corpus / "reference" / "recording.jsonl", folder / "recording.jsonl", lambda _line: None)
    before = first.read_bytes()
    found = compared(tmp_path / "run", folder, corpus / "null", "--json", out=folder)
    assert json.loads(found.said) == found.json
    assert first.read_bytes() == before
    assert {path.name for path in folder.iterdir()} == {"recording.jsonl", "comparison.html", "comparison.json"}


SHAPE: dict[str, set[str]] = {
    "": {"format", "suite_version", "exit_status", "heading", "sentence", "notices", "counts"}
    | {"recordings", "requirements", "codes", "delays"},
    "counts": {"same", "another-route", "changed", "contradictory"},
    "recordings": {"label", "operator", "version", "contract", "cluster", "profile", "run_id", "started_at"}
    | {"suite_version", "path", "page", "partial", "judged_again", "overall", "verdicts"},
    "requirements": {"id", "level", "sentence", "counts", "cases"},
    "requirements.counts": {"same", "another-route", "changed", "contradictory"},
    "requirements.cases": {"subject", "likeness", "cells"},
    "requirements.cases.cells": {"verdict", "observed_class", "seen", "line", "page"},
    "codes": {"code", "differs", "cells"},
    "codes.cells": {"promised", "classes", "undecided"},
    "delays": {"requirement", "bound", "cells"},
    "delays.cells": {"kind", "bound", "limit", "trials", "median", "longest", "failed", "undecided"},
}
FREE = {"recordings.verdicts", "codes.cells.classes"}
"""Objects whose keys are verdicts and classes."""


def shape_of(value: Any, place: str = "") -> Iterator[tuple[str, frozenset[str]]]:
    """Place → keys, of every object in the JSON."""
    if isinstance(value, list):
        for one in value:
            yield from shape_of(one, place)
    elif isinstance(value, dict):
        yield place, frozenset(value)
        for key, one in value.items():
            yield from shape_of(one, f"{place}.{key}".lstrip("."))


def test_the_json_has_the_keys_of_its_format_and_they_are_told(three: Compared) -> None:
    assert three.json["format"] == 1
    found = {(place, keys) for place, keys in shape_of(three.json) if place not in FREE}
    assert found == {(place, frozenset(keys)) for place, keys in SHAPE.items()}
    told = set(code(read("docs/compare.md")))
    assert {key for keys in SHAPE.values() for key in keys} <= told


def test_the_page_of_the_user_is_held_to_the_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main(["compare", "--help"])
    told = capsys.readouterr().out
    text = read("docs/compare.md")
    assert {code(row[0])[0].split()[0] for row in rows(text, "option")} == options_in(told)
    assert [code(row[0])[0] for row in rows(text, "likeness")] == ["same", "another-route", "changed", "contradictory"]
    statuses = [row[0] for row in rows(text, "status")]
    assert statuses == re.findall(r"\b(\d) ", told.partition("Exit status:")[2])
