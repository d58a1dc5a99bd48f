"""Lab 1's cases: layouts that come out of PyTorch's own view ops, and the form in which answers meet."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from ..model import Case, Draw

Ints = tuple[int, ...]
Layout = tuple[Ints, Ints, int]
"""(shape, stride, offset), all in elements."""

MakeLayout = Callable[[random.Random], Layout]

CELLS = 1 << 18


@functools.cache
def _storage() -> Any:
    import torch

    return torch.arange(CELLS)


def tensor(shape: Sequence[int], stride: Sequence[int], offset: int = 0, dtype: Any = None) -> Any:
    """A real tensor with this layout; without a dtype, every element holds the number of its storage cell."""
    cells = _storage() if dtype is None else _storage().view(dtype)
    return cells.as_strided(shape, stride, offset)


def blank(shape: Sequence[int]) -> Any:
    """A fresh real tensor of this shape."""
    import torch

    return torch.empty(shape)


def true_strides(shape: Sequence[int]) -> Any:
    """The strides of a fresh real tensor of this shape."""
    import torch

    return torch.empty(shape, device="meta").stride()


def layout(x: Any) -> Layout:
    """Shape, stride and storage offset of a real tensor."""
    return tuple(x.shape), tuple(x.stride()), x.storage_offset()


def always(*case: Any) -> Draw:
    """The same case every time."""
    return lambda rng: case


def until(draw: Draw, test: Callable[[Case], bool]) -> Draw:
    """Draws again until the case passes the test."""

    def drawn(rng: random.Random) -> Case:
        for _ in range(2000):
            case = draw(rng)
            if test(case):
                return case
        raise ValueError(f"no case of {draw!r} passes {test!r}")

    return drawn


def some_sizes(rng: random.Random, ndim: int | None = None, limit: int = 240) -> Ints:
    """Sizes from 2 on, at most `limit` elements; 2 to 4 dimensions unless told.

    Half of them are small enough to be looked at; the others make a list of all cases hopelessly long.
    """
    ndim = rng.randint(2, 4) if ndim is None else ndim
    largest, elements = rng.choice(((6, min(limit, 60)), (15, limit)))
    while True:
        sizes = tuple(rng.randint(2, largest) for _ in range(ndim))
        if math.prod(sizes) <= elements:
            return sizes


def _moved(rng: random.Random, x: Any) -> Layout:
    sizes, strides, offset = layout(x)
    return sizes, strides, offset + rng.randint(1, 19)


def dense(rng: random.Random, ndim: int | None = None) -> Layout:
    """A contiguous tensor somewhere in its storage."""
    return _moved(rng, blank(some_sizes(rng, ndim)))


def permuted(rng: random.Random, ndim: int | None = None) -> Layout:
    """The dimensions of a contiguous tensor in another order."""
    x = blank(some_sizes(rng, ndim))
    order = list(range(x.dim()))
    while len(order) > 1 and order == sorted(order):
        rng.shuffle(order)
    return _moved(rng, x.permute(order))


def gapped(rng: random.Random, ndim: int | None = None) -> Layout:
    """A block cut out of a larger tensor, so that there are gaps between its rows."""
    sizes = some_sizes(rng, ndim)
    x = blank([size + rng.randint(0, 2) for size in sizes[:-1]] + [sizes[-1] + rng.randint(1, 2)])
    for dim, size in enumerate(sizes):
        x = x.narrow(dim, rng.randint(0, x.size(dim) - size), size)
    return _moved(rng, x)


def stepped(rng: random.Random, ndim: int | None = None) -> Layout:
    """Every second or third element along some dimensions of a larger tensor."""
    sizes = some_sizes(rng, ndim)
    steps = [rng.randint(1, 3) for _ in sizes]
    steps[rng.randrange(len(steps))] = rng.randint(2, 3)
    x = blank([size * step for size, step in zip(sizes, steps, strict=True)])
    return _moved(rng, x[tuple(slice(None, None, step) for step in steps)])


def repeated(rng: random.Random, ndim: int | None = None) -> Layout:
    """A tensor with some dimensions expanded, so that their stride is 0."""
    sizes = some_sizes(rng, ndim)
    again = {rng.randrange(len(sizes)) for _ in range(2)}
    return _moved(rng, blank([1 if dim in again else size for dim, size in enumerate(sizes)]).expand(sizes))


def overlapping(rng: random.Random, ndim: int | None = None) -> Layout:
    """Small strides of any kind, so that many indices share a cell."""
    sizes = some_sizes(rng, ndim)
    return sizes, tuple(rng.randint(0, 4) for _ in sizes), rng.randint(1, 19)


KINDS = (dense, permuted, gapped, stepped, repeated)


def any_layout(rng: random.Random, ndim: int | None = None) -> Layout:
    """One of the kinds above that views lead to."""
    return rng.choice(KINDS)(rng, ndim)


def with_ones(make: MakeLayout) -> MakeLayout:
    """The layouts of `make` with one or two dimensions of size 1 put in, whose strides may be anything."""

    def made(rng: random.Random) -> Layout:
        sizes, strides, offset = make(rng)
        for _ in range(rng.randint(1, 2)):
            at = rng.randint(0, len(sizes))
            sizes = (*sizes[:at], 1, *sizes[at:])
            strides = (*strides[:at], rng.randint(0, 30), *strides[at:])
        return sizes, strides, offset

    return made


def empty(make: MakeLayout) -> MakeLayout:
    """The layouts of `make` with one of the sizes turned to 0."""

    def made(rng: random.Random) -> Layout:
        sizes, strides, offset = make(rng)
        at = rng.randrange(len(sizes))
        return (*sizes[:at], 0, *sizes[at + 1 :]), strides, offset

    return made


def some_dim(rng: random.Random, ndim: int, negative: bool | None = None) -> int:
    """A dimension of a tensor with `ndim` of them, counted from the end where `negative`."""
    dim = rng.randrange(ndim)
    negative = rng.random() < 0.5 if negative is None else negative
    return dim - ndim if negative else dim


def no_dim(ndim: int, below: bool) -> int:
    """The first dimension, counted from either end, that a tensor with `ndim` of them lacks."""
    return -ndim - 1 if below else ndim


def strides_that_count(sizes: Sequence[int], strides: Any) -> list[int | None]:
    """Strides with None where no element ever uses them: along sizes of 1, and everywhere in an empty tensor.

    PyTorch fills such places by rules that nobody would guess. ValueError unless there is one int a size.
    """
    if len(strides) != len(sizes) or not all(type(step) is int for step in strides):
        raise ValueError("one int for each dimension")
    unused = 0 in sizes
    return [None if unused or size == 1 else step for size, step in zip(sizes, strides, strict=True)]


def canon_layout(case: Case, value: Any) -> Any:
    """A (shape, stride) or (shape, stride, offset) answer without what no element uses."""
    sizes, strides, *rest = value
    if 0 in sizes and all(type(number) is int for number in rest):
        rest = [None for _ in rest]
    return [sizes, strides_that_count(sizes, strides), *rest]


def picture(shape: Sequence[int], stride: Sequence[int], offset: int = 0) -> dict[str, Any] | None:
    """What to draw for a layout; None for one too large to look at."""
    if math.prod(shape) > (300 if len(shape) < 3 else 80):
        return None
    return {"shape": tuple(shape), "stride": tuple(stride), "offset": offset}
