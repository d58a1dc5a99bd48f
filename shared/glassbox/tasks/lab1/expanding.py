"""Lab 1: views that repeat (PyTorch: ATen/ExpandUtils.cpp)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from ..model import Case, Draw, Property, Task
from .cases import Ints, any_layout, picture, strides_that_count, tensor, with_ones


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
