"""Appends to a recording while the run goes on: numbers the lines, stamps them, and keeps secrets out."""

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from pydantic_core import PydanticSerializationError, from_json, to_json

from exitcode_conformance.entry import Action, Event, VerdictLine, WatchVerb
from exitcode_conformance.frozen import Frozen
from exitcode_conformance.verdict import Trial, Verdict
from exitcode_reports.header import Footer, Header
from exitcode_reports.recording_error import RecordingError, SecretRefused

_CREDENTIAL = re.compile(
    rb"eyJ[\w-]{16,}\.[\w-]{16,}\.[\w-]*"  # a JSON web token
    rb"|ZXlK[\w+/]{60,}"  # the same in base64, as a Secret holds it
    rb"|(?:[Bb]earer|BEARER) [\w.~+/-]{20,}"
    rb"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    rb"|LS0tLS1CRUdJTi[\w+/]{0,24}UFJJVkFURSBLRVkt"  # a private key in base64, as a kubeconfig holds it
)
_CREDENTIAL_HINTS = (b"eyJ", b"ZXlK", b"earer ", b"EARER ", b"-----BEGIN", b"LS0tLS")
"""One of these stands in whatever `_CREDENTIAL` finds; to look for them takes a tenth of the time."""

_DEEPEST = 200
"""Levels of an object. JSON that is nested deeper is refused by the parser, and so by the writer."""

Entered = TypeVar("Entered", Event, Action, VerdictLine)
Line = TypeVar("Line", bound=Frozen)


def _utc_now() -> datetime:
    return datetime.now(UTC)


