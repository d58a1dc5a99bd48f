"""Lab 1: other ways of thinking than the solutions' own, some right and some short cuts."""

import inspect
import itertools
import math


def _product(sizes):
    return math.prod(max(n, 1) for n in sizes)


def _fresh(shape):
    return tuple(_product(shape[dim + 1 :]) for dim in range(len(shape)))


def _counted(index, shape):
    return [i + n if i < 0 else i for i, n in zip(index, shape, strict=True)]


def _larger_than_one(shape, stride):
    return [(n, step) for n, step in zip(shape, stride, strict=True) if n > 1]


def _span(shape, stride):
    return sum((n - 1) * step for n, step in zip(shape, stride, strict=True))


def contiguous_strides__one_zero_seen(shape):
    strides, step, seen = [], 1, False
    for n in reversed(shape):
        strides.insert(0, step)
        if n == 0 and not seen:
            seen = True
        else:
            step *= n
    return strides


def contiguous_strides__five_dimensions_at_most(shape):
    return [_product(shape[dim + 1 : 5]) for dim in range(min(len(shape), 5))]


def contiguous_strides__ones_where_empty(shape):
    return (1,) * len(shape) if 0 in shape else _fresh(shape)


def _address_checking(which):
    """Checks the range of the indices that `which` picks."""

    def address(index, shape, stride, offset):
        if len(index) != len(shape) or 0 in shape:
            raise IndexError
        if any(not -n <= i < n for i, n in which(list(zip(index, shape, strict=True)))):
            raise IndexError
        return offset + sum(i * step for i, step in zip(_counted(index, shape), stride, strict=True))

    return address


def address__only_the_sum_checked(index, shape, stride, offset):
    if len(index) != len(shape) or 0 in shape:
        raise IndexError
    moved = sum(i * step for i, step in zip(_counted(index, shape), stride, strict=True))
    if not 0 <= moved <= _span(shape, stride):
        raise IndexError
    return offset + moved


def address__wraps(index, shape, stride, offset):
    if len(index) != len(shape) or 0 in shape:
        raise IndexError
    return offset + sum(i % n * step for i, n, step in zip(index, shape, stride, strict=True))


def _contiguous_by(test):
    """Whether the strides of sizes above 1 pass the test; it gets them, the fresh ones, and the spans."""

    def is_contiguous(shape, stride):
        if 0 in shape:
            return True
        used = _larger_than_one(shape, stride)
        steps, fresh = [step for _, step in used], list(_fresh([n for n, _ in used]))
        return test(steps, fresh, _span(shape, stride) == math.prod(shape) - 1)

    return is_contiguous


def slice_view__in_python(shape, stride, offset, dim, start, stop, step):
    """Right; the short cuts below leave out one line of it each."""
    if not -len(shape) <= dim < len(shape):
        raise IndexError
    step = 1 if step is None else step
    if step < 1:
        raise ValueError
    size = shape[dim]
    start = 0 if start is None else start
    stop = size if stop is None else stop
    start = start + size if start < 0 else start
    stop = stop + size if stop < 0 else stop
    start = max(start, 0)
    start = min(start, size)
    stop = max(stop, start)
    stop = min(stop, size)
    sizes, strides = list(shape), list(stride)
    sizes[dim] = (stop - start + step - 1) // step
    strides[dim] *= step
    return sizes, strides, offset + start * stride[dim]


def view_strides__by_addresses(shape, stride, size, ends_only=False):
    """Right unless the ends only are compared: the strides are read off the addresses."""
    if math.prod(shape) != math.prod(size):
        raise RuntimeError
    if 0 in shape:
        return size
    cells = _addresses(shape, stride)
    strides = [cells[step] if n > 1 else 0 for n, step in zip(size, _fresh(size), strict=True)]
    seen = _addresses(size, strides)
    same = cells[-1] == seen[-1] if ends_only else cells == seen
    return strides if same else None


def _addresses(shape, stride):
    return [
        sum(i * step for i, step in zip(index, stride, strict=True)) for index in itertools.product(*map(range, shape))
    ]


def view_strides__contiguous_or_unchanged(shape, stride, size):
    if math.prod(shape) != math.prod(size):
        raise RuntimeError
    if shape == size:
        return stride
    if 0 in shape or [step for _, step in _larger_than_one(shape, stride)] == list(_fresh([n for n in shape if n > 1])):
        return _fresh(size)
    return None


def unfold__by_counting(shape, stride, dim, size, step):
    shape[dim]
    if size < 0 or size > shape[dim] or step < 1:
        raise RuntimeError
    sizes, strides = [*shape, size], [*stride, stride[dim]]
    dim %= len(shape)
    sizes[dim] = len(range(0, shape[dim] - size + 1, step))
    strides[dim] *= step
    return sizes, strides


