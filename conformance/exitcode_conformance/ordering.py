"""In which order the events of a history happened, as far as it can be known.

Every resource has a watch of its own, and an operator may see a pod fail, and say so in the job's status, before our
watch on pods has told us of the failure. Both objects are kept in one store with one revision counter, and the
resourceVersion of an object is the revision of its last change; so events are put into that order. Core Events may be
kept in another store, and the harness's own actions have no revision: those two keep their place of arrival.
"""

from collections.abc import Mapping, Sequence

from exitcode_conformance.entry import Entry, Event


def in_order(entries: Sequence[Entry]) -> tuple[tuple[Entry, ...], Mapping[int, int]]:
    """The entries in the order in which they happened, numbered in that order.

    The numbers are those of the entries' own lines, handed out anew, so that a smaller number is always an earlier
    moment. The mapping leads from a number back to the line of the recording, for those numbers that have moved.
    """
    keys: list[tuple[int, int]] = []
    newest = 0
    for entry in entries:
        revision = _revision(entry)
        newest = max(newest, revision or 0)
        keys.append((revision if revision is not None else newest, entry.seq))
    order = sorted(range(len(entries)), key=keys.__getitem__)
    if order == list(range(len(entries))):
        return tuple(entries), {}
    numbers = [entry.seq for entry in entries]
    lines: dict[int, int] = {}
    result: list[Entry] = []
    for number, position in zip(numbers, order, strict=True):
        entry = entries[position]
        if entry.seq != number:
            lines[number] = entry.seq
            entry = entry.model_copy(update={"seq": number})
        result.append(entry)
    return tuple(result), lines


def _revision(entry: Entry) -> int | None:
    if not isinstance(entry, Event) or entry.resource == "events":
        return None
    version = str(entry.metadata.get("resourceVersion", ""))
    return int(version) if version.isdecimal() else None
