"""Lab 1: what shape, stride and offset say (PyTorch: c10/core/TensorImpl.h, c10/core/Contiguity.h)."""

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
    gapped,
    overlapping,
    permuted,
    picture,
    repeated,
    stepped,
    tensor,
    until,
    with_ones,
)


def _true_strides(shape: Sequence[int]) -> Any:
    import torch

    return torch.empty(shape, device="meta").stride()


def _sizes(ndim: int, largest: int = 99) -> Draw:
    return lambda rng: (tuple(rng.randint(2, largest) for _ in range(ndim)),)


def _with(size: int, where: str, largest: int = 12) -> Draw:
    """A shape with `size` first, last, between others, or in two places."""

    def draw(rng: random.Random) -> Case:
        sizes = [rng.randint(2, largest) for _ in range(rng.randint(3, 4))]
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
            weight=2,
            corners=(_sizes(1), _sizes(3, 9), _sizes(5, 9)),
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
            corners=(always((0,)), *(_with(0, where) for where in _PLACES)),
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
                _beyond(below=True),
                _beyond(below=False),
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
            count=17,
        ),
    ),
    hints=(
        "Write the address formula down for two dimensions first.",
        "Check each index against its size before you use it: -size <= i < size.",
        "i % size turns a negative index into the one that it stands for.",
    ),
    read="notebook 01, 3. Where does T[i, j] live?",
)


def _true_is_contiguous(shape: Sequence[int], stride: Sequence[int]) -> Any:
    import torch

    return torch.empty_strided(shape, stride, device="meta").is_contiguous()


def _flat(make: MakeLayout) -> Draw:
    return lambda rng: make(rng)[:2]


def _contiguous(draw: Draw) -> Draw:
    return until(draw, lambda case: bool(_true_is_contiguous(*case)))


def _scattered(draw: Draw) -> Draw:
    return until(draw, lambda case: not _true_is_contiguous(*case))


def _fresh(rng: random.Random) -> Case:
    """A contiguous tensor of many sizes, of which no list is short."""
    sizes = tuple(rng.randint(2, 30) for _ in range(rng.randint(2, 4)))
    return sizes, _true_strides(sizes)


def _first_rows(rng: random.Random) -> Case:
    """The first rows of a tensor: still contiguous."""
    sizes, strides = _fresh(rng)
    return (sizes[0] - 1, *sizes[1:]), strides


def _doubled(rng: random.Random) -> Case:
    sizes, strides = _fresh(rng)
    return sizes, tuple(2 * step for step in strides)


def _one_off(rng: random.Random) -> Case:
    """Descending strides of which one is too large, or too small."""
    sizes, strides = _fresh(rng)
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
            weight=2,
            corners=(_vector(gap=False), _vector(gap=True), _square_turned, _first_rows),
            draws=(_fresh, _scattered(_flat(permuted)), _first_rows, _scattered(_flat(gapped))),
            why="kernels walk a contiguous tensor with one pointer; everything else takes more care",
            slip="the strides are compared with each other instead of with the sizes",
            count=16,
        ),
        Property(
            "strides that descend without fitting",
            weight=2,
            corners=(_one_off, _doubled, _scattered(_flat(repeated)), _scattered(_flat(overlapping))),
            draws=(_fresh, _one_off, _first_rows, _doubled),
            why="descending strides are not enough: each must be exactly what lies to its right",
            slip="too large a stride leaves gaps, too small a one overlaps; neither is contiguous",
            count=16,
        ),
        Property(
            "dimensions of size 1",
            weight=1,
            corners=(_all_ones, _contiguous(_flat(with_ones(dense)))),
            draws=(
                _contiguous(_flat(with_ones(dense))),
                _scattered(_flat(with_ones(permuted))),
                _contiguous(_flat(with_ones(dense))),
                _scattered(_flat(with_ones(gapped))),
            ),
            why="a stride along a size of 1 is never used, so it may be anything",
            slip="strides of size-1 dimensions must be skipped, and skipped only for size 1",
            count=16,
        ),
        Property(
            "empty tensors and no dimension at all",
            weight=1,
            corners=(always((), ()), _flat(empty(permuted)), _flat(empty(stepped)), _flat(empty(repeated))),
            draws=(
                _flat(empty(any_layout)),
                _scattered(_nearly_empty),
                _flat(empty(permuted)),
                _scattered(_nearly_empty),
            ),
            why="with no element there is nothing out of order: PyTorch calls every empty tensor contiguous",
            slip="a size of 0 anywhere decides, whatever the strides are",
            count=16,
        ),
    ),
    hints=(
        "Which stride would each dimension have in a fresh tensor? Which of these do not matter?",
        "Walk from the right with the stride that you expect next; a size of 1 leaves it alone.",
        "Look for a size of 0 before anything else. Return True or False, not 1 or 0.",
    ),
    read="notebook 01, 7. What is contiguous?",
)
