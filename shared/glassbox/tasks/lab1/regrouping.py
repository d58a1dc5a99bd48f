"""Lab 1: other sizes for the same elements, as a view or a copy (PyTorch: at::detail::computeStride)."""

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
    dense,
    empty,
    gapped,
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
    if x.numel() != _numel(size):
        raise RuntimeError("the number of elements differs")
    try:
        return x.view(size).stride()
    except RuntimeError:
        return None


def _numel(sizes: Sequence[int]) -> int:
    count = 1
    for n in sizes:
        count *= n
    return count


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


def _to_view(make: MakeLayout) -> Draw:
    def draw(rng: random.Random) -> Case:
        sizes, strides, _ = make(rng)
        return sizes, strides, _regrouped(rng, sizes)

    return until(draw, lambda case: case[0] != case[2])


def _viewable(make: MakeLayout) -> Draw:
    return until(_to_view(make), lambda case: _true_view_strides(*case) is not None)


def _unviewable(make: MakeLayout) -> Draw:
    return until(_to_view(make), lambda case: _true_view_strides(*case) is None)


def _flattened(make: MakeLayout) -> Draw:
    def draw(rng: random.Random) -> Case:
        sizes, strides, _ = make(rng)
        return sizes, strides, (_numel(sizes),)

    return draw


def _split_across_a_gap(rng: random.Random) -> Case:
    """Rows with gaps between them, each split, and their number split: a view, though not contiguous."""
    rows, width, gap = rng.choice((4, 6, 8, 9)), rng.choice((4, 6, 8, 9)), rng.randint(1, 9)
    factors = [n for n in (2, 3) if rows % n == 0], [n for n in (2, 3) if width % n == 0]
    a, b = rng.choice(factors[0]), rng.choice(factors[1])
    return (rows, width), (width + gap, 1), (a, rows // a, b, width // b)


def _not_as_many(rng: random.Random) -> Case:
    sizes, strides, _ = any_layout(rng)
    size = list(_regrouped(rng, sizes))
    at = rng.randrange(len(size))
    size[at] += rng.choice((1, 2)) if size[at] < 3 else rng.choice((-1, 1, 2))
    return sizes, strides, tuple(size)


def _fewer(rng: random.Random) -> Case:
    """Sizes for a part of the elements only."""
    sizes, strides, _ = any_layout(rng)
    at = rng.randrange(len(sizes))
    return sizes, strides, (*sizes[:at], *sizes[at + 1 :])


def _prefix_fits(rng: random.Random) -> Case:
    """As many elements and then a few more times as many."""
    sizes, strides, _ = any_layout(rng)
    return sizes, strides, (*sizes, rng.randint(2, 4))


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
            corners=(_flattened(permuted), _flattened(dense), _viewable(permuted)),
            draws=(_viewable(dense), _unviewable(permuted), _viewable(permuted), _unviewable(permuted)),
            why="this is the whole difference between view and reshape",
            slip="only dimensions with stride[i] == size[i+1] * stride[i+1] can be joined; any can be split",
            count=17,
        ),
        Property(
            "tensors with gaps and steps",
            weight=3,
            corners=(_split_across_a_gap, _flattened(gapped)),
            draws=(_viewable(gapped), _unviewable(gapped), _viewable(stepped), _unviewable(stepped)),
            why="a view needs fitting strides, not contiguity: zeros(4, 6)[:, :3].view(2, 2, 3) works",
            slip="the input is asked whether it is contiguous, or strides are those of a fresh tensor",
            count=18,
        ),
        Property(
            "repeated dimensions and dimensions of size 1",
            weight=2,
            corners=(_viewable(repeated), _viewable(with_ones(permuted))),
            draws=(
                _viewable(repeated),
                _unviewable(repeated),
                _viewable(with_ones(any_layout)),
                _unviewable(with_ones(any_layout)),
            ),
            why="two repeated dimensions join into one with stride 0; a size of 1 never stands in the way",
            slip="strides of size-1 dimensions say nothing; stride 0 follows the same rule as any other",
            count=18,
        ),
        Property(
            "no dimension, no element, another number of elements",
            weight=1,
            corners=(*_ONE_CELL, _nothing_else, _not_as_many, _not_as_many, _fewer, _prefix_fits),
            draws=(_viewable(any_layout), _unviewable(permuted), _viewable(gapped), _unviewable(stepped)),
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
        "If the product overshoots the run, there is no view. Empty tensors are best answered first.",
    ),
    read="notebook 01, 5. view never copies, reshape might",
    views=lambda case, value: picture(case[0], case[1]) if value is None else picture(case[2], value),
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
        sizes, strides, size = _to_view(any_layout)(rng)
        if kind == "two open":
            return sizes, strides, (-1, *size[1:], -1)
        if kind == "two open, and all is there":
            return sizes, strides, (-1, *size, -1)
        if kind == "does not divide":
            return sizes, strides, (-1, next(n for n in (7, 11, 13) if _numel(sizes) % n))
        if kind == "any would do":
            return empty(any_layout)(rng)[:2] + (
                (0, -1) if rng.random() < 0.5 else (-1, rng.randint(2, 5), 0),
            )
        return _not_as_many(rng)

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
            corners=(_flattened(permuted), _flattened(dense), _split_across_a_gap),
            draws=(_viewable(any_layout), _unviewable(permuted), _viewable(repeated), _unviewable(stepped)),
            why="reshape hides the copy; knowing when it makes one is knowing where the memory goes",
            slip="a copy has the strides of a fresh tensor; a view keeps those that fit",
            count=17,
        ),
        Property(
            "one size inferred from -1",
            weight=2,
            corners=(_infers_one, _infers_zero, _open_only(permuted), _open_only(dense)),
            draws=(_inferred(_viewable(any_layout)), _inferred(_unviewable(permuted))),
            why="x.reshape(n, -1) stands in nearly every model",
            slip="the returned size has the inferred number in place of -1",
            count=16,
        ),
        Property(
            "sizes that cannot be",
            weight=1,
            corners=tuple(
                _wrong_reshape(kind)
                for kind in (
                    "two open",
                    "two open, and all is there",
                    "does not divide",
                    "any would do",
                    "count",
                )
            ),
            draws=(
                _viewable(any_layout),
                _unviewable(permuted),
                _inferred(_unviewable(stepped)),
                _inferred(_viewable(dense)),
            ),
            why="a wrong size must not end in a tensor of another size",
            slip="RuntimeError for two -1, for a size that does not divide, for a -1 that could be anything",
            count=17,
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
