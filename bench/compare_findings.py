"""Compares recordings of published operators with what is known of them.

    python bench/compare_findings.py docs/findings.yaml recording.jsonl …

For each recording the MUST requirements that fail in it have to be those that the file lists for its operator and its
contract. Prints what is new and what is gone. Exit status 0 if nothing is, 1 if something is, 4 if a file cannot be
read or says nothing of the operator.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from exitcode_conformance.verdict import Verdict
from exitcode_reports.recording import Recording, read_recording
from exitcode_reports.recording_error import RecordingError
from exitcode_reports.results import case_results

SAME, DIFFERENT, UNREADABLE = 0, 1, 4
Known = Mapping[str, Mapping[str, Sequence[str]]]
"""Operator → contract → ids of the requirements that it breaks."""


def broken_in(recording: Recording) -> dict[str, int]:
    """MUST requirement → how many of its cases fail."""
    found: dict[str, int] = {}
    for result in case_results(recording):
        if result.case.level == "MUST" and result.verdict is Verdict.FAIL:
            found[result.case.requirement] = found.get(result.case.requirement, 0) + 1
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Read, compare, print; the exit status."""
    parser = argparse.ArgumentParser(description="Compare recordings with the known findings.")
    parser.add_argument("known", type=Path, metavar="FINDINGS")
    parser.add_argument("recordings", nargs="+", type=Path, metavar="RECORDING")
    options = parser.parse_args(arguments)
    try:
        known: Known = yaml.safe_load(options.known.read_text("utf-8")) or {}
        recordings = [read_recording(path) for path in options.recordings]
    except (OSError, yaml.YAMLError, RecordingError) as error:
        print(error, file=sys.stderr)
        return UNREADABLE
    status = SAME
    for path, recording in zip(options.recordings, recordings, strict=True):
        operator, contract = recording.header.operator.name, recording.header.contract.id
        if contract not in (known.get(operator) or {}):
            print(f"{options.known} says nothing of {operator} under {contract}, which {path} is of.", file=sys.stderr)
            return UNREADABLE
        expected, seen = set(known[operator][contract]), broken_in(recording)
        print(f"{operator} under {contract}: {len(seen)} MUST requirements fail, {len(expected)} are known to")
        for name in sorted(set(seen) - expected):
            print(f"  {name} fails in {seen[name]} cases, which is new")
        for name in sorted(expected - set(seen)):
            print(f"  {name} was known to fail, and does not")
        if set(seen) != expected:
            status = DIFFERENT
    return status


if __name__ == "__main__":
    sys.exit(main())
