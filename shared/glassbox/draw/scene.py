"""Scene: a graph ready to be drawn, whatever it is a graph of: boxes with chips, and links between them (PyTorch has
no part that draws).

`picture(scene)` lays it out and writes it as SVG; `places(scene)` gives the layout as data, for who draws otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ._clusters import SIDE, Cluster, clusters, rectangle, room_above
from ._rowed import Line, Size, in_rows
from .layered import ROW_GAP, Layout, moved, upside_down, with_heights
from .svg import Svg, esc, group, mono_width, num, rect, text

TITLE, SMALL, CHIP = 12.5, 11.0, 10.0
PAD = 14.0
_INSET = 11.0
_CHIP_HEIGHT, _CHIP_GAP = 17.0, 5.0
_DOT = 8.0
_CHIPS_WIDE = 250.0
_BESIDE_GAP = 20.0
_LEAST_WIDTH = 320.0
DENSE_GAP = 22.0
# A page of text has room for that much; more is scrolled and not shrunk.
WIDE, TALL = 900.0, 760.0


@dataclass(frozen=True, slots=True)
class Chip:
    """A small thing at a box: what it says (nothing: a dot), its colours' class, what pointing at it shows, classes."""

    text: str
    cls: str
    tip: str = ""
    classes: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A box.

    key      stable name: it is found again in the SVG as data-node and in Places
    lines    below the title, smaller
    chips    in the box; beside: on its left, flowing into it
    open     how many inputs lead nowhere: small rings on its upper edge
    module   path of the module that it belongs to
    """

    key: str
    title: str
    cls: str
    lines: tuple[str, ...] = ()
    chips: tuple[Chip, ...] = ()
    beside: tuple[Chip, ...] = ()
    tip: str = ""
    classes: str = ""
    open: int = 0
    module: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """An arrow from one box, by key, to another; links from the same port are drawn as one that branches."""

    source: str
    target: str
    port: int = 0
    cls: str = ""
    tip: str = ""


@dataclass(frozen=True, slots=True)
class Scene:
    """Parts and links; a line to stand above, what the colours mean, and the text alternative.

    backwards   draws the arrows the other way round, and what is first at the bottom
    dense       rows stand closer
    """

    parts: tuple[Part, ...]
    links: tuple[Link, ...]
    title: str
    desc: str
    caption: str = ""
    legend: tuple[tuple[str, str], ...] = ()
    backwards: bool = False
    dense: bool = False


@dataclass(frozen=True, slots=True)
class Places:
    """The layout of a scene: for each part (by its key, in `boxes`) x, y, width and height of its box, for each link
    (in the scene's order) its points, as in Layout, from its source; the size of all.
    """

    boxes: dict[str, tuple[float, float, float, float]]
    links: tuple[tuple[tuple[float, float], ...], ...]
    width: float
    height: float


def box_width(part: Part) -> float:
    lines = [mono_width(part.title, TITLE), *(mono_width(line, SMALL) for line in part.lines)]
    rows = _chip_rows(part.chips)
    chips = [sum(_chip_width(chip) + _CHIP_GAP for chip in row) - _CHIP_GAP for row in rows]
    return max([*lines, *chips, 40.0]) + 2 * _INSET


def box_height(part: Part) -> float:
    height = 31.0 + 15 * len(part.lines)
    height += sum(_row_height(row) + 4 for row in _chip_rows(part.chips))
    return max(height, _beside_height(part))


def _beside_height(part: Part) -> float:
    return len(part.beside) * (_CHIP_HEIGHT + 4) - 4 if part.beside else 0.0


def _beside_width(part: Part) -> float:
    return max(map(_chip_width, part.beside)) + _BESIDE_GAP if part.beside else 0.0


def _chip_width(chip: Chip) -> float:
    return mono_width(chip.text, CHIP) + 12 if chip.text else _DOT


def _row_height(row: list[Chip]) -> float:
    return _CHIP_HEIGHT if any(chip.text for chip in row) else _DOT


def _chip_rows(chips: tuple[Chip, ...]) -> list[list[Chip]]:
    rows: list[list[Chip]] = []
    x = 0.0
    for chip in chips:
        width = _chip_width(chip)
        if not rows or x + width > _CHIPS_WIDE:
            rows.append([])
            x = 0.0
        rows[-1].append(chip)
        x += width + _CHIP_GAP
    return rows


def _size(part: Part) -> Size:
    half = box_width(part) / 2
    return Size(half + _beside_width(part), half, box_height(part), max(6.0, half - 12))


def _laid_out(scene: Scene) -> tuple[Layout, list[Cluster]]:
    number = {part.key: nr for nr, part in enumerate(scene.parts)}
    lines = [Line(number[link.source], number[link.target], link.port) for link in scene.links]
    modules = [part.module for part in scene.parts]
    rowed = in_rows([_size(part) for part in scene.parts], lines, modules, SIDE)
    found = clusters(rowed, modules)
    gap = DENSE_GAP if scene.dense else ROW_GAP
    if scene.backwards:
        # Upside down the names stand where frames end.
        last = rowed.rows() - 1
        flipped = [replace(frame, first=last - frame.last, last=last - frame.first) for frame in found]
        layout = with_heights(rowed, lambda row: room_above(flipped, last - row + 1), gap)
        layout = upside_down(layout)
        turned = tuple(replace(each, row=last - each.row) for each in layout.nodes)
        return replace(layout, nodes=turned), flipped
    return with_heights(rowed, lambda row: room_above(found, row), gap), found


def _header(scene: Scene, width: float) -> tuple[str, float]:
    """The caption and what the colours mean, in lines that fit the width; and their height."""
    parts, y = [], PAD
    for line in _wrapped(scene.caption, max(20, int((width - 2 * PAD) / (SMALL * 0.61)))):
        y += 12
        parts.append(text(PAD, y, line, "m", size=SMALL))
        y += 4
    x = PAD
    if scene.legend:
        y += 6
    for cls, label in scene.legend:
        wide = 16 + mono_width(label, CHIP) + 14
        if x > PAD and x + wide > width - PAD:
            x, y = PAD, y + 16
        parts.append(group(rect(x, y, 11, 11, rx=3), f"k {cls}"))
        parts.append(text(x + 16, y + 9.5, label, "m", size=CHIP))
        x += wide
    if scene.legend:
        y += 12
    return "".join(parts), y + 14 if parts else PAD


def _wrapped(line: str, count: int) -> list[str]:
    lines: list[str] = []
    for word in line.split():
        if lines and len(lines[-1]) + 1 + len(word) <= count:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _arranged(scene: Scene) -> tuple[Layout, list[Cluster], list[tuple[float, float, float, float]], str, float, float]:
    """The layout at its place in the figure, its frames and their rectangles, the header, and the figure's size."""
    layout, frames = _laid_out(scene)
    rects = [rectangle(frame, frames, layout) for frame in frames]
    left = min([0.0, *(x for x, _, _, _ in rects)])
    top = min([0.0, *(y for _, y, _, _ in rects)])
    right = max([layout.width, *(x + w for x, _, w, _ in rects)])
    bottom = max([layout.height, *(y + h for _, y, _, h in rects)])
    width = max(right - left + 2 * PAD, _LEAST_WIDTH)
    header, below = _header(scene, width)
    dx, dy = (width - (right - left)) / 2 - left, below - top
    rects = [(x + dx, y + dy, w, h) for x, y, w, h in rects]
    return moved(layout, dx, dy), frames, rects, header, width, below + bottom - top + PAD


def places(scene: Scene) -> Places:
    """Where everything is, as data."""
    layout, _, _, _, width, height = _arranged(scene)
    boxes = {}
    for part, placed in zip(scene.parts, layout.nodes, strict=True):
        half = box_width(part) / 2
        boxes[part.key] = (placed.x - half, placed.y, 2 * half, placed.size.height)
    return Places(boxes, layout.lines, width, height)


def picture(scene: Scene) -> Svg:
    """The scene as a figure."""
    from ._scene_svg import RULES, draw_link, draw_part, hover

    layout, frames, rects, header, width, height = _arranged(scene)
    body = [header]
    for frame, (x, y, w, h) in zip(frames, rects, strict=True):
        body.append(f'<g data-module="{esc(frame.module)}">{rect(x, y, w, h, "frame", 8)}</g>')
    number = {part.key: nr for nr, part in enumerate(scene.parts)}
    for link, points in zip(scene.links, layout.lines, strict=True):
        ends = number[link.source], number[link.target]
        body.append(draw_link(link, points[::-1] if scene.backwards else points, ends))
    for frame, (x, y, w, _) in zip(frames, rects, strict=True):
        name = frame.module if mono_width(frame.module, CHIP) < w - 16 else frame.module.rpartition(".")[2]
        wide = mono_width(name, CHIP)
        back = f'<rect x="{num(x + 5)}" y="{num(y + 4)}" width="{num(wide + 6)}" height="13" rx="3" class="plate"/>'
        body.append(back + text(x + 8, y + 14, name, "m", size=CHIP))
    for nr, (part, placed) in enumerate(zip(scene.parts, layout.nodes, strict=True)):
        body.append(draw_part(part, placed, nr))
    rules = RULES + hover(scene)
    large = width > WIDE or height > TALL
    return Svg(width, height, scene.title, scene.desc, "".join(body), rules, scrolls=large)
