"""Where everything of a timeline lies: lanes, bars, arrows and ticks in pixels (PyTorch: kineto's traces)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..records.timeline import Timeline, TimelineEvent
from ._axes import Scale, nice_ticks, plain_number, time_unit
from .svg import mono_width

PAD = 18.0
HEAD, AXIS, LEGEND = 46.0, 40.0, 24.0
BAR, LEVEL, LANE_GAP = 17.0, 19.0, 14.0
LABEL_SIZE = 10.5


@dataclass(frozen=True, slots=True)
class Lane:
    """One row: its name, its top and height, and how many levels its bars are nested to."""

    row: str
    y: float
    height: float
    levels: int


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: the event's number in the timeline, its box, and what fits into it.

    count   how many bars too narrow to tell apart it stands for
    """

    nr: int
    event: TimelineEvent
    x: float
    y: float
    width: float
    height: float
    label: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class TimelineLayout:
    """Where everything of a timeline lies, in pixels of a figure `width` wide.

    scale        microseconds -> x, inside the plot
    top, bottom  of the lanes
    arrows       (launch, launched) as numbers of events; syncs likewise: (what was waited for, the wait)
    ticks        (x, label) of the time axis; unit is that of the labels
    """

    width: float
    height: float
    scale: Scale
    top: float
    bottom: float
    lanes: tuple[Lane, ...]
    bars: tuple[Bar, ...]
    arrows: tuple[tuple[int, int], ...]
    syncs: tuple[tuple[int, int], ...]
    ticks: tuple[tuple[float, str], ...]
    unit: str

    def y_of(self, event: TimelineEvent) -> float:
        """The top of an event's bar."""
        lane = next(lane for lane in self.lanes if lane.row == event.row)
        return lane.y + event.depth * LEVEL


def timeline_layout(
    timeline: Timeline, width: float = 960.0, start_us: float | None = None, end_us: float | None = None
) -> TimelineLayout:
    """The layout of a timeline, or of its part from `start_us` to `end_us`.

    ValueError where that part has no length.
    """
    ends = [timeline.end_us(), timeline.returned_us or 0.0]
    begin = 0.0 if start_us is None else start_us
    end = max(ends) if end_us is None else end_us
    if end_us is None and start_us is None and end <= begin:
        end = begin + 1.0
    if not end > begin:
        raise ValueError(f"timeline_layout: from {begin:g} us to {end:g} us there is no time; let it end later.")
    rows = timeline.row_names()
    left = PAD + max([mono_width(row, 12) for row in rows] or [0.0]) + 14
    scale = Scale(begin, end, left, width - PAD)
    lanes, y = [], HEAD + PAD
    for row in rows:
        levels = 1 + max(event.depth for event in timeline.of_row(row))
        lanes.append(Lane(row, y, levels * LEVEL - (LEVEL - BAR), levels))
        y += levels * LEVEL + LANE_GAP
    bottom = y - LANE_GAP + 4 if lanes else y
    numbers = {id(event): nr for nr, event in enumerate(timeline.events)}
    pairs = tuple((numbers[id(a)], numbers[id(b)]) for a, b in timeline.launches())
    per, unit = time_unit(end - begin)
    most = max(2, int((scale.end - scale.start) / 90))
    ticks = tuple((scale(t * per), plain_number(t)) for t in nice_ticks(begin / per, end / per, most))
    layout = TimelineLayout(
        width, bottom + AXIS + LEGEND + PAD, scale, HEAD + PAD, bottom, tuple(lanes), (), pairs,
        tuple(_syncs(timeline, numbers)), ticks, unit,
    )  # fmt: skip
    bars = tuple(bar for lane in lanes for bar in _bars(timeline, lane, layout))
    return replace(layout, bars=bars)


def short_name(name: str) -> str:
    """A bar's label: the node that the engine evaluates, the function that a kernel's templates begin with."""
    name = name.rpartition("evaluate_function: ")[2].removeprefix("torch::autograd::").removeprefix("void ")
    head = name.partition("<")[0].partition("(")[0] if "<" in name or "(" in name else name
    return (head.rpartition("::")[2] if "<" in name else head).strip() or name


def _bars(timeline: Timeline, lane: Lane, layout: TimelineLayout) -> Iterable[Bar]:
    """The lane's bars inside the window; those narrower than a pixel that touch each other become one."""
    scale = layout.scale
    numbered = [(nr, event) for nr, event in enumerate(timeline.events) if event.row == lane.row]
    for level in range(lane.levels):
        y = lane.y + level * LEVEL
        crowd: list[Bar] = []
        for nr, event in sorted(((nr, e) for nr, e in numbered if e.depth == level), key=lambda each: each[1].start_us):
            if event.end_us < scale.low or event.start_us > scale.high:
                continue
            x = scale(max(event.start_us, scale.low))
            right = scale(min(event.end_us, scale.high))
            bar = Bar(nr, event, x, y, right - x, BAR, _label(event, right - x))
            narrow = bar.width < 1 and event.kind != "event"
            if crowd and not (narrow and x - (crowd[-1].x + crowd[-1].width) < 1):
                yield _together(crowd)
                crowd = []
            if narrow:
                crowd.append(bar)
            else:
                yield bar
        if crowd:
            yield _together(crowd)


def _together(crowd: Sequence[Bar]) -> Bar:
    first, last = crowd[0], crowd[-1]
    return Bar(first.nr, first.event, first.x, first.y, last.x + last.width - first.x, first.height, "", len(crowd))


def _label(event: TimelineEvent, width: float) -> str:
    """The longest form of the name that the bar has room for; "" where none has five letters."""
    name = short_name(event.name)
    for form in (name, name.partition(".")[0] if not name.startswith("autograd") else name):
        if mono_width(form, LABEL_SIZE) + 8 <= width:
            return form
    room = int((width - 8) / mono_width("m", LABEL_SIZE))
    return f"{name[: room - 1]}…" if room >= 6 else ""


def _syncs(timeline: Timeline, numbers: dict[int, int]) -> Iterable[tuple[int, int]]:
    """(what was waited for, the wait): the last work of another row that ends while the wait lasts."""
    work = [event for event in timeline.events if event.kind in ("kernel", "copy", "event")]
    for wait in timeline.of_kind("wait"):
        over = [each for each in work if each.row != wait.row and wait.start_us < each.end_us <= wait.end_us + 1e-3]
        if over:
            last = max(over, key=lambda each: (each.end_us, each.kind != "event"))
            yield numbers[id(last)], numbers[id(wait)]
