"""The geometry of a scenario's drawn time line: where each bar, code and mark stands. A template draws it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from exitcode_conformance.entry import Action, Entry
from exitcode_conformance.frozen import Frozen
from exitcode_conformance.verdict import Verdict
from exitcode_reports.summary import gravest
from exitcode_reports.timeline import Mark, PodLife, StateSpan, Timeline

WIDTH = 960
LEFT = 104
"""Room for the names of the lanes."""
RIGHT = 24
LANE = 27
BAR = 17
TOP = 4
AXIS = 24
LETTER = 6.4
"""The width of one character of a label."""

_LOOKS = frozenset(
    {"New", "Created", "Running", "Restarting", "Suspended", "Succeeded", "Failed", "Pending", "Unknown"}
)
_POINTS = frozenset({"submit", "delete-job", "step-timed-out", "complete", "harness-error"})


class Bar(Frozen):
    """A stretch of time on a lane."""

    x: float
    y: float
    width: float
    look: str
    """One of a fixed set of class names."""
    title: str
    label: str = ""
    label_x: float = 0


class Glyph(Frozen):
    """A point of time on a lane: an exit code, a restart in place, the end of a pod."""

    kind: Literal["good", "bad", "again", "gone", "point"]
    x: float
    y: float
    width: float
    text: str
    title: str


class Deciding(Frozen):
    """An entry that verdicts rest on."""

    x: float
    seq: int
    verdict: Verdict
    title: str


class Lane(Frozen):
    """One row of the drawing."""

    name: str
    y: float


class Drawing(Frozen):
    """Everything that is drawn, in the units of a view box `WIDTH` wide."""

    width: int = WIDTH
    left: int = LEFT
    right: int = WIDTH - RIGHT
    bar: int = BAR
    height: float
    lanes_end: float
    lanes: tuple[Lane, ...]
    bars: tuple[Bar, ...]
    glyphs: tuple[Glyph, ...]
    deciding: tuple[Deciding, ...]
    ticks: tuple[tuple[float, str], ...]
    title: str


def draw(timeline: Timeline, entries: Sequence[Entry], deciding: Mapping[int, Mapping[str, Verdict]]) -> Drawing:
    """The drawing of a scenario. `deciding`: number of an entry → requirement that rests on it → its verdict."""
    scale = _Scale(timeline.start, timeline.end)
    lanes = [Lane(name="job", y=TOP)]
    bars = [_state_bar(span, scale, TOP) for span in timeline.states]
    glyphs: list[Glyph] = []
    if timeline.job_deleted is not None:
        glyphs.append(_end(timeline.job_deleted, "the job was removed", scale, TOP))
    y: float = TOP + LANE
    for replica, lives in timeline.replicas().items():
        lanes.append(Lane(name=replica, y=y))
        for row in _side_by_side(lives):
            for life in row:
                bars += _life_bars(life, scale, y)
                glyphs += _life_glyphs(life, scale, y)
            y += LANE
    glyphs += _points(entries, scale, y)
    times = {entry.seq: entry.time for entry in entries}
    return Drawing(
        height=y + AXIS,
        lanes_end=y,
        lanes=tuple(lanes),
        bars=tuple(bars),
        glyphs=tuple(glyphs),
        deciding=tuple(
            _deciding(seq, scale.x(times[seq]), named) for seq, named in sorted(deciding.items()) if seq in times
        ),
        ticks=scale.ticks(),
        title=_told(timeline),
    )


class _Scale:
    """From seconds of the run to units of the drawing."""

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.span = max(end - start, 0.001)

    def x(self, time: float) -> float:
        part = min(max((time - self.start) / self.span, 0.0), 1.0)
        return round(LEFT + part * (WIDTH - LEFT - RIGHT), 1)

    def at(self, time: float) -> str:
        return f"{time - self.start:.2f} s"

    def ticks(self) -> tuple[tuple[float, str], ...]:
        steps = (base * 10.0**power for power in range(-3, 9) for base in (1, 2, 5))
        step = next(step for step in steps if self.span / step <= 9)
        count = int(self.span / step + 1e-9) + 1
        return tuple((self.x(self.start + n * step), f"{n * step:.6g} s") for n in range(count))


def _look(state: str) -> str:
    return state if state in _LOOKS else "Unknown"


def _bar(span: StateSpan, scale: _Scale, y: float, title: str, *, indent: float = 5) -> Bar:
    """`indent` is the room between the bar's begin and its label."""
    x = scale.x(span.start)
    width = round(max(scale.x(span.end) - x, 2.0), 1)
    label = span.state if width > len(span.state) * LETTER + indent + 3 else ""
    return Bar(x=x, y=y, width=width, look=_look(span.state), title=title, label=label, label_x=x + indent)


