"""Writes the kill matrix as files: the page for a person, and everything as JSON."""

from pathlib import Path

from exitcode_reports.kill_matrix import KillMatrix
from exitcode_reports.kill_page import render_kill_matrix
from exitcode_reports.reports import replace_file, unwritable


def write_kill_matrix(matrix: KillMatrix, directory: Path) -> Path:
    """Write kill-matrix.json and kill-matrix.html; the path of the page. Raises RecordingError where that cannot be
    done."""
    try:
        replace_file(directory / "kill-matrix.json", matrix.model_dump_json(indent=1) + "\n")
        return replace_file(directory / "kill-matrix.html", render_kill_matrix(matrix))
    except OSError as error:
        raise unwritable(directory, error) from error
