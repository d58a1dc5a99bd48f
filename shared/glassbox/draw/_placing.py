"""Placing: how far to the right each node of a layered drawing stands (PyTorch has no part that draws).

After U. Brandes and B. Koepf, Fast and Simple Horizontal Coordinate Assignment (2001): nodes are strung together into
vertical blocks in four ways, by their upper or lower neighbours and from the left or the right; each way is packed as
tightly as the distances allow, and the middle of the four is taken. Distances kept in all four are kept in the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Rows = Sequence[Sequence[int]]
Neighbours = Sequence[Sequence[int]]
Distance = Callable[[int, int], float]


def place_rows(
    rows: Rows, up: Neighbours, down: Neighbours, inner: Callable[[int, int], bool], apart: Distance
) -> list[float]:
    """x for each node.

    rows       the nodes of each row from left to right
    up, down   the neighbours in the next row that a node wants to stand below or above
    inner      whether a link between two nodes is the middle of a long one, to be kept straight before others
    apart      how far a node's right neighbour must stand from it at least
    """
    count = sum(map(len, rows))
    if not count:
        return []
    ways = []
    for upwards in (False, True):
        ordered = [list(row) for row in (reversed(rows) if upwards else rows)]
        toward = down if upwards else up
        barred = _conflicts(ordered, toward, inner)
        for mirrored in (False, True):
            turned = [row[::-1] for row in ordered] if mirrored else ordered
            distance = (lambda left, right: apart(right, left)) if mirrored else apart
            root, blocks = _align(turned, toward, barred, count)
            x = _pack(turned, root, blocks, distance)
            ways.append([-each for each in x] if mirrored else x)
    return _middle(ways)


def _conflicts(rows: Rows, toward: Neighbours, inner: Callable[[int, int], bool]) -> set[tuple[int, int]]:
    """Links that cross the middle of a long one: (upper, lower) in the order of the rows given."""
    barred: set[tuple[int, int]] = set()
    for above, row in zip(rows, rows[1:], strict=False):
        place = {node: nr for nr, node in enumerate(above)}
        first, start = 0, 0
        for nr, node in enumerate(row):
            straight = next((each for each in toward[node] if each in place and inner(each, node)), None)
            if straight is None and nr < len(row) - 1:
                continue
            last = len(above) - 1 if straight is None else place[straight]
            for each in row[start : nr + 1]:
                for other in toward[each]:
                    at = place.get(other)
                    if at is not None and (at < first or at > last) and not inner(other, each):
                        barred.add((other, each))
            first, start = last, nr + 1
    return barred


def _align(
    rows: Rows, toward: Neighbours, barred: set[tuple[int, int]], count: int
) -> tuple[list[int], dict[int, list[int]]]:
    """The block that each node is in, by its first node, and the nodes of each block."""
    root = list(range(count))
    tail = [True] * count
    place = [0] * count
    for row in rows:
        for nr, node in enumerate(row):
            place[node] = nr
    for row in rows[1:]:
        reached = -1
        for node in row:
            near = sorted(toward[node], key=place.__getitem__)
            if not near:
                continue
            middle = (len(near) - 1) / 2
            for nr in dict.fromkeys((int(middle), int(middle + 0.5))):
                other = near[nr]
                if tail[other] and reached < place[other] and (other, node) not in barred:
                    root[node] = root[other]
                    tail[other] = False
                    reached = place[other]
                    break
    blocks: dict[int, list[int]] = {}
    for row in rows:
        for node in row:
            blocks.setdefault(root[node], []).append(node)
    return root, blocks


def _pack(rows: Rows, root: Sequence[int], blocks: dict[int, list[int]], apart: Distance) -> list[float]:
    """x of each node: blocks as far to the left as their distances allow, then to the right again up to the next."""
    after: dict[int, dict[int, float]] = {block: {} for block in blocks}
    before: dict[int, dict[int, float]] = {block: {} for block in blocks}
    for row in rows:
        for left, right in zip(row, row[1:], strict=False):
            one, two, gap = root[left], root[right], apart(left, right)
            if gap > after[one].get(two, -1.0):
                after[one][two] = before[two][one] = gap
    waiting = {block: len(before[block]) for block in blocks}
    order = [block for block, number in waiting.items() if not number]
    for block in order:
        for other in after[block]:
            waiting[other] -= 1
            if not waiting[other]:
                order.append(other)
    x: dict[int, float] = {}
    for block in order:
        x[block] = max((x[other] + gap for other, gap in before[block].items()), default=0.0)
    for block in reversed(order):
        if after[block]:
            x[block] = max(x[block], min(x[other] - gap for other, gap in after[block].items()))
    return [x[each] for each in root]


def _middle(ways: Sequence[list[float]]) -> list[float]:
    """The mean of the two middle ways, each shifted to the narrowest one: left ways by their left end, right ways by
    their right one.
    """
    narrowest = min(ways, key=lambda x: max(x) - min(x))
    low, high = min(narrowest), max(narrowest)
    shifted = []
    for nr, x in enumerate(ways):
        by = high - max(x) if nr % 2 else low - min(x)
        shifted.append([each + by for each in x])
    found = []
    for four in zip(*shifted, strict=True):
        ordered = sorted(four)
        found.append((ordered[1] + ordered[2]) / 2)
    least = min(found)
    return [each - least for each in found]