class RecordingWriter:
    """The one writer of one recording. Every method may be called by any thread; the order of the calls is
    the order of the lines. A line is handed to the kernel whole, in one write, so a reader never sees one in
    part unless the machine or the disk fails.

    `clock` gives the monotonic time in seconds; times are told from the moment the writer was made.
    `known_secrets` are strings that may never be written, whatever they look like. A file that is there
    already is refused unless `replace`."""

    def __init__(
        self,
        path: Path,
        header: Header,
        *,
        replace: bool = False,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = _utc_now,
        known_secrets: Iterable[str] = (),
    ) -> None:
        self.path = path
        self._clock, self._now, self._start = clock, now, clock()
        self._secrets = tuple(s.encode() for s in known_secrets if s)
        self._lock = threading.Lock()
        self._digest = sha256()
        self._lines: Counter[str] = Counter()
        self._verdicts: dict[tuple[str, str], VerdictLine] = {}
        self._planned = {(case.requirement, case.subject) for case in header.plan}
        self._scenarios = header.scenarios.keys()
        self._file: FileIO | None = _create(path, replace=replace)
        try:
            self._append(_encoded(header)[1])
        except RecordingError:
            self.abandon()
            raise

    def event(self, *, scenario: str | None, resource: str, verb: WatchVerb, object: Mapping[str, Any]) -> Event:
        """Record a watch event. Raises SecretRefused for a Secret and for what holds a credential."""
        if resource == "secrets" or object.get("kind") in ("Secret", "SecretList"):
            advice = "Do not watch secrets: the recording is made to be published."
            raise SecretRefused("A Secret was about to be recorded.", advice)
        with self._lock:
            entry = Event(
                seq=self._next(),
                time=self.elapsed(),
                scenario=self._known(scenario),
                resource=resource,
                verb=verb,
                object=dict(object),
            )
            return self._record(entry)

    def action(self, *, scenario: str | None, action: str, detail: Mapping[str, Any] | None = None) -> Action:
        """Record what the harness did or noticed; `action` is one that `entry.Action` names."""
        with self._lock:
            entry = Action.model_validate(
                {
                    "seq": self._next(),
                    "time": self.elapsed(),
                    "scenario": self._known(scenario),
                    "action": action,
                    "detail": dict(detail or {}),
                }
            )
            return self._record(entry)

    def copy(self, entry: Event | Action) -> Event | Action:
        """Record an entry that was read from another recording, at its own time and under the next number."""
        with self._lock:
            self._known(entry.scenario)
            entry = entry.model_copy(update={"seq": self._next()})
            # The reader takes nothing that the writer would refuse, but for a credential.
            self._append(_json(entry), is_json=True)
            self._lines[entry.type] += 1
            return entry

    def verdict(
        self,
        *,
        requirement: str,
        subject: str,
        scenarios: Iterable[str],
        verdict: str,
        expected: str,
        seen: str,
        deciding: Iterable[int] = (),
        observed_class: str | None = None,
        trials: Iterable[Trial] = (),
    ) -> VerdictLine:
        """Record a verdict. Checks are pure, so the same case judged again must come out the same: then the
        line that is already there is returned, and otherwise RecordingError is raised. Raises ValueError for a
        verdict, a scenario or a deciding entry that there is not."""
        with self._lock:
            line = VerdictLine(
                seq=self._next(),
                time=self.elapsed(),
                requirement=requirement,
                subject=subject,
                scenarios=tuple(scenarios),
                verdict=verdict,
                expected=expected,
                seen=seen,
                deciding=tuple(deciding),
                observed_class=observed_class,
                trials=tuple(trials),
            )
            before = self._verdicts.get((requirement, subject))
            if before is not None and before.model_copy(update={"seq": line.seq, "time": line.time}) == line:
                return before
            self._check_verdict(line, before)
            line = self._record(line)
            self._verdicts[(requirement, subject)] = line
            return line

    def close(self, exit_status: int) -> Footer:
        """Write the footer and close the file."""
        with self._lock:
            footer = Footer(
                lines={name: self._lines[name] for name in ("event", "action", "verdict")},
                verdicts=dict(sorted(Counter(v.verdict for v in self._verdicts.values()).items())),
                finished_at=self._now(),
                exit_status=exit_status,
                sha256=self._digest.hexdigest(),
            )
            self._append(_json(footer))
        self.abandon()
        return footer

    def abandon(self) -> None:
        """Close the file without a footer: what was written stays readable, as a partial recording."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abandon()

    def _next(self) -> int:
        return self._lines.total() + 1

    def elapsed(self) -> float:
        """Seconds since the writer was made: the time of a line that would be written now."""
        return round(self._clock() - self._start, 6)

    def _known(self, scenario: str | None) -> str | None:
        if scenario is not None and scenario not in self._scenarios:
            raise ValueError(f"scenario {scenario!r} is not in the recording's header")
        return scenario

    def _check_verdict(self, line: VerdictLine, before: VerdictLine | None) -> None:
        case = f"{line.requirement}[{line.subject}]"
        Verdict(line.verdict)
        for scenario in line.scenarios:
            self._known(scenario)
        if not all(1 <= seq < line.seq for seq in line.deciding):
            raise ValueError(f"{case}: deciding entries {line.deciding} are not all recorded")
        if before is not None:
            raise RecordingError(
                f"{case} was judged {before.verdict} and is now judged {line.verdict}, with no new evidence.",
                "A check must be a pure function of the history: mend the check.",
            )
        if (line.requirement, line.subject) not in self._planned:
            advice = "Plan it before the run begins."
            raise RecordingError(f"{case} was judged but is not in the plan.", advice)

    def _record(self, entry: Entered) -> Entered:
        """Write the entry, and return it as it was written."""
        entry, line = _encoded(entry)
        self._append(line)
        self._lines[entry.type] += 1
        return entry

    def _append(self, line: bytes, *, is_json: bool = False) -> None:
        """Write one line, or nothing at all: what the reader would not take is refused here."""
        if self._file is None:
            raise RecordingError(f"{self.path} is closed.", "Nothing can be recorded after the footer.")
        suspicious = any(hint in line for hint in _CREDENTIAL_HINTS) and _CREDENTIAL.search(line)
        if suspicious or any(secret in line for secret in self._secrets):
            raise SecretRefused(
                "Something that looks like a token or a private key was about to be recorded.",
                "Keep credentials out of names, labels, annotations, environments and messages of the jobs.",
            )
        try:
            if not is_json:
                from_json(line, allow_inf_nan=False)
        except ValueError as error:
            raise _not_json(error) from error
        line += b"\n"
        try:
            written = self._file.write(line)
        except OSError as error:
            raise _unwritable(self.path, error.strerror or str(error)) from error
        if written != len(line):
            self._file.close()
            self._file = None
            raise _unwritable(self.path, "a line was written only in part")
        self._digest.update(line)


def _encoded(line: Line) -> tuple[Line, bytes]:
    """The line as JSON, and the value that it will be read back as."""
    try:
        return line, _json(line)
    except PydanticSerializationError:
        line = type(line).model_validate(_plain(line.model_dump()))
    try:
        return line, _json(line)
    except PydanticSerializationError as error:
        raise _not_json(error) from error


def _json(line: Frozen) -> bytes:
    # "constants", because the model's own way turns a NaN into a null without a word.
    return to_json(dict(line), inf_nan_mode="constants")


def _plain(value: Any, depth: int = 0) -> Any:
    """The same value with U+FFFD for every lone surrogate: UTF-8 has none, a JSON text from a cluster may."""
    if isinstance(value, str):
        if value.isascii():
            return value
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if depth > _DEEPEST:
        return value
    if isinstance(value, Mapping):
        return {_plain(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    return value


def _create(path: Path, *, replace: bool) -> FileIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error)) from error
    try:
        if replace:
            # Whoever still reads the old recording keeps it: a new file takes its name.
            path.unlink(missing_ok=True)
        return FileIO(path, "xb")
    except FileExistsError as error:
        advice = "Choose another output directory, or remove it."
        raise RecordingError(f"{path} is there already.", advice) from error
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error)) from error


def _not_json(error: ValueError) -> RecordingError:
    return RecordingError(f"An object cannot be recorded as JSON: {error}.", "Leave it out.")


def _unwritable(path: Path, reason: str) -> RecordingError:
    advice = "Choose a directory that you may write to and that has room."
    return RecordingError(f"{path} cannot be written: {reason}.", advice)
