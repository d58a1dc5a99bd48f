"""Lab 1: what shape, stride and offset say (PyTorch: c10/core/TensorImpl.h)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from ..model import Case, Draw, Property, Task
from .cases import (
    KINDS,
    MakeLayout,
    always,
    any_layout,
    dense,
    empty,
    overlapping,
    picture,
    tensor,
    true_strides,
    until,
)


def _sizes(ndim: int, largest: int = 99) -> Draw:
    return lambda rng: (tuple(rng.randint(2, largest) for _ in range(ndim)),)


def _with(size: int, where: str, largest: int = 12) -> Draw:
    """A shape with `size` first, last, between others, or in two places (not the first, "after others")."""

    def draw(rng: random.Random) -> Case:
        sizes = [rng.randint(2, largest) for _ in range(rng.randint(3, 4))]
        places = {
            "first": [0],
            "last": [-1],
            "between": [1],
            "twice": rng.sample(range(len(sizes)), 2),
            "twice, after others": rng.sample(range(1, len(sizes)), 2),
        }
        for place in places[where]:
            sizes[place] = size
        return (tuple(sizes),)

    return draw


_PLACES = ("first", "last", "between", "twice", "twice, after others")

contiguous_strides = Task(
    id="lab1.contiguous_strides",
    title="Strides of a fresh tensor",
    function="contiguous_strides",
    points=4,
    minutes=8,
    difficulty=1,
    piece="contiguous_strides",
    oracle=true_strides,
    properties=(
        Property(
            "shapes of one to eight dimensions",
            weight=2,
            corners=(_sizes(1), _sizes(3, 9), _sizes(5, 9), _sizes(6, 6), _sizes(8, 4)),
            draws=(_sizes(2), _sizes(3), _sizes(4)),
            why="rows lie one after the other, so a step along a dimension skips all that lies to its right",
            slip="the product runs over the sizes to the left, or takes in the dimension's own size",
        ),
        Property(
            "dimensions of size 1, and no dimension at all",
            weight=1,
            corners=(always(()), always((1,)), always((1, 1, 1)), *(_with(1, where) for where in _PLACES)),
            draws=tuple(_with(1, where, 99) for where in _PLACES),
            why="a batch of one and a scalar are everyday tensors",
            slip="a 0-d tensor has the strides (), and a size of 1 multiplies like any other",
        ),
        Property(
            "dimensions of size 0",
            weight=1,
            corners=(always((0,)), always((0, 0, 0)), *(_with(0, where) for where in _PLACES)),
            draws=tuple(_with(0, where, 99) for where in _PLACES),
            why="empty batches occur, and PyTorch gives them strides as if the size were 1",
            slip="the product becomes 0 once it has met a size of 0",
        ),
    ),
    hints=(
        "How many cells apart are two neighbours along the last dimension? And along the one before it?",
        "Walk over the sizes from the right and keep the product of what you have passed.",
        "Multiply by max(size, 1), so that a size of 0 does not wipe out the product.",
    ),
    read="notebook 01, 1. One buffer, many tensors",
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


def _beyond(where: str, below: bool) -> Draw:
    """One index just out of range: the first, the last, or one between them."""

    def draw(rng: random.Random) -> Case:
        ndim = rng.randint(3, 4) if where == "between" else rng.randint(2, 4)
        index, sizes, strides, offset = _element(lambda rng: any_layout(rng, ndim))(rng)
        dim = {"first": 0, "between": rng.randint(1, max(ndim - 2, 1)), "last": ndim - 1}[where]
        wrong = -sizes[dim] - 1 if below else sizes[dim]
        return (*index[:dim], wrong, *index[dim + 1 :]), sizes, strides, offset

    return draw


def _meets_another(draw: Draw) -> Draw:
    """An index out of range whose address, worked out all the same, lies among those of the tensor."""

    def test(case: Case) -> bool:
        index, sizes, strides, _ = case
        reached = sum(
            (i + n if i < 0 else i) * step for i, n, step in zip(index, sizes, strides, strict=True)
        )
        return 0 <= reached <= sum((n - 1) * step for n, step in zip(sizes, strides, strict=True))

    return until(draw, test)


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
            weight=2,
            corners=(_of_scalar, _element(overlapping), *(_element(kind) for kind in KINDS)),
            draws=tuple(_element(kind) for kind in KINDS),
            why="one formula, offset + sum of index * stride, serves every view there is",
            slip="the offset is left out, or strides are worked out from the shape instead of being used",
        ),
        Property(
            "negative indices",
            weight=1,
            corners=(_edge(last=False), _edge(last=True)),
            draws=tuple(_element(kind, negative=True) for kind in KINDS),
            why="x[-1] is the last element in PyTorch as in Python",
            slip="a negative index must have the size added before it meets the stride",
        ),
        Property(
            "the last index in range, and the first one out of it",
            weight=1,
            corners=(
                _edge(last=False),
                _edge(last=True),
                _beyond("first", below=True),
                _beyond("first", below=False),
                _beyond("between", below=False),
                _meets_another(_beyond("last", below=True)),
                _meets_another(_beyond("last", below=False)),
                _another_count(more=True),
                _another_count(more=False),
                _in_empty,
            ),
            draws=(
                _edge(last=False),
                _edge(last=True),
                _element(any_layout),
                _element(any_layout, negative=True),
            ),
            why="without the check, a wrong index reads some other tensor's cell",
            slip="-size is in range, -size - 1 is not; one index for each dimension; raise IndexError",
            count=24,
        ),
    ),
    hints=(
        "Write the address formula down for two dimensions first.",
        "Check each index against its size before you use it: -size <= i < size.",
        "i % size turns a negative index into the one that it stands for.",
    ),
    read="notebook 01, 3. Where does T[i, j] live?",
)
