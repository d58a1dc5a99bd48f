"""Clusters: frames around the nodes of one module, where a frame can say so truly (PyTorch has no part that draws).

A frame is drawn only if no other node lies in it and it lies wholly in or wholly beside every other frame.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ._rowed import Rowed, prefixes
from .layered import Layout

# Room between a frame and what is in it; for its name.
SIDE, BELOW, NAME = 11.0, 9.0, 19.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """A module's frame: its path, which nodes it holds, how many frames are around it and at most nested in it."""

    module: str
    nodes: tuple[int, ...]
    depth: int
    inside: int
    first: int
    last: int
    left: float
    right: float

    def holds(self, other: Cluster) -> bool:
        return set(other.nodes) <= set(self.nodes)


def clusters(rowed: Rowed, modules: Sequence[str]) -> list[Cluster]:
    """The frames to draw, outer ones first; modules[nr] is the path of the nr-th node."""
    members: dict[str, list[int]] = defaultdict(list)
    for nr, module in enumerate(modules):
        for outer in prefixes(module):
            members[outer].append(nr)
    wanted: dict[tuple[int, ...], str] = {}
    for module, nodes in sorted(members.items(), key=lambda pair: (pair[0].count("."), pair[0])):
        if 1 < len(nodes) < len(modules):
            # Of two modules with the same nodes the inner one says more.
            wanted[tuple(nodes)] = module
    found: list[Cluster] = []
    ordered = sorted(wanted.items(), key=lambda pair: (-len(pair[0]), pair[1]))
    for own, module in ordered:
        inner = [other for other in wanted if len(other) < len(own) and set(other) < set(own)]
        candidate = _frame(rowed, module, own, _nesting(inner), found)
        if _is_alone(rowed, candidate) and all(_fits(candidate, other) for other in found):
            found.append(candidate)
    return found


def _nesting(inner: Sequence[tuple[int, ...]]) -> int:
    """How deep sets of nodes are nested in each other."""
    depth: dict[tuple[int, ...], int] = {}
    for nodes in sorted(inner, key=len):
        depth[nodes] = 1 + max((d for other, d in depth.items() if set(other) < set(nodes)), default=0)
    return max(depth.values(), default=0)


def _frame(rowed: Rowed, module: str, nodes: tuple[int, ...], inside: int, found: Sequence[Cluster]) -> Cluster:
    pad = SIDE * (inside + 1)
    # A line that runs in the module alone runs in its frame.
    own = [
        x for key, stems in rowed.trunks.items() if module in prefixes(rowed.trunk_module[key]) for x in stems.values()
    ]
    return Cluster(
        module,
        nodes,
        sum(set(nodes) < set(other.nodes) for other in found),
        inside,
        min(rowed.row[nr] for nr in nodes),
        max(rowed.row[nr] for nr in nodes),
        min([*own, *(rowed.x[nr] - rowed.sizes[nr].left for nr in nodes)]) - pad,
        max([*own, *(rowed.x[nr] + rowed.sizes[nr].right for nr in nodes)]) + pad,
    )


def _is_alone(rowed: Rowed, frame: Cluster) -> bool:
    own = set(frame.nodes)
    for nr, (row, x, size) in enumerate(zip(rowed.row, rowed.x, rowed.sizes, strict=True)):
        inside = frame.first <= row <= frame.last and x + size.right > frame.left and x - size.left < frame.right
        if inside and nr not in own:
            return False
    return True


def _fits(frame: Cluster, other: Cluster) -> bool:
    if other.holds(frame):
        return True
    beside = frame.last < other.first or other.last < frame.first
    return beside or frame.right <= other.left or other.right <= frame.left


def room_above(found: Sequence[Cluster], row: int) -> float:
    """What frames that end right above a row, or begin with it, need beside the usual distance."""
    begins = _deepest([frame for frame in found if frame.first == row])
    ends = _deepest([frame for frame in found if frame.last == row - 1])
    return begins * NAME + ends * BELOW


def _deepest(frames: Sequence[Cluster]) -> int:
    """How many of these are nested in each other at most."""
    return max((sum(other.holds(frame) for other in frames) for frame in frames), default=0)


def rectangle(frame: Cluster, found: Sequence[Cluster], layout: Layout) -> tuple[float, float, float, float]:
    """x, y, width and height of a frame in a layout."""
    inner = [other for other in found if other is not frame and frame.holds(other)]
    begins = 1 + _deepest([other for other in inner if other.first == frame.first])
    ends = 1 + _deepest([other for other in inner if other.last == frame.last])
    top = min(layout.nodes[nr].y for nr in frame.nodes if layout.nodes[nr].row == frame.first)
    bottom = max(layout.nodes[nr].bottom for nr in frame.nodes if layout.nodes[nr].row == frame.last)
    top, bottom = top - begins * NAME, bottom + ends * BELOW
    return frame.left, top, frame.right - frame.left, bottom - top
