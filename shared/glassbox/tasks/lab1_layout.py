"""Lab 1, first core tasks: what shape, stride and offset say (PyTorch: c10/core/TensorImpl.h, c10/core/Contiguity.h)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from .lab1_cases import (
    KINDS,
    MakeLayout,
    always,
    any_layout,
    blank,
    dense,
    empty,
    gapped,
    no_dim,
    overlapping,
    permuted,
    picture,
    repeated,
    shape,
    stepped,
    tensor,
    until,
    with_ones,
)
from .model import Case, Draw, Property, Task


def _true_strides(shape: Sequence[int]) -> Any:
    import torch

    return torch.empty(shape, device="meta").stride()


def _sizes(ndim: int, low: int = 2) -> Draw:
    return lambda rng: (tuple(rng.randint(low, 12) for _ in range(ndim)),)


def _with(size: int, where: str) -> Draw:
    """A shape with `size` first, last, between others, or in two places."""

    def draw(rng: random.Random) -> Case:
        sizes = [rng.randint(2, 12) for _ in range(rng.randint(3, 4))]
        places = {"first": [0], "last": [-1], "between": [1], "twice": rng.sample(range(len(sizes)), 2)}[
            where
        ]
        for place in places:
            sizes[place] = size
        return (tuple(sizes),)

    return draw


_PLACES = ("first", "last", "between", "twice")

contiguous_strides = Task(
    id="lab1.contiguous_strides",
    title="Strides of a fresh tensor",
    function="contiguous_strides",
    points=4,
    minutes=8,
    difficulty=1,
    piece="contiguous_strides",
    oracle=_true_strides,
    properties=(
        Property(
            "shapes of one to five dimensions",
            2,
            (_sizes(1), _sizes(5)),
            (_sizes(2), _sizes(3), _sizes(4)),
            "rows lie one after the other, so a step along a dimension skips all that lies to its right",
            "the product runs over the sizes to the left, or takes in the dimension's own size",
        ),
        Property(
            "dimensions of size 1, and no dimension at all",
            1,
            (always(()), always((1,)), always((1, 1, 1)), *(_with(1, where) for where in _PLACES)),
            tuple(_with(1, where) for where in _PLACES),
            "a batch of one and a scalar are everyday tensors",
            "a 0-d tensor has the strides (), and a size of 1 multiplies like any other",
        ),
        Property(
            "dimensions of size 0",
            1,
            (always((0,)), *(_with(0, where) for where in _PLACES)),
            tuple(_with(0, where) for where in _PLACES),
            "empty batches occur, and PyTorch gives them strides as if the size were 1",
            "the product becomes 0 once it has met a size of 0",
        ),
    ),
    hints=(
        "How many cells apart are two neighbours along the last dimension? And along the one before it?",
        "Walk over the sizes from the right and keep the product of what you have passed.",
        "Multiply by max(size, 1), so that a size of 0 does not wipe out the product.",
    ),
    read="notebook 01, A tensor is metadata over a storage",
    views=lambda case, value: None if value is None else picture(case[0], value),
)


def _true_address(index: Sequence[int], shape: Sequence[int], stride: Sequence[int], offset: int) -> Any:
    if len(index) != len(shape):
        raise IndexError("one index for each dimension")
    x = tensor(shape, stride, offset)
    for i in index:
        x = x.select(0, i)
    return x.storage_offset()


def _element(make: MakeLayout, negative: bool = False) -> Draw:
    def draw(rng: random.Random) -> Case:
        sizes, strides, offset = make(rng)
        index = [rng.randrange(size) for size in sizes]
        for dim in {rng.randrange(len(sizes)) for _ in sizes} if negative else ():
            index[dim] -= sizes[dim]
        return tuple(index), sizes, strides, offset

    return draw


def _edge(last: bool) -> Draw:
    """The first or the last index that is still in range, counted from either end."""

    def draw(rng: random.Random) -> Case:
        sizes, strides, offset = any_layout(rng)
        ends = [(size - 1, -1) if last else (-size, 0) for size in sizes]
        return tuple(rng.choice(end) for end in ends), sizes, strides, offset

    return draw


def _beyond(below: bool) -> Draw:
    """One index just out of range."""

    def draw(rng: random.Random) -> Case:
        index, sizes, strides, offset = _element(any_layout)(rng)
        dim = rng.randrange(len(sizes))
        wrong = -sizes[dim] - 1 if below else sizes[dim]
        return (*index[:dim], wrong, *index[dim + 1 :]), sizes, strides, offset

    return draw


def _another_count(more: bool) -> Draw:
    def draw(rng: random.Random) -> Case:
        index, sizes, strides, offset = _element(any_layout)(rng)
        return ((*index, 0) if more else index[:-1]), sizes, strides, offset

    return draw


def _in_empty(rng: random.Random) -> Case:
    sizes, strides, offset = empty(dense)(rng)
    return tuple(0 for _ in sizes), sizes, strides, offset


def _of_scalar(rng: random.Random) -> Case:
    return (), (), (), rng.randint(1, 999)


address = Task(
    id="lab1.address",
    title="Where an element lies",
    function="address",
    points=4,
    minutes=8,
    difficulty=1,
    piece="address",
    oracle=_true_address,
    properties=(
        Property(
            "indices from 0 on, in every kind of layout",
            2,
            (_of_scalar, _element(overlapping), *(_element(kind) for kind in KINDS)),
            tuple(_element(kind) for kind in KINDS),
            "one formula, offset + sum of index * stride, serves every view there is",
            "the offset is left out, or strides are worked out from the shape instead of being used",
        ),
        Property(
            "negative indices",
            1,
            (_edge(last=False), _edge(last=True)),
            tuple(_element(kind, negative=True) for kind in KINDS),
            "x[-1] is the last element in PyTorch as in Python",
            "a negative index must have the size added before it meets the stride",
        ),
        Property(
            "the last index in range, and the first one out of it",
            1,
            (
                _edge(last=False),
                _edge(last=True),
                _beyond(below=True),
                _beyond(below=False),
                _another_count(more=True),
                _another_count(more=False),
                _in_empty,
            ),
            (_edge(last=False), _edge(last=True), _element(any_layout), _element(any_layout, negative=True)),
            "without the check, a wrong index reads some other tensor's cell",
            "-size is in range and -size - 1 is not; each dimension needs exactly one index; raise IndexError",
            count=17,
        ),
    ),
    hints=(
        "Write the address formula down for two dimensions first.",
        "Check each index against its size before you use it: -size <= i < size.",
        "i % size turns a negative index into the one that it stands for.",
    ),
    read="notebook 01, The address of an element",
)


def _true_is_contiguous(shape: Sequence[int], stride: Sequence[int]) -> Any:
    return tensor(shape, stride).is_contiguous()


def _flat(make: MakeLayout) -> Draw:
    return lambda rng: make(rng)[:2]


def _contiguous(draw: Draw) -> Draw:
    return until(draw, lambda case: bool(_true_is_contiguous(*case)))


def _scattered(draw: Draw) -> Draw:
    return until(draw, lambda case: not _true_is_contiguous(*case))


def _first_rows(rng: random.Random) -> Case:
    """The first rows of a tensor, or a step along a dimension that keeps one of them: still contiguous."""
    x = blank(shape(rng))
    x = x.narrow(0, rng.randint(0, 1), x.size(0) - 1)
    return tuple(x.shape), tuple(x.stride())


def _doubled(rng: random.Random) -> Case:
    sizes, strides, _ = dense(rng)
    return sizes, tuple(2 * step for step in strides)


def _one_off(rng: random.Random) -> Case:
    """Descending strides of which one is too large, or too small."""
    sizes, strides, _ = dense(rng)
    dim = rng.randrange(len(sizes) - 1)
    return sizes, (*strides[:dim], strides[dim] + rng.choice((-1, 1)), *strides[dim + 1 :])


def _square_turned(rng: random.Random) -> Case:
    side = rng.randint(2, 9)
    return (side, side), (1, side)


def _vector(gap: bool) -> Draw:
    return lambda rng: ((rng.randint(2, 60),), (rng.randint(2, 9) if gap else 1,))


def _all_ones(rng: random.Random) -> Case:
    ndim = rng.randint(2, 5)
    return (1,) * ndim, tuple(rng.randint(0, 50) for _ in range(ndim))


def _nearly_empty(rng: random.Random) -> Case:
    """The strides of an empty tensor's kind, over sizes that are not empty."""
    sizes, strides, _ = rng.choice((permuted, stepped, repeated))(rng)
    return sizes, strides


