"""A whole run as it was recorded, read back strictly: whatever is judged or shown later comes from here."""

import re
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import from_json

from exitcode_conformance.entry import Action, Entry, Event, VerdictLine
from exitcode_conformance.frozen import Frozen
from exitcode_conformance.verdict import Verdict
from exitcode_reports.header import (
    FORMAT,
    ClusterIdentity,
    ContractIdentity,
    Footer,
    Header,
    OperatorIdentity,
    PlannedCase,
    RecordedWaiver,
)
from exitcode_reports.recording_error import RecordingError, SecretRefused
from exitcode_reports.recording_writer import RecordingWriter

__all__ = [
    "FORMAT",
    "ClusterIdentity",
    "ContractIdentity",
    "Footer",
    "Header",
    "OperatorIdentity",
    "PlannedCase",
    "RecordedWaiver",
    "Recording",
    "RecordingError",
    "RecordingWriter",
    "SecretRefused",
    "read_recording",
]

_LINE: TypeAdapter[Event | Action | VerdictLine | Footer] = TypeAdapter(
    Annotated[Event | Action | VerdictLine | Footer, Field(discriminator="type")]
)
_VERDICTS = frozenset(Verdict)
_WHICH = "Give the path of a recording.jsonl that a run has written."
_PARTIAL = "The run was cut short or is still going on: wait for it, or read the recording as a partial one."
_FRESH = "Take the file as the run wrote it, or run again."


class Recording(Frozen):
    """What `read_recording` found. `seq` of an entry or a verdict plus one is its line number in the file."""

    path: Path
    header: Header
    entries: tuple[Entry, ...]
    verdicts: tuple[VerdictLine, ...]
    footer: Footer | None
    partial: bool
    """There is no footer: the run was cut short, or was still going on."""

    def entries_of(self, scenario: str) -> tuple[Entry, ...]:
        """The entries of one scenario, in order."""
        return tuple(entry for entry in self.entries if entry.scenario == scenario)


def read_recording(path: Path, *, allow_partial: bool = False) -> Recording:
    """Read and check a recording. Raises RecordingError, which names the line, for everything that the writer
    would not have written; with `allow_partial` one that ends too early is read up to its last whole line."""
    whole, rest = _split(_read(path))
    if rest and not allow_partial:
        raise RecordingError(f"Line {len(whole) + 1} of {path} is cut off.", _PARTIAL)
    header = _header(whole[0] if whole else b"", path)
    reader = _Reader(header, path, whole[0])
    for number, line in enumerate(whole[1:], start=2):
        reader.take(number, line)
    if reader.footer is None and not allow_partial:
        raise RecordingError(f"{path} ends after line {len(whole)} without a footer.", _PARTIAL)
    # The parts have been validated one by one; to validate 20,000 of them again would double the time.
    return Recording.model_construct(
        path=path,
        header=header,
        entries=tuple(reader.entries),
        verdicts=tuple(reader.verdicts),
        footer=reader.footer,
        partial=reader.footer is None,
    )


def _read(path: Path) -> bytes:
    try:
        if path.is_dir():
            inside = path / "recording.jsonl"
            advice = f"Give {inside}." if inside.is_file() else _WHICH
            raise RecordingError(f"{path} is a directory, not a recording.", advice)
        if path.exists() and not path.is_file():
            raise RecordingError(f"{path} is not a regular file.", _WHICH)
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise RecordingError(f"There is no file {path}.", _WHICH) from error
    except (OSError, ValueError) as error:
        raise RecordingError(f"{path} cannot be read: {error}.", _WHICH) from error
    if not content:
        raise RecordingError(f"{path} is empty.", _WHICH)
    return content


def _split(content: bytes) -> tuple[list[bytes], bytes]:
    """The whole lines without their ends, and what stands behind the last of them."""
    *whole, rest = content.split(b"\n")
    return whole, rest


def _header(line: bytes, path: Path) -> Header:
    """The header, or a sentence: what is not a recording at all is told apart from one of another format."""
    try:
        content = from_json(_text(1, line), allow_inf_nan=False)
    except ValueError:
        content = None
    if not isinstance(content, dict) or content.get("type") != "header":
        raise RecordingError(f"{path} is not a recording: line 1 is no header.", _WHICH)
    found = content.get("format")
    if found != FORMAT or isinstance(found, bool):
        raise RecordingError(
            f"Line 1: the recording has format {_short(found)}, and this version reads format {FORMAT}.",
            "Read it with the version of exitcode-conformance that wrote it.",
        )
    try:
        return Header.model_validate_json(line, strict=True)
    except ValidationError as error:
        raise RecordingError(f"Line 1: the header is wrong: {_first(error)}.", _FRESH) from error


