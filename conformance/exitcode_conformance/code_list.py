"""Lists of exit codes as people write them: `0-2,137`."""

import re
from collections.abc import Iterable

EVERY_CODE = tuple(range(256))
"""All exit codes: a status is one byte."""


class UnreadableCodes(ValueError):
    """A list of codes is not as it has to be."""


def parse_codes(text: str) -> tuple[int, ...]:
    """The codes of a list such as `0-2,137`, each once, in ascending order. Raises UnreadableCodes."""
    found: set[int] = set()
    for part in text.split(","):
        ends = re.fullmatch(r"\s*([0-9]{1,4})\s*(?:-\s*([0-9]{1,4})\s*)?", part, re.ASCII)
        if ends is None:
            raise UnreadableCodes(f"{part.strip()!r} is neither a code nor a range of codes.")
        first, last = int(ends[1]), int(ends[2] or ends[1])
        if max(first, last) not in EVERY_CODE:
            raise UnreadableCodes(f"{max(first, last)} is no exit code: they go from 0 to 255.")
        if first > last:
            raise UnreadableCodes(f"The range {first}-{last} ends before it begins.")
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def list_codes(codes: Iterable[int]) -> str:
    """The same the other way: `0-2, 137`; empty for none."""
    runs: list[list[int]] = []
    for code in sorted(set(codes)):
        if runs and code == runs[-1][-1] + 1:
            runs[-1].append(code)
        else:
            runs.append([code])
    # Two neighbours are shorter as two than as a range.
    parts = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return ", ".join(parts)