def _state_bar(span: StateSpan, scale: _Scale, y: float) -> Bar:
    title = f"job says {span.state} from {scale.at(span.start)} to {scale.at(span.end)} (#{span.seq})"
    return _bar(span, scale, y, title)


def _side_by_side(lives: Iterable[PodLife]) -> list[list[PodLife]]:
    """The incarnations of a replica on as few rows as keep those apart that were there at the same time."""
    rows: list[list[PodLife]] = []
    for life in lives:
        row = next((row for row in rows if row[-1].gone and row[-1].end <= life.start), None)
        if row is None:
            rows.append([life])
        else:
            row.append(life)
    return rows


def _life_bars(life: PodLife, scale: _Scale, y: float) -> list[Bar]:
    return [
        _bar(
            span,
            scale,
            y,
            f"{life.name} {span.state} from {scale.at(span.start)} to {scale.at(span.end)}, uid {life.uid[:8]} "
            f"(#{span.seq})",
            # The exit code stands where a pod ends.
            indent=22 if span.state in ("Succeeded", "Failed") else 5,
        )
        for span in life.phases
    ]


def _life_glyphs(life: PodLife, scale: _Scale, y: float) -> list[Glyph]:
    return [glyph for mark in life.marks if (glyph := _glyph(mark, life, scale, y)) is not None]


def _glyph(mark: Mark, life: PodLife, scale: _Scale, y: float) -> Glyph | None:
    when = f"at {scale.at(mark.time)} (#{mark.seq})"
    match mark.kind:
        case "exited":
            text = "?" if mark.code is None else str(mark.code)
            reason = f", {mark.reason}" if mark.reason else ""
            return Glyph(
                kind="good" if mark.code == 0 else "bad",
                x=scale.x(mark.time),
                y=y,
                width=8 + LETTER * len(text),
                text=text,
                title=f"{life.name} ended with code {text}{reason} {when}",
            )
        case "restarted":
            title = f"{life.name} was started again in place {when}"
            return Glyph(kind="again", x=scale.x(mark.time), y=y, width=14, text="↻", title=title)
        case "deleted":
            return _end(mark.time, f"{life.name} was removed {when}", scale, y)
        case "started" | "deleting":
            return None


def _end(time: float, title: str, scale: _Scale, y: float) -> Glyph:
    return Glyph(kind="gone", x=scale.x(time), y=y, width=2, text="", title=title)


def _points(entries: Iterable[Entry], scale: _Scale, y: float) -> list[Glyph]:
    """What the harness did, on the axis."""
    return [
        Glyph(
            kind="point",
            x=scale.x(entry.time),
            y=y,
            width=4,
            text="",
            title=f"harness: {entry.action} at {scale.at(entry.time)} (#{entry.seq})",
        )
        for entry in entries
        if isinstance(entry, Action) and entry.action in _POINTS
    ]


def _deciding(seq: int, x: float, named: Mapping[str, Verdict]) -> Deciding:
    told = ", ".join(f"{requirement} {verdict}" for requirement, verdict in sorted(named.items()))
    return Deciding(x=x, seq=seq, verdict=gravest(named.values()), title=f"#{seq} decides {told}")


def _told(timeline: Timeline) -> str:
    """The drawing in words, for those who do not see it."""
    states = ", ".join(span.state for span in timeline.states) or "no state"
    pods = "; ".join(
        f"{replica}: {len(lives)} pod{'s' if len(lives) != 1 else ''}"
        f"{_codes(mark for life in lives for mark in life.marks)}"
        for replica, lives in timeline.replicas().items()
    )
    return f"Job states: {states}. {pods}"


def _codes(marks: Iterable[Mark]) -> str:
    codes = [str(mark.code) for mark in marks if mark.kind == "exited"]
    return f", exit codes {', '.join(codes)}" if codes else ""
