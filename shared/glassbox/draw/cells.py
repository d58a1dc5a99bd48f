"""Cells: where the elements of a tensor and of its storage lie on the page (PyTorch has no part that draws).

Both halves of a storage figure are made of the same cell. A cell carries the class c<position> of the storage
position that it shows, which is what ties the two halves together under the pointer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..records import StorageView
from .svg import ROW_HUES, esc, mono_width, num, text

CELL = 34.0
GAP = 3.0
PITCH = CELL + GAP
ROWS_SHOWN, COLUMNS_SHOWN, BLOCKS_SHOWN = 8, 12, 4
COUNTED = 20_000

Shown = list[int | None]


def clip(n: int, limit: int) -> Shown:
    """Which of 0..n-1 are drawn; None stands for the ones left out."""
    if n <= limit:
        return list(range(n))
    return [*range(limit - 2), None, n - 1]


def value_text(value: Any) -> str:
    """An element as short as it can honestly be: four digits, T and F for booleans."""
    if isinstance(value, bool):
        return "T" if value else "F"
    if isinstance(value, int):
        return str(value) if abs(value) < 10**6 else f"{value:.2e}"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def cell_text(view: StorageView, position: int) -> str:
    """What a cell says: the element where it is known, else the storage position."""
    if view.values is not None and 0 <= position < len(view.values):
        return value_text(view.values[position])
    return str(position)


def row_of(view: StorageView, index: Sequence[int]) -> int:
    """Number of the row that an index lies in, counted over all leading dimensions."""
    row = 0
    for i, n in zip(index[:-1], view.shape[:-1], strict=True):
        row = row * n + i
    return row


def row_class(view: StorageView, index: Sequence[int]) -> str:
    return f"r{row_of(view, index) % ROW_HUES}"


def cell(
    x: float,
    y: float,
    w: float,
    content: str,
    cls: str,
    tip: tuple[float, float, str] | None = None,
    h: float = CELL,
) -> str:
    """One cell: a rounded square with its text, and the line that the figure shows while it is under the
    pointer.
    """
    line = "" if tip is None else text(tip[0], tip[1], tip[2], "tip", size=13)
    return (
        f'<g class="k {esc(cls)}"><rect x="{num(x)}" y="{num(y)}" width="{num(w)}" height="{num(h)}" rx="5"/>'
        f'<text x="{num(x + w / 2)}" y="{num(y + h / 2 + 4.5)}" font-size="13" text-anchor="middle">'
        f"{esc(content)}</text>{line}</g>"
    )


@dataclass(frozen=True)
class Block:
    """A drawn part: its SVG, its size, and the (index, position) pairs that it shows."""

    svg: str
    width: float
    height: float
    shown: tuple[tuple[tuple[int, ...], int], ...] = ()


def shown_indices(view: StorageView) -> list[tuple[int, ...]]:
    """The indices that a tensor grid draws, in row-major order."""
    axes = _axes(view)
    result: list[tuple[int, ...]] = [()]
    for axis in axes:
        result = [(*head, i) for head in result for i in axis if i is not None]
    return result


def _axes(view: StorageView) -> list[Shown]:
    """Per dimension what is drawn: beyond four dimensions only index 0 of the outer ones."""
    limits = [BLOCKS_SHOWN, BLOCKS_SHOWN, ROWS_SHOWN, COLUMNS_SHOWN]
    outer = max(0, view.ndim - 4)
    axes: list[Shown] = [[0] if n else [] for n in view.shape[:outer]]
    inner = zip(view.shape[outer:], limits[outer - view.ndim :], strict=True) if view.ndim else ()
    return axes + [clip(n, limit) for n, limit in inner]


def tensor_grid(
    view: StorageView,
    x: float,
    y: float,
    paint: Callable[[tuple[int, ...], int], str],
    tip: tuple[float, float] | None = None,
    limit: float = math.inf,
) -> Block:
    """The tensor as a grid: rows and columns for the last two dimensions, blocks for the ones before.

    `paint(index, position)` gives a cell's classes; `tip` is where the address formula appears while a cell
    is under the pointer. Blocks that would reach beyond the width `limit` go on in the next line.
    """
    if view.numel == 0:
        return Block(text(x + 20, y + 18, "no elements", "m", size=13), 120, 26)
    axes = _axes(view)
    while len(axes) < 4:
        axes.insert(0, [0])
    label = view.ndim > 2
    w = max(CELL, max(mono_width(cell_text(view, view.address(i)), 13) + 10 for i in shown_indices(view)))
    outer = (0,) * (view.ndim - 4)
    parts: list[str] = []
    shown: list[tuple[tuple[int, ...], int]] = []
    left = 20.0
    block_y, width = y, 0.0
    for i0 in axes[-4]:
        if i0 is None:
            parts.append(text(x + left, block_y + 14, "⋮", "m", size=16))
            block_y += 26
            continue
        block_x, block_width, row_height = x, 0.0, 0.0
        for i1 in axes[-3]:
            if i1 is None:
                parts.append(text(block_x + 6, block_y + 60, "⋯", "m", size=16))
                width = max(width, block_x + 20 - x)
                block_x += 30
                continue
            lead = [*outer] + [i for i, d in ((i0, -4), (i1, -3)) if view.ndim >= -d]
            name = f"[{', '.join(map(str, lead))}, :, :]" if label else ""
            # Blocks of one height and one width, so that the first one tells whether the next still fits.
            if block_x > x and block_x + block_width - x > limit:
                block_x, block_y = x, block_y + row_height + 14
            top = block_y
            if label:
                parts.append(text(block_x + left, top + 11, name, "m", size=11))
                top += 18
            grid = _grid(view, (*outer, i0, i1), axes[-2:], block_x, top, left, w, paint, tip)
            parts.append(grid.svg)
            shown += grid.shown
            block_width = max(grid.width, left + mono_width(name, 11))
            width = max(width, block_x + block_width - x)
            block_x += block_width + 18
            row_height = top - block_y + grid.height
        block_y += row_height + (14 if axes[-4][-1] != i0 else 0)
    return Block("".join(parts), width, block_y - y, tuple(shown))


def _grid(
    view: StorageView,
    lead: tuple[int, ...],
    axes: Sequence[Shown],
    x: float,
    y: float,
    left: float,
    w: float,
    paint: Callable[[tuple[int, ...], int], str],
    tip: tuple[float, float] | None,
) -> Block:
    parts: list[str] = []
    shown: list[tuple[tuple[int, ...], int]] = []
    cy = y + (14 if view.ndim else 0)
    right = x + left
    for r, i in enumerate(axes[0]):
        if i is None:
            parts.append(text(x + left + w / 2, cy + 13, "⋮", "m", "middle", 16))
            cy += 22
            continue
        if view.ndim >= 2:
            parts.append(text(x + left - 7, cy + CELL / 2 + 4, i, "m", "end", 11))
        cx = x + left
        for j in axes[1]:
            if j is None:
                parts.append(text(cx + 9, cy + CELL / 2 + 5, "⋯", "m", "middle", 16))
                cx += 22
                continue
            if r == 0 and view.ndim:
                parts.append(text(cx + w / 2, y + 8, j, "m", "middle", 11))
            index = (*lead, i, j)[-view.ndim :] if view.ndim else ()
            position = view.address(index)
            line = None if tip is None else (tip[0], tip[1], view.formula(index))
            parts.append(
                cell(cx, cy, w, cell_text(view, position), f"t c{position} {paint(index, position)}", line)
            )
            shown.append((index, position))
            cx += w + GAP
        right = max(right, cx - GAP)
        cy += CELL + GAP
    return Block("".join(parts), right - x, cy - GAP - y, tuple(shown))
