"""Lab 4, extension: the cache lines that a strided loop touches (PyTorch has no twin; the hardware has)."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any

from ..lab1.cases import (
    Layout,
    MakeLayout,
    any_layout,
    dense,
    empty,
    gapped,
    overlapping,
    permuted,
    picture,
    repeated,
    some_sizes,
    stepped,
    until,
    with_ones,
)
from ..model import Case, Draw, Property, Task


def _lines(shape: Sequence[int], stride: Sequence[int], offset: int, itemsize: int, line: int) -> Any:
    """A tensor of this shape that holds, for each element, the number of its cache line."""
    import torch

    reach = 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True) if size)
    cells = torch.arange(offset + reach) * itemsize // line
    return cells.as_strided(shape, stride, offset)


def _fetches(lines: Any, order: Sequence[int]) -> int:
    walked = lines.permute(order).flatten()
    return int((walked.diff() != 0).sum()) + min(len(walked), 1)


def _true_cache_lines(shape: Sequence[int], stride: Sequence[int], offset: int, itemsize: int, line: int) -> Any:
    lines = _lines(shape, stride, offset, itemsize, line)
    orders = itertools.permutations(range(len(shape)))
    best = min((_fetches(lines, order), order) for order in orders)
    return len(lines.unique()), *best


def _canon(case: Case, value: Any) -> Any:
    """The order is as good as the fetches that it leads to."""
    touched, fetches, order = value
    if sorted(order) != list(range(len(case[0]))) or not all(type(dim) is int for dim in order):
        raise ValueError("each dimension once")
    return [touched, fetches, _fetches(_lines(*case), order)]


def _loop(make: MakeLayout, least: int = 0, most: int = 120) -> Draw:
    """Loops over such layouts, with items and lines of several sizes."""

    def draw(rng: random.Random) -> Case:
        while True:
            layout = make(rng)
            cells = 1
            for size in layout[0]:
                cells *= size
            if cells <= most and len(layout[0]) >= least:
                return *layout, rng.choice((1, 2, 4, 8)), rng.choice((16, 32, 64, 128))

    return draw


def _long_rows(rng: random.Random) -> Layout:
    """Rows of several lines each, so that the order of the loops is worth something."""
    rows, columns = rng.randint(2, 6), rng.randint(8, 19)
    layout = (rows, columns), (columns + rng.choice((0, 0, 1, 5)), 1), rng.randint(0, 19)
    if rng.random() < 0.5:
        return layout
    shape, stride, offset = layout
    return shape[::-1], stride[::-1], offset


def _blocks(rng: random.Random) -> Layout:
    """Three dimensions in any order, with gaps."""
    shape = tuple(rng.randint(2, 5) for _ in range(3))
    stride = [0, 0, 0]
    step = 1
    for dim in rng.sample(range(3), 3):
        stride[dim] = step
        step *= shape[dim] + rng.randint(0, 3)
    return shape, tuple(stride), rng.randint(0, 19)


def _windows(rng: random.Random) -> Layout:
    """Windows over a sequence: many indices, few cells."""
    step = rng.randint(1, 3)
    return (rng.randint(3, 9), rng.randint(3, 9)), (step, 1), rng.randint(0, 19)


def _column(rng: random.Random) -> Layout:
    """One column of a wide matrix: every element in a line of its own, or nearly so."""
    return (rng.randint(4, 40),), (rng.choice((7, 8, 12, 16, 17, 33, 64)),), rng.randint(0, 40)


def _interleaved(rng: random.Random) -> Layout:
    """A long loop, and a short one of a slightly larger stride that belongs inside all the same."""
    step = rng.randint(1, 3)
    sizes, strides = (rng.randint(2, 3), rng.randint(20, 40)), (step + rng.randint(1, 2), step)
    return (sizes, strides, rng.randint(0, 19)) if rng.random() < 0.5 else (sizes[::-1], strides[::-1], 0)


def _not_by_stride(case: Case) -> bool:
    """Whether the order of the strides is not the best one."""
    lines = _lines(*case)
    return _fetches(lines, sorted(range(2), key=lambda dim: -case[1][dim])) > _true_cache_lines(*case)[1]


def _far_lines(rng: random.Random) -> Layout:
    """Strides over a line, under which the middle of the lines is skipped."""
    shape = some_sizes(rng, 2, 60)
    return shape, (rng.randint(30, 300), rng.choice((1, 2, 5, 20))), rng.randint(0, 19)


def _scalar(rng: random.Random) -> Layout:
    return (), (), rng.randint(0, 999)


cache_lines = Task(
    id="lab4.cache_lines",
    title="Cache lines under a strided loop",
    function="cache_lines",
    points=11,
    minutes=25,
    difficulty=3,
    seconds=4.0,
    oracle=_true_cache_lines,
    canon=_canon,
    views=lambda case, value: picture(*case[:3]) if value is None else None,
    properties=(
        Property(
            "rows, columns and gaps",
            weight=2,
            corners=(_loop(_column), _loop(_long_rows), _loop(_far_lines), _loop(dense)),
            draws=(_loop(_column), _loop(gapped), _loop(stepped), _loop(_far_lines)),
            why="memory comes in lines: one element of a line costs as much as all of them",
            slip="offset and stride count elements, a line counts bytes; a row may begin in the middle of a line",
        ),
        Property(
            "the best order of the loops",
            weight=3,
            corners=(
                _loop(_long_rows),
                _loop(_blocks),
                _loop(permuted, least=3),
                until(_loop(_interleaved), _not_by_stride),
            ),
            draws=(_loop(_blocks), _loop(_long_rows), _loop(_interleaved), _loop(permuted)),
            why="this is what reorder_dimensions is for: the same elements, many times fewer fetches",
            slip="small strides belong inside, but not always: where two loops interleave, the short one does",
            count=16,
        ),
        Property(
            "cells that are visited more than once",
            weight=2,
            corners=(_loop(repeated), _loop(_windows), _loop(overlapping)),
            draws=(_loop(repeated), _loop(_windows), _loop(overlapping)),
            why="a repeated or overlapping tensor has many elements over few lines",
            slip="lines are counted once however often they are visited; fetches are counted anew",
        ),
        Property(
            "sizes of 1, no dimension, no element",
            weight=1,
            corners=(
                _loop(_scalar),
                _loop(empty(any_layout)),
                _loop(with_ones(permuted)),
                _loop(with_ones(_long_rows)),
            ),
            draws=(_loop(with_ones(_blocks)), _loop(_scalar), _loop(with_ones(gapped)), _loop(empty(any_layout))),
            why="a loop of no steps touches nothing; one of no dimension touches one line",
            slip="without elements there are no lines and no fetches; a scalar has one of each, in the order ()",
        ),
    ),
    hints=(
        "The line of an element is its address in bytes // line. Which addresses does the loop visit?",
        "A set of the lines answers the first question; for the second, walk and compare with the line before.",
        "itertools.permutations gives all orders of the loops; an index along the outermost loop moves last.",
    ),
    read="notebook 04, 6. Station 7: as few loops as the layouts allow",
)
