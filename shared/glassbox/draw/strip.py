"""Strip: a flat storage as a line of cells, and which of them each view sees (c10/core/StorageImpl.h)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from .cells import CELL, GAP, Block, Shown, cell
from .svg import esc, mono_width, num, text

STRIP_SHOWN = 64


def strip_positions(size: int, wanted: Iterable[int], limit: int = STRIP_SHOWN) -> Shown:
    """Storage positions that a strip draws: all of a small storage, else the ends and what is wanted.

    None stands for a stretch left out; the caller says how long it is.
    """
    if size <= limit:
        return list(range(size))
    inside = sorted({p for p in wanted if 0 <= p < size})
    keep: set[int] = {0, size - 1}
    for position in inside:
        near = {position, max(0, position - 1), min(size - 1, position + 1)}
        if len(keep | near) > limit:
            break
        keep |= near
    for position in range(size):
        if len(keep) >= min(limit, 12):
            break
        keep.add(position)
    result: Shown = []
    last = -1
    for position in sorted(keep):
        if position == last + 2:
            result.append(last + 1)
        elif position > last + 1:
            result.append(None)
        result.append(position)
        last = position
    return result


def storage_strip(
    positions: Shown,
    x: float,
    y: float,
    width: float,
    paint: Callable[[int], str],
    content: Callable[[int], str],
    numbered: bool = True,
    counts: Counter[int] | None = None,
    lanes: Sequence[tuple[str, str, Callable[[int], bool]]] = (),
) -> Block:
    """The storage as a strip of cells, wrapped to `width`; a badge says how many indices share a cell.

    `lanes` are (name, class, touches) drawn below each line of cells: which cells one view reaches.
    """
    real = [p for p in positions if p is not None]
    w = max([CELL] + [mono_width(content(p), 13) + 10 for p in real])
    parts: list[str] = []
    lines: list[list[tuple[float, float, int | None]]] = [[]]
    cx = x
    for k, position in enumerate(positions):
        w_here = w if position is not None else max(30.0, mono_width(_skipped(positions, k), 10) + 10)
        if cx + w_here > x + width + 0.01 and lines[-1]:
            lines.append([])
            cx = x
        lines[-1].append((cx, w_here, position))
        cx += w_here + GAP
    cy, right = y, x
    k = 0
    for line in lines:
        top = cy + (14 if numbered else 0)
        for cx, w_here, position in line:
            if position is None:
                parts.append(text(cx + w_here / 2, top + CELL / 2 + 1, "⋯", "m", "middle", 16))
                parts.append(
                    text(cx + w_here / 2, top + CELL / 2 + 14, _skipped(positions, k), "m", "middle", 10)
                )
            else:
                if numbered:
                    parts.append(text(cx + w_here / 2, cy + 8, position, "m", "middle", 11))
                parts.append(cell(cx, top, w_here, content(position), f"u c{position} {paint(position)}"))
                if counts is not None and counts[position] > 1:
                    parts.append(_badge(cx + w_here, top + CELL - 4, f"×{counts[position]}"))
            right = max(right, cx + w_here)
            k += 1
        ly = top + CELL + 7
        for name, cls, touches in lanes:
            lane = _lane(line, ly, cls, touches)
            if lane:
                parts.append(text(x - 8, ly + 7, name, "", "end", 11) + lane)
                ly += 14
        cy = ly + 3
    return Block("".join(parts), right - x, cy - 10 - y)


def _skipped(positions: Shown, k: int) -> str:
    before = positions[k - 1] if k else -1
    after = positions[k + 1]
    assert before is not None and after is not None
    return f"{after - before - 1:,} more"


def _badge(x: float, y: float, label: str) -> str:
    w = mono_width(label, 10) + 6
    return (
        f'<g class="k hot"><rect x="{num(x - w + 5)}" y="{num(y - 6)}" width="{num(w)}" height="14" rx="7"/>'
        f'<text x="{num(x - w / 2 + 5)}" y="{num(y + 4.5)}" font-size="10" text-anchor="middle">'
        f"{esc(label)}</text></g>"
    )


def _lane(
    line: Sequence[tuple[float, float, int | None]], y: float, cls: str, touches: Callable[[int], bool]
) -> str:
    """Pills under the cells that one view reaches; neighbours are joined."""
    parts: list[str] = []
    run: list[float] | None = None
    for cx, w, position in [*line, (0.0, 0.0, None)]:
        if position is not None and touches(position):
            run = [cx, cx + w] if run is None else [run[0], cx + w]
        elif run is not None:
            parts.append(
                f'<rect class="lane {cls}" x="{num(run[0] + 2)}" y="{num(y)}" '
                f'width="{num(run[1] - run[0] - 4)}" height="7" rx="3.5"/>'
            )
            run = None
    return "".join(parts)
