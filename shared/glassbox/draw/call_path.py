"""Call path figure: the eight stations of a call as lanes, for one framework or two beside each other (torch/csrc)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..records import STATIONS, CallPath, Evidence, Frame
from .svg import Svg, group, mono_width, num, path, rect, text

# So many frames of a station are drawn; the rest is counted.
SHOWN = 12
_PAD, _RAIL, _HEAD = 16.0, 186.0, 52.0
_LINE, _PLACE, _TEXT_LINE, _GAP, _INNER = 17.0, 12.0, 14.5, 5.0, 10.0
_SIZE, _SMALL, _SAID = 11.5, 9.5, 11.0
_NARROW, _WIDE = 330.0, 560.0


@dataclass(frozen=True)
class _Line:
    """A line of a cell: its text, its class and size, and how far the next one is below."""

    text: str
    cls: str
    size: float
    below: float


@dataclass(frozen=True)
class _Box:
    """What a cell shows of one frame, or of one piece of evidence."""

    lines: tuple[_Line, ...]
    colour: str
    tip: str

    @property
    def height(self) -> float:
        return sum(line.below for line in self.lines) + 8

    @property
    def width(self) -> float:
        return max(mono_width(line.text, line.size) for line in self.lines) + 20


def call_path_figure(first: CallPath, *others: CallPath, title: str = "") -> Svg:
    """A lane per station from the Python slot to the device; in it the frames that were seen, in their order, and what
    else tells of the station. Several paths stand in columns beside each other.

    Frames are blue where they are compiled and green where they are Python's; evidence is grey. Frames of no station
    have a lane of their own, and so have those that are there only because somebody looks.
    """
    paths = (first, *others)
    width = _column_width(paths)
    lanes = [(str(each.nr), each.name, each.what, [_cell(one, each.nr, width) for one in paths]) for each in STATIONS]
    callers = [_callers(one, width) for one in paths]
    if any(callers):
        lanes.insert(0, ("", "your code", "where the call is made", callers))
    unknown = [_boxes([f for f in one if not f.known and not f.observer], width) for one in paths]
    if any(unknown):
        lanes.append(("", "no station", "functions that fit none", unknown))
    watching = [_watching(one, width) for one in paths]
    if any(watching):
        lanes.append(("", "the observer", "there only to look", watching))
    body, bottom = _lanes(lanes, paths, width)
    total = _PAD * 2 + _RAIL + len(paths) * (width + _INNER)
    notes = [line for one in paths if one.note for line in _wrapped(one.note, total - 2 * _PAD, _SAID)]
    for line in notes:
        body += text(_PAD, bottom + 14, line, "m s", size=_SAID)
        bottom += _TEXT_LINE
    return Svg(total, bottom + _PAD, title or _title(paths), _in_words(paths), body, _RULES)


_RULES = (
    "@FIG@ .lane-bg{fill:var(--gb-panel);stroke:var(--gb-line);stroke-width:1}"
    "@FIG@ .rail{fill:none;stroke:var(--gb-line);stroke-width:2}"
    "@FIG@ .stop{fill:var(--gb-ink)}@FIG@ .stop-nr{fill:var(--gb-panel)}"
)


def _lanes(
    lanes: Sequence[tuple[str, str, str, list[list[_Box]]]], paths: Sequence[CallPath], width: float
) -> tuple[str, float]:
    """All lanes below the columns' heads, and where they end."""
    parts = []
    for column, one in enumerate(paths):
        x = _PAD + _RAIL + column * (width + _INNER)
        parts.append(text(x, _PAD + 13, one.framework, "b s", size=13.5))
        head = f"{one.call}: {one.op}" if one.call else one.op
        parts.append(text(x, _PAD + 31, _cut(head, width, 11), "m", size=11))
    y = _PAD + _HEAD - 8
    total = _RAIL + len(paths) * (width + _INNER) - _INNER
    stops = []
    for number, name, what, cells in lanes:
        said = _wrapped(what, _RAIL - 50, 10.5)
        needed = max(sum(box.height + _GAP for box in cell) - _GAP for cell in cells)
        height = max(needed + 2 * 8, 34 + len(said) * 13.0)
        parts.append(rect(_PAD, y, total, height, "lane-bg", 8))
        parts.append(text(_PAD + 40, y + 21, name, "b s", size=12.5))
        parts += [text(_PAD + 40, y + 37 + nr * 13, line, "m s", size=10.5) for nr, line in enumerate(said)]
        if number:
            stops.append((y + 20, number))
        for column, cell in enumerate(cells):
            x = _PAD + _RAIL + column * (width + _INNER)
            top = y + 8
            for box in cell:
                parts.append(_box(box, x, top, width - _INNER))
                top += box.height + _GAP
        y += height + 6
    parts.append(_stops(stops))
    return "".join(parts), y


