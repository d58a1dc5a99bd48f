"""The pieces of the layout once more, by looking at every element: slow, and nothing is taken from the originals.

They may differ from those in the strides of dimensions of size 1, which no element depends on.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

Ints = tuple[int, ...]


def positions(shape: Sequence[int], stride: Sequence[int]) -> list[int]:
    """Where each element lies, in the order of the indices."""
    steps = [[i * step for i in range(size)] for size, step in zip(shape, stride, strict=True)]
    return [sum(each) for each in itertools.product(*steps)]


def product(sizes: Sequence[int]) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result


def contiguous_strides(shape: Sequence[int]) -> Ints:
    return tuple(product([max(size, 1) for size in shape[dim + 1 :]]) for dim in range(len(shape)))


def address(index: Sequence[int], shape: Sequence[int], stride: Sequence[int], offset: int = 0) -> int:
    if len(index) != len(shape):
        raise IndexError("one index per dimension")
    whole = []
    for i, size in zip(index, shape, strict=True):
        whole.append(list(range(size))[i])
    return offset + sum(i * step for i, step in zip(whole, stride, strict=True))


def is_contiguous(shape: Sequence[int], stride: Sequence[int]) -> bool:
    return positions(shape, stride) == list(range(product(shape)))


def permute(shape: Sequence[int], stride: Sequence[int], dims: Sequence[int]) -> tuple[Ints, Ints]:
    if len(dims) != len(shape):
        raise RuntimeError("one entry per dimension")
    pairs = list(zip(shape, stride, strict=True))
    if sorted(list(range(len(shape)))[dim] for dim in dims) != list(range(len(shape))):
        raise RuntimeError("each dimension once")
    chosen = [pairs[dim] for dim in dims]
    return tuple(size for size, _ in chosen), tuple(step for _, step in chosen)


def slice_view(
    shape: Sequence[int],
    stride: Sequence[int],
    offset: int,
    dim: int,
    start: int | None,
    stop: int | None,
    step: int | None,
) -> tuple[Ints, Ints, int]:
    if not shape:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    if step is not None and step <= 0:
        raise ValueError("step must be greater than zero")
    indices = range(shape[dim])[start:stop:step]
    new_shape, new_stride = list(shape), list(stride)
    new_shape[dim], new_stride[dim] = len(indices), stride[dim] * indices.step
    return tuple(new_shape), tuple(new_stride), offset + indices.start * stride[dim]


def expand(shape: Sequence[int], stride: Sequence[int], size: Sequence[int]) -> Ints:
    strides: list[int] = []
    for back in range(1, len(size) + 1):
        target = size[-back]
        if back <= len(shape):
            keeps = target in (-1, shape[-back])
            if not keeps and shape[-back] != 1:
                raise RuntimeError("only a size of 1 can be repeated")
            strides.insert(0, stride[-back] if keeps else 0)
        else:
            strides.insert(0, 0 if target != 1 or not strides else size[1 - back] * strides[0])
    return tuple(strides)


def view_strides(shape: Sequence[int], stride: Sequence[int], size: Sequence[int]) -> Ints | None:
    if product(shape) != product(size):
        raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {product(shape)}")
    there = positions(shape, stride)
    if not there:
        return tuple(stride) if tuple(size) == tuple(shape) else contiguous_strides(size)
    # How far the next element along a dimension is, if the elements are to come in this order.
    strides = [there[product(size[dim + 1 :])] - there[0] if size[dim] > 1 else 0 for dim in range(len(size))]
    # A size of 1 is never stepped over; it gets the stride that it would have if it were longer.
    for dim in reversed(range(len(size))):
        if size[dim] == 1:
            inner = next((d for d in range(dim + 1, len(size)) if size[d] > 1), None)
            strides[dim] = 1 if inner is None else strides[inner] * size[inner]
    return tuple(strides) if positions(size, strides) == there else None


def reshape(shape: Sequence[int], stride: Sequence[int], size: Sequence[int]) -> tuple[Ints, Ints, bool]:
    known = product([n for n in size if n != -1])
    if -1 in size and (list(size).count(-1) > 1 or known == 0 or product(shape) % known):
        raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {product(shape)}")
    full = tuple(product(shape) // known if n == -1 else n for n in size)
    strides = view_strides(shape, stride, full)
    return (full, contiguous_strides(full), True) if strides is None else (full, strides, False)


def counted() -> tuple[dict[str, Callable[..., Any]], Counter[str]]:
    """The pieces by name, and how often each has been called."""
    calls: Counter[str] = Counter()

    def count(piece: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(piece)
        def called(*args: Any) -> Any:
            calls[piece.__name__] += 1
            return piece(*args)

        return called

    pieces = (contiguous_strides, address, is_contiguous, permute, slice_view, expand, view_strides, reshape)
    return {piece.__name__: count(piece) for piece in pieces}, calls
