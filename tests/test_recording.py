"""A recording is read back as it was written, and whatever the writer would not have written is refused."""

import json
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from recording_support import HOSTILE, STARTED, header, make_recording, planned, scenarios

from exitcode_conformance.entry import VerdictLine
from exitcode_reports.recording import RecordingError, RecordingWriter, SecretRefused, read_recording

KNOWN = scenarios([1, 137])
FIRST = next(iter(KNOWN))
Lines = list[dict[str, Any]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A small whole recording."""
    return make_recording(tmp_path / "recording.jsonl", known=dict(KNOWN))


def rewrite(path: Path, change: Callable[[Lines], None], *, sealed: bool = True) -> None:
    """Change the lines of a recording; `sealed` makes the footer fit them again."""
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    change(lines)
    encoded = [json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode() for line in lines]
    if sealed:
        digest = sha256(b"".join(line + b"\n" for line in encoded[:-1])).hexdigest()
        encoded[-1] = json.dumps(lines[-1] | {"sha256": digest}).encode()
    path.write_bytes(b"".join(line + b"\n" for line in encoded))


def refusal(path: Path, *, allow_partial: bool = False) -> str:
    """The sentence with which the recording is refused; it always says what to do as well."""
    with pytest.raises(RecordingError) as caught:
        read_recording(path, allow_partial=allow_partial)
    assert caught.value.advice.endswith(".")
    assert caught.value.problem.endswith(".")
    assert "\n" not in str(caught.value)
    return caught.value.problem


def test_a_recording_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "recording.jsonl"
    plan = [planned("EXIT-03", FIRST)]
    with RecordingWriter(path, header(KNOWN, plan), now=lambda: STARTED) as writer:
        action = writer.action(scenario=FIRST, action="submit", detail={"name": "x", "codes": [1, 2]})
        event = writer.event(scenario=None, resource="pods", verb="ADDED", object={"metadata": {"name": "ü"}})
        verdict = writer.verdict(
            requirement="EXIT-03",
            subject=FIRST,
            scenarios=[FIRST],
            verdict="pass",
            expected="this",
            seen="this",
            deciding=[event.seq],
        )
        footer = writer.close(0)
    recording = read_recording(path)
    assert recording.header == header(KNOWN, plan)
    assert recording.entries == (action, event)
    assert recording.verdicts == (verdict,)
    assert recording.footer == footer
    assert (action.seq, event.seq, verdict.seq) == (1, 2, 3)
    assert footer.lines == {"event": 1, "action": 1, "verdict": 1}
    assert footer.verdicts == {"pass": 1}
    assert not recording.partial
    assert recording.entries_of(FIRST) == (action,)
    assert read_recording(path, allow_partial=True) == recording


def test_the_footer_seals_every_byte_before_it(path: Path) -> None:
    content = path.read_bytes()
    footer = json.loads(content.splitlines()[-1])
    before = content[: content.rindex(b"\n", 0, -1) + 1]
    assert footer["sha256"] == sha256(before).hexdigest()


def test_a_recording_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    with RecordingWriter(path, header(KNOWN, [])) as writer:
        for number in range(1, 4):
            written = writer.action(scenario=FIRST, action="settled")
            assert read_recording(path, allow_partial=True).entries[-1] == written
            assert written.seq == number


def test_threads_may_write_at_the_same_time(tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    with RecordingWriter(path, header(KNOWN, [])) as writer:

        def work(name: str) -> None:
            for number in range(200):
                pod = {"metadata": {"name": f"{name}-{number}"}}
                writer.event(scenario=FIRST, resource="pods", verb="ADDED", object=pod)

        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        writer.close(0)
    recording = read_recording(path)
    assert [entry.seq for entry in recording.entries] == list(range(1, 801))


@pytest.mark.parametrize("message", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_comes_back_as_it_was(tmp_path: Path, message: str) -> None:
    path = tmp_path / "recording.jsonl"
    with RecordingWriter(path, header(KNOWN, [])) as writer:
        written = writer.event(scenario=FIRST, resource="pods", verb="ADDED", object={"message": message})
        writer.close(0)
    assert read_recording(path).entries == (written,)
    assert written.object == {"message": message}


def test_a_lone_surrogate_is_recorded_as_the_replacement_character(tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    with RecordingWriter(path, header(KNOWN, [], reproduce=("x\udcff",))) as writer:
        written = writer.event(
            scenario=FIRST, resource="pods", verb="ADDED", object={"a\ud800": ["\udfff ok", "\U0001f600"]}
        )
        writer.close(0)
    recording = read_recording(path)
    assert recording.entries == (written,)
    assert written.object == {"a\ufffd": ["\ufffd ok", "\U0001f600"]}
    assert recording.header.reproduce == ("x\ufffd",)


@pytest.mark.parametrize(
    "unfit",
    [float("nan"), float("inf"), {"a": [float("-inf")]}, object(), {"bytes": b"\xff"}],
    ids=["nan", "infinity", "nested", "object", "bytes"],
)
def test_the_writer_refuses_what_is_no_json_and_goes_on(tmp_path: Path, unfit: Any) -> None:
    path = tmp_path / "recording.jsonl"
    with RecordingWriter(path, header(KNOWN, [])) as writer:
        with pytest.raises(RecordingError, match="cannot be recorded as JSON"):
            writer.event(scenario=FIRST, resource="pods", verb="ADDED", object={"spec": unfit})
        writer.action(scenario=FIRST, action="settled")
        writer.close(0)
    assert [entry.seq for entry in read_recording(path).entries] == [1]


def test_the_writer_refuses_what_the_reader_could_not_read_back(tmp_path: Path) -> None:
    deep: dict[str, Any] = {}
    for _ in range(500):
        deep = {"a": deep}
    with (
        RecordingWriter(tmp_path / "recording.jsonl", header(KNOWN, [])) as writer,
        pytest.raises(RecordingError, match="cannot be recorded as JSON"),
    ):
        writer.event(scenario=FIRST, resource="pods", verb="ADDED", object=deep)


JWT = "eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ." + "eyJpc3MiOiJrdWJlcm5ldGVzIn0" + ".c2lnbmF0dXJlLXNpZ25hdHVyZQ"


@pytest.mark.parametrize(
    "text",
    [
        f"token {JWT} was refused",
        "Authorization: Bearer abcdefghijklmnopqrstuvwxyz0123456789",
        "Authorization: bearer abcdefghijklmnopqrstuvwxyz0123456789",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE",
        "-----BEGIN PRIVATE KEY-----\nMIIE",
        "client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlF",
        "token: ZXlKaGJHY2lPaUpTVXpJMU5pSXNJbXRwWkNJNkluZ2lmUS5leUpwYzNNaU9pSnJkV0psY201bGRHVnpJbjA=",
        "the word that only the harness knows: open-sesame",
    ],
)
def test_credentials_are_refused_and_nothing_of_them_is_written(tmp_path: Path, text: str) -> None:
    path = tmp_path / "recording.jsonl"
    with RecordingWriter(path, header(KNOWN, []), known_secrets=["open-sesame"]) as writer:
        with pytest.raises(SecretRefused):
            writer.event(scenario=FIRST, resource="pods", verb="ADDED", object={"message": text})
        with pytest.raises(SecretRefused):
            writer.action(scenario=FIRST, action="harness-error", detail={"deep": [{"message": text}]})
        writer.close(3)
    assert read_recording(path).entries == ()
    assert text[-12:].encode() not in path.read_bytes()


@pytest.mark.parametrize(
    ("resource", "object"),
    [("secrets", {"data": {}}), ("things", {"kind": "Secret"}), ("things", {"kind": "SecretList"})],
)
def test_secrets_are_refused_whatever_they_hold(tmp_path: Path, resource: str, object: dict[str, Any]) -> None:
    with (
        RecordingWriter(tmp_path / "recording.jsonl", header(KNOWN, [])) as writer,
        pytest.raises(SecretRefused, match="A Secret was about to be recorded"),
    ):
        writer.event(scenario=None, resource=resource, verb="ADDED", object=object)


@pytest.mark.parametrize(
    "text", ["keys and monkeys", "bearer of bad news", "eyJ", "the token was refused", "RG9ja2Vy" * 20]
)
def test_ordinary_words_are_recorded(tmp_path: Path, text: str) -> None:
    with RecordingWriter(tmp_path / "recording.jsonl", header(KNOWN, [])) as writer:
        assert writer.event(scenario=None, resource="pods", verb="ADDED", object={"message": text}).seq == 1


def test_the_same_verdict_again_is_one_line_and_another_is_refused(tmp_path: Path) -> None:
    with RecordingWriter(tmp_path / "recording.jsonl", header(KNOWN, [planned("EXIT-03", FIRST)])) as writer:

        def judge(verdict: str, requirement: str = "EXIT-03") -> VerdictLine:
            return writer.verdict(
                requirement=requirement,
                subject=FIRST,
                scenarios=[FIRST],
                verdict=verdict,
                expected="this",
                seen="that",
            )

        assert judge("pass") is judge("pass")
        with pytest.raises(RecordingError, match="judged pass and is now judged fail"):
            judge("fail")
        with pytest.raises(RecordingError, match="not in the plan"):
            judge("pass", "EXIT-99")
        assert writer.close(0).verdicts == {"pass": 1}


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"verdict": "maybe"}, "not a valid Verdict"),
        ({"scenarios": ("other",)}, "scenario 'other' is not in the recording's header"),
        ({"deciding": (1,)}, "are not all recorded"),
    ],
)
def test_a_verdict_on_what_there_is_not_is_refused(tmp_path: Path, wrong: dict[str, Any], sentence: str) -> None:
    right: dict[str, Any] = {"verdict": "pass", "scenarios": (FIRST,), "deciding": ()}
    with (
        RecordingWriter(tmp_path / "recording.jsonl", header(KNOWN, [planned("EXIT-03", FIRST)])) as writer,
        pytest.raises(ValueError, match=sentence),
    ):
        writer.verdict(requirement="EXIT-03", subject=FIRST, expected="e", seen="s", **(right | wrong))


def test_nothing_is_written_behind_the_footer(tmp_path: Path) -> None:
    with RecordingWriter(tmp_path / "recording.jsonl", header(KNOWN, [])) as writer:
        writer.close(0)
        with pytest.raises(RecordingError, match="is closed"):
            writer.action(scenario=None, action="operator-started")


def test_a_recording_that_is_there_stays_unless_it_is_to_be_replaced(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(RecordingError, match="is there already"):
        RecordingWriter(path, header(KNOWN, []))
    assert path.read_bytes() == before
    with path.open("rb") as reader:
        RecordingWriter(path, header(KNOWN, []), replace=True).abandon()
        assert reader.read() == before
    assert len(path.read_bytes().splitlines()) == 1


def test_a_place_that_cannot_be_written_to_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordingError, match=r"cannot be written: .*\. Choose a directory"):
        RecordingWriter(tmp_path / "file" / "recording.jsonl", header(KNOWN, []))


def test_a_run_cut_short_is_readable_up_to_its_last_whole_line(path: Path) -> None:
    whole = path.read_bytes()
    complete = read_recording(path)
    ends = [number for number, byte in enumerate(whole) if byte == 10]
    for line in (1, 2, len(ends) // 2, len(ends) - 2):
        for cut in (ends[line] + 1, ends[line] + 20, ends[line + 1]):
            path.write_bytes(whole[:cut])
            assert "cut off" in refusal(path) or "without a footer" in refusal(path)
            partial = read_recording(path, allow_partial=True)
            assert partial.partial
            assert partial.footer is None
            assert len(partial.entries) + len(partial.verdicts) == line
            assert partial.entries == complete.entries[: len(partial.entries)]


def test_a_character_cut_in_two_is_no_reason_to_refuse_a_partial_recording(tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    with RecordingWriter(path, header(KNOWN, [])) as writer:
        writer.action(scenario=None, action="operator-started", detail={"name": "ü"})
    path.write_bytes(path.read_bytes() + '{"type":"action","detail":{"ü'.encode()[:-1])
    assert len(read_recording(path, allow_partial=True).entries) == 1


def test_a_header_cut_in_two_is_refused(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])
    assert "line 1 is no header" in refusal(path, allow_partial=True)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda lines: lines.insert(5, lines[4]),
            "Line 6 has number 4, not 5: it is repeated or out of order.",
        ),
        (lambda lines: lines.pop(5), "Line 6 has number 6: lines before it are missing."),
        (lambda lines: lines.insert(9, lines.pop(4)), "Line 5 has number 5: lines before it are missing."),
        (lambda lines: lines[5].update(surprise=1), "Line 6 is wrong: the key 'surprise' is not known."),
        (lambda lines: lines[5].pop("time"), "Line 6 is wrong: the key 'time' is missing."),
        (lambda lines: lines[5].update(type="guess"), "its type is none of event, action, verdict, footer"),
        (lambda lines: lines[5].update(seq="5"), "'seq': input should be a valid integer"),
        (lambda lines: lines[20].update(time=-1.0), "Line 21 is at -1.0 s, before the line above it at"),
        (
            lambda lines: lines[5].update(scenario="other"),
            "Line 6 belongs to scenario 'other', which the header",
        ),
        (lambda lines: lines[-2].update(verdict="maybe"), "there is no verdict 'maybe'"),
        (lambda lines: lines[-2].update(requirement="X-1"), "which is not in the plan"),
        (
            lambda lines: lines[-2].update({"deciding": [100_000]}),
            "the deciding number 100000 is not that of a line",
        ),
        (
            lambda lines: lines[-1]["lines"].update(event=1),
            "the counts of the footer are not those of the lines",
        ),
        (
            lambda lines: lines[-1]["verdicts"].update(fail=1),
            "the counts of the footer are not those of the lines",
        ),
        (
            lambda lines: lines[0].update(format=2),
            "the recording has format 2, and this version reads format 1",
        ),
        (
            lambda lines: lines[0].update(format="\x1b[2J"),
            "the recording has format '?[2J', and this version",
        ),
        (lambda lines: lines[0].pop("plan"), "Line 1: the header is wrong: the key 'plan' is missing."),
        (lambda lines: lines[0].update(more=1), "Line 1: the header is wrong: the key 'more' is not known."),
        (lambda lines: lines.pop(0), "line 1 is no header"),
        (lambda lines: lines.insert(1, lines[0]), "Line 2 is wrong: its type is none of"),
        (lambda lines: lines.insert(-1, lines[-1]), "stands behind the footer"),
        (lambda lines: lines.pop(), "without a footer"),
    ],
)
def test_an_inconsistent_recording_is_refused(path: Path, change: Callable[[Lines], None], sentence: str) -> None:
    rewrite(path, change, sealed="without" not in sentence)
    assert sentence in refusal(path)


def test_a_verdict_given_twice_is_refused(path: Path) -> None:
    def change(lines: Lines) -> None:
        lines.insert(-1, lines[-2] | {"seq": lines[-2]["seq"] + 1})

    rewrite(path, change)
    assert "again, which line" in refusal(path)


def test_a_line_behind_the_footer_is_refused(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"{}\n")
    assert "stands behind the footer" in refusal(path)


def test_a_changed_recording_is_refused(path: Path) -> None:
    rewrite(path, lambda lines: lines[1]["detail"].update(name="another"), sealed=False)
    problem = refusal(path)
    assert "the recording was changed" in problem
    assert problem.startswith(f"Line {len(path.read_bytes().splitlines())}")


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity"])
def test_numbers_that_are_none_are_refused(path: Path, number: bytes) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    event = next(n for n, line in enumerate(lines) if b'"event"' in line)
    lines[event] = lines[event].replace(b'"uid":', b'"x":' + number + b',"uid":', 1)
    path.write_bytes(b"".join(lines))
    assert f"Line {event + 1} is not JSON" in refusal(path)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b"\n", "line 1 is no header"),
        (b"\x1f\x8b\x08\x00\n", "Line 1 is not UTF-8"),
        (b"[]\n", "line 1 is no header"),
        (b"apiVersion: v1\nkind: List\n", "line 1 is no header"),
        (b"\xef\xbb\xbf{}\n", "line 1 is no header"),
        (b"[" * 100_000 + b"\n", "line 1 is no header"),
        (b'{"type":"header","format":true}\n', "the recording has format True"),
    ],
)
def test_what_is_no_recording_is_refused(path: Path, content: bytes, sentence: str) -> None:
    path.write_bytes(content)
    assert sentence in refusal(path)
    assert sentence in refusal(path, allow_partial=True)


@pytest.mark.parametrize("broken", [b"\xff\n", b"\n", b"not json\n", b"[1]\n"])
def test_a_broken_line_in_the_middle_is_refused_even_of_a_partial_recording(path: Path, broken: bytes) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:7], broken, *lines[7:]]))
    assert "Line 8 is" in refusal(path, allow_partial=True)


def test_what_is_no_file_is_refused(tmp_path: Path, path: Path) -> None:
    assert "There is no file" in refusal(tmp_path / "missing.jsonl")
    with pytest.raises(RecordingError, match=r"is a directory, not a recording\. Give .*recording\.jsonl\."):
        read_recording(path.parent)
    os.mkfifo(tmp_path / "pipe")
    assert "is not a regular file" in refusal(tmp_path / "pipe")
    assert "cannot be read" in refusal(Path("a\x00b")) or "There is no file" in refusal(Path("a\x00b"))


def test_times_are_told_in_utc(path: Path) -> None:
    recording = read_recording(path)
    assert recording.header.started_at == datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    assert b'"started_at":"2026-03-01T09:30:00Z"' in path.read_bytes()