def view_dtype__in_bytes(shape, stride, offset, itemsize, new_itemsize):
    if itemsize == new_itemsize:
        return shape, stride, offset
    if not shape or stride[-1] != 1:
        raise RuntimeError
    counted = [number * itemsize for number in (offset, shape[-1], *stride[:-1])]
    if any(number % new_itemsize for number in counted):
        raise RuntimeError
    offset, last, *strides = (number // new_itemsize for number in counted)
    return [*shape[:-1], last], [*strides, 1], offset


def aliased_indices__dividing(shape, stride, offset, cell):
    """Each cell has one index but for stride 0: true of most tensors, not of windows."""
    if 0 in shape:
        return []
    left, at = cell - offset, [0] * len(shape)
    for dim in sorted(range(len(shape)), key=lambda dim: -stride[dim]):
        if stride[dim]:
            at[dim] = min(max(left, 0) // stride[dim], shape[dim] - 1)
            left -= at[dim] * stride[dim]
    choices = [[i] if step else range(n) for i, n, step in zip(at, shape, stride, strict=True)]
    return [] if left else list(itertools.product(*choices))


RIGHT = [
    ("slice_view", "in Python", slice_view__in_python),
    ("view_strides", "by addresses", view_strides__by_addresses),
    ("unfold", "by counting", unfold__by_counting),
    ("view_dtype", "in bytes", view_dtype__in_bytes),
    ("address", "all indices checked", _address_checking(list)),
    ("is_contiguous", "all strides compared", _contiguous_by(lambda steps, fresh, full: steps == fresh)),
]

WRONG = [
    ("contiguous_strides", "one zero seen", contiguous_strides__one_zero_seen),
    ("contiguous_strides", "five dimensions at most", contiguous_strides__five_dimensions_at_most),
    ("contiguous_strides", "ones where empty", contiguous_strides__ones_where_empty),
    ("address", "only the sum checked", address__only_the_sum_checked),
    ("address", "wraps", address__wraps),
    ("address", "only the first checked", _address_checking(lambda pairs: pairs[:1])),
    ("address", "only the last checked", _address_checking(lambda pairs: pairs[-1:])),
    ("address", "only the ends checked", _address_checking(lambda pairs: pairs[:1] + pairs[-1:])),
    ("address", "all but the first checked", _address_checking(lambda pairs: pairs[1:])),
    ("address", "all but the last checked", _address_checking(lambda pairs: pairs[:-1])),
    ("is_contiguous", "span", _contiguous_by(lambda steps, fresh, full: full)),
    (
        "is_contiguous",
        "span and order",
        _contiguous_by(lambda steps, fresh, full: full and steps == sorted(steps, reverse=True)),
    ),
    (
        "is_contiguous",
        "span, order and the last",
        _contiguous_by(
            lambda steps, fresh, full: full and steps == sorted(steps, reverse=True) and steps[-1:] == fresh[-1:]
        ),
    ),
    (
        "is_contiguous",
        "span, order and the ends",
        _contiguous_by(
            lambda steps, fresh, full: (
                full and steps == sorted(steps, reverse=True) and steps[-1:] == fresh[-1:] and steps[:1] == fresh[:1]
            )
        ),
    ),
    (
        "is_contiguous",
        "the ends",
        _contiguous_by(lambda steps, fresh, full: steps[:1] == fresh[:1] and steps[-1:] == fresh[-1:]),
    ),
    ("is_contiguous", "the first", _contiguous_by(lambda steps, fresh, full: steps[:1] == fresh[:1])),
    ("is_contiguous", "all but the first", _contiguous_by(lambda steps, fresh, full: steps[1:] == fresh[1:])),
    (
        "is_contiguous",
        "all but the last",
        _contiguous_by(lambda steps, fresh, full: len(steps) > 1 and steps[:-1] == fresh[:-1]),
    ),
    (
        "view_strides",
        "ends compared",
        lambda shape, stride, size: view_strides__by_addresses(shape, stride, size, ends_only=True),
    ),
    ("view_strides", "contiguous or unchanged", view_strides__contiguous_or_unchanged),
    ("aliased_indices", "dividing", aliased_indices__dividing),
]

WITHOUT = {
    "start from the end": "start = start + size if start < 0 else start",
    "stop from the end": "stop = stop + size if stop < 0 else stop",
    "start below": "start = max(start, 0)",
    "start above": "start = min(start, size)",
    "stop above": "stop = min(stop, size)",
    "stop below start": "stop = max(stop, start)",
    "step": "strides[dim] *= step",
}


def _slices_without(line):
    source = inspect.getsource(slice_view__in_python)
    assert source.count(line) == 1
    namespace = {}
    exec(source.replace(line, "pass"), namespace)
    return namespace["slice_view__in_python"]


WRONG += [("slice_view", f"without: {what}", _slices_without(line)) for what, line in WITHOUT.items()]
