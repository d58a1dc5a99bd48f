"""Lab 1: views that reorder and slice (PyTorch: ATen/native/TensorShape.cpp)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from ..model import Case, Draw, Property, Task
from .cases import (
    MakeLayout,
    always,
    any_layout,
    canon_layout,
    empty,
    layout,
    no_dim,
    picture,
    some_dim,
    tensor,
)


def _true_permute(shape: Sequence[int], stride: Sequence[int], dims: Sequence[int]) -> Any:
    x = tensor(shape, stride).permute(dims)
    return tuple(x.shape), x.stride()


def _order(make: MakeLayout, negative: float = 0.0) -> Draw:
    """Any order of the dimensions; each is counted from the end with this chance."""

    def draw(rng: random.Random) -> Case:
        sizes, strides, _ = make(rng)
        order = rng.sample(range(len(sizes)), len(sizes))
        return sizes, strides, tuple(dim - len(sizes) if rng.random() < negative else dim for dim in order)

    return draw


def _of(ndim: int) -> MakeLayout:
    return lambda rng: any_layout(rng, ndim)


def _cycled(rng: random.Random) -> Case:
    """The first dimension moves to the end; undoing this is another order."""
    sizes, strides, _ = any_layout(rng, rng.randint(3, 4))
    return sizes, strides, (*range(1, len(sizes)), 0)


def _as_large_together(rng: random.Random) -> Case:
    """Two neighbours of a dimension are named as that dimension itself: the sum of all stays."""
    sizes, strides, dims = _order(_of(rng.randint(3, 4)))(rng)
    between = rng.randint(1, len(sizes) - 2)
    return sizes, strides, tuple(between if abs(dim - between) == 1 else dim for dim in dims)


def _wrong_order(kind: str) -> Draw:
    def draw(rng: random.Random) -> Case:
        sizes, strides, dims = _order(any_layout)(rng)
        if kind == "short":
            return sizes, strides, dims[1:]
        if kind == "long":
            return sizes, strides, (*dims, dims[0])
        if kind == "twice":
            return sizes, strides, tuple(len(sizes) - 1 if dim == 0 else dim for dim in dims)
        if kind == "twice, once from the end":
            return sizes, strides, tuple(-len(sizes) if dim == len(sizes) - 1 else dim for dim in dims)
        return sizes, strides, (*dims[:-1], no_dim(len(sizes), below=kind == "below"))

    return draw


permute = Task(
    id="lab1.permute",
    title="Dimensions in another order",
    function="permute",
    points=5,
    minutes=10,
    difficulty=1,
    piece="permute",
    oracle=_true_permute,
    properties=(
        Property(
            "any order of the dimensions",
            weight=2,
            corners=(always((), (), ()), _cycled, *(_order(_of(ndim)) for ndim in (1, 2, 3, 4))),
            draws=(_order(_of(3)), _order(_of(4)), _cycled),
            why="transpose, T and movedim are all this: sizes and strides change places, no element moves",
            slip="dims[i] says where result dimension i comes from, not where dimension i goes",
        ),
        Property(
            "dimensions counted from the end",
            weight=1,
            corners=(_order(_of(2), 1.0), _order(_of(3), 1.0)),
            draws=(_order(_of(3), 0.5), _order(_of(4), 0.5)),
            why="x.permute(0, -1, 1) is how people write it",
            slip="a negative dimension must be turned into the one it stands for",
        ),
        Property(
            "orders that are none",
            weight=1,
            corners=(
                *(
                    _wrong_order(kind)
                    for kind in ("short", "long", "twice", "twice, once from the end", "above", "below")
                ),
                _as_large_together,
            ),
            draws=(_order(any_layout, 0.5), _order(_of(3)), _cycled),
            why="naming a dimension twice would make a tensor that was never there",
            slip="RuntimeError for a repeated or a missing dimension, IndexError for one that does not exist",
            count=21,
        ),
    ),
    hints=(
        "Result dimension i is dimension dims[i] of the input.",
        "Bring every entry of dims into 0 .. n-1 first; then look for repeats.",
        "Take shape and stride with the same list of dimensions.",
    ),
    read="notebook 01, 4. Which lines copy?",
    views=lambda case, value: picture(case[0], case[1]) if value is None else picture(*value),
)


def _true_slice(
    shape: Sequence[int],
    stride: Sequence[int],
    offset: int,
    dim: int,
    start: int | None,
    stop: int | None,
    step: int | None,
) -> Any:
    x = tensor(shape, stride, offset)
    x.size(dim)  # raises for a dimension that is not there
    return layout(x[(slice(None),) * (dim % x.dim()) + (slice(start, stop, step),)])


def _slice(bounds: str, negative_dim: bool = False) -> Draw:
    """A slice whose start, stop and step are of one kind."""

    def draw(rng: random.Random) -> Case:
        sizes, strides, offset = any_layout(rng)
        dim = some_dim(rng, len(sizes), negative_dim)
        size = sizes[dim]
        start: int | None = rng.randint(0, size - 1)
        stop: int | None = rng.randint(start or 0, size)
        step: int | None = rng.choice((None, 1))
        if bounds == "open":
            start, stop = rng.choice(((None, stop), (start, None), (None, None)))
        elif bounds == "starts from the end":
            start, stop = rng.randint(1 - size, -1), rng.choice((None, size))
        elif bounds == "stops from the end":
            start, stop = rng.choice((None, 0, -size)), rng.randint(1 - size, -1)
        elif bounds == "both from the end":
            start, stop = rng.randint(-size, -1), rng.randint(-size, -1)
        elif bounds == "starts below":
            start, stop = -size - rng.randint(1, size - 1), rng.choice((None, rng.randint(1, size), -1))
        elif bounds == "starts above":
            start, stop = size + rng.randint(1, 5), rng.choice((None, size, size + 9, -1))
        elif bounds == "stops below":
            stop = -size - rng.randint(1, 9)
        elif bounds == "stops above":
            stop = size + rng.randint(1, 9)
        elif bounds == "stops at 0":
            start, stop = rng.choice((None, 0, start, -size)), 0
        elif bounds == "crossed":
            start = rng.randint(1, size - 1)
            stop = rng.randint(0, start - 1)
        elif bounds == "steps":
            start, stop, step = (
                rng.choice((None, 0, 1, -size)),
                rng.choice((None, size, -1)),
                rng.randint(2, 4),
            )
        elif bounds == "uneven":
            start, stop, step = 0, None, next(s for s in (2, 3, 4, 5, 7) if size % s)
        elif bounds == "long":
            start, stop, step = rng.randint(0, size - 1), None, size + rng.randint(0, 5)
        return sizes, strides, offset, dim, start, stop, step

    return draw


_ODD_BOUNDS = (
    "starts from the end",
    "stops from the end",
    "both from the end",
    "starts below",
    "starts above",
    "stops below",
    "stops above",
    "stops at 0",
    "crossed",
)


def _wrong_slice(kind: str) -> Draw:
    def draw(rng: random.Random) -> Case:
        sizes, strides, offset, dim, start, stop, step = _slice("steps")(rng)
        if kind in ("above", "below"):
            return sizes, strides, offset, no_dim(len(sizes), below=kind == "below"), start, stop, step
        return sizes, strides, offset, dim, start, stop, 0 if kind == "zero" else -rng.randint(1, 3)

    return draw


def _slice_scalar(rng: random.Random) -> Case:
    return (), (), rng.randint(0, 99), rng.choice((0, -1)), 0, 1, 1


def _slice_empty(rng: random.Random) -> Case:
    sizes, strides, offset = empty(any_layout)(rng)
    return (
        sizes,
        strides,
        offset,
        sizes.index(0),
        rng.randint(-2, 2),
        rng.choice((None, 3)),
        rng.randint(1, 2),
    )


slice_view = Task(
    id="lab1.slice_view",
    title="Slices with steps",
    function="slice_view",
    points=8,
    minutes=15,
    difficulty=2,
    piece="slice_view",
    oracle=_true_slice,
    canon=canon_layout,
    properties=(
        Property(
            "start and stop inside the dimension",
            weight=2,
            corners=(_slice("plain"), _slice("open")),
            draws=(_slice("plain"), _slice("open")),
            why="x[1:3] costs nothing because only a size and the offset change",
            slip="the offset grows by start * stride of that dimension, not by start",
        ),
        Property(
            "bounds from the end, beyond the end, and nothing between them",
            weight=2,
            corners=(*(_slice(bounds) for bounds in _ODD_BOUNDS), _slice_empty),
            draws=tuple(_slice(bounds) for bounds in _ODD_BOUNDS),
            why="Python's rules for slices hold: they never raise for a bound, they clamp it",
            slip="add the size to a negative bound first, then clamp it to 0 .. size; no count below 0",
            count=16,
        ),
        Property(
            "steps, also those that do not divide the size",
            weight=2,
            corners=(_slice("uneven"), _slice("long")),
            draws=(_slice("steps"), _slice("uneven"), _slice("long")),
            why="every second row is a view, too: the stride grows by the step",
            slip="the size is rounded up, and the stride of the sliced dimension is multiplied by the step",
            count=16,
        ),
        Property(
            "dimensions from the end, and what cannot be",
            weight=1,
            corners=(
                _slice_scalar,
                *(_wrong_slice(kind) for kind in ("zero", "negative", "above", "below")),
            ),
            draws=(
                _slice("plain", negative_dim=True),
                _slice("steps", negative_dim=True),
                _slice("open", negative_dim=True),
            ),
            why="a stride may not be negative in PyTorch, so x[::-1] is refused where NumPy allows it",
            slip="ValueError for a step below 1, IndexError for a dimension that is not there",
            count=16,
        ),
    ),
    hints=(
        "Only three numbers change: one size, one stride, and the offset.",
        "Turn None and negative bounds into plain ones, clamp both to 0 .. size; stop is at least start.",
        "The elements start, start + step, ... before stop: count them by rounding (stop - start) / step up.",
    ),
    read="notebook 01, 2. Five fields",
    views=lambda case, value: picture(*case[:3]) if value is None else picture(*value),
)
