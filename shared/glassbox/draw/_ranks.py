"""Ranks: which row of a layered drawing each node stands in (PyTorch has no part that draws).

Every link goes down at least one row. Nodes are put as high as that allows, then let down where it makes more links
shorter than longer, so that a leaf stands right above what uses it. What nothing ties to the rest
stands beside what comes next.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

Links = Sequence[tuple[int, int]]

_PASSES = 12
# Of so many nodes at most is a part that does not count as a graph of its own.
_SMALL = 4


def ranks(count: int, links: Links) -> list[int]:
    """The row of each of `count` nodes, the topmost 0; links are (from, to) pairs. ValueError if they form a cycle."""
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    for source, target in links:
        above[target].append(source)
        below[source].append(target)
    order = _topological(above, below)
    rank = [0] * count
    for node in order:
        rank[node] = max((rank[each] + 1 for each in above[node]), default=0)
    for _ in range(_PASSES):
        if not _let_down(rank, order, above, below):
            break
    _beside_the_rest(rank, above, below)
    lowest = min(rank, default=0)
    return [each - lowest for each in rank]


def _beside_the_rest(rank: list[int], above: Sequence[Sequence[int]], below: Sequence[Sequence[int]]) -> None:
    """Let down small parts that nothing ties to the rest to the row of the node that follows them by number."""
    part = [-1] * len(rank)
    parts: list[list[int]] = []
    for start in range(len(rank)):
        if part[start] < 0:
            part[start] = len(parts)
            found = [start]
            for node in found:
                for each in (*above[node], *below[node]):
                    if part[each] < 0:
                        part[each] = len(parts)
                        found.append(each)
            parts.append(found)
    largest = max(parts, key=len, default=[])
    rest = sorted(largest)
    for found in parts:
        if found is largest or len(found) > _SMALL:
            continue
        at = bisect_left(rest, min(found))
        by = rank[rest[min(at, len(rest) - 1)]] - rank[min(found)]
        for node in found:
            rank[node] += by


def _topological(above: Sequence[Sequence[int]], below: Sequence[Sequence[int]]) -> list[int]:
    waiting = [len(each) for each in above]
    ready = [node for node, number in enumerate(waiting) if not number]
    for node in ready:
        for target in below[node]:
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    if len(ready) < len(waiting):
        raise ValueError("ranks: the links form a cycle; a layered drawing needs a graph without one.")
    return ready


def _let_down(
    rank: list[int], order: Sequence[int], above: Sequence[Sequence[int]], below: Sequence[Sequence[int]]
) -> bool:
    moved = False
    for node in reversed(order):
        if not below[node] or len(above[node]) > len(below[node]):
            continue
        lowest = min(rank[each] for each in below[node]) - 1
        if lowest > rank[node]:
            rank[node] = lowest
            moved = True
    return moved
