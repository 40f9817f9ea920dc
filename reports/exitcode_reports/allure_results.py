"""Allure's results, written from the recording: one file a case, and one attachment a scenario that its cases share.

allure-pytest writes the same while tests run, for whoever calls pytest with `--alluredir`; but it keeps a file for
every fixture of every case and a copy of the time line for each, and takes longer than the run itself.
"""

import hashlib
import json
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from allure_commons.types import AttachmentType, LabelType

from exitcode_conformance.entry import Entry
from exitcode_conformance.verdict import Verdict
from exitcode_reports.recording import Recording
from exitcode_reports.results import CaseResult, case_results
from exitcode_reports.text_timeline import text_timeline

_STATUS: Final[Mapping[Verdict, str]] = {
    Verdict.PASS: "passed",
    Verdict.FAIL: "failed",
    Verdict.UNKNOWN: "broken",
    Verdict.ERROR: "broken",
    Verdict.WAIVED: "skipped",
    Verdict.NOT_SUPPORTED: "skipped",
    Verdict.NOT_RUN: "skipped",
}
"""Allure knows no more than these; what the verdict really is stands in the message."""


def write_allure_results(recording: Recording, directory: Path) -> None:
    """Writes `directory` anew. Cases that were left out by the user's selection are left out here as well."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    by_scenario: dict[str, list[Entry]] = {}
    for entry in recording.entries:
        if entry.scenario is not None:
            by_scenario.setdefault(entry.scenario, []).append(entry)
    spans: dict[str, tuple[float, float]] = {}
    for name, entries in by_scenario.items():
        spans[name] = (entries[0].time, entries[-1].time)
        (directory / _attachment(recording, name)).write_text(text_timeline(entries, around=None), encoding="utf-8")
    for result in case_results(recording):
        if result.verdict is not Verdict.NOT_RUN:
            body = json.dumps(_result(recording, result, spans), ensure_ascii=False)
            (directory / f"{_identifier(recording, result.name)}-result.json").write_text(body, encoding="utf-8")


def _result(recording: Recording, result: CaseResult, spans: Mapping[str, tuple[float, float]]) -> dict[str, Any]:
    case, header = result.case, recording.header
    began = header.started_at.timestamp()
    known = [spans[name] for name in case.scenarios if name in spans]
    start, stop = (min(s for s, _ in known), max(e for _, e in known)) if known else (0.0, 0.0)
    return {
        "uuid": _identifier(recording, result.name),
        "historyId": hashlib.md5(f"{header.operator.name} {result.name}".encode(), usedforsecurity=False).hexdigest(),
        "fullName": f"exitcode_conformance.{result.group}#{result.name}",
        "name": result.name,
        "status": _STATUS[result.verdict],
        "statusDetails": {"message": f"{result.verdict}\nexpected: {result.expected}\nseen: {result.seen}"},
        "stage": "finished",
        "start": round((began + start) * 1000),
        "stop": round((began + stop) * 1000),
        "labels": [
            {"name": LabelType.FEATURE, "value": case.feature},
            {"name": LabelType.STORY, "value": f"{case.requirement} {case.sentence}"},
            {"name": LabelType.SUITE, "value": result.group},
            {"name": "level", "value": case.level},
        ],
        "parameters": [
            {"name": "operator", "value": f"{header.operator.name} {header.operator.version}"},
            {"name": "cluster", "value": header.cluster.address},
            {"name": "scenario", "value": case.subject},
        ],
        "attachments": [
            {
                "name": f"time line of {name}",
                "source": _attachment(recording, name),
                "type": AttachmentType.TEXT.mime_type,
            }
            for name in case.scenarios
            if name in spans
        ],
    }


def _identifier(recording: Recording, name: str) -> str:
    """The same for the same case of the same run, so that a report that is written again replaces nothing by a twin."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{recording.header.run_id}/{name}"))


def _attachment(recording: Recording, scenario: str) -> str:
    return f"{_identifier(recording, scenario)}-attachment.txt"
