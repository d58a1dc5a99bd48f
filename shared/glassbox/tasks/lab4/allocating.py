"""Lab 4: the strides of a fresh result (PyTorch: ATen/TensorIterator.cpp, reorder_dimensions)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from ..lab1.cases import always, picture, some_sizes, strides_that_count, until
from ..model import Case, Draw, Property, Task

Ints = tuple[int, ...]


def _true_output_strides(shape: Sequence[int], operand_strides: Sequence[Sequence[int]]) -> Any:
    """The strides of what an operator with so many operands gives back."""
    import torch

    op: Any = {1: torch.neg, 2: torch.add, 3: torch.addcmul}[len(operand_strides)]
    return op(*(torch.empty_strided(shape, stride, device="meta") for stride in operand_strides)).stride()


def _laid_out(rng: random.Random, shape: Ints, order: Sequence[int], gaps: bool) -> Ints:
    """Strides over this shape with the dimensions in memory in this order, the first one outermost."""
    stride = [0] * len(shape)
    step = rng.choice((1, 1, 2)) if gaps else 1
    for dim in reversed(order):
        stride[dim] = step
        step *= shape[dim] + (rng.choice((0, 0, 1)) if gaps else 0)
    return tuple(stride)


def _order(rng: random.Random, ndim: int) -> list[int]:
    """An order that is not the usual one."""
    order = list(range(ndim))
    while ndim > 1 and order == sorted(order):
        rng.shuffle(order)
    return order


def _repeated(rng: random.Random, stride: Ints, share: float) -> Ints:
    """The strides with some of them 0, but never all."""
    kept = rng.randrange(len(stride))
    return tuple(0 if dim != kept and rng.random() < share else step for dim, step in enumerate(stride))


def _alone(usual: bool = False, gaps: bool = True, ndim: int | None = None) -> Draw:
    """One operand, its dimensions in the usual order or in another."""

    def draw(rng: random.Random) -> Case:
        shape = some_sizes(rng, ndim)
        order = list(range(len(shape))) if usual else _order(rng, len(shape))
        return shape, (_laid_out(rng, shape, order, gaps),)

    return draw


def _disagreeing(count: int) -> Draw:
    """Operands that all have an opinion, each its own."""

    def draw(rng: random.Random) -> Case:
        shape = some_sizes(rng, rng.choice((2, 3, 3, 4)))
        first = _laid_out(rng, shape, _order(rng, len(shape)), True)
        rest = (_laid_out(rng, shape, rng.sample(range(len(shape)), len(shape)), True) for _ in range(count - 1))
        return shape, (first, *rest)

    return until(draw, lambda case: len(set(case[1])) == count)


def _broadcast(count: int, share: float = 0.5) -> Draw:
    """Operands that are repeated along some dimensions and so have no opinion there."""

    def draw(rng: random.Random) -> Case:
        shape = some_sizes(rng, rng.choice((2, 3, 3, 4)))
        first = _repeated(rng, _laid_out(rng, shape, _order(rng, len(shape)), True), share)
        rest = (
            _repeated(rng, _laid_out(rng, shape, rng.sample(range(len(shape)), len(shape)), True), share / 2)
            for _ in range(count - 1)
        )
        return shape, (first, *rest)

    return until(draw, lambda case: 0 in case[1][0])


def _nobody(rng: random.Random) -> Case:
    """Repeated along all dimensions but one: no two of them can be compared."""
    shape = some_sizes(rng, rng.choice((2, 3, 4)))
    kept = rng.randrange(len(shape))
    return shape, (tuple(rng.randint(1, 9) if dim == kept else 0 for dim in range(len(shape))),)


def _equal_strides(rng: random.Random) -> Case:
    """Two dimensions with one stride, as windows over a sequence have: the larger size goes outside."""
    shape = some_sizes(rng, rng.choice((2, 3, 3)))
    stride = list(_laid_out(rng, shape, _order(rng, len(shape)), False))
    a, b = rng.sample(range(len(shape)), 2)
    stride[a] = stride[b]
    return shape, (tuple(stride),)


def _larger_inside(rng: random.Random) -> Case:
    """Windows over a sequence, the larger size last: it goes outside all the same."""
    few, many = sorted(rng.sample(range(2, 15), 2))
    step = rng.randint(1, 9)
    return (few, many), ((step, step),)


def _equal_then_other(rng: random.Random) -> Case:
    """The first operand has one stride for both dimensions and no opinion; the second one decides."""
    small, large = sorted(rng.sample(range(2, 16), 2))
    same = rng.randint(1, 9)
    return (large, small), ((same, same), _laid_out(rng, (large, small), (1, 0), True))


def _past_a_repeat(rng: random.Random) -> Case:
    """A repeated dimension stands between two that are in another order than the usual one."""
    shape = some_sizes(rng, rng.choice((3, 3, 4)))
    stride = list(_laid_out(rng, shape, list(range(len(shape)))[::-1], True))
    stride[1] = 0
    return shape, (tuple(stride),)


def _in_a_circle(rng: random.Random) -> Case:
    """Dimension 0 outside 1 says the first operand, 2 outside 0 the second; 1 and 2 nobody compares."""
    shape = some_sizes(rng, 3)
    few, many = sorted(rng.sample(range(1, 30), 2))
    low, high = sorted(rng.sample(range(1, 30), 2))
    return shape, ((many, few, 0), (low, 0, high))


def _with_ones(draw: Draw) -> Draw:
    """Sizes of 1 put in, whose strides may be anything but 0."""

    def drawn(rng: random.Random) -> Case:
        shape, strides = draw(rng)
        for _ in range(rng.randint(1, 2)):
            at = rng.randint(0, len(shape))
            shape = (*shape[:at], 1, *shape[at:])
            strides = tuple((*each[:at], rng.randint(1, 30), *each[at:]) for each in strides)
        return shape, strides

    return drawn


output_strides = Task(
    id="lab4.output_strides",
    title="Where the result lies",
    function="output_strides",
    points=11,
    minutes=25,
    difficulty=4,
    piece="output_strides",
    oracle=_true_output_strides,
    canon=lambda case, value: strides_that_count(case[0], value),
    properties=(
        Property(
            "one operand: permuted, with gaps, as usual",
            weight=2,
            corners=(
                _alone(ndim=2),
                _alone(gaps=False, ndim=4),
                _alone(usual=True),
                _alone(usual=True, ndim=1),
                always((), ((),)),
            ),
            draws=(_alone(), _alone(gaps=False), _alone()),
            why="relu of a transposed tensor is transposed, so that the next loop fits as well",
            slip="the order of the strides is kept, the gaps are not: the result is dense",
        ),
        Property(
            "two and three operands that disagree",
            weight=2,
            corners=(_disagreeing(2), _disagreeing(3)),
            draws=(_disagreeing(2), _disagreeing(3), _alone()),
            why="a result has one layout; the first operand with an opinion has the word",
            slip="the operands are asked in turn, pair of dimensions by pair of dimensions",
        ),
        Property(
            "operands that are repeated",
            weight=3,
            corners=(_broadcast(1), _broadcast(2), _broadcast(3), _nobody, _past_a_repeat, _in_a_circle),
            draws=(_broadcast(2), _past_a_repeat, _broadcast(2, 0.7), _in_a_circle, _broadcast(3, 0.7), _nobody),
            why="a bias of shape (C, 1, 1) says nothing of how rows and columns lie",
            slip="a stride of 0 is no opinion, not the smallest stride; the next operand is asked",
            count=18,
        ),
        Property(
            "equal strides and sizes of 1",
            weight=1,
            corners=(
                _equal_strides,
                _larger_inside,
                _equal_then_other,
                _with_ones(_alone()),
                _with_ones(_disagreeing(2)),
            ),
            draws=(_equal_strides, _with_ones(_alone()), _with_ones(_broadcast(2))),
            why="the rules must give one answer for every layout that views lead to",
            slip="of two dimensions with one stride the larger size goes outside",
        ),
    ),
    hints=(
        "Find the order of the dimensions first, from the innermost to the outermost; the strides follow from it.",
        "Write a function that says of dimensions a and b whether a belongs outside b: True, False, or None "
        "where no operand has an opinion.",
        "Insert one dimension after the other into the order: compare it with those inside it, the nearest first; "
        "swap on True, stop on False, look one further on None. After a swap its own place is the new one.",
    ),
    read="notebook 04, 5. Station 7: where the result lies",
    views=lambda case, value: picture(case[0], case[1][0] if value is None else value),
)
