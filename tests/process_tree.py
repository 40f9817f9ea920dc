"""Processes as /proc shows them: who descends from whom, and whether one that was seen still lives."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Seen:
    """A process that cannot be mistaken for a later one of the same number."""

    pid: int
    started: int
    """Clock ticks since the machine's start."""

    def is_alive(self) -> bool:
        """Whether it still runs; a zombie does not."""
        found = _stat(self.pid)
        return found is not None and found[2] == self.started and found[1] != "Z"


def descendants(pid: int) -> set[Seen]:
    """All processes below one, itself included."""
    parents: dict[int, list[tuple[int, int]]] = {}
    own: set[Seen] = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            found = _stat(int(entry.name))
            if found is not None:
                parents.setdefault(found[0], []).append((int(entry.name), found[2]))
                if int(entry.name) == pid:
                    own.add(Seen(pid, found[2]))
    result, queue = own, [pid]
    while queue:
        for child, started in parents.get(queue.pop(), []):
            result.add(Seen(child, started))
            queue.append(child)
    return result


def _stat(pid: int) -> tuple[int, str, int] | None:
    """Parent, state, start time."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return int(fields[1]), fields[0], int(fields[19])


def environment_without(*names: str) -> dict[str, str]:
    """This process's environment without some variables."""
    return {key: value for key, value in os.environ.items() if key not in names}
