"""Writes the reports of a recording next to it, each one whole or not at all."""

import os
from pathlib import Path
from tempfile import NamedTemporaryFile

from exitcode_reports.allure_results import write_allure_results
from exitcode_reports.census import is_census
from exitcode_reports.census_html import render_census
from exitcode_reports.html import render_html
from exitcode_reports.junit import render_junit
from exitcode_reports.recording import Recording
from exitcode_reports.recording_error import RecordingError


def write_reports(recording: Recording, directory: Path) -> tuple[Path, ...]:
    """Write index.html, junit.xml and the folder allure-results into the directory, which is made if need be, and
    return the paths of the first two; of a census, census.html alone. A report that is there already is replaced at
    once, so that no reader ever sees half of one. Raises RecordingError where that cannot be done."""
    of_census = is_census(recording)
    if of_census:
        contents = {"census.html": render_census(recording)}
    else:
        contents = {"index.html": render_html(recording), "junit.xml": render_junit(recording)}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if not of_census:
            write_allure_results(recording, directory / "allure-results")
        return tuple(replace_file(directory / name, content) for name, content in contents.items())
    except OSError as error:
        raise unwritable(directory, error) from error


def write_page(recording: Recording, directory: Path) -> Path:
    """Write index.html alone, into a directory that is there; its path. Raises RecordingError."""
    try:
        return replace_file(directory / "index.html", render_html(recording))
    except OSError as error:
        raise unwritable(directory, error) from error


def unwritable(directory: Path, error: OSError) -> RecordingError:
    """The sentence for a directory that takes no reports."""
    return RecordingError(
        f"The reports cannot be written to {directory}: {error.strerror or error}.",
        "Choose a directory that you may write to and that has room.",
    )


def replace_file(path: Path, content: str) -> Path:
    """Write a file whole or not at all; its path. Raises OSError."""
    with NamedTemporaryFile(
        "w", encoding="utf-8", newline="\n", dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as file:
        try:
            file.write(content)
            file.flush()
            # Made for the owner alone; the report is for everybody whom the user's own mask allows.
            os.fchmod(file.fileno(), 0o666 & ~_mask())
            os.replace(file.name, path)
        except OSError:
            Path(file.name).unlink(missing_ok=True)
            raise
    return path


def _mask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