is_contiguous = Task(
    id="lab1.is_contiguous",
    title="Is it contiguous?",
    function="is_contiguous",
    points=6,
    minutes=12,
    difficulty=2,
    piece="is_contiguous",
    oracle=_true_is_contiguous,
    properties=(
        Property(
            "contiguous, transposed and sliced tensors",
            2,
            (_vector(gap=False), _vector(gap=True), _square_turned, _first_rows),
            (_flat(dense), _scattered(_flat(permuted)), _first_rows, _scattered(_flat(gapped))),
            "kernels walk a contiguous tensor with one pointer; everything else takes more care",
            "the strides are compared with each other instead of with the sizes",
            count=16,
        ),
        Property(
            "strides that descend without fitting",
            2,
            (_one_off, _doubled, _scattered(_flat(repeated)), _scattered(_flat(overlapping))),
            (_flat(dense), _one_off, _first_rows, _doubled),
            "descending strides are not enough: each must be exactly what lies to its right",
            "a stride that is too large leaves gaps, one that is too small overlaps; neither is contiguous",
            count=16,
        ),
        Property(
            "dimensions of size 1",
            1,
            (_all_ones, _contiguous(_flat(with_ones(dense)))),
            (
                _contiguous(_flat(with_ones(dense))),
                _scattered(_flat(with_ones(permuted))),
                _contiguous(_flat(with_ones(dense))),
                _scattered(_flat(with_ones(gapped))),
            ),
            "a stride along a size of 1 is never used, so it may be anything",
            "strides of size-1 dimensions must be skipped, and skipped only for size 1",
            count=16,
        ),
        Property(
            "empty tensors and no dimension at all",
            1,
            (always((), ()), _flat(empty(permuted)), _flat(empty(stepped)), _flat(empty(repeated))),
            (
                _flat(empty(any_layout)),
                _scattered(_nearly_empty),
                _flat(empty(permuted)),
                _scattered(_nearly_empty),
            ),
            "with no element there is nothing out of order: PyTorch calls every empty tensor contiguous",
            "a size of 0 anywhere decides, whatever the strides are",
            count=16,
        ),
    ),
    hints=(
        "What stride would each dimension have in a fresh tensor of this shape? Which of these do not matter?",
        "Walk from the right with the stride that you expect next; a size of 1 leaves it alone.",
        "Look for a size of 0 before anything else. Return True or False, not 1 or 0.",
    ),
    read="notebook 01, Contiguity",
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
            2,
            (always((), (), ()), _cycled, *(_order(_of(ndim)) for ndim in (1, 2, 3, 4))),
            (_order(_of(3)), _order(_of(4)), _cycled),
            "transpose, T and movedim are all this: sizes and strides change places together, no element moves",
            "dims[i] says where result dimension i comes from, not where dimension i goes",
        ),
        Property(
            "dimensions counted from the end",
            1,
            (_order(_of(2), 1.0), _order(_of(3), 1.0)),
            (_order(_of(3), 0.5), _order(_of(4), 0.5)),
            "x.permute(0, -1, 1) is how people write it",
            "a negative dimension must be turned into the one it stands for",
        ),
        Property(
            "orders that are none",
            1,
            tuple(
                _wrong_order(kind)
                for kind in ("short", "long", "twice", "twice, once from the end", "absent")
            ),
            (_order(any_layout, 0.5), _order(_of(3)), _cycled),
            "naming a dimension twice would make a tensor that was never there",
            "RuntimeError for a repeated or a missing dimension, IndexError for one that does not exist",
            count=17,
        ),
    ),
    hints=(
        "Result dimension i is dimension dims[i] of the input.",
        "Bring every entry of dims into 0 .. n-1 first; then look for repeats.",
        "Take shape and stride with the same list of dimensions.",
    ),
    read="notebook 01, Views: transpose and permute",
    views=lambda case, value: picture(case[0], case[1]) if value is None else picture(*value),
)

TASKS = (contiguous_strides, address, is_contiguous, permute)
