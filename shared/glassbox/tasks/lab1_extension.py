"""Lab 1, extension tasks: layouts that the mini-framework has no op for (PyTorch: ATen/native/TensorShape.cpp, c10/core/MemoryFormat.h)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from .lab1_cases import (
    Ints,
    Layout,
    MakeLayout,
    any_layout,
    blank,
    canon_layout,
    dense,
    empty,
    gapped,
    layout,
    no_dim,
    overlapping,
    permuted,
    picture,
    repeated,
    shape,
    some_dim,
    stepped,
    tensor,
    until,
    with_ones,
)
from .model import Case, Draw, Property, Task


def _true_unfold(shape: Sequence[int], stride: Sequence[int], dim: int, size: int, step: int) -> Any:
    return layout(tensor(shape, stride).unfold(dim, size, step))[:2]


def _windows(kind: str, negative_dim: bool = False) -> Draw:
    def draw(rng: random.Random) -> Case:
        sizes, strides, _ = any_layout(rng, rng.randint(1, 3))
        dim = some_dim(rng, len(sizes), negative_dim)
        room = rng.randint(4, 12)
        at = dim % len(sizes)
        sizes = (*sizes[:at], room, *sizes[at + 1 :])
        size, step = rng.randint(2, room - 1), rng.randint(1, 3)
        if kind == "uneven":
            size, step = rng.choice(
                [(a, b) for a in range(2, room) for b in range(2, room) if (room - a) % b]
            )
        elif kind == "side by side":
            size = step = rng.randint(2, room // 2)
        elif kind == "apart":
            size, step = 2, rng.randint(3, 5)
        elif kind == "whole":
            size = room
        elif kind == "one":
            size = 1
        elif kind == "none":
            size = 0
        return sizes, strides, dim, size, step

    return draw


def _wrong_windows(kind: str) -> Draw:
    def draw(rng: random.Random) -> Case:
        sizes, strides, dim, size, step = _windows("plain")(rng)
        if kind == "too long":
            return sizes, strides, dim, sizes[dim] + rng.randint(1, 3), step
        if kind == "negative size":
            return sizes, strides, dim, -rng.randint(1, 3), step
        if kind == "step":
            return sizes, strides, dim, size, rng.choice((0, -1))
        return sizes, strides, no_dim(rng, len(sizes)), size, step

    return draw


unfold = Task(
    id="lab1.unfold",
    title="Sliding windows",
    function="unfold",
    points=9,
    minutes=15,
    difficulty=3,
    oracle=_true_unfold,
    canon=canon_layout,
    properties=(
        Property(
            "windows that overlap, touch, or lie apart",
            2,
            (_windows("side by side"), _windows("apart"), _windows("plain")),
            (_windows("plain"), _windows("side by side"), _windows("apart")),
            "a convolution's patches are a view: overlapping windows read the same cells",
            "the dimension now counts windows, step * stride apart; inside a window the old stride holds, in a new last dimension",
        ),
        Property(
            "steps that leave a rest, and dimensions from the end",
            1,
            (_windows("uneven"), _windows("uneven", negative_dim=True)),
            (_windows("uneven"), _windows("uneven", negative_dim=True), _windows("plain", negative_dim=True)),
            "a window that would reach past the end is left out",
            "there are (n - size) // step + 1 windows: one more than the number of steps",
        ),
        Property(
            "windows as long as the dimension, of one element, of none",
            1,
            (_windows("whole"), _windows("one"), _windows("none")),
            (_windows("whole"), _windows("one"), _windows("plain")),
            "at the limits a formula shows whether it was understood",
            "a window as long as the dimension fits exactly once",
        ),
        Property(
            "windows that do not fit",
            1,
            tuple(_wrong_windows(kind) for kind in ("too long", "negative size", "step", "dim")),
            (_windows("plain"), _windows("whole"), _windows("uneven", negative_dim=True)),
            "a window past the end would read another row's cells",
            "RuntimeError for a window that is too long, a size below 0, a step below 1; IndexError for the dimension",
        ),
    ),
    hints=(
        "How many windows start early enough to fit?",
        "Moving on by one window means moving step elements along the old dimension.",
        "The elements of one window come last: a new dimension with the old stride.",
    ),
    read="notebook 01, Overlap: expand and as_strided",
    views=lambda case, value: picture(case[0], case[1]) if value is None else picture(*value),
)


def _true_diagonal(
    shape: Sequence[int], stride: Sequence[int], offset: int, k: int, dim1: int, dim2: int
) -> Any:
    return layout(tensor(shape, stride, offset).diagonal(k, dim1, dim2))


def _diagonal(k: str, ndim: tuple[int, int] = (2, 4), negative: float = 0.0) -> Draw:
    def draw(rng: random.Random) -> Case:
        sizes, strides, offset = any_layout(rng, rng.randint(*ndim))
        first, second = rng.sample(range(len(sizes)), 2)
        rows, columns = sizes[first], sizes[second]
        shift = {
            "main": lambda: 0,
            "above": lambda: rng.randint(1, columns - 1),
            "below": lambda: -rng.randint(1, rows - 1),
            "corner": lambda: rng.choice((columns - 1, 1 - rows)),
            "outside": lambda: rng.choice((columns + rng.randint(0, 2), -rows - rng.randint(0, 2))),
        }[k]()
        dims = tuple(dim - len(sizes) if rng.random() < negative else dim for dim in (first, second))
        return sizes, strides, offset, shift, *dims

    return draw


def _wrong_diagonal(kind: str) -> Draw:
    def draw(rng: random.Random) -> Case:
        sizes, strides, offset, k, first, second = _diagonal("main")(rng)
        if kind == "same":
            return sizes, strides, offset, k, first, first
        if kind == "same, once from the end":
            return sizes, strides, offset, k, first, first - len(sizes)
        wrong = no_dim(rng, len(sizes))
        return sizes, strides, offset, k, *rng.choice(((wrong, second), (first, wrong)))

    return draw


diagonal = Task(
    id="lab1.diagonal",
    title="A diagonal is a view",
    function="diagonal",
    points=9,
    minutes=20,
    difficulty=3,
    oracle=_true_diagonal,
    canon=canon_layout,
    properties=(
        Property(
            "main diagonals of two, three and four dimensions",
            2,
            (_diagonal("main", (2, 2)), _diagonal("main", (3, 3)), _diagonal("main", (4, 4))),
            (_diagonal("main", (2, 3)), _diagonal("main", (3, 4))),
            "one step along the diagonal is one step along both dimensions at once",
            "the two strides add up; the diagonal becomes the last dimension, the others keep their order",
        ),
        Property(
            "diagonals above and below the main one",
            2,
            (_diagonal("above", (2, 2)), _diagonal("below", (2, 2)), _diagonal("corner")),
            (_diagonal("above"), _diagonal("below")),
            "causal masks and banded matrices live on these",
            "k > 0 starts k columns to the right, k < 0 starts -k rows down; both shorten the diagonal",
        ),
        Property(
            "dimensions from the end, diagonals outside the matrix",
            1,
            (_diagonal("outside"), _diagonal("main", negative=1.0)),
            (
                _diagonal("above", negative=0.6),
                _diagonal("below", negative=0.6),
                _diagonal("outside", negative=0.6),
            ),
            "a diagonal outside the matrix is empty, not an error",
            "the length never goes below 0; min over the rows and columns that are left",
        ),
        Property(
            "dimensions that are the same or not there",
            1,
            tuple(_wrong_diagonal(kind) for kind in ("same", "same, once from the end", "absent", "absent")),
            (_diagonal("main"), _diagonal("above", negative=0.5), _diagonal("below", negative=0.5)),
            "dim1 = 0 and dim2 = -2 are the same dimension of a matrix",
            "RuntimeError for the same dimension twice, IndexError for one that is not there",
        ),
    ),
    hints=(
        "Where do you land when you go one row down and one column to the right?",
        "The first element of diagonal k lies at column k of row 0, or at row -k of column 0.",
        "From there, how many rows and how many columns are left? The smaller number is the length.",
    ),
    read="notebook 01, The address of an element",
    views=lambda case, value: picture(*case[:3]) if value is None else picture(*value),
)


def _true_channels_last(shape: Sequence[int]) -> Any:
    import torch

    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if len(shape) not in formats:
        raise RuntimeError("channels last is a format of 4 or 5 dimensions")
    return torch.empty(shape, memory_format=formats[len(shape)], device="meta").stride()


def _image(ndim: int) -> Draw:
    return lambda rng: (tuple(rng.randint(2, 9) for _ in range(ndim)),)


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
            2,
            (_image(4), _image(4)),
            (_image(4),),
            "shape says (N, C, H, W), memory runs N, H, W, C: convolutions like it that way",
            "the shape stays; the stride of C is 1, then W, H, N in growing order",
        ),
        Property(
            "volumes: five dimensions",
            1,
            (_image(5), _image(5)),
            (_image(5),),
            "the same for (N, C, D, H, W), which PyTorch calls channels_last_3d",
            "D lies between N and H",
        ),
        Property(
            "one channel, a batch of one, one row",
            1,
            (
                _image_with_ones(4, (1,)),
                _image_with_ones(4, (0,)),
                _image_with_ones(4, (2,)),
                _image_with_ones(5, (1,)),
                _image_with_ones(5, (2,)),
            ),
            (_image_with_ones(4), _image_with_ones(5)),
            "grey images have one channel, and a single image is a batch of one",
            "a size of 1 multiplies like any other; nothing is special about it",
        ),
        Property(
            "other numbers of dimensions",
            1,
            tuple(_image(ndim) for ndim in (1, 2, 3, 6)),
            (_image(4), _image(5), _image_with_ones(4), _image_with_ones(5)),
            "without a channel dimension and a plane there is nothing to put last",
            "RuntimeError for anything but four or five dimensions",
        ),
    ),
    hints=(
        "In which order do the dimensions lie in memory, the fastest last?",
        "Walk through them from the fastest: C, then the plane from its last dimension on, then N.",
        "Put each stride at its dimension's place in the shape, which stays (N, C, ...).",
    ),
    read="notebook 01, Memory format",
    views=lambda case, value: None if value is None else picture(case[0], value),
)


def _true_aliased(shape: Sequence[int], stride: Sequence[int], offset: int, cell: int) -> Any:
    return [tuple(index) for index in (tensor(shape, stride, offset) == cell).nonzero().tolist()]


def _hit(make: MakeLayout) -> Draw:
    """A cell that some index reaches."""

    def draw(rng: random.Random) -> Case:
        sizes, strides, offset = make(rng)
        index = [rng.randrange(size) for size in sizes]
        cell = offset + sum(i * step for i, step in zip(index, strides, strict=True))
        return sizes, strides, offset, cell

    return draw


def _miss(make: MakeLayout) -> Draw:
    """A cell that no index reaches, among or just beside those that are."""

    def draw(rng: random.Random) -> Case:
        sizes, strides, offset = make(rng)
        reach = sum((size - 1) * step for size, step in zip(sizes, strides, strict=True) if size)
        return sizes, strides, offset, rng.randint(max(offset - 3, 0), offset + reach + 3)

    return until(draw, lambda case: not _true_aliased(*case))


def _several(make: MakeLayout) -> Draw:
    return until(_hit(make), lambda case: 2 <= len(_true_aliased(*case)) <= 60)


def _sliding(rng: random.Random) -> Layout:
    """Windows over a row of cells, as sliding over a sequence makes them."""
    x = tensor((rng.randint(6, 14),), (rng.randint(1, 3),), rng.randint(1, 19))
    return layout(x.unfold(0, rng.randint(3, 5), rng.randint(1, 2)))


def _scalar(rng: random.Random) -> Layout:
    return (), (), rng.randint(1, 99)


aliased_indices = Task(
    id="lab1.aliased_indices",
    title="Which indices meet in one cell",
    function="aliased_indices",
    points=11,
    minutes=20,
    difficulty=3,
    oracle=_true_aliased,
    properties=(
        Property(
            "layouts in which every cell has one index at most",
            1,
            (_miss(gapped), _miss(stepped), _hit(permuted)),
            (_hit(dense), _hit(permuted), _miss(stepped), _hit(gapped), _hit(stepped)),
            "reading a cell number backwards is the address formula solved for the index",
            "cells in the gaps belong to no index: the answer is an empty list",
        ),
        Property(
            "repeated dimensions",
            2,
            (_several(repeated), _miss(repeated)),
            (_several(repeated), _several(repeated), _miss(repeated)),
            "writing to one element of an expanded tensor changes all of these",
            "along stride 0 every index reaches the same cell, so all of them belong to the answer",
        ),
        Property(
            "overlapping windows",
            2,
            (_several(_sliding), _several(overlapping), _miss(_sliding)),
            (_several(_sliding), _several(overlapping), _miss(overlapping)),
            "this is why PyTorch refuses some in-place ops: one cell would be written twice",
            "dividing by the strides one after the other finds one index only; list them in lexicographic order",
        ),
        Property(
            "no dimension, no element, sizes of 1",
            1,
            (_hit(_scalar), _miss(_scalar), _miss(empty(any_layout)), _hit(with_ones(permuted))),
            (
                _hit(with_ones(any_layout)),
                _several(with_ones(overlapping)),
                _miss(with_ones(gapped)),
                _hit(_scalar),
            ),
            "a scalar has exactly one index, the empty one",
            "the answer for a scalar's own cell is [()], and [] for any other cell",
        ),
    ),
    hints=(
        "Small layouts may simply be tried: visit every index and compare its address with the cell.",
        "itertools.product over a range for each size gives all indices, in the order that is asked for.",
        "With no dimensions, product() gives one empty tuple, which is the one index of a scalar.",
    ),
    read="notebook 01, Overlap: expand and as_strided",
)


def _true_view_dtype(
    shape: Sequence[int], stride: Sequence[int], offset: int, itemsize: int, new_itemsize: int
) -> Any:
    import torch

    dtypes = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    x = torch.empty(1 << 13, dtype=dtypes[itemsize]).as_strided(shape, stride, offset)
    return layout(x.view(dtypes[new_itemsize]))


def _sizes_of_items(rng: random.Random, small_first: bool) -> tuple[int, int]:
    pair = rng.choice(((1, 2), (1, 4), (1, 8), (2, 4), (2, 8), (4, 8)))
    return pair if small_first else (pair[1], pair[0])


def _rows(rng: random.Random) -> Layout:
    """Any leading dimensions, and a last one whose elements lie side by side."""
    sizes = shape(rng, limit=60)
    x = blank([size + rng.randint(0, 2) for size in sizes])
    for dim, size in enumerate(sizes):
        x = x.narrow(dim, rng.randint(0, x.size(dim) - size), size)
    if x.dim() > 2 and rng.random() < 0.5:
        x = x.transpose(0, 1)
    if rng.random() < 0.3:
        x = x[:1].expand(rng.randint(2, 4), *x.shape[1:])
    shape_, stride, offset = layout(x)
    return shape_, stride, offset + rng.randint(0, 9)


def _narrower(rng: random.Random) -> Case:
    return *_rows(rng), *_sizes_of_items(rng, small_first=False)


def _wider(rng: random.Random) -> Case:
    """What a view with small items of some tensor with large ones looks like: it can be viewed back."""
    small, large = _sizes_of_items(rng, small_first=True)
    return *_true_view_dtype(*_rows(rng), large, small), small, large


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


def _scalar_items(same: bool) -> Draw:
    def draw(rng: random.Random) -> Case:
        old, new = _sizes_of_items(rng, small_first=rng.random() < 0.5)
        return (), (), 8 * rng.randint(0, 20), old, old if same else new

    return draw


def _refused(kind: str) -> Draw:
    """A view that would be fine but for one thing."""

    def draw(rng: random.Random) -> Case:
        sizes, strides, offset, old, new = _narrower(rng) if kind == "last stride, smaller" else _wider(rng)
        rest = rng.randint(1, max(new // old, 2) - 1)
        if kind == "offset":
            offset += rest
        elif kind == "size":
            sizes = (*sizes[:-1], sizes[-1] - rest)
        elif kind == "stride":
            strides = (strides[0] + rest, *strides[1:])
        else:
            strides = (*strides[:-1], rng.choice((2, 4, 8)))
        return sizes, strides, offset, old, new

    return draw


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
            2,
            (_row, _one_item, _refused("last stride, smaller")),
            (_narrower,),
            "an int32 seen as bytes: four times as many elements, and everything is counted in bytes now",
            "size of the last dimension, offset and all other strides are multiplied; the last stride stays 1",
        ),
        Property(
            "larger items: the last dimension shrinks",
            2,
            (_row, _refused("size")),
            (_wider,),
            "reading packed bytes as numbers is how files and quantised weights are opened",
            "size of the last dimension, offset and all other strides are divided, not only the size",
        ),
        Property(
            "items of the same size, and no dimension at all",
            1,
            (
                _scalar_items(same=True),
                _scalar_items(same=False),
                _same_items(permuted),
                _same_items(stepped),
            ),
            (_same_items(any_layout), _narrower, _same_items(repeated), _wider),
            "float32 as int32 is always possible: no number in the layout changes",
            "with equal sizes nothing is asked of the layout; a 0-d tensor has no dimension that could grow or shrink",
        ),
        Property(
            "views that PyTorch refuses, and those next to them",
            2,
            tuple(
                _refused(kind)
                for kind in ("offset", "size", "stride", "last stride, larger", "last stride, smaller")
            ),
            (_wider, _narrower, _wider),
            "an item that starts between two cells, or is torn apart by a stride, cannot be",
            "RuntimeError unless the last stride is 1 and, for larger items, last size, offset and other strides divide",
            count=17,
        ),
    ),
    hints=(
        "Think in bytes: offset * itemsize and stride * itemsize do not change, only the unit does.",
        "Which dimension must lie side by side in memory, so that its items can be cut up or glued together?",
        "Three cases: equal sizes (nothing to do), smaller (multiply by the ratio), larger (check, then divide by it).",
    ),
    read="notebook 01, view(dtype) and to(dtype)",
    views=lambda case, value: picture(*case[:3]) if value is None and case[3] == case[4] else None,
)

TASKS = (unfold, diagonal, channels_last_strides, aliased_indices, view_dtype)
