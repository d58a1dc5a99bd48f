"""Lab 1, extensions: memory formats and other dtypes (PyTorch: c10/core/MemoryFormat.h)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from ..model import Case, Draw, Property, Task
from .cases import (
    Ints,
    Layout,
    MakeLayout,
    any_layout,
    blank,
    canon_layout,
    layout,
    picture,
    repeated,
    some_sizes,
    stepped,
    tensor,
    until,
)


def _true_channels_last(shape: Sequence[int]) -> Any:
    import torch

    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if len(shape) not in formats:
        raise RuntimeError("channels last is a format of 4 or 5 dimensions")
    return torch.empty(shape, memory_format=formats[len(shape)], device="meta").stride()


def _image(ndim: int) -> Draw:
    return lambda rng: (tuple(rng.randint(2, 24) for _ in range(ndim)),)


def _image_with_ones(ndim: int, places: Ints | None = None) -> Draw:
    def draw(rng: random.Random) -> Case:
        ones = rng.sample(range(ndim), rng.randint(1, 2)) if places is None else places
        return (tuple(1 if dim in ones else rng.randint(2, 40) for dim in range(ndim)),)

    return draw


channels_last_strides = Task(
    id="lab1.channels_last_strides",
    title="Channels last",
    function="channels_last_strides",
    points=8,
    minutes=10,
    difficulty=2,
    oracle=_true_channels_last,
    properties=(
        Property(
            "images: four dimensions",
            weight=2,
            corners=(_image(4), _image(4)),
            draws=(_image(4),),
            why="shape says (N, C, H, W), memory runs N, H, W, C: convolutions like it that way",
            slip="the shape stays; the stride of C is 1, then W, H, N in growing order",
        ),
        Property(
            "volumes: five dimensions",
            weight=1,
            corners=(_image(5), _image(5)),
            draws=(_image(5),),
            why="the same for (N, C, D, H, W), which PyTorch calls channels_last_3d",
            slip="D lies between N and H",
        ),
        Property(
            "one channel, a batch of one, one row",
            weight=1,
            corners=(
                _image_with_ones(4, (1,)),
                _image_with_ones(4, (0,)),
                _image_with_ones(4, (2,)),
                _image_with_ones(5, (1,)),
                _image_with_ones(5, (2,)),
            ),
            draws=(_image_with_ones(4), _image_with_ones(5)),
            why="grey images have one channel, and a single image is a batch of one",
            slip="a size of 1 multiplies like any other; nothing is special about it",
        ),
        Property(
            "other numbers of dimensions",
            weight=1,
            corners=tuple(_image(ndim) for ndim in (1, 2, 3, 6)),
            draws=(_image(4), _image(5), _image_with_ones(4), _image_with_ones(5)),
            why="without a channel dimension and a plane there is nothing to put last",
            slip="RuntimeError for anything but four or five dimensions",
        ),
    ),
    hints=(
        "In which order do the dimensions lie in memory, the fastest last?",
        "Walk through them from the fastest: C, then the plane from its last dimension on, then N.",
        "Put each stride at its dimension's place in the shape, which stays (N, C, ...).",
    ),
    read="notebook 01, 7. What is contiguous?",
    views=lambda case, value: None if value is None else picture(case[0], value),
)


def _true_view_dtype(
    shape: Sequence[int], stride: Sequence[int], offset: int, itemsize: int, new_itemsize: int
) -> Any:
    import torch

    dtypes = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    x = tensor(shape, stride, offset, dtypes[itemsize])
    return layout(x.view(dtypes[new_itemsize]))


def _sizes_of_items(rng: random.Random, small_first: bool) -> tuple[int, int]:
    pair = rng.choice(((1, 2), (1, 4), (1, 8), (2, 4), (2, 8), (4, 8)))
    return pair if small_first else (pair[1], pair[0])


def _rows(rng: random.Random, ndim: int | None = None) -> Layout:
    """Any leading dimensions, and a last one whose elements lie side by side."""
    sizes = some_sizes(rng, ndim, limit=60)
    x = blank([size + rng.randint(0, 2) for size in sizes])
    for dim, size in enumerate(sizes):
        x = x.narrow(dim, rng.randint(0, x.size(dim) - size), size)
    if x.dim() > 2 and rng.random() < 0.5:
        x = x.transpose(0, 1)
    if rng.random() < 0.3:
        x = x[:1].expand(rng.randint(2, 4), *x.shape[1:])
    shape_, stride, offset = layout(x)
    return shape_, stride, offset + rng.randint(0, 9)


def _narrower(rng: random.Random, ndim: int | None = None) -> Case:
    return *_rows(rng, ndim), *_sizes_of_items(rng, small_first=False)


def _wider(rng: random.Random, ndim: int | None = None) -> Case:
    """What a view with small items of some tensor with large ones looks like: it can be viewed back."""
    small, large = _sizes_of_items(rng, small_first=True)
    return *_true_view_dtype(*_rows(rng, ndim), large, small), small, large


def _row(rng: random.Random) -> Case:
    """A vector, to larger or to smaller items."""
    small, large = _sizes_of_items(rng, small_first=True)
    if rng.random() < 0.5:
        return (rng.randint(1, 30),), (1,), rng.randint(0, 30), large, small
    return (rng.randint(2, 9) * (large // small),), (1,), rng.randint(0, 9) * (large // small), small, large


def _one_item(rng: random.Random) -> Case:
    """Rows of one item each, to be seen as several smaller ones."""
    large, small = _sizes_of_items(rng, small_first=False)
    return (rng.randint(2, 9), 1), (rng.randint(1, 9), 1), rng.randint(0, 30), large, small


def _same_items(make: MakeLayout) -> Draw:
    def draw(rng: random.Random) -> Case:
        itemsize = rng.choice((1, 2, 4, 8))
        return *make(rng), itemsize, itemsize

    return draw


def _apart(ndim: int) -> MakeLayout:
    """The elements of the last dimension do not lie side by side."""

    def make(rng: random.Random) -> Layout:
        sizes, strides, offset = stepped(rng, ndim)
        return sizes, (*strides[:-1], strides[-1] * rng.randint(2, 3)), offset

    return make


def _scalar_items(same: bool) -> Draw:
    def draw(rng: random.Random) -> Case:
        old, new = _sizes_of_items(rng, small_first=rng.random() < 0.5)
        return (), (), 8 * rng.randint(0, 20), old, old if same else new

    return draw


def _refused(kind: str) -> Draw:
    """A view that would be fine but for one thing, which may be off by half a new item."""

    def draw(rng: random.Random) -> Case:
        make = _narrower if kind.endswith("smaller") else _wider
        sizes, strides, offset, old, new = make(rng, rng.randint(3, 4))
        ratio = max(new // old, 2)
        rest = ratio // 2
        if kind == "offset":
            offset += rest
        elif kind == "size":
            sizes = (*sizes[:-1], sizes[-1] - rest)
        elif kind == "size, though all of them divide":
            sizes = (ratio, *sizes[1:-1], sizes[-1] - rest)
        elif kind == "first stride":
            strides = (strides[0] + rest, *strides[1:])
        elif kind == "stride of the rows":
            strides = (*strides[:-2], strides[-2] + rest, 1)
        elif kind == "stride along a size of 1":
            at = rng.randrange(len(sizes))
            sizes, strides = (*sizes[:at], 1, *sizes[at:]), (*strides[:at], rest, *strides[at:])
        elif kind == "last stride of a size of 1, smaller":
            sizes, strides = (*sizes[:-1], 1), (*strides[:-1], rng.choice((0, 2, 3, 4)))
        else:
            strides = (*strides[:-1], rng.choice((2, 4, 8)))
        return sizes, strides, offset, old, new

    return until(draw, lambda case: kind != "offset" or case[4] >= 4 * case[3])


view_dtype = Task(
    id="lab1.view_dtype",
    title="The same bytes as another dtype",
    function="view_dtype",
    points=13,
    minutes=25,
    difficulty=4,
    oracle=_true_view_dtype,
    canon=canon_layout,
    properties=(
        Property(
            "smaller items: the last dimension grows",
            weight=2,
            corners=(
                _row,
                _one_item,
                _refused("last stride, smaller"),
                _refused("last stride of a size of 1, smaller"),
            ),
            draws=(_narrower,),
            why="an int32 seen as bytes: four times as many elements, and everything is counted in bytes now",
            slip="last size, offset and all other strides are multiplied; the last stride stays 1",
        ),
        Property(
            "larger items: the last dimension shrinks",
            weight=2,
            corners=(_row, _refused("size"), _refused("size, though all of them divide")),
            draws=(_wider,),
            why="reading packed bytes as numbers is how files and quantised weights are opened",
            slip="size of the last dimension, offset and all other strides are divided, not only the size",
        ),
        Property(
            "items of the same size, and no dimension at all",
            weight=1,
            corners=(
                _scalar_items(same=True),
                _scalar_items(same=False),
                *(_same_items(_apart(ndim)) for ndim in (1, 2, 3)),
            ),
            draws=(_same_items(any_layout), _narrower, _same_items(repeated), _wider),
            why="float32 as int32 is always possible: no number in the layout changes",
            slip="equal sizes ask nothing of the layout; without a dimension nothing can grow or shrink",
        ),
        Property(
            "views that PyTorch refuses, and those next to them",
            weight=2,
            corners=tuple(
                _refused(kind)
                for kind in (
                    "offset",
                    "first stride",
                    "stride of the rows",
                    "stride along a size of 1",
                    "last stride, larger",
                    "last stride, smaller",
                )
            ),
            draws=(_wider, _narrower, _wider),
            why="an item that starts between two cells, or is torn apart by a stride, cannot be",
            slip="RuntimeError unless the last stride is 1 and, for larger items, all others divide",
            count=18,
        ),
    ),
    hints=(
        "Think in bytes: offset * itemsize and stride * itemsize do not change, only the unit does.",
        "Which dimension must lie side by side in memory, so that its items can be cut up or glued together?",
        "Three cases: equal sizes (nothing to do), smaller (multiply by the ratio), larger (check, divide).",
    ),
    read="notebook 01, 2. Five fields",
    views=lambda case, value: picture(*case[:3]) if value is None and case[3] == case[4] else None,
)
