"""Writes a comparison as files: the page for a person, and everything as JSON."""

import os
from pathlib import Path
from urllib.parse import quote

from exitcode_reports.comparison import Comparison
from exitcode_reports.comparison_html import render_comparison
from exitcode_reports.reports import replace_file, unwritable

PAGE = "index.html"


def write_comparison(comparison: Comparison, directory: Path) -> Path:
    """Write comparison.json and comparison.html into the directory, which is made if need be, each whole or not at all;
    the path of the page. Nothing else in it is touched. Raises RecordingError where that cannot be done."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        replace_file(directory / "comparison.json", comparison_json(comparison))
        return replace_file(directory / "comparison.html", render_comparison(comparison))
    except OSError as error:
        raise unwritable(directory, error) from error


def comparison_json(comparison: Comparison) -> str:
    """The comparison as docs/compare.md describes it, with a line end."""
    return comparison.model_dump_json(indent=1) + "\n"


def page_beside(recording: Path, directory: Path) -> str | None:
    """The relative URL, from a page in this directory, of the report that stands beside a recording; None if there is
    none. No part of a path can be taken for a scheme, a query or a fragment."""
    page = recording.absolute().parent / PAGE
    return quote(os.path.relpath(page, directory.absolute())) if page.is_file() else None