class _Reader:
    """Takes the lines after the header in turn and holds each against all before it."""

    def __init__(self, header: Header, path: Path, first: bytes) -> None:
        self._header = header
        self._path = path
        self._digest = sha256(first + b"\n")
        self._planned = {(case.requirement, case.subject) for case in header.plan}
        self._judged: dict[tuple[str, str], int] = {}
        self._lines: Counter[str] = Counter(event=0, action=0, verdict=0)
        self._time = 0.0
        self.entries: list[Entry] = []
        self.verdicts: list[VerdictLine] = []
        self.footer: Footer | None = None

    def take(self, number: int, line: bytes) -> None:
        """Check one line and keep it."""
        if self.footer is not None:
            raise RecordingError(f"Line {number} stands behind the footer.", _FRESH)
        found = _parse(number, line)
        if isinstance(found, Footer):
            self._close(number, found)
            return
        self._check_order(number, found)
        self._lines[found.type] += 1
        if isinstance(found, VerdictLine):
            self._check_verdict(number, found)
            self.verdicts.append(found)
        else:
            self._check_scenario(number, found.scenario)
            self.entries.append(found)
        self._digest.update(line)
        self._digest.update(b"\n")

    def _check_order(self, number: int, found: Entry | VerdictLine) -> None:
        wanted = number - 1
        if found.seq > wanted:
            raise RecordingError(f"Line {number} has number {found.seq}: lines before it are missing.", _FRESH)
        if found.seq < wanted:
            problem = f"Line {number} has number {found.seq}, not {wanted}: it is repeated or out of order."
            raise RecordingError(problem, _FRESH)
        if found.time < self._time:
            problem = f"Line {number} is at {found.time} s, before the line above it at {self._time} s."
            raise RecordingError(problem, _FRESH)
        self._time = found.time

    def _check_scenario(self, number: int, scenario: str | None) -> None:
        if scenario is not None and scenario not in self._header.scenarios:
            problem = f"Line {number} belongs to scenario {_short(scenario)}, which the header does not have."
            raise RecordingError(problem, _FRESH)

    def _check_verdict(self, number: int, line: VerdictLine) -> None:
        case = (line.requirement, line.subject)
        name = _short(f"{line.requirement}[{line.subject}]")
        if line.verdict not in _VERDICTS:
            raise RecordingError(f"Line {number}: there is no verdict {_short(line.verdict)}.", _FRESH)
        if case not in self._planned:
            raise RecordingError(f"Line {number} judges {name}, which is not in the plan.", _FRESH)
        if case in self._judged:
            raise RecordingError(
                f"Line {number} judges {name} again, which line {self._judged[case]} has judged.", _FRESH
            )
        self._judged[case] = number
        for scenario in line.scenarios:
            self._check_scenario(number, scenario)
        for seq in line.deciding:
            if not 1 <= seq < line.seq:
                raise RecordingError(
                    f"Line {number}: the deciding number {seq} is not that of a line before it.", _FRESH
                )

    def _close(self, number: int, footer: Footer) -> None:
        found = self._digest.hexdigest()
        if footer.sha256 != found:
            raise RecordingError(
                f"Line {number}: the lines before the footer have SHA-256 {found[:12]}…, the footer says "
                f"{_short(footer.sha256[:12])}…: the recording was changed.",
                _FRESH,
            )
        verdicts = Counter(line.verdict for line in self.verdicts)
        if footer.lines != dict(self._lines) or footer.verdicts != dict(verdicts):
            problem = f"Line {number}: the counts of the footer are not those of the lines."
            raise RecordingError(problem, _FRESH)
        self.footer = footer


def _text(number: int, line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise RecordingError(f"Line {number} is not UTF-8 (byte {error.start + 1} of it).", _FRESH) from error


def _parse(number: int, line: bytes) -> Event | Action | VerdictLine | Footer:
    _text(number, line)
    try:
        if b"NaN" in line or b"Infinity" in line:
            # Legal inside a string; as numbers they are no JSON, though the parser would take them.
            from_json(line, allow_inf_nan=False)
        return _LINE.validate_json(line, strict=True)
    except ValidationError as error:
        raise RecordingError(f"Line {number} is wrong: {_first(error)}.", _FRESH) from error
    except ValueError as error:
        raise RecordingError(f"Line {number} is not JSON: {_short(str(error))}.", _FRESH) from error


def _first(error: ValidationError) -> str:
    """The first complaint as part of a sentence."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    tags = ("event", "action", "verdict", "footer")
    place = ".".join(str(part) for number, part in enumerate(first["loc"]) if number or part not in tags)
    message = first["msg"]
    if first["type"] == "json_invalid":
        return "it is not JSON (" + message.removeprefix("Invalid JSON: ") + ")"
    if first["type"] == "extra_forbidden":
        return f"the key {_short(place)} is not known"
    if first["type"] == "missing":
        return f"the key {_short(place)} is missing"
    if first["type"] in ("union_tag_invalid", "union_tag_not_found"):
        return "its type is none of event, action, verdict, footer"
    return f"{_short(place)}: {message[:1].lower()}{message[1:]}" if place else message


def _short(value: Any) -> str:
    """What a file says, fit for a sentence in a terminal: quoted, no control characters, not long."""
    text = value if isinstance(value, str) else repr(value)
    text = re.sub(r"[^\x20-\x7e\xa1-\u02ff]", "?", text)
    return f"'{text[:80]}…'" if len(text) > 80 else f"'{text}'" if isinstance(value, str) else text
