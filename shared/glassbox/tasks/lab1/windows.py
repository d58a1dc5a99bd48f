"""Lab 1, extensions: windows, diagonals, shared cells (PyTorch: ATen/native/TensorShape.cpp)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from ..model import Case, Draw, Property, Task
from .cases import (
    Layout,
    MakeLayout,
    any_layout,
    canon_layout,
    dense,
    empty,
    gapped,
    layout,
    no_dim,
    overlapping,
    permuted,
    picture,
    repeated,
    some_dim,
    stepped,
    tensor,
    until,
    with_ones,
)


def _true_unfold(shape: Sequence[int], stride: Sequence[int], dim: int, size: int, step: int) -> Any:
    return layout(tensor(shape, stride).unfold(dim, size, step))[:2]


def _windows(kind: str, negative_dim: bool = False) -> Draw:
    def draw(rng: random.Random) -> Case:
        sizes, strides, _ = any_layout(rng, rng.choice((1, 2, 2, 3, 3)))
        dim = some_dim(rng, len(sizes), negative_dim)
        room = rng.randint(4, rng.choice((8, 40)))
        at = dim % len(sizes)
        sizes = (*sizes[:at], room, *sizes[at + 1 :])
        size, step = rng.randint(2, room - 1), rng.randint(1, 3)
        if kind == "uneven":
            size, step = rng.choice(
                [(a, b) for a in range(2, room) for b in range(2, room) if (room - a) % b]
            )
        elif kind == "side by side":
            size = step = rng.randint(2, room // 2)
        elif kind == "apart":
            size, step = 2, rng.randint(3, 5)
        elif kind == "whole":
            size = room
        elif kind == "one":
            size = 1
        elif kind == "none":
            size = 0
        return sizes, strides, dim, size, step

    return draw


def _wrong_windows(kind: str) -> Draw:
    def draw(rng: random.Random) -> Case:
        sizes, strides, dim, size, step = _windows("plain")(rng)
        if kind == "too long":
            return sizes, strides, dim, sizes[dim] + 1, step
        if kind == "negative size":
            return sizes, strides, dim, -rng.randint(1, 3), step
        if kind == "no step":
            return sizes, strides, dim, size, 0
        if kind == "step back":
            return sizes, strides, dim, size, -rng.randint(1, 3)
        return sizes, strides, no_dim(len(sizes), below=kind == "dim below"), size, step

    return draw


_NO_WINDOWS = ("too long", "negative size", "no step", "step back", "dim above", "dim below")

unfold = Task(
    id="lab1.unfold",
    title="Sliding windows",
    function="unfold",
    points=9,
    minutes=15,
    difficulty=3,
    oracle=_true_unfold,
    canon=canon_layout,
    properties=(
        Property(
            "windows that overlap, touch, or lie apart",
            weight=2,
            corners=(_windows("side by side"), _windows("apart"), _windows("plain")),
            draws=(_windows("plain"), _windows("side by side"), _windows("apart")),
            why="a convolution's patches are a view: overlapping windows read the same cells",
            slip="the dimension counts windows now, step * stride apart; the last one has the old stride",
        ),
        Property(
            "steps that leave a rest, and dimensions from the end",
            weight=1,
            corners=(_windows("uneven"), _windows("uneven", negative_dim=True)),
            draws=(
                _windows("uneven"),
                _windows("uneven", negative_dim=True),
                _windows("plain", negative_dim=True),
            ),
            why="a window that would reach past the end is left out",
            slip="there are (n - size) // step + 1 windows: one more than the number of steps",
        ),
        Property(
            "windows as long as the dimension, of one element, of none",
            weight=1,
            corners=(_windows("whole"), _windows("one"), _windows("none")),
            draws=(_windows("whole"), _windows("one"), _windows("plain")),
            why="at the limits a formula shows whether it was understood",
            slip="a window as long as the dimension fits exactly once",
        ),
        Property(
            "windows that do not fit",
            weight=1,
            corners=tuple(_wrong_windows(kind) for kind in _NO_WINDOWS),
            draws=(_windows("plain"), _windows("whole"), _windows("uneven", negative_dim=True)),
            why="a window past the end would read another row's cells",
            slip="RuntimeError for a bad size or a step below 1, IndexError for a bad dimension",
            count=18,
        ),
    ),
    hints=(
        "How many windows start early enough to fit?",
        "Moving on by one window means moving step elements along the old dimension.",
        "The elements of one window come last: a new dimension with the old stride.",
    ),
    read="notebook 01, 6. Repeating without memory",
    views=lambda case, value: picture(case[0], case[1]) if value is None else picture(*value),
)


def _true_diagonal(
    shape: Sequence[int], stride: Sequence[int], offset: int, k: int, dim1: int, dim2: int
) -> Any:
    return layout(tensor(shape, stride, offset).diagonal(k, dim1, dim2))


def _diagonal(k: str, ndim: tuple[int, int] = (2, 4), negative: float = 0.0, zeros: bool = False) -> Draw:
    """Diagonals of a kind; along two repeated dimensions with `zeros`."""

    def draw(rng: random.Random) -> Case:
        sizes, strides, offset = any_layout(rng, rng.randint(*ndim))
        first, second = rng.sample(range(len(sizes)), 2)
        if zeros:
            strides = tuple(0 if dim in (first, second) else step for dim, step in enumerate(strides))
        rows, columns = sizes[first], sizes[second]
        shift = {
            "main": lambda: 0,
            "above": lambda: rng.randint(1, columns - 1),
            "below": lambda: -rng.randint(1, rows - 1),
            "corner": lambda: rng.choice((columns - 1, 1 - rows)),
            "far outside": lambda: rng.choice((columns + rng.randint(1, 3), -rows - rng.randint(1, 3))),
            "outside": lambda: rng.choice((columns + rng.randint(0, 2), -rows - rng.randint(0, 2))),
        }[k]()
        dims = tuple(dim - len(sizes) if rng.random() < negative else dim for dim in (first, second))
        return sizes, strides, offset, shift, *dims

    return draw


def _wrong_diagonal(kind: str) -> Draw:
    def draw(rng: random.Random) -> Case:
        sizes, strides, offset, k, first, second = _diagonal("main")(rng)
        if kind == "same":
            return sizes, strides, offset, k, first, first
        if kind == "same, once from the end":
            return sizes, strides, offset, k, first, first - len(sizes)
        wrong = no_dim(len(sizes), below=kind.endswith("below"))
        return sizes, strides, offset, k, *((wrong, second) if kind.startswith("dim1") else (first, wrong))

    return draw


diagonal = Task(
    id="lab1.diagonal",
    title="A diagonal is a view",
    function="diagonal",
    points=9,
    minutes=20,
    difficulty=3,
    oracle=_true_diagonal,
    canon=canon_layout,
    properties=(
        Property(
            "main diagonals of two, three and four dimensions",
            weight=2,
            corners=(
                _diagonal("main", (2, 2)),
                _diagonal("main", (3, 3)),
                _diagonal("main", (4, 4)),
                _diagonal("main", zeros=True),
            ),
            draws=(_diagonal("main", (2, 3)), _diagonal("main", (3, 4))),
            why="one step along the diagonal is one step along both dimensions at once",
            slip="the two strides add up; the diagonal comes last, the others keep their order",
        ),
        Property(
            "diagonals above and below the main one",
            weight=2,
            corners=(_diagonal("above", (2, 2)), _diagonal("below", (2, 2)), _diagonal("corner")),
            draws=(_diagonal("above"), _diagonal("below")),
            why="causal masks and banded matrices live on these",
            slip="k > 0 starts k columns to the right, k < 0 starts -k rows down; both shorten the diagonal",
        ),
        Property(
            "dimensions from the end, diagonals outside the matrix",
            weight=1,
            corners=(_diagonal("outside"), _diagonal("far outside"), _diagonal("main", negative=1.0)),
            draws=(
                _diagonal("above", negative=0.6),
                _diagonal("below", negative=0.6),
                _diagonal("outside", negative=0.6),
            ),
            why="a diagonal outside the matrix is empty, not an error",
            slip="the length never goes below 0; min over the rows and columns that are left",
        ),
        Property(
            "dimensions that are the same or not there",
            weight=1,
            corners=tuple(
                _wrong_diagonal(kind)
                for kind in (
                    "same",
                    "same, once from the end",
                    "dim1 above",
                    "dim1 below",
                    "dim2 above",
                    "dim2 below",
                )
            ),
            draws=(_diagonal("main"), _diagonal("above", negative=0.5), _diagonal("below", negative=0.5)),
            why="dim1 = 0 and dim2 = -2 are the same dimension of a matrix",
            slip="RuntimeError for the same dimension twice, IndexError for one that is not there",
            count=18,
        ),
    ),
    hints=(
        "Where do you land when you go one row down and one column to the right?",
        "The first element of diagonal k lies at column k of row 0, or at row -k of column 0.",
        "From there, how many rows and how many columns are left? The smaller number is the length.",
    ),
    read="notebook 01, 3. Where does T[i, j] live?",
    views=lambda case, value: picture(*case[:3]) if value is None else picture(*value),
)


def _true_aliased(shape: Sequence[int], stride: Sequence[int], offset: int, cell: int) -> Any:
    return [tuple(index) for index in (tensor(shape, stride, offset) == cell).nonzero().tolist()]


def _hit(make: MakeLayout) -> Draw:
    """A cell that some index reaches."""

    def draw(rng: random.Random) -> Case:
        sizes, strides, offset = make(rng)
        index = [rng.randrange(size) for size in sizes]
        cell = offset + sum(i * step for i, step in zip(index, strides, strict=True))
        return sizes, strides, offset, cell

    return draw


def _miss(make: MakeLayout) -> Draw:
    """A cell that no index reaches, among or just beside those that are."""

    def draw(rng: random.Random) -> Case:
        sizes, strides, offset = make(rng)
        reach = sum((size - 1) * step for size, step in zip(sizes, strides, strict=True) if size)
        return sizes, strides, offset, rng.randint(max(offset - 3, 0), offset + reach + 3)

    return until(draw, lambda case: not _true_aliased(*case))


def _several(make: MakeLayout, least: int = 2) -> Draw:
    return until(_hit(make), lambda case: least <= len(_true_aliased(*case)) <= 60)


def _sliding(rng: random.Random) -> Layout:
    """Windows over a row of cells, as sliding over a sequence makes them."""
    x = tensor((rng.randint(6, 14),), (rng.randint(1, 3),), rng.randint(1, 19))
    return layout(x.unfold(0, rng.randint(3, 5), rng.randint(1, 2)))


def _scalar(rng: random.Random) -> Layout:
    return (), (), rng.randint(1, 99)


aliased_indices = Task(
    id="lab1.aliased_indices",
    title="Which indices meet in one cell",
    function="aliased_indices",
    points=11,
    minutes=20,
    difficulty=3,
    oracle=_true_aliased,
    properties=(
        Property(
            "layouts in which every cell has one index at most",
            weight=1,
            corners=(_miss(gapped), _miss(stepped), _hit(permuted)),
            draws=(_hit(dense), _hit(permuted), _miss(stepped), _hit(gapped), _hit(stepped)),
            why="reading a cell number backwards is the address formula solved for the index",
            slip="cells in the gaps belong to no index: the answer is an empty list",
        ),
        Property(
            "repeated dimensions",
            weight=2,
            corners=(_several(repeated), _several(repeated, least=16), _miss(repeated)),
            draws=(_several(repeated), _several(repeated), _miss(repeated)),
            why="writing to one element of an expanded tensor changes all of these",
            slip="along stride 0 every index reaches the same cell, so all of them belong to the answer",
        ),
        Property(
            "overlapping windows",
            weight=2,
            corners=(_several(_sliding), _several(overlapping), _miss(_sliding)),
            draws=(_several(_sliding), _several(overlapping), _miss(overlapping)),
            why="this is why PyTorch refuses some in-place ops: one cell would be written twice",
            slip="dividing by one stride after the other finds one index only; list all, in order",
        ),
        Property(
            "no dimension, no element, sizes of 1",
            weight=1,
            corners=(_hit(_scalar), _miss(_scalar), _miss(empty(any_layout)), _hit(with_ones(permuted))),
            draws=(
                _hit(with_ones(any_layout)),
                _several(with_ones(overlapping)),
                _miss(with_ones(gapped)),
                _hit(_scalar),
            ),
            why="a scalar has exactly one index, the empty one",
            slip="the answer for a scalar's own cell is [()], and [] for any other cell",
        ),
    ),
    hints=(
        "Small layouts may simply be tried: visit every index and compare its address with the cell.",
        "itertools.product over a range for each size gives all indices, in the order that is asked for.",
        "With no dimensions, product() gives one empty tuple, which is the one index of a scalar.",
    ),
    read="notebook 01, 6. Repeating without memory",
)
