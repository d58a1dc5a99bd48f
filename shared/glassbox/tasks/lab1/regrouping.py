"""Lab 1: other sizes for the same elements, as a view (PyTorch: at::detail::computeStride)."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from ..model import Case, Draw, Property, Task
from .cases import (
    Ints,
    Layout,
    MakeLayout,
    always,
    any_layout,
    blank,
    dense,
    empty,
    gapped,
    layout,
    permuted,
    picture,
    repeated,
    stepped,
    strides_that_count,
    tensor,
    until,
    with_ones,
)


def _true_view_strides(shape: Sequence[int], stride: Sequence[int], size: Sequence[int]) -> Any:
    x = tensor(shape, stride)
    if x.numel() != math.prod(size):
        raise RuntimeError("the number of elements differs")
    try:
        return x.view(size).stride()
    except RuntimeError:
        return None


def _canon_view(case: Case, value: Any) -> Any:
    return None if value is None else strides_that_count(case[2], value)


def _regrouped(rng: random.Random, sizes: Sequence[int]) -> Ints:
    """Other sizes for as many elements: neighbours joined, sizes split, ones put in or taken out."""
    new = list(sizes)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(new)) if new else 0
        move = rng.choice(("join", "split", "split", "one"))
        if move == "join" and at + 1 < len(new):
            new[at : at + 2] = [new[at] * new[at + 1]]
        elif move == "split" and new:
            factors = [n for n in range(2, new[at]) if new[at] % n == 0]
            if factors:
                factor = rng.choice(factors)
                new[at : at + 1] = [factor, new[at] // factor]
        elif move == "one":
            if 1 in new and rng.random() < 0.5:
                new.remove(1)
            else:
                new.insert(at, 1)
    return tuple(new)


def to_view(make: MakeLayout) -> Draw:
    def draw(rng: random.Random) -> Case:
        sizes, strides, _ = make(rng)
        return sizes, strides, _regrouped(rng, sizes)

    return until(draw, lambda case: case[0] != case[2])


def viewable(make: MakeLayout) -> Draw:
    return until(to_view(make), lambda case: _true_view_strides(*case) is not None)


def unviewable(make: MakeLayout) -> Draw:
    return until(to_view(make), lambda case: _true_view_strides(*case) is None)


def _of(make: Callable[..., Layout], ndim: int) -> MakeLayout:
    return lambda rng: make(rng, ndim)


def flattened(make: MakeLayout) -> Draw:
    def draw(rng: random.Random) -> Case:
        sizes, strides, _ = make(rng)
        return sizes, strides, (math.prod(sizes),)

    return draw


def split_across_a_gap(rng: random.Random) -> Case:
    """Rows with gaps between them, each split, and their number split: a view, though not contiguous."""
    rows, width, gap = rng.choice((4, 6, 8, 9)), rng.choice((4, 6, 8, 9)), rng.randint(1, 9)
    factors = [n for n in (2, 3) if rows % n == 0], [n for n in (2, 3) if width % n == 0]
    a, b = rng.choice(factors[0]), rng.choice(factors[1])
    return (rows, width), (width + gap, 1), (a, rows // a, b, width // b)


def rows_moved(rng: random.Random) -> Layout:
    """The rows of a contiguous tensor in another order: only in between is an element out of its place."""
    sizes, strides, offset = dense(rng, rng.randint(3, 4))
    return (sizes[1], sizes[0], *sizes[2:]), (strides[1], strides[0], *strides[2:]), offset


def _rows_apart(rng: random.Random) -> Layout:
    """A few rows with gaps between them, small enough to be drawn."""
    width = rng.randint(2, 4)
    return (rng.randint(2, 4), width), (width + rng.randint(1, 3), 1), 0


def _joined(many: int, make: MakeLayout) -> Draw:
    """The last `many` of some more dimensions become one."""

    def draw(rng: random.Random) -> Case:
        sizes, strides, _ = make(rng)
        return sizes, strides, (*sizes[:-many], math.prod(sizes[-many:]))

    return draw


def _every_other_block(rng: random.Random) -> Layout:
    """Blocks of three dimensions, each of them whole, with as much space between them."""
    return layout(blank([2 * rng.randint(2, 4), *(rng.randint(2, 4) for _ in range(3))])[::2])


def zeros_joined(many: int) -> Draw:
    """Neighbouring repeated dimensions become one, somewhere among others."""

    def draw(rng: random.Random) -> Case:
        sizes, strides, _ = permuted(rng, 2)
        again = tuple(rng.randint(2, 4) for _ in range(many))
        at = rng.randint(0, 2)
        return (
            (*sizes[:at], *again, *sizes[at:]),
            (*strides[:at], *(0 for _ in again), *strides[at:]),
            (*sizes[:at], math.prod(again), *sizes[at:]),
        )

    return draw


def _zero_beside(left: bool) -> Draw:
    """A repeated dimension to the left or to the right of one that is not: they never join."""

    def draw(rng: random.Random) -> Case:
        sizes = rng.randint(2, 5), rng.randint(2, 5)
        step = rng.randint(1, 9)
        return sizes, (0, step) if left else (step, 0), (math.prod(sizes),)

    return draw


def _not_as_many(rng: random.Random) -> Case:
    sizes, strides, _ = any_layout(rng)
    size = list(_regrouped(rng, sizes))
    at = rng.randrange(len(size))
    size[at] += rng.choice((1, 2)) if size[at] < 3 else rng.choice((-1, 1, 2))
    return sizes, strides, tuple(size)


def fewer(rng: random.Random) -> Case:
    """Sizes for a part of the elements only."""
    sizes, strides, _ = any_layout(rng)
    at = rng.randrange(len(sizes))
    return sizes, strides, (*sizes[:at], *sizes[at + 1 :])


def more(rng: random.Random) -> Case:
    """Sizes for several times as many elements."""
    sizes, strides, _ = any_layout(rng)
    return sizes, strides, (*sizes, rng.randint(2, 4))


def for_nothing(rng: random.Random) -> Case:
    """Sizes for some elements, where there are none."""
    sizes, strides, _ = empty(any_layout)(rng)
    return sizes, strides, tuple(max(n, 1) for n in sizes)


def to_nothing(rng: random.Random) -> Case:
    """Sizes for no element, where there are some."""
    sizes, strides, _ = any_layout(rng)
    return sizes, strides, empty(lambda rng: (sizes, strides, 0))(rng)[0]


def _nothing_else(rng: random.Random) -> Case:
    """An empty tensor under other sizes that hold nothing either."""
    sizes, strides, _ = empty(any_layout)(rng)
    size = [rng.randint(1, 6) for _ in range(rng.randint(1, 4))]
    size[rng.randrange(len(size))] = 0
    return sizes, strides, tuple(size)


_ONE_CELL = (always((), (), (1, 1)), always((1,), (5,), ()), always((), (), ()))

view_strides = Task(
    id="lab1.view_strides",
    title="Can it be viewed, and with which strides?",
    function="view_strides",
    points=10,
    minutes=30,
    difficulty=4,
    piece="view_strides",
    oracle=_true_view_strides,
    canon=_canon_view,
    properties=(
        Property(
            "contiguous and permuted tensors",
            weight=2,
            corners=(
                flattened(permuted),
                flattened(_of(dense, 4)),
                flattened(rows_moved),
                viewable(permuted),
            ),
            draws=(viewable(dense), unviewable(permuted), viewable(permuted), unviewable(permuted)),
            why="this is the whole difference between view and reshape",
            slip="only dimensions with stride[i] == size[i+1] * stride[i+1] can be joined; any can be split",
            count=17,
        ),
        Property(
            "tensors with gaps and steps",
            weight=3,
            corners=(split_across_a_gap, flattened(_rows_apart), _joined(3, _every_other_block)),
            draws=(viewable(gapped), unviewable(gapped), viewable(stepped), unviewable(stepped)),
            why="a view needs fitting strides, not contiguity: zeros(4, 6)[:, :3].view(2, 2, 3) works",
            slip="the input is asked whether it is contiguous, or strides are those of a fresh tensor",
            count=18,
        ),
        Property(
            "repeated dimensions and dimensions of size 1",
            weight=2,
            corners=(
                viewable(repeated),
                viewable(with_ones(permuted)),
                zeros_joined(2),
                zeros_joined(3),
                _zero_beside(left=True),
                _zero_beside(left=False),
            ),
            draws=(
                viewable(repeated),
                unviewable(repeated),
                viewable(with_ones(any_layout)),
                unviewable(with_ones(any_layout)),
            ),
            why="two repeated dimensions join into one with stride 0; a size of 1 never stands in the way",
            slip="strides of size-1 dimensions say nothing; stride 0 follows the same rule as any other",
            count=18,
        ),
        Property(
            "no dimension, no element, another number of elements",
            weight=1,
            corners=(*_ONE_CELL, _nothing_else, for_nothing, to_nothing, _not_as_many, fewer, more),
            draws=(viewable(any_layout), unviewable(permuted), viewable(gapped), unviewable(stepped)),
            why="None says that a copy is needed; a wrong number of elements is an error",
            slip="RuntimeError where the number of elements differs; an empty tensor can always be viewed",
            count=18,
        ),
    ),
    hints=(
        "Walk from the right and collect old dimensions into runs that could be one dimension: each next "
        "stride is the size times the stride of the one before (a size of 1 always joins).",
        "Give the new sizes, from the right as well, to the run at hand until their product is its number of "
        "elements; the strides start at the run's innermost stride and grow by the sizes given.",
        "If the product overshoots the run, there is no view. Empty tensors are best answered right after "
        "the numbers are compared.",
    ),
    read="notebook 01, 5. view never copies, reshape might",
    views=lambda case, value: picture(case[0], case[1]) if value is None else picture(case[2], value),
)
