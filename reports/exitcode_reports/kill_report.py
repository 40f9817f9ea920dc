"""Writes the kill matrix as files: the page for a person, and everything as JSON."""

from pathlib import Path

from exitcode_reports.kill_matrix import KillMatrix


def write_kill_matrix(matrix: KillMatrix, directory: Path) -> Path:
    """Write kill-matrix.json and kill-matrix.html; the path of the page."""
    (directory / "kill-matrix.json").write_text(matrix.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return directory / "kill-matrix.json"
