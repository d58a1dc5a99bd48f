"""Lab 4: the shape that two shapes broadcast to (PyTorch: ATen/ExpandUtils.cpp)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from ..lab1.cases import always
from ..model import Case, Draw, Property, Task

Ints = tuple[int, ...]


def _true_broadcast_shapes(a: Sequence[int], b: Sequence[int]) -> Any:
    import torch

    meta = [torch.empty(shape, device="meta") for shape in (a, b)]
    return tuple(torch.broadcast_tensors(*meta)[0].shape)


def _sizes(rng: random.Random, ndim: int) -> Ints:
    return tuple(rng.randint(2, 19) for _ in range(ndim))


def _swapped(rng: random.Random, a: Ints, b: Ints) -> Case:
    return (a, b) if rng.random() < 0.5 else (b, a)


def _stretched(rng: random.Random, shape: Ints, share: float) -> tuple[Ints, Ints]:
    """Two shapes that broadcast to this one: each dimension is 1 in one of them with the probability `share`."""
    a, b = list(shape), list(shape)
    for dim in range(len(shape)):
        if rng.random() < share:
            rng.choice((a, b))[dim] = 1
    return tuple(a), tuple(b)


def _equal_lengths(least: int = 1, share: float = 0.6) -> Draw:
    def draw(rng: random.Random) -> Case:
        return _swapped(rng, *_stretched(rng, _sizes(rng, rng.randint(least, 5)), share))

    return draw


def _both_stretch(rng: random.Random) -> Case:
    """Each of the two has a 1 where the other has none."""
    shape = _sizes(rng, rng.randint(2, 4))
    at, other = rng.sample(range(len(shape)), 2)
    return tuple(1 if d == at else n for d, n in enumerate(shape)), tuple(
        1 if d == other else n for d, n in enumerate(shape)
    )


def _shorter(rng: random.Random) -> Case:
    """One shape lacks dimensions on the left."""
    a, b = _stretched(rng, _sizes(rng, rng.randint(2, 5)), 0.4)
    return _swapped(rng, a, b[rng.randint(1, len(b) - 1) :])


def _ones_in_front(rng: random.Random) -> Case:
    """The longer shape has ones where the shorter one has nothing."""
    a, b = _stretched(rng, _sizes(rng, rng.randint(2, 4)), 0.3)
    return _swapped(rng, (1,) * rng.randint(1, 2) + a, b[rng.randint(0, 1) :])


def _a_scalar(rng: random.Random) -> Case:
    shape = tuple(rng.choice((1, rng.randint(2, 19))) for _ in range(rng.randint(1, 4)))
    return _swapped(rng, shape, ())


def _empty(rng: random.Random) -> Case:
    """A size of 0 in one shape; the other has a 1 there, or a 0, or nothing."""
    a, b = _stretched(rng, _sizes(rng, rng.randint(1, 4)), 0.4)
    at = rng.randrange(len(a))
    a = (*a[:at], 0, *a[at + 1 :])
    b = (*b[:at], rng.choice((0, 1)), *b[at + 1 :])
    return _swapped(rng, a, b if rng.random() < 0.6 else b[at + 1 :])


def _empty_of_one_length(rng: random.Random) -> Case:
    """A size of 0 in one of two shapes of equal length."""
    shape = _sizes(rng, rng.randint(2, 4))
    at = rng.randrange(len(shape))
    a, b = _stretched(rng, shape, 0.4)
    return _swapped(rng, (*a[:at], 0, *a[at + 1 :]), (*b[:at], 1, *b[at + 1 :]))


def _unlike(kind: str) -> Draw:
    """Two shapes that differ in one dimension where neither is 1."""

    def draw(rng: random.Random) -> Case:
        ndim = rng.randint(2, 4)
        shape = _sizes(rng, ndim)
        at = {"first": 0, "last": ndim - 1}.get(kind, rng.randrange(ndim))
        a, b = _stretched(rng, shape, 0.3)
        size = rng.randint(2, 9)
        other = {
            "multiple": size * rng.randint(2, 3),
            "empty": 0,
        }.get(kind, size + rng.randint(1, 4))
        a, b = (*a[:at], size, *a[at + 1 :]), (*b[:at], other, *b[at + 1 :])
        return _swapped(rng, a, b if kind == "first" else b[rng.randint(0, at) :])

    return draw


def _from_the_left(rng: random.Random) -> Case:
    """Shapes that would meet if they were matched from the left."""
    first, last = rng.sample(range(2, 15), 2)
    return _swapped(rng, (first, *_sizes(rng, rng.randint(0, 2)), last), (first,))


broadcast_shapes = Task(
    id="lab4.broadcast_shapes",
    title="The shape that two shapes broadcast to",
    function="broadcast_shapes",
    points=7,
    minutes=10,
    difficulty=1,
    piece="broadcast_shapes",
    oracle=_true_broadcast_shapes,
    properties=(
        Property(
            "shapes of equal length",
            weight=2,
            corners=(
                _both_stretch,
                _equal_lengths(share=0.0),
                _equal_lengths(least=2, share=1.0),
                _empty_of_one_length,
            ),
            draws=(_equal_lengths(), _both_stretch),
            why="a size of 1 stretches to the other size, whichever of the two shapes has it",
            slip="each dimension is decided for itself: one shape may stretch here, the other there",
        ),
        Property(
            "shapes of different length",
            weight=2,
            corners=(_shorter, _ones_in_front, _a_scalar, always((), ())),
            draws=(_shorter, _ones_in_front, _shorter, _a_scalar),
            why="a bias of shape (C,) meets rows of shape (N, C): dimensions are matched from the right",
            slip="what a shape lacks on the left counts as size 1",
        ),
        Property(
            "sizes of 0",
            weight=1,
            corners=(always((0,), (1,)), always((1, 0), (3, 1)), _empty, _empty),
            draws=(_empty, _empty, _shorter),
            why="an empty batch goes through a model like any other, and 1 stretches to 0, too",
            slip="taking the larger size turns (0,) and (1,) into (1,); the size that is not 1 wins",
        ),
        Property(
            "shapes that do not meet, and those next to them",
            weight=2,
            corners=(
                *(_unlike(kind) for kind in ("first", "last", "multiple", "empty", "any")),
                _from_the_left,
            ),
            draws=(_equal_lengths(), _shorter, _ones_in_front),
            why="a silent stretch of a wrong size would be a bug that trains",
            slip="only 1 stretches: 2 does not repeat to 4, and 0 does not meet 3",
            count=20,
        ),
    ),
    hints=(
        "Line the two shapes up at their right ends and put ones in front of the shorter one.",
        "For each pair of sizes: if they are equal, take it; if one is 1, take the other.",
        "Anything else is a RuntimeError. Do not use max: 1 and 0 meet in 0.",
    ),
    read="notebook 04, 4. Station 7: shape and dtype",
)
