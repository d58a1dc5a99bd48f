"""Lab 1: whether a layout is contiguous (PyTorch: c10/core/Contiguity.h)."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

from ..model import Case, Draw, Property, Task
from .cases import (
    MakeLayout,
    always,
    any_layout,
    dense,
    empty,
    gapped,
    overlapping,
    permuted,
    repeated,
    stepped,
    true_strides,
    until,
    with_ones,
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
    return sizes, true_strides(sizes)


def _first_rows(rng: random.Random) -> Case:
    """The first rows of a tensor: still contiguous."""
    sizes, strides = _fresh(rng)
    return (sizes[0] - 1, *sizes[1:]), strides


def _doubled(rng: random.Random) -> Case:
    sizes, strides = _fresh(rng)
    return sizes, tuple(2 * step for step in strides)


def _one_off(where: str) -> Draw:
    """Strides of which a single one is too large, or too small: the first, the last, or one between."""

    def draw(rng: random.Random) -> Case:
        sizes, strides = _fresh(rng)
        dim = {"first": 0, "between": len(sizes) // 2, "last": len(sizes) - 1}[where]
        return sizes, (*strides[:dim], strides[dim] + rng.choice((-1, 1)), *strides[dim + 1 :])

    return until(draw, lambda case: where != "between" or len(case[0]) > 2)


def _traded(ndim: int, at: int) -> Draw:
    """Descending strides from the first cell to the last of a contiguous tensor: what the dimension `at` has
    too little, the next one has too much.
    """

    def draw(rng: random.Random) -> Case:
        sizes = tuple(rng.randint(3, 9) for _ in range(ndim))
        strides = list(true_strides(sizes))
        left, right = sizes[at] - 1, sizes[at + 1] - 1
        times = rng.randint(1, 3)
        strides[at] -= times * right // math.gcd(left, right)
        strides[at + 1] += times * left // math.gcd(left, right)
        return sizes, tuple(strides)

    return until(draw, lambda case: list(case[1]) == sorted(case[1], reverse=True))


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
            corners=(
                *(_one_off(where) for where in ("first", "between", "last")),
                _traded(2, 0),
                _traded(3, 0),
                _traded(4, 1),
                _doubled,
                _scattered(_flat(repeated)),
                _scattered(_flat(overlapping)),
            ),
            draws=(_fresh, _first_rows),
            why="descending strides are not enough: each must be exactly what lies to its right",
            slip="too large a stride leaves gaps, too small a one overlaps; neither is contiguous",
            count=18,
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
