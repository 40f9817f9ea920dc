"""Compares recordings of published operators with what is known of them.

    python bench/compare_findings.py docs/findings.yaml recording.jsonl …
    python bench/compare_findings.py docs/findings.yaml --selection OPERATOR     which cases show all of them, for `-k`

For each recording the MUST requirements that fail in it have to be those that the file lists for its operator and its
contract: all that failed in every run, and of the others only those of which the file says what decides whether they
fail. Prints what is new and what is gone. Exit status 0 if nothing is, 1 if something is, 4 if a file cannot be read
or says nothing of the operator.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml
from pydantic import Field, TypeAdapter, ValidationError

from exitcode_conformance.frozen import Frozen
from exitcode_conformance.verdict import Verdict
from exitcode_reports.recording import Recording, read_recording
from exitcode_reports.recording_error import RecordingError
from exitcode_reports.results import case_results

SAME, DIFFERENT, UNREADABLE = 0, 1, 4


class Known(Frozen):
    """What is known of one operator under one contract."""

    runs: int = Field(ge=2)
    """How many runs it was seen in: what one run shows may be chance."""
    always: tuple[str, ...]
    """The MUST requirements that failed in each of them."""
    races: dict[str, str] = {}
    """Those that may fail and may not, each with what decides it."""


class Findings(Frozen):
    """What is known of one operator."""

    shown_by: tuple[str, ...]
    """What stands in the brackets of the test ids of a few cases that show all that fails always."""
    contracts: dict[str, Known]


FINDINGS: TypeAdapter[dict[str, Findings]] = TypeAdapter(dict[str, Findings])
"""By operator."""


def broken_in(recording: Recording) -> dict[str, int]:
    """MUST requirement → how many of its cases fail."""
    found: dict[str, int] = {}
    for result in case_results(recording):
        if result.case.level == "MUST" and result.verdict is Verdict.FAIL:
            found[result.case.requirement] = found.get(result.case.requirement, 0) + 1
    return found


def is_as_known(known: Known, seen: dict[str, int]) -> bool:
    """Whether exactly what is known to fail does; prints what is new, what is gone, and which race went which way."""
    for name, why in sorted(known.races.items()):
        print(f"  {name} {f'fails in {seen[name]} cases' if name in seen else 'does not fail'} this time: {why}")
    new = sorted(seen.keys() - {*known.always, *known.races})
    gone = sorted(set(known.always) - seen.keys())
    for name in new:
        print(f"  {name} fails in {seen[name]} cases, which is new")
    for name in gone:
        print(f"  {name} failed in each of {known.runs} runs, and does not")
    return not new and not gone


def _compared(
    findings: Mapping[str, Findings], source: Path, paths: Sequence[Path], recordings: Sequence[Recording]
) -> int:
    status = SAME
    for path, recording in zip(paths, recordings, strict=True):
        operator, contract = recording.header.operator.name, recording.header.contract.id
        known = findings[operator].contracts.get(contract) if operator in findings else None
        if known is None:
            print(f"{source} says nothing of {operator} under {contract}, which {path} is of.", file=sys.stderr)
            return UNREADABLE
        seen = broken_in(recording)
        print(f"{operator} under {contract}: {len(seen)} MUST requirements fail, {len(known.always)} are known to")
        if not is_as_known(known, seen):
            status = DIFFERENT
    return status


def main(arguments: Sequence[str] | None = None) -> int:
    """Read, compare, print; the exit status."""
    parser = argparse.ArgumentParser(description="Compare recordings with the known findings.")
    parser.add_argument("known", type=Path, metavar="FINDINGS")
    parser.add_argument("recordings", nargs="*", type=Path, metavar="RECORDING")
    parser.add_argument("--selection", metavar="OPERATOR")
    options = parser.parse_args(arguments)
    try:
        findings = FINDINGS.validate_python(yaml.safe_load(options.known.read_text("utf-8")) or {})
        recordings = [read_recording(path) for path in options.recordings]
    except (OSError, yaml.YAMLError, ValidationError, RecordingError) as error:
        print(error, file=sys.stderr)
        return UNREADABLE
    if options.selection is not None:
        if options.selection not in findings:
            print(f"{options.known} says nothing of {options.selection}.", file=sys.stderr)
            return UNREADABLE
        print(" or ".join(f"[{subject}]" for subject in findings[options.selection].shown_by))
    return _compared(findings, options.known, options.recordings, recordings)


if __name__ == "__main__":
    sys.exit(main())
