"""Ordering: from left to right in each row, so that few links cross (PyTorch has no part that draws).

Rows are swept down and up; each node goes to the mean place of its neighbours in the row before, then neighbours are
swapped while that takes crossings away. The best order met is kept. Deterministic: ties keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence

Rows = list[list[int]]
Neighbours = Sequence[Sequence[int]]

_SWEEPS = 16
_PATIENCE = 4
# Swapping looks at each pair of links of two neighbours, which a crowded row has too many of.
_SWAPPED = 20_000


def order_rows(rows: Rows, up: Neighbours, down: Neighbours) -> Rows:
    """The rows in a new order each; up[v] and down[v] are v's neighbours in the rows right above and below."""
    best = [list(row) for row in rows]
    place = _places(best, len(up))
    fewest = crossings(best, down, place)
    links = sum(map(len, down))
    current, worse = [list(row) for row in best], 0
    for sweep in range(_SWEEPS):
        if not fewest or worse >= _PATIENCE:
            break
        downwards = sweep % 2 == 0
        _sweep(current, place, up if downwards else down, downwards)
        if links <= _SWAPPED:
            _swap(current, place, up, down)
        count = crossings(current, down, place)
        if count < fewest:
            best, fewest, worse = [list(row) for row in current], count, 0
        else:
            worse += 1
    return best


def crossings(rows: Rows, down: Neighbours, place: Sequence[int]) -> int:
    """How many pairs of links cross between neighbouring rows."""
    total = 0
    for nr, row in enumerate(rows[:-1]):
        ends = [end for node in row for end in sorted(place[each] for each in down[node])]
        total += _inversions(ends, len(rows[nr + 1]))
    return total


def _inversions(ends: Sequence[int], size: int) -> int:
    """Pairs that stand in the wrong order, by a tree that counts what came before."""
    tree = [0] * (size + 1)
    count = 0
    for seen, end in enumerate(ends):
        smaller, at = 0, end + 1
        while at > 0:
            smaller += tree[at]
            at -= at & -at
        count += seen - smaller
        at = end + 1
        while at <= size:
            tree[at] += 1
            at += at & -at
    return count


def _places(rows: Rows, count: int) -> list[int]:
    place = [0] * count
    for row in rows:
        for nr, node in enumerate(row):
            place[node] = nr
    return place


def _sweep(rows: Rows, place: list[int], toward: Neighbours, downwards: bool) -> None:
    for row in rows if downwards else reversed(rows):
        wish = {
            node: sum(place[each] for each in toward[node]) / len(toward[node]) if toward[node] else float(place[node])
            for node in row
        }
        row.sort(key=lambda node: wish[node])
        for nr, node in enumerate(row):
            place[node] = nr


def _swap(rows: Rows, place: list[int], up: Neighbours, down: Neighbours) -> None:
    improved = True
    rounds = 0
    while improved and rounds < _PATIENCE:
        improved, rounds = False, rounds + 1
        for row in rows:
            for nr in range(len(row) - 1):
                left, right = row[nr], row[nr + 1]
                if _between(left, right, up, down, place) > _between(right, left, up, down, place):
                    row[nr], row[nr + 1] = right, left
                    place[left], place[right] = nr + 1, nr
                    improved = True


def _between(left: int, right: int, up: Neighbours, down: Neighbours, place: Sequence[int]) -> int:
    """Crossings of the links of two nodes that stand in this order."""
    count = 0
    for side in (up, down):
        mine, theirs = side[left], side[right]
        if mine and theirs:
            others = [place[each] for each in theirs]
            count += sum(place[each] > other for each in mine for other in others)
    return count
