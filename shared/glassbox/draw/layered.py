"""Layered drawings: positions for the nodes and links of a graph that flows downwards (PyTorch has no part that draws).

The method of Sugiyama: rows, stand-ins for long links, few crossings, then x. Links that leave the same port of the
same node share their stand-ins, so a tensor that is used ten times is one line with ten branches. No line runs through
a node, because lines only bend between rows and each has a place of its own where it passes one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ._rowed import Line, Rowed, Size, in_rows

# Between the places where lines meet one node.
PORT_GAP = 12.0
# Between rows; more where a line has far to go to the side.
ROW_GAP, ROW_GAP_MOST, SLOPE = 30.0, 64.0, 0.11

# What rounding makes of no distance.
_SAME = 1e-6

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a node is: its middle line, its top, and what it takes; its row from the top."""

    x: float
    y: float
    size: Size
    row: int

    @property
    def left(self) -> float:
        return self.x - self.size.left

    @property
    def right(self) -> float:
        return self.x + self.size.right

    @property
    def bottom(self) -> float:
        return self.y + self.size.height

    def overlaps(self, other: Placed) -> bool:
        return self.left < other.right and other.left < self.right and self.y < other.bottom and other.y < self.bottom


@dataclass(frozen=True, slots=True)
class Layout:
    """Positions: one Placed per node, one list of points per line; between two points of the same x a line is straight,
    between others it bends, upright at both ends.
    """

    width: float
    height: float
    nodes: tuple[Placed, ...]
    lines: tuple[tuple[Point, ...], ...]


def layout(sizes: Sequence[Size], lines: Sequence[Line]) -> Layout:
    """Where nodes of these sizes and the lines between them go, top to bottom. ValueError if the lines form a cycle."""
    return with_heights(in_rows(sizes, lines))


def with_heights(rowed: Rowed, room: Callable[[int], float] = lambda row: 0.0, gap: float = ROW_GAP) -> Layout:
    """The layout, top to bottom; `room(r)` is what is wanted above row r beside the usual `gap`."""
    ports = _meeting_points(rowed)
    tops, bottoms = _row_heights(rowed, ports, room, gap)
    placed = []
    for size, r, x in zip(rowed.sizes, rowed.row, rowed.x, strict=True):
        placed.append(Placed(x, tops[r] + (bottoms[r] - tops[r] - size.height) / 2, size, r))
    paths = [_path(rowed, nr, placed, tops, bottoms, ports) for nr in range(len(rowed.lines))]
    width = max((each.right for each in placed), default=0.0)
    width = max([width, *(x for stems in rowed.trunks.values() for x in stems.values())])
    return Layout(width, bottoms[-1] if bottoms else 0.0, tuple(placed), tuple(paths))


Ends = tuple[float, float]


def _meeting_points(rowed: Rowed) -> list[Ends]:
    """Per line the x at which it leaves its source and the one at which it meets its target."""
    leaves: dict[tuple[int, int], float] = {}
    by_source: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    by_target: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for nr, line in enumerate(rowed.lines):
        stems = rowed.trunks.get((line.source, line.port), {})
        first = stems.get(rowed.row[line.source] + 1)
        last = stems.get(rowed.row[line.target] - 1)
        by_source[line.source][line.port].append(rowed.x[line.target] if first is None else first)
        by_target[line.target].append((rowed.x[line.source] if last is None else last, nr))
    for source, ports in by_source.items():
        wishes = sorted((_nearest(each, rowed.x[source]), port) for port, each in ports.items())
        for (_, port), x in zip(wishes, _spread([w for w, _ in wishes], rowed, source), strict=True):
            leaves[source, port] = x
    meets: dict[int, float] = {}
    for target, ends in by_target.items():
        ends.sort()
        for (_, nr), x in zip(ends, _spread([w for w, _ in ends], rowed, target), strict=True):
            meets[nr] = x
    return [(leaves[line.source, line.port], meets[nr]) for nr, line in enumerate(rowed.lines)]


def _nearest(values: Sequence[float], x: float) -> float:
    """Where a port with several branches lies: straight on where one of them goes straight on."""
    return min(values, key=lambda each: abs(each - x)) if len(values) > 1 else values[0]


