"""Rows: in which row and how far to the right each node of a layered drawing stands, and each line that passes a row
(PyTorch has no part that draws).
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ._ordering import order_rows
from ._placing import place_rows
from ._ranks import ranks

# Between two nodes, a node and a line, two lines.
NODE_GAP, LINE_GAP, BETWEEN_LINES = 26.0, 16.0, 11.0


@dataclass(frozen=True, slots=True)
class Size:
    """What a node takes: to the left and right of its middle line, downwards, and half the width that links may
    meet.
    """

    left: float
    right: float
    height: float
    reach: float


@dataclass(frozen=True, slots=True)
class Line:
    """A link to draw: from a port of one node to another, both by their number."""

    source: int
    target: int
    port: int = 0


@dataclass(frozen=True, slots=True)
class Rowed:
    """A drawing whose nodes have a row and an x, but no height yet: what stands where is known, so that room between
    rows can be asked for.
    """

    sizes: tuple[Size, ...]
    lines: tuple[Line, ...]
    row: tuple[int, ...]
    x: tuple[float, ...]
    # (node, port) -> row -> x of its line there; and the module that the whole line runs in
    trunks: dict[tuple[int, int], dict[int, float]]
    trunk_module: dict[tuple[int, int], str]

    def rows(self) -> int:
        return max(self.row, default=-1) + 1


def in_rows(sizes: Sequence[Size], lines: Sequence[Line], modules: Sequence[str] = (), side: float = 0.0) -> Rowed:
    """Rows, order and x.

    modules   the path of each node's module; two neighbours stand `side` further apart for each module that holds only
              one of them, so that there is room for its frame
    """
    count = len(sizes)
    row = ranks(count, [(line.source, line.target) for line in lines])
    width = [(size.left, size.right) for size in sizes]
    module_of = list(modules) or [""] * count
    trunk_module = _trunk_modules(lines, module_of)
    row_of = list(row)
    # Stand-ins get numbers after the nodes; trunk[key][r] is the number of a port's stand-in in row r.
    trunk: dict[tuple[int, int], dict[int, int]] = {}
    up: list[list[int]] = [[] for _ in range(count)]
    down: list[list[int]] = [[] for _ in range(count)]
    reached: dict[tuple[int, int], int] = defaultdict(int)
    for line in lines:
        key = (line.source, line.port)
        reached[key] = max(reached[key], row[line.target])
    for (source, port), last in reached.items():
        above = source
        for r in range(row[source] + 1, last):
            number = len(row_of)
            row_of.append(r)
            width.append((0.0, 0.0))
            module_of.append(trunk_module[source, port])
            up.append([above])
            down.append([])
            down[above].append(number)
            trunk.setdefault((source, port), {})[r] = number
            above = number
    for line in lines:
        stem = trunk.get((line.source, line.port), {}).get(row[line.target] - 1, line.source)
        up[line.target].append(stem)
        down[stem].append(line.target)

    rows = _first_order(row_of, up, down)
    rows = order_rows(rows, up, down)

    def apart(left: int, right: int) -> float:
        gap = BETWEEN_LINES if left >= count and right >= count else LINE_GAP
        if left < count and right < count:
            gap = NODE_GAP
        return width[left][1] + width[right][0] + gap + side * unshared(module_of[left], module_of[right])

    from_top, to_bottom = _lengths(row_of, up), _lengths([-each for each in row_of], down)
    uppers = [_spine(each, node, count, from_top) for node, each in enumerate(up)]
    lowers = [_spine(each, node, count, to_bottom) for node, each in enumerate(down)]
    x = place_rows(
        rows, _mutual(uppers, lowers), _mutual(lowers, uppers), lambda one, two: one >= count and two >= count, apart
    )
    least = min((at - width[node][0] for node, at in enumerate(x)), default=0.0)
    x = [at - least for at in x]
    return Rowed(
        tuple(sizes),
        tuple(lines),
        tuple(row),
        tuple(x[:count]),
        {key: {r: x[number] for r, number in stems.items()} for key, stems in trunk.items()},
        trunk_module,
    )


def prefixes(module: str) -> list[str]:
    """The modules that hold this one, from the outermost to itself."""
    parts = module.split(".") if module else []
    return [".".join(parts[: nr + 1]) for nr in range(len(parts))]


@functools.lru_cache(4096)
def unshared(one: str, two: str) -> int:
    """How many modules hold only one of two."""
    return len(set(prefixes(one)) ^ set(prefixes(two))) if one != two else 0


def _trunk_modules(lines: Sequence[Line], module_of: Sequence[str]) -> dict[tuple[int, int], str]:
    """Per port the innermost module that holds its node and all that its line goes to."""
    found: dict[tuple[int, int], list[str]] = {}
    for line in lines:
        key = (line.source, line.port)
        shared = found.setdefault(key, prefixes(module_of[line.source]))
        theirs = set(prefixes(module_of[line.target]))
        found[key] = [each for each in shared if each in theirs]
    return {key: shared[-1] if shared else "" for key, shared in found.items()}


def _lengths(row_of: Sequence[int], toward: Sequence[Sequence[int]]) -> list[int]:
    """For each node how many rows the longest path takes that comes to it from there."""
    found = [0] * len(row_of)
    for node in sorted(range(len(row_of)), key=row_of.__getitem__):
        found[node] = max((found[each] + 1 for each in toward[node]), default=0)
    return found


def _spine(neighbours: Sequence[int], node: int, count: int, length: Sequence[int]) -> list[int]:
    """Those neighbours that a node wants to be in line with: a line goes on straight, a node follows nodes, and of
    these the ones on the longest path, so that what most of the graph hangs on is straight.
    """
    kind = [each for each in neighbours if (each >= count) == (node >= count)] or neighbours
    longest = max((length[each] for each in kind), default=0)
    return list(dict.fromkeys(each for each in kind if length[each] == longest))


def _mutual(wishes: Sequence[Sequence[int]], back: Sequence[Sequence[int]]) -> list[list[int]]:
    """The wishes less those for a node that wants to be in line with others, who want so too."""

    def taken(other: int, node: int) -> bool:
        return node not in back[other] and any(other in wishes[each] for each in back[other])

    return [[other for other in each if not taken(other, node)] for node, each in enumerate(wishes)]


def _first_order(row_of: Sequence[int], up: Sequence[Sequence[int]], down: Sequence[Sequence[int]]) -> list[list[int]]:
    """The rows filled along paths from the bottom up, so that what belongs together starts side by side."""
    rows: list[list[int]] = [[] for _ in range(max(row_of, default=-1) + 1)]
    seen = [False] * len(row_of)
    for start in [node for node, below in enumerate(down) if not below]:
        stack = [start]
        while stack:
            node = stack.pop()
            if seen[node]:
                continue
            seen[node] = True
            rows[row_of[node]].append(node)
            stack += reversed(up[node])
    return rows
