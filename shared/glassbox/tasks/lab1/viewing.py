"""Lab 1: views that reorder, slice and repeat (PyTorch: ATen/native/TensorShape.cpp)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from ..model import Case, Draw, Property, Task
from .cases import (
    Ints,
    MakeLayout,
    always,
    any_layout,
    canon_layout,
    empty,
    layout,
    no_dim,
    picture,
    some_dim,
    strides_that_count,
    tensor,
    with_ones,
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


def _wrong_order(kind: str) -> Draw:
    def draw(rng: random.Random) -> Case:
        sizes, strides, dims = _order(any_layout)(rng)
        if kind == "short":
            return sizes, strides, dims[1:]
        if kind == "long":
            return sizes, strides, (*dims, dims[0])
        if kind == "twice":
            return sizes, strides, (*dims[:-1], dims[0])
        if kind == "twice, once from the end":
            return sizes, strides, (*dims[:-1], dims[0] - len(sizes))
        return sizes, strides, (*dims[:-1], no_dim(rng, len(sizes)))

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
            corners=tuple(
                _wrong_order(kind)
                for kind in ("short", "long", "twice", "twice, once from the end", "absent")
            ),
            draws=(_order(any_layout, 0.5), _order(_of(3)), _cycled),
            why="naming a dimension twice would make a tensor that was never there",
            slip="RuntimeError for a repeated or a missing dimension, IndexError for one that does not exist",
            count=17,
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
        elif bounds == "from the end":
            start, stop = rng.randint(-size, -1), rng.choice((None, rng.randint(-size, -1), size))
        elif bounds == "beyond":
            start, stop = rng.choice(((-size - rng.randint(1, 9), stop), (start, size + rng.randint(1, 9))))
        elif bounds == "empty":
            start, stop = rng.choice(((size + rng.randint(0, 5), None), (size - 1, rng.randint(0, size - 1))))
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


def _wrong_slice(kind: str) -> Draw:
    def draw(rng: random.Random) -> Case:
        sizes, strides, offset, dim, start, stop, step = _slice("steps")(rng)
        if kind == "dim":
            return sizes, strides, offset, no_dim(rng, len(sizes)), start, stop, step
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
            corners=(
                _slice("from the end"),
                _slice("beyond"),
                _slice("empty"),
                _slice("crossed"),
                _slice_empty,
            ),
            draws=(_slice("from the end"), _slice("beyond"), _slice("from the end"), _slice("empty")),
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
            corners=(_slice_scalar, _wrong_slice("zero"), _wrong_slice("negative"), _wrong_slice("dim")),
            draws=(
                _slice("plain", negative_dim=True),
                _slice("steps", negative_dim=True),
                _slice("open", negative_dim=True),
            ),
            why="a stride may not be negative in PyTorch, so x[::-1] is refused where NumPy allows it",
            slip="ValueError for a step below 1, IndexError for a dimension that is not there",
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


def _true_expand(shape: Sequence[int], stride: Sequence[int], size: Sequence[int]) -> Any:
    return tensor(shape, stride).expand(size).stride()


def _canon_expand(case: Case, value: Any) -> Any:
    full = _expanded(case)
    return strides_that_count(full, value)


def _expanded(case: Case) -> Ints:
    """The sizes asked for, each -1 replaced by the size that it keeps."""
    shape, _, size = case
    new = len(size) - len(shape)
    return tuple(shape[dim - new] if n == -1 else n for dim, n in enumerate(size))


def _expansion(rng: random.Random, leading: int = 0, repeat: float = 0.5, keep: float = 0.0) -> Case:
    """Sizes of 1 to repeat, sizes to keep as -1 (each with its chance), and new dimensions in front."""
    sizes, strides, _ = any_layout(rng, rng.randint(1, 3) if leading else rng.randint(2, 4))
    ones = {dim for dim in range(len(sizes)) if rng.random() < repeat}
    if repeat and not leading:
        ones.add(rng.randrange(len(sizes)))
    shape = tuple(1 if dim in ones else n for dim, n in enumerate(sizes))
    size = tuple(rng.randint(2, 6) if dim in ones else n for dim, n in enumerate(sizes))
    size = tuple(-1 if rng.random() < keep else n for n in size)
    return shape, strides, (*(rng.randint(2, 4) for _ in range(leading)), *size)


def _repeat(rng: random.Random) -> Case:
    return _expansion(rng)


def _lead(rng: random.Random) -> Case:
    return _expansion(rng, leading=rng.randint(1, 2))


def _keep(rng: random.Random) -> Case:
    return _expansion(rng, leading=rng.randint(0, 1), keep=0.5)


def _expand_scalar(rng: random.Random) -> Case:
    return (), (), tuple(rng.randint(2, 12) for _ in range(rng.randint(1, 3)))


def _to_nothing(rng: random.Random) -> Case:
    shape, strides, size = _expansion(rng)
    at = shape.index(1)
    return shape, strides, (*size[:at], 0, *size[at + 1 :])


def _unchanged(rng: random.Random) -> Case:
    sizes, strides, _ = with_ones(any_layout)(rng)
    return sizes, strides, tuple(rng.choice((-1, n)) for n in sizes)


def _wrong_expand(kind: str) -> Draw:
    def draw(rng: random.Random) -> Case:
        sizes, strides, _ = any_layout(rng)
        at = rng.randrange(len(sizes))
        if kind == "other":
            return sizes, strides, (*sizes[:at], sizes[at] + rng.randint(1, 2), *sizes[at + 1 :])
        if kind == "multiple":
            return sizes, strides, (*sizes[:at], sizes[at] * 2, *sizes[at + 1 :])
        if kind == "one":
            return sizes, strides, (*sizes[:at], 1, *sizes[at + 1 :])
        if kind == "few":
            return sizes, strides, sizes[1:]
        return sizes, strides, (-1, *sizes)

    return draw


expand = Task(
    id="lab1.expand",
    title="Repeating without memory",
    function="expand",
    points=7,
    minutes=15,
    difficulty=2,
    piece="expand",
    oracle=_true_expand,
    canon=_canon_expand,
    properties=(
        Property(
            "dimensions of size 1 repeated",
            weight=2,
            corners=(_repeat, _to_nothing),
            draws=(_repeat,),
            why="stride 0 is how broadcasting works inside: the same cells are read again",
            slip="a repeated dimension gets stride 0; all the others keep theirs",
        ),
        Property(
            "new dimensions in front",
            weight=2,
            corners=(_expand_scalar, _lead),
            draws=(_lead, _expand_scalar, _lead),
            why="a bias of shape (n,) meets a batch of shape (b, n) this way",
            slip="sizes are matched from the right, and a new dimension repeats, so its stride is 0",
        ),
        Property(
            "-1 keeps a size",
            weight=1,
            corners=(_unchanged,),
            draws=(_keep, _keep, _unchanged),
            why="x.expand(-1, 4) saves writing down what is known",
            slip="-1 keeps the size and with it the stride; so does asking for the size that is there",
        ),
        Property(
            "sizes that do not fit",
            weight=1,
            corners=tuple(_wrong_expand(kind) for kind in ("other", "multiple", "one", "few", "lead")),
            draws=(_repeat, _lead, _keep),
            why="only a size of 1 can be repeated; anything else would need a copy",
            slip="RuntimeError for another size, too few sizes, and -1 where there is nothing to keep",
            count=17,
        ),
    ),
    hints=(
        "Line the two shapes up at their right ends.",
        "Each dimension is new, or kept (same size or -1), or repeated (size 1 made larger or 0).",
        "New and repeated dimensions get stride 0, kept ones their old stride, all else is a RuntimeError.",
    ),
    read="notebook 01, 6. Repeating without memory",
    views=lambda case, value: picture(case[0], case[1]) if value is None else picture(_expanded(case), value),
)