def _spread(wishes: Sequence[float], rowed: Rowed, node: int) -> list[float]:
    """Ordered places on a node's edge: straight on where a wish lies above or below the node, else near its middle."""
    middle, reach = rowed.x[node], rowed.sizes[node].reach
    gap = min(PORT_GAP, 2 * reach / max(1, len(wishes) - 1))
    near = min(reach, 0.0 if len(wishes) == 1 else gap * len(wishes) / 2 + 6)
    straight = [each for each in wishes if abs(each - middle) <= reach]
    low = min([middle - near, *(each - gap for each in straight)])
    high = max([middle + near, *(each + gap for each in straight)])
    low, high = max(low, middle - reach), min(high, middle + reach)
    found = [min(max(each, low), high) for each in wishes]
    for nr in range(1, len(found)):
        found[nr] = max(found[nr], found[nr - 1] + gap)
    over = found[-1] - (middle + reach)
    if over > 0:
        found[-1] -= over
        for nr in range(len(found) - 2, -1, -1):
            found[nr] = min(found[nr], found[nr + 1] - gap)
    return found


def _row_heights(
    rowed: Rowed, ports: Sequence[Ends], room: Callable[[int], float], gap: float
) -> tuple[list[float], list[float]]:
    """Top and bottom of each row."""
    count = rowed.rows()
    height = [0.0] * count
    for size, r in zip(rowed.sizes, rowed.row, strict=True):
        height[r] = max(height[r], size.height)
    aside = [0.0] * (count + 1)
    for nr, line in enumerate(rowed.lines):
        way = _columns(rowed, nr, ports)
        for r, (one, two) in enumerate(zip(way, way[1:], strict=False), rowed.row[line.source] + 1):
            aside[r] = max(aside[r], abs(one - two))
    tops, bottoms, y = [], [], 0.0
    for r in range(count):
        if r:
            y += min(ROW_GAP_MOST, max(gap, SLOPE * aside[r]))
        y += room(r)
        tops.append(y)
        y += height[r]
        bottoms.append(y)
    return tops, bottoms


def _columns(rowed: Rowed, nr: int, ports: Sequence[Ends]) -> list[float]:
    """The x of a line in each row from its source's to its target's."""
    line = rowed.lines[nr]
    stems = rowed.trunks.get((line.source, line.port), {})
    between = [stems[r] for r in range(rowed.row[line.source] + 1, rowed.row[line.target])]
    return [ports[nr][0], *between, ports[nr][1]]


def _path(
    rowed: Rowed,
    nr: int,
    placed: Sequence[Placed],
    tops: Sequence[float],
    bottoms: Sequence[float],
    ports: Sequence[Ends],
) -> tuple[Point, ...]:
    """The points of a line; those on a straight stretch are left out."""
    line = rowed.lines[nr]
    source, target = placed[line.source], placed[line.target]
    columns = _columns(rowed, nr, ports)
    points: list[Point] = [(columns[0], source.bottom), (columns[0], bottoms[source.row])]
    for r, x in enumerate(columns[1:-1], source.row + 1):
        points += [(x, tops[r]), (x, bottoms[r])]
    points += [(columns[-1], tops[target.row]), (columns[-1], target.y)]
    kept: list[Point] = []
    for point in points:
        if kept and point[0] == kept[-1][0] and abs(point[1] - kept[-1][1]) < _SAME:
            continue
        if len(kept) > 1 and kept[-1][0] == kept[-2][0] == point[0]:
            kept.pop()
        kept.append(point)
    return tuple(kept)


def moved(found: Layout, dx: float, dy: float) -> Layout:
    """The same layout elsewhere; its width and height stay those of what is drawn."""
    return replace(
        found,
        nodes=tuple(replace(each, x=each.x + dx, y=each.y + dy) for each in found.nodes),
        lines=tuple(tuple((x + dx, y + dy) for x, y in line) for line in found.lines),
    )


def upside_down(found: Layout) -> Layout:
    """The same layout with its bottom at the top; lines still run from their sources."""
    return replace(
        found,
        nodes=tuple(replace(each, y=found.height - each.bottom) for each in found.nodes),
        lines=tuple(tuple((x, found.height - y) for x, y in line) for line in found.lines),
    )


def bends(points: Sequence[Point]) -> list[tuple[Point, Point, Point, Point]]:
    """A line as cubic curves, straight ones too: start, two handles, end."""
    curves = []
    for (x0, y0), (x1, y1) in zip(points, points[1:], strict=False):
        half = (y1 - y0) / 2
        curves.append(((x0, y0), (x0, y0 + half), (x1, y1 - half), (x1, y1)))
    return curves


def path_data(points: Sequence[Point], number: Callable[[float], str]) -> str:
    """A line as the d of an SVG path."""
    x, y = points[0]
    parts = [f"M{number(x)} {number(y)}"]
    for (x0, _), one, two, (x1, y1) in bends(points):
        if abs(x0 - x1) < 0.01:
            parts.append(f"V{number(y1)}")
        else:
            handles = " ".join(f"{number(a)} {number(b)}" for a, b in (one, two))
            parts.append(f"C{handles} {number(x1)} {number(y1)}")
    return "".join(parts)
