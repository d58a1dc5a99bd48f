"""Timeline figure: lanes of bars over time, host above device, with launches and waits (PyTorch: kineto's traces).

`timeline_layout` says where everything lies, in pixels; `timeline_figure` makes an SVG of it.
"""

from __future__ import annotations

from ..records.timeline import Timeline
from ._axes import time_unit
from ._timeline_layout import AXIS, BAR, LABEL_SIZE, PAD, Bar, TimelineLayout, timeline_layout
from .svg import Svg, group, mono_width, num, path, rect, text

THIN = 3.0
MOST_ARROWS, MOST_SYNCS = 60, 40

# kind -> the palette class of its bars, and what the legend says
_KINDS = {
    "op": ("r0", "operator"),
    "node": ("r3", "backward node"),
    "range": ("r5", "range"),
    "launch": ("r4", "launch"),
    "malloc": ("r5", "memory"),
    "work": ("out", "other work"),
    "kernel": ("r1", "kernel"),
    "copy": ("r2", "copy"),
    "wait": ("waits", "waiting"),
    "event": ("hot", "event"),
}


def timeline_figure(
    timeline: Timeline,
    width: float = 960.0,
    start_us: float | None = None,
    end_us: float | None = None,
    title: str = "",
) -> Svg:
    """The timeline as a picture: a lane for each row, nested bars below each other, waits hatched, an arrow from each
    launch to what it launched, a dashed line from what was waited for to the end of the wait.

    start_us, end_us   show only that part
    title              replaces the figure's title in the text alternative

    Labels that do not fit are left to the pointer; so are bars narrower than a pixel, which are drawn together.
    """
    layout = timeline_layout(timeline, width, start_us, end_us)
    parts = [_axis(layout)]
    for lane in layout.lanes:
        parts.append(
            rect(layout.scale.start, lane.y - 4, layout.scale.end - layout.scale.start, lane.height + 8, "bed")
        )
        parts.append(text(layout.scale.start - 10, lane.y + BAR - 4, lane.row, "m", "end", 12))
    parts += [_bar(bar) for bar in layout.bars]
    parts += _lines(layout, timeline)
    heading, notes = _heading(timeline), _notes(layout)
    body = [text(PAD, PAD + 12, _fit(heading, width - 2 * PAD, 12.5), "b", size=12.5), *parts]
    body.append(_returned(layout, timeline))
    body.append(_legend(layout, notes))
    hatch = (
        '<defs><pattern id="@UID@-hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><rect class="hatch-bed" width="6" height="6"/>'
        '<path class="hatch" d="M0 0V6"/></pattern></defs>'
    )
    return Svg(
        layout.width,
        layout.height,
        title or "host and device over time",
        _describe(timeline, heading),
        hatch + "".join(body),
        _RULES,
    )


_RULES = (
    "@FIG@ .bed{fill:var(--gb-panel)}"
    "@FIG@ .grid{fill:none;stroke:var(--gb-line);stroke-width:.75;opacity:.6}"
    "@FIG@ .waits{--t:var(--gb-ink)}"
    "@FIG@ .waits>rect{fill:url(#@UID@-hatch);stroke:var(--gb-out-line);stroke-width:1}"
    "@FIG@ .hatch{fill:none;stroke:var(--gb-out-ink);stroke-width:1.6;opacity:.55}"
    "@FIG@ .hatch-bed{fill:var(--gb-panel)}"
    "@FIG@ .k.thin>rect{fill:var(--e);stroke:none}"
    "@FIG@ .waits.thin>rect{fill:var(--gb-out-ink);stroke:none}"
    "@FIG@ .k.many>rect{stroke:none;opacity:.55;fill:var(--gb-out-ink)}"
    "@FIG@ .arrow{fill:none;stroke:var(--gb-muted);stroke-width:1}"
    "@FIG@ .tip-of-arrow{fill:var(--gb-muted)}"
    "@FIG@ .sync{fill:none;stroke:var(--gb-lit);stroke-width:1.25;stroke-dasharray:3 3}"
    "@FIG@ .back{fill:none;stroke:var(--gb-good);stroke-width:1.5}"
    "@FIG@ .moment{fill:var(--gb-hot);stroke:var(--gb-hot-line)}"
    "@FIG@ .k:hover>rect{stroke:var(--gb-ink);stroke-width:1.5}"
)


def _bar(bar: Bar) -> str:
    event = bar.event
    hue = _KINDS.get(event.kind, ("out", ""))[0]
    if event.kind == "event":
        return group(_diamond(bar.x, bar.y + BAR / 2), "", _tip(bar))
    width = max(bar.width, 0.75)
    kind = "many" if bar.count > 1 else "thin" if width < THIN else ""
    box = rect(bar.x, bar.y, width, bar.height, rx=2 if width >= THIN else 0, extra=f'data-nr="{bar.nr}"')
    label = ""
    if bar.label:
        label = text(bar.x + 4, bar.y + BAR - 5, bar.label, size=LABEL_SIZE)
        if event.kind == "wait":
            # Letters on a hatch need a quiet ground.
            room = mono_width(bar.label, LABEL_SIZE) + 4
            ground = f"M{num(bar.x + 2)} {num(bar.y + 2)}h{num(room)}v{num(BAR - 4)}h-{num(room)}z"
            label = path(ground, "hatch-bed") + label
    return group(box + label, f"k {hue} {kind}".strip(), _tip(bar))


def _diamond(x: float, y: float) -> str:
    return path(f"M{num(x)} {num(y - 6)}l5 6l-5 6l-5 -6z", "moment")


