"""Lab 1: other sizes for the same elements, as a view or a copy (PyTorch: ATen/native/TensorShape.cpp)."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

from ..model import Case, Draw, Property, Task
from .cases import (
    MakeLayout,
    any_layout,
    canon_layout,
    dense,
    empty,
    permuted,
    picture,
    repeated,
    stepped,
    tensor,
    until,
)
from .regrouping import (
    fewer,
    flattened,
    for_nothing,
    more,
    rows_moved,
    split_across_a_gap,
    to_nothing,
    to_view,
    unviewable,
    viewable,
    zeros_joined,
)


def _true_reshape(shape: Sequence[int], stride: Sequence[int], size: Sequence[int]) -> Any:
    x = tensor(shape, stride)
    y = x.reshape(size)
    copies = y.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
    return tuple(y.shape), y.stride(), copies


def _inferred(draw: Draw) -> Draw:
    """The same case with one of the new sizes left open."""

    def drawn(rng: random.Random) -> Case:
        sizes, strides, size = draw(rng)
        at = rng.randrange(len(size))
        return sizes, strides, (*size[:at], -1, *size[at + 1 :])

    return until(drawn, lambda case: -1 in case[2])


def _infers_one(rng: random.Random) -> Case:
    sizes, strides, _ = any_layout(rng)
    at = rng.randint(0, len(sizes))
    return sizes, strides, (*sizes[:at], -1, *sizes[at:])


def _open_only(make: MakeLayout) -> Draw:
    def draw(rng: random.Random) -> Case:
        sizes, strides, _ = make(rng)
        return sizes, strides, (-1,)

    return draw


def _infers_zero(rng: random.Random) -> Case:
    sizes, strides, _ = empty(any_layout)(rng)
    return sizes, strides, (-1, rng.randint(2, 9))


def _wrong_reshape(kind: str) -> Draw:
    def draw(rng: random.Random) -> Case:
        sizes, strides, size = to_view(any_layout)(rng)
        if kind == "two open":
            return sizes, strides, (-1, *size[1:], -1)
        if kind == "two open, and all is there":
            return sizes, strides, (-1, *size, -1)
        if kind == "does not divide":
            return sizes, strides, (-1, next(n for n in (7, 11, 13) if math.prod(sizes) % n))
        return *empty(any_layout)(rng)[:2], rng.choice(((0, -1), (-1, rng.randint(2, 5), 0)))

    return draw


reshape = Task(
    id="lab1.reshape",
    title="A view or a copy",
    function="reshape",
    points=6,
    minutes=15,
    difficulty=3,
    piece="reshape",
    oracle=_true_reshape,
    canon=canon_layout,
    properties=(
        Property(
            "a view where one exists, a copy where none does",
            weight=2,
            corners=(
                flattened(permuted),
                flattened(dense),
                flattened(rows_moved),
                split_across_a_gap,
                zeros_joined(2),
            ),
            draws=(viewable(any_layout), unviewable(permuted), viewable(repeated), unviewable(stepped)),
            why="reshape hides the copy; knowing when it makes one is knowing where the memory goes",
            slip="a copy has the strides of a fresh tensor; a view keeps those that fit",
            count=17,
        ),
        Property(
            "one size inferred from -1",
            weight=2,
            corners=(_infers_one, _infers_zero, _open_only(permuted), _open_only(dense)),
            draws=(_inferred(viewable(any_layout)), _inferred(unviewable(permuted))),
            why="x.reshape(n, -1) stands in nearly every model",
            slip="the returned size has the inferred number in place of -1",
            count=16,
        ),
        Property(
            "sizes that cannot be",
            weight=1,
            corners=(
                *(
                    _wrong_reshape(kind)
                    for kind in (
                        "two open",
                        "two open, and all is there",
                        "does not divide",
                        "any would do",
                    )
                ),
                fewer,
                more,
                for_nothing,
                to_nothing,
            ),
            draws=(
                viewable(any_layout),
                unviewable(permuted),
                _inferred(unviewable(stepped)),
                _inferred(viewable(dense)),
            ),
            why="a wrong size must not end in a tensor of another size",
            slip="RuntimeError for two -1, for a size that does not divide, for a -1 that could be anything",
            count=24,
        ),
    ),
    hints=(
        "Three steps: infer the -1, look for a view, else answer with a copy.",
        "The -1 stands for the number of elements divided by the product of the other sizes.",
        "If the other sizes hold a 0, -1 could be anything: RuntimeError. A copy has fresh strides.",
    ),
    read="notebook 01, 5. view never copies, reshape might",
    views=lambda case, value: (
        picture(case[0], case[1]) if value is None else None if value[2] else picture(value[0], value[1])
    ),
)
