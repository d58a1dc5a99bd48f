"""Ranks: which row of a layered drawing each node stands in (PyTorch has no part that draws).

Every link goes down at least one row. Nodes are put as high as that allows, then let down where it makes more links
shorter than longer, so that a leaf stands right above what uses it.
"""

from __future__ import annotations

from collections.abc import Sequence

Links = Sequence[tuple[int, int]]

_PASSES = 12


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
    lowest = min(rank, default=0)
    return [each - lowest for each in rank]


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
