"""Scenes as SVG: how boxes, chips and arrows look, and what pointing at them does (PyTorch has no part that draws)."""

from __future__ import annotations

from collections.abc import Sequence

from . import scene as s
from .layered import Placed, Point, path_data
from .svg import esc, group, num, path, rect, text

# Beyond that many boxes, rules that light a box's arrows would slow the page down.
_LIT = 300

RULES = (
    "@FIG@ .edge{fill:none;stroke:var(--gb-out-ink);stroke-width:1.4}"
    "@FIG@ .head{fill:var(--gb-out-ink);stroke:none}"
    "@FIG@ .hit{fill:none;stroke:transparent;stroke-width:9;pointer-events:stroke}"
    "@FIG@ .alias .edge{stroke-dasharray:5 3;stroke:var(--gb-r4-line)}@FIG@ .alias .head{fill:var(--gb-r4-line)}"
    "@FIG@ .memory .edge{stroke-dasharray:1.5 3.5;stroke:var(--gb-r3-line);stroke-width:1.8}"
    "@FIG@ .memory .head{fill:var(--gb-r3-line)}"
    "@FIG@ .link:hover .edge{stroke:var(--gb-lit);stroke-width:2.4}@FIG@ .link:hover .head{fill:var(--gb-lit)}"
    "@FIG@ .frame{fill:var(--gb-ink);fill-opacity:.03;stroke:var(--gb-line);stroke-width:1}"
    "@FIG@ .plate{fill:var(--gb-panel);stroke:none}"
    "@FIG@ .ring{fill:var(--gb-panel);stroke:var(--gb-out-ink);stroke-width:1.2}"
    "@FIG@ .node:hover>rect{stroke:var(--gb-lit);stroke-width:2.25}"
    "@FIG@ .k>text.sub{fill:var(--gb-muted)}"
    "@FIG@ .chip>rect{stroke-width:1}@FIG@ .kept-other>rect{stroke:var(--gb-out-ink)}"
    "@FIG@ .plain>rect{fill:none;stroke:none}@FIG@ .plain>text{fill:var(--gb-muted)}"
    "@FIG@ .run>text.b{fill:var(--gb-ink)}"
    "@FIG@ .gone>rect{stroke-dasharray:3 2}"
)


def hover(scene: s.Scene) -> str:
    """CSS that lights the arrows of the box under the pointer."""
    if len(scene.parts) > _LIT:
        return ""
    rules = []
    for nr in range(len(scene.parts)):
        here = f"@FIG@:has(.b{nr}:hover) .l{nr}"
        rules.append(f"{here} .edge{{stroke:var(--gb-lit);stroke-width:2.4}}{here} .head{{fill:var(--gb-lit)}}")
    return "".join(rules)


def draw_part(part: s.Part, placed: Placed, number: int) -> str:
    """A box with all that is on it, and the chips beside it."""
    width, height = s.box_width(part), placed.size.height
    left, y = placed.x - width / 2, placed.y
    content = [rect(left, y, width, height, rx=7)]
    full = 15 + 15 * len(part.lines) + sum(s._row_height(row) + 4 for row in s._chip_rows(part.chips))
    line_y = y + (height - full) / 2 + 12
    content.append(text(placed.x, line_y, part.title, "b", "middle", s.TITLE))
    for line in part.lines:
        line_y += 15
        content.append(text(placed.x, line_y, line, "sub", "middle", s.SMALL))
    chip_y = line_y + 7
    for row in s._chip_rows(part.chips):
        total = sum(s._chip_width(chip) + s._CHIP_GAP for chip in row) - s._CHIP_GAP
        x, tall = placed.x - total / 2, s._row_height(row)
        for chip in row:
            content.append(_chip(chip, x, chip_y, tall))
            x += s._chip_width(chip) + s._CHIP_GAP
        chip_y += tall + 4
    content += [_ring(left + width - 9 - 9 * nr, y) for nr in range(part.open)]
    beside = _beside(part, left, y + height / 2)
    classes = f"k {part.cls} node b{number} {part.classes}".strip()
    tip = f"<title>{esc(part.tip)}</title>" if part.tip else ""
    return f'{beside}<g class="{classes}" data-node="{esc(part.key)}">{tip}{"".join(content)}</g>'


def _beside(part: s.Part, left: float, middle: float) -> str:
    """The chips on the left of a box, each with an arrow into it."""
    found = []
    y = middle - s._beside_height(part) / 2
    for chip in part.beside:
        width, center = s._chip_width(chip), y + s._CHIP_HEIGHT / 2
        start = left - s._BESIDE_GAP
        arrow = path(f"M{num(start)} {num(center)}H{num(left - 6)}", "edge") + _head(left - 1, center, sideways=True)
        found.append(group(arrow, "link"))
        found.append(_chip(chip, start - width, y, s._CHIP_HEIGHT))
        y += s._CHIP_HEIGHT + 4
    return "".join(found)


def _chip(chip: s.Chip, x: float, y: float, height: float) -> str:
    tall = height if chip.text else s._DOT
    content = rect(x, y + (height - tall) / 2, s._chip_width(chip), tall, rx=4 if chip.text else 2)
    if chip.text:
        content += text(x + s._chip_width(chip) / 2, y + 12.2, chip.text, "", "middle", s.CHIP)
    return group(content, f"k {chip.cls} chip {chip.classes}".strip(), chip.tip)


def _ring(x: float, y: float) -> str:
    return f'<circle cx="{num(x)}" cy="{num(y)}" r="3" class="ring"/>'


def draw_link(link: s.Link, points: Sequence[Point], numbers: tuple[int, int]) -> str:
    """An arrow along its points; it ends a little before the last, where its head is."""
    (x, y), (_, before) = points[-1], points[-2]
    back = -5.0 if y > before else 5.0
    d = path_data([*points[:-1], (x, y + back)], num)
    content = path(d, "hit") + path(d, "edge") + _head(x, y, upwards=y < before)
    classes = " ".join(["link", *(f"l{nr}" for nr in dict.fromkeys(numbers)), link.cls]).strip()
    return group(content, classes, link.tip)


def _head(x: float, y: float, sideways: bool = False, upwards: bool = False) -> str:
    if sideways:
        return path(f"M{num(x)} {num(y)}l-7 -3.6v7.2z", "head")
    up = 7.5 if upwards else -7.5
    return path(f"M{num(x)} {num(y)}l-3.9 {num(up)}h7.8z", "head")
