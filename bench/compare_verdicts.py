"""Compares the verdicts of several recordings of one operator, made on different clusters, case by case.

    python bench/compare_verdicts.py embedded/recording.jsonl kind/recording.jsonl …

Prints one line for each (requirement, scenario) on which the recordings differ. Exit status 0 if they differ on none,
1 if they do, 4 if a file is no whole recording. A case that one of the plans does not have is a difference too.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from exitcode_reports.recording import Recording, read_recording
from exitcode_reports.recording_error import RecordingError
from exitcode_reports.results import case_results, overall

ABSENT = "not planned"
SAME, DIFFERENT, UNREADABLE = 0, 1, 4


def verdicts_of(recording: Recording) -> dict[str, str]:
    """Test id → verdict, for every case of the plan."""
    return {result.name: result.verdict.value for result in case_results(recording)}


def differences(tables: Sequence[Mapping[str, str]]) -> dict[str, tuple[str, ...]]:
    """Test id → the verdict of each table, where they are not all the same."""
    names = sorted({name for table in tables for name in table})
    rows = {name: tuple(table.get(name, ABSENT) for table in tables) for name in names}
    return {name: row for name, row in rows.items() if len(set(row)) > 1}


def main(arguments: Sequence[str] | None = None) -> int:
    """Read, compare, print; the exit status."""
    parser = argparse.ArgumentParser(description="Compare the verdicts of recordings, case by case.")
    parser.add_argument("recordings", nargs="+", type=Path, metavar="RECORDING")
    paths: list[Path] = parser.parse_args(arguments).recordings
    try:
        recordings = [read_recording(path) for path in paths]
    except RecordingError as error:
        print(error, file=sys.stderr)
        return UNREADABLE
    print_heads(recordings)
    tables = [verdicts_of(recording) for recording in recordings]
    found = differences(tables)
    width = max(map(len, found), default=0)
    for name, row in found.items():
        print(f"{name:<{width}}  " + "  ".join(f"{verdict:<13}" for verdict in row).rstrip())
    print(f"{len(found)} of {len({name for table in tables for name in table})} cases differ")
    return DIFFERENT if found else SAME


def print_heads(recordings: Sequence[Recording]) -> None:
    """Which column is which."""
    for number, recording in enumerate(recordings, start=1):
        header = recording.header
        operator = f"{header.operator.name} {header.operator.version}"
        cluster = f"{header.cluster.address} ({header.cluster.server_version})"
        outcome = overall(recording).name.lower().replace("_", " ")
        print(f"column {number}: {operator} on {cluster}, contract {header.contract.id}: {outcome}")


if __name__ == "__main__":
    sys.exit(main())
