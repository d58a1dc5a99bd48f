"""Lab 1, the other core tasks: views that slice, repeat and regroup (PyTorch: ATen/native/TensorShape.cpp, ATen/TensorUtils.cpp)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from .lab1_cases import (
    Ints,
    MakeLayout,
    always,
    any_layout,
    canon_layout,
    dense,
    empty,
    gapped,
    layout,
    no_dim,
    permuted,
    picture,
    repeated,
    some_dim,
    stepped,
    strides_that_count,
    tensor,
    until,
    with_ones,
)
from .model import Case, Draw, Property, Task


def _true_slice(
    shape: Sequence[int],
    stride: Sequence[int],
    offset: int,
    dim: int,
    start: int | None,
    stop: int | None,
    step: int | None,
) -> Any:
    x = tensor(shape, stride, offset)
    x.size(dim)  # raises for a dimension that is not there
    return layout(x[(slice(None),) * (dim % x.dim()) + (slice(start, stop, step),)])


def _slice(bounds: str, negative_dim: bool = False) -> Draw:
    """A slice whose start, stop and step are of one kind."""

    def draw(rng: random.Random) -> Case:
        sizes, strides, offset = any_layout(rng)
        dim = some_dim(rng, len(sizes), negative_dim)
        size = sizes[dim]
        start: int | None = rng.randint(0, size - 1)
        stop: int | None = rng.randint(start or 0, size)
        step: int | None = rng.choice((None, 1))
        if bounds == "open":
            start, stop = rng.choice(((None, stop), (start, None), (None, None)))
        elif bounds == "from the end":
            start, stop = rng.randint(-size, -1), rng.choice((None, rng.randint(-size, -1), size))
        elif bounds == "beyond":
            start, stop = rng.choice(((-size - rng.randint(1, 9), stop), (start, size + rng.randint(1, 9))))
        elif bounds == "empty":
            start, stop = rng.choice(((size + rng.randint(0, 5), None), (size - 1, rng.randint(0, size - 1))))
        elif bounds == "steps":
            start, stop, step = (
                rng.choice((None, 0, 1, -size)),
                rng.choice((None, size, -1)),
                rng.randint(2, 4),
            )
        elif bounds == "uneven":
            start, stop, step = 0, None, next(s for s in (2, 3, 4, 5, 7) if size % s)
        elif bounds == "long":
            start, stop, step = rng.randint(0, size - 1), None, size + rng.randint(0, 5)
        return sizes, strides, offset, dim, start, stop, step

    return draw


def _wrong_slice(kind: str) -> Draw:
    def draw(rng: random.Random) -> Case:
        sizes, strides, offset, dim, start, stop, step = _slice("steps")(rng)
        if kind == "dim":
            return sizes, strides, offset, no_dim(rng, len(sizes)), start, stop, step
        return sizes, strides, offset, dim, start, stop, 0 if kind == "zero" else -rng.randint(1, 3)

    return draw


def _slice_scalar(rng: random.Random) -> Case:
    return (), (), rng.randint(0, 99), rng.choice((0, -1)), 0, 1, 1


def _slice_empty(rng: random.Random) -> Case:
    sizes, strides, offset = empty(any_layout)(rng)
    return (
        sizes,
        strides,
        offset,
        sizes.index(0),
        rng.randint(-2, 2),
        rng.choice((None, 3)),
        rng.randint(1, 2),
    )


slice_view = Task(
    id="lab1.slice_view",
    title="Slices with steps",
    function="slice_view",
    points=8,
    minutes=15,
    difficulty=2,
    piece="slice_view",
    oracle=_true_slice,
    canon=canon_layout,
    properties=(
        Property(
            "start and stop inside the dimension",
            2,
            (_slice("plain"), _slice("open")),
            (_slice("plain"), _slice("open")),
            "x[1:3] costs nothing because only a size and the offset change",
            "the offset grows by start * stride of that dimension, not by start",
        ),
        Property(
            "bounds from the end, beyond the end, and nothing between them",
            2,
            (_slice("from the end"), _slice("beyond"), _slice("empty"), _slice_empty),
            (_slice("from the end"), _slice("beyond"), _slice("from the end"), _slice("empty")),
            "Python's rules for slices hold: they never raise for a bound, they clamp it",
            "add the size to a negative bound first, clamp it to 0 .. size then, and never let the size go below 0",
            count=16,
        ),
        Property(
            "steps, also those that do not divide the size",
            2,
            (_slice("uneven"), _slice("long")),
            (_slice("steps"), _slice("uneven"), _slice("long")),
            "every second row is a view, too: the stride grows by the step",
            "the size is rounded up, and the stride of the sliced dimension is multiplied by the step",
            count=16,
        ),
        Property(
            "dimensions from the end, and what cannot be",
            1,
            (_slice_scalar, _wrong_slice("zero"), _wrong_slice("negative"), _wrong_slice("dim")),
            (
                _slice("plain", negative_dim=True),
                _slice("steps", negative_dim=True),
                _slice("open", negative_dim=True),
            ),
            "a stride may not be negative in PyTorch, so x[::-1] is refused where NumPy allows it",
            "ValueError for a step below 1, IndexError for a dimension that is not there (a 0-d tensor has none)",
        ),
    ),
    hints=(
        "Only three numbers change: one size, one stride, and the offset.",
        "Turn None and negative bounds into plain ones, clamp both to 0 .. size, and let stop be at least start.",
        "The elements start, start + step, ... before stop: count them by rounding (stop - start) / step up.",
    ),
    read="notebook 01, Views: slices",
    views=lambda case, value: picture(*case[:3]) if value is None else picture(*value),
)


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
    """Dimensions of size 1 (with this chance) to repeat, sizes to keep as -1 (with that one), and new ones in front."""
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
            2,
            (_repeat, _to_nothing),
            (_repeat,),
            "stride 0 is how broadcasting works inside: the same cells are read again",
            "a repeated dimension gets stride 0; all the others keep theirs",
        ),
        Property(
            "new dimensions in front",
            2,
            (_expand_scalar, _lead),
            (_lead, _expand_scalar, _lead),
            "a bias of shape (n,) meets a batch of shape (b, n) this way",
            "sizes are matched from the right, and a new dimension repeats, so its stride is 0",
        ),
        Property(
            "-1 keeps a size",
            1,
            (_unchanged,),
            (_keep, _keep, _unchanged),
            "x.expand(-1, 4) saves writing down what is known",
            "-1 keeps the size and with it the stride; so does asking for the size that is there",
        ),
        Property(
            "sizes that do not fit",
            1,
            tuple(_wrong_expand(kind) for kind in ("other", "multiple", "one", "few", "lead")),
            (_repeat, _lead, _keep),
            "only a size of 1 can be repeated; anything else would need a copy",
            "RuntimeError for another size, for too few sizes, and for -1 where there is nothing to keep",
            count=17,
        ),
    ),
    hints=(
        "Line the two shapes up at their right ends.",
        "Per dimension there are three cases: new, kept (same size or -1), repeated (size 1 made larger or 0).",
        "New and repeated dimensions get stride 0, kept ones their old stride, all else is a RuntimeError.",
    ),
    read="notebook 01, expand and stride 0",
    views=lambda case, value: picture(case[0], case[1]) if value is None else picture(_expanded(case), value),
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
    """Rows with gaps between them, each split, and their number split: a view, though the input is not contiguous."""
    rows, width, gap = rng.choice((4, 6, 8, 9)), rng.choice((4, 6, 8, 9)), rng.randint(1, 9)
    factors = [n for n in (2, 3) if rows % n == 0], [n for n in (2, 3) if width % n == 0]
    a, b = rng.choice(factors[0]), rng.choice(factors[1])
    return (rows, width), (width + gap, 1), (a, rows // a, b, width // b)


def _not_as_many(rng: random.Random) -> Case:
    sizes, strides, _ = any_layout(rng)
    size = list(_regrouped(rng, sizes))
    size[rng.randrange(len(size))] += rng.choice((1, 2))
    return sizes, strides, tuple(size)


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
            2,
            (_flattened(permuted), _flattened(dense), _viewable(permuted)),
            (_viewable(dense), _unviewable(permuted), _viewable(permuted), _unviewable(permuted)),
            "this is the whole difference between view and reshape",
            "only dimensions with stride[i] == size[i+1] * stride[i+1] can be joined; any dimension can be split",
            count=17,
        ),
        Property(
            "tensors with gaps and steps",
            3,
            (_split_across_a_gap, _flattened(gapped)),
            (_viewable(gapped), _unviewable(gapped), _viewable(stepped), _unviewable(stepped)),
            "a view needs fitting strides, not contiguity: zeros(4, 6)[:, :3].view(2, 2, 3) works",
            "the input is asked whether it is contiguous, or strides are those of a fresh tensor",
            count=18,
        ),
        Property(
            "repeated dimensions and dimensions of size 1",
            2,
            (_viewable(repeated), _viewable(with_ones(permuted))),
            (
                _viewable(repeated),
                _unviewable(repeated),
                _viewable(with_ones(any_layout)),
                _unviewable(with_ones(any_layout)),
            ),
            "two repeated dimensions join into one with stride 0; a size of 1 never stands in the way",
            "the strides of size-1 dimensions say nothing, and stride 0 follows the same rule as any other",
            count=18,
        ),
        Property(
            "no dimension, no element, another number of elements",
            1,
            (*_ONE_CELL, _nothing_else, _not_as_many, _not_as_many, _not_as_many, _prefix_fits),
            (_viewable(any_layout), _unviewable(permuted), _viewable(gapped), _unviewable(stepped)),
            "None says that a copy is needed; a wrong number of elements is an error",
            "RuntimeError where the number of elements differs; an empty tensor can always be viewed",
            count=18,
        ),
    ),
    hints=(
        "Walk from the right and collect old dimensions into runs that could be one dimension: each next stride "
        "is the size times the stride of the one before (a size of 1 always joins).",
        "Give the new sizes, from the right as well, to the run at hand until their product is its number of "
        "elements; the strides start at the run's innermost stride and grow by the sizes given.",
        "If the product overshoots the run, there is no view. Empty tensors are best answered first.",
    ),
    read="notebook 01, view needs fitting strides",
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
            2,
            (_flattened(permuted), _flattened(dense), _split_across_a_gap),
            (_viewable(any_layout), _unviewable(permuted), _viewable(repeated), _unviewable(stepped)),
            "reshape hides the copy; knowing when it makes one is knowing where the memory goes",
            "a copy has the strides of a fresh tensor; a view keeps those that fit",
            count=17,
        ),
        Property(
            "one size inferred from -1",
            2,
            (_infers_one, _infers_zero, _open_only(permuted), _open_only(dense)),
            (_inferred(_viewable(any_layout)), _inferred(_unviewable(permuted))),
            "x.reshape(n, -1) stands in nearly every model",
            "the returned size has the inferred number in place of -1",
            count=16,
        ),
        Property(
            "sizes that cannot be",
            1,
            tuple(
                _wrong_reshape(kind)
                for kind in ("two open", "does not divide", "any would do", "count", "count")
            ),
            (
                _viewable(any_layout),
                _unviewable(permuted),
                _inferred(_unviewable(stepped)),
                _inferred(_viewable(dense)),
            ),
            "a wrong size must not end in a tensor of another size",
            "RuntimeError for two -1, for a size that does not divide, for a -1 that could be anything",
            count=17,
        ),
    ),
    hints=(
        "Three steps: infer the -1, look for a view, else answer with a copy.",
        "The -1 stands for the number of elements divided by the product of the other sizes.",
        "If the other sizes hold a 0 the -1 could be anything: RuntimeError. The copy's strides are a fresh tensor's.",
    ),
    read="notebook 01, reshape: a view or a hidden copy",
    views=lambda case, value: (
        picture(case[0], case[1]) if value is None else None if value[2] else picture(value[0], value[1])
    ),
)

TASKS = (slice_view, expand, view_strides, reshape)