def _tip(bar: Bar) -> str:
    event = bar.event
    if bar.count > 1:
        return f"{bar.count} short bars, the first of them {event.name}, around {event.start_us:,.6g} µs"
    if event.start_us == event.end_us:
        return f"{event.name} ({event.kind}) at {event.start_us:,.6g} µs"
    said = f"{event.name} ({event.kind}): {event.duration_us:,.6g} µs, {event.start_us:,.6g} to {event.end_us:,.6g} µs"
    return said + (f", launch {event.correlation}" if event.correlation else "")


def _lines(layout: TimelineLayout, timeline: Timeline) -> list[str]:
    parts = []
    if len(layout.arrows) <= MOST_ARROWS:
        for a, b in layout.arrows:
            launch, work = timeline.events[a], timeline.events[b]
            if _inside(layout, launch.end_us) and _inside(layout, work.start_us):
                x0, y0 = layout.scale(launch.end_us), layout.y_of(launch) + BAR
                x1, y1 = layout.scale(work.start_us), layout.y_of(work)
                bend = (y1 - y0) * 0.5
                stops = (x0, y0 + bend, x1, y1 - bend, x1, y1 - 5)
                line = path(f"M{num(x0)} {num(y0)}C{' '.join(map(num, stops))}", "arrow")
                tip = path(f"M{num(x1)} {num(y1)}l-3 -6h6z", "tip-of-arrow")
                parts.append(line + tip)
    if len(layout.syncs) <= MOST_SYNCS:
        for a, b in layout.syncs:
            work, wait = timeline.events[a], timeline.events[b]
            if _inside(layout, work.end_us) and _inside(layout, wait.end_us):
                above, below = sorted((layout.y_of(work), layout.y_of(wait)))
                x0, x1 = layout.scale(work.end_us), layout.scale(wait.end_us)
                top, bottom = (x1, x0) if layout.y_of(wait) <= layout.y_of(work) else (x0, x1)
                parts.append(
                    path(f"M{num(top)} {num(above)}V{num(above + BAR)}L{num(bottom)} {num(below)}v{num(BAR)}", "sync")
                )
    return parts


def _inside(layout: TimelineLayout, us: float) -> bool:
    return layout.scale.low <= us <= layout.scale.high


def _axis(layout: TimelineLayout) -> str:
    y = layout.bottom
    parts = []
    for x, label in layout.ticks:
        parts.append(path(f"M{num(x)} {num(layout.top - 6)}V{num(y + 4)}", "grid"))
        parts.append(text(x, y + 19, label, "m", "middle", 11))
    parts.append(text(layout.scale.start - 10, y + 19, layout.unit, "m", "end", 11))
    return "".join(parts)


def _returned(layout: TimelineLayout, timeline: Timeline) -> str:
    """Where the host had the function's result."""
    at = timeline.returned_us
    hosts = [lane for lane in layout.lanes if not lane.row.rpartition("stream ")[1]]
    if at is None or not _inside(layout, at) or not hosts or len(hosts) == len(layout.lanes):
        return ""
    x = layout.scale(at)
    line = path(f"M{num(x)} {num(layout.top - 10)}V{num(hosts[-1].y + hosts[-1].height + 4)}", "back")
    label = "returned"
    room = mono_width(label, 11)
    anchor, at_x = ("end", x) if x + room / 2 > layout.width - PAD else ("middle", x)
    return line + text(at_x, layout.top - 15, label, "good", anchor, 11)


def _legend(layout: TimelineLayout, notes: str) -> str:
    y = layout.bottom + AXIS + 8
    x = PAD
    parts = []
    present = {bar.event.kind for bar in layout.bars}
    for kind, (hue, label) in _KINDS.items():
        if kind in present:
            swatch = _diamond(x + 7, y - 4) if kind == "event" else group(rect(x, y - 10, 14, 12, rx=2), f"k {hue}")
            parts.append(swatch + text(x + 20, y, label, "m", size=11))
            x += 20 + mono_width(label, 11) + 18
    if notes and x + mono_width(notes, 11) <= layout.width - PAD:
        parts.append(text(layout.width - PAD, y, notes, "m", "end", 11))
    return "".join(parts)


def _notes(layout: TimelineLayout) -> str:
    notes = []
    if len(layout.arrows) > MOST_ARROWS:
        notes.append(f"{len(layout.arrows)} launches without arrows")
    crowded = sum(bar.count for bar in layout.bars if bar.count > 1)
    if crowded:
        notes.append(f"{crowded} bars too narrow to tell apart")
    return ", ".join(notes)


def _heading(timeline: Timeline) -> str:
    if not timeline.events:
        return "nothing happened"
    per, unit = time_unit(timeline.end_us())
    busy = [f"{row} busy {timeline.busy_us(row) / per:,.4g}" for row in timeline.row_names()[:6]]
    back = "" if timeline.returned_us is None else f", returned at {timeline.returned_us / per:,.4g}"
    return f"{timeline.end_us() / per:,.4g} {unit} in all{back}: {', '.join(busy)}"


def _describe(timeline: Timeline, heading: str) -> str:
    """The text alternative: the bars in words, as far as a listener would want them."""
    parts = [f"Times in order: {heading}."]
    parts += [
        f"{event.row}: {event.name} ({event.kind}) from {event.start_us:g} to {event.end_us:g} us."
        for event in timeline.events[:40]
        if event.depth == 0
    ]
    if len(timeline.events) > 40:
        parts.append(f"{len(timeline.events)} bars in all.")
    return " ".join(parts)


def _fit(line: str, width: float, size: float) -> str:
    room = int(width / mono_width("m", size))
    return line if len(line) <= room else f"{line[: room - 1]}…"
