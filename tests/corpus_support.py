"""Recordings that are kept with the tests, and what comes of judging one of them again."""

import json
import lzma
from collections.abc import Mapping
from pathlib import Path

from cluster_support import environment, run_command

CORPUS = Path(__file__).parent / "data" / "corpus"
FINDINGS = Path(__file__).parent / "data" / "findings"


def verdicts(recording: Path) -> dict[str, str]:
    """Test id → verdict, of what was judged."""
    found = (json.loads(line) for line in recording.read_text("utf-8").splitlines())
    return {f"{x['requirement']}[{x['subject']}]": x["verdict"] for x in found if x["type"] == "verdict"}


def failed(found: Mapping[str, str]) -> set[str]:
    """The requirements that failed somewhere."""
    return {name.partition("[")[0] for name, verdict in found.items() if verdict == "fail"}


def judged_again(name: str, folder: Path, *arguments: str, kept: Path = CORPUS) -> tuple[Path, Path, int]:
    """The kept recording of a subject, what came of judging it again, and with which exit status."""
    source = folder / "recorded.jsonl"
    source.write_bytes(lzma.decompress((kept / f"{name}.jsonl.xz").read_bytes()))
    out = folder / "out"
    ran = run_command(
        "run", "--cluster", f"recording:{source}", "--out", str(out), *arguments, env=environment(folder), cwd=folder
    )
    assert "Traceback" not in ran.stderr, ran.stderr
    return source, out / "recording.jsonl", ran.returncode