def _stops(stops: Sequence[tuple[float, str]]) -> str:
    if not stops:
        return ""
    x = _PAD + 20
    line = path(f"M{num(x)} {num(stops[0][0])}V{num(stops[-1][0])}", "rail")
    dots = [
        f'<circle cx="{num(x)}" cy="{num(y)}" r="10.5" class="stop"/>'
        + f'<text x="{num(x)}" y="{num(y + 4)}" font-size="11.5" text-anchor="middle" class="stop-nr b">{number}</text>'
        for y, number in stops
    ]
    return line + "".join(dots)


def _box(box: _Box, x: float, y: float, width: float) -> str:
    content = rect(x, y, width, box.height, rx=5)
    at = y + 4
    for line in box.lines:
        content += text(x + 8, at + line.size + 1, line.text, line.cls, size=line.size)
        at += line.below
    return group(content, f"k {box.colour}", box.tip)


def _cell(one: CallPath, station: int, width: float) -> list[_Box]:
    return _boxes(one.at(station), width) + [_evidence(each, width) for each in one.evidence_at(station)]


def _callers(one: CallPath, width: float) -> list[_Box]:
    return _boxes([each for each in one if each.station == 0 and each.known and not each.observer][-2:], width)


def _boxes(frames: Sequence[Frame], width: float) -> list[_Box]:
    boxes = [_frame(each, width) for each in frames[:SHOWN]]
    if len(frames) > SHOWN:
        line = _Line(f"and {len(frames) - SHOWN} more", "m s", _SAID, _TEXT_LINE)
        boxes.append(_Box((line,), "out", "\n".join(each.name for each in frames[SHOWN:])))
    return boxes


def _frame(frame: Frame, width: float) -> _Box:
    room = width - _INNER - 16
    lines = [_Line(_cut(frame.name, room, _SIZE), "", _SIZE, _LINE)]
    if frame.place:
        lines.append(_Line(_cut_left(frame.place, room, _SMALL), "m", _SMALL, _PLACE))
    colour = "r1" if frame.language == "python" else "r0"
    return _Box(tuple(lines), colour, f"{frame.full_name or frame.name}\n{frame.place}".strip())


def _evidence(each: Evidence, width: float) -> _Box:
    room = width - _INNER - 16
    lines = [_Line(line, "s", _SAID, _TEXT_LINE) for line in _wrapped(each.text, room, _SAID)]
    return _Box((*lines, _Line(f"from {each.source}", "m s", _SMALL, _PLACE)), "out", each.text)


def _watching(one: CallPath, width: float) -> list[_Box]:
    names = list(dict.fromkeys(each.name for each in one if each.observer))
    if not names:
        return []
    lines = _wrapped(", ".join(names), width - _INNER - 16, _SMALL)
    return [_Box(tuple(_Line(line, "m", _SMALL, _PLACE + 1) for line in lines), "out", "\n".join(names))]


def _column_width(paths: Sequence[CallPath]) -> float:
    widest = max((mono_width(each.name, _SIZE) for one in paths for each in one if not each.observer), default=0.0)
    return min(max(widest + 16 + _INNER, _NARROW), _WIDE if len(paths) == 1 else 430.0)


def _wrapped(words: str, width: float, size: float) -> list[str]:
    """Lines that fit a width, broken at spaces, and within a word that fits no line."""
    most = max(8, int(width / (size * 0.61)))
    lines = [""]
    for word in words.split(" "):
        while len(word) > most:
            lines += [word[:most], ""]
            word = word[most:]
        if len(lines[-1]) + len(word) + 1 > most and lines[-1]:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return [line for line in lines if line]


def _cut(words: str, width: float, size: float) -> str:
    most = int(width / (size * 0.61))
    return words if len(words) <= most else words[: most - 1] + "…"


def _cut_left(words: str, width: float, size: float) -> str:
    most = int(width / (size * 0.61))
    return words if len(words) <= most else "…" + words[1 - most :]


def _title(paths: Sequence[CallPath]) -> str:
    return " and ".join(f"the path of {one.call or one.op} in {one.framework}" for one in paths)


def _in_words(paths: Sequence[CallPath]) -> str:
    said = []
    for one in paths:
        stations = []
        for station in STATIONS:
            seen = [frame.name for frame in one.at(station.nr)] + [each.text for each in one.evidence_at(station.nr)]
            stations.append(f"{station.nr} {station.name}: {', '.join(seen) or 'nothing seen'}")
        said.append(f"{one.framework}. {'; '.join(stations)}.")
    return " ".join(said)
