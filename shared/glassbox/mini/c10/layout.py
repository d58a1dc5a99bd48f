"""Layout: the arithmetic of shape, stride and offset (PyTorch: c10/core, ATen/native/TensorShape.cpp).

A layout says where each element of a tensor lies in its storage: element [i, j, ...] sits at position
offset + i * stride[0] + j * stride[1] + ... Every number counts elements, not bytes. A view op makes a new
layout over the same storage; nothing here ever touches the data.

The functions marked @piece can be replaced while the framework runs (see pieces.py); all take tuples or
lists of ints and return tuples and ints.
"""

import math
from collections.abc import Sequence
from typing import Any

from .pieces import a_bool, an_int, ints, parts, piece

Ints = tuple[int, ...]


def numel(shape: Sequence[int]) -> int:
    """How many elements a shape has: the product of its sizes, 1 for a 0-d shape."""
    return math.prod(shape)


def wrap_dim(dim: int, ndim: int) -> int:
    """A dimension counted from the front; IndexError out of range. A 0-d tensor takes 0 and -1."""
    room = max(ndim, 1)
    if not -room <= dim < room:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-room}, {room - 1}], but got {dim})"
        )
    return dim % room


@piece(returns=lambda out, args: ints(out, len(args[0])))
def contiguous_strides(shape: Sequence[int]) -> Ints:
    """Strides of a freshly allocated tensor: rows lie one after the other, the last dimension is dense.

    A size of 0 counts as 1, so an empty tensor still gets strides that are not 0.
    """
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


@piece(returns=lambda out, args: an_int(out))
def address(index: Sequence[int], shape: Sequence[int], stride: Sequence[int], offset: int = 0) -> int:
    """Position in the storage of the element at `index`; negative indices count from the end.

    Raises IndexError where an index is out of range or there are too many or too few of them.
    """
    if len(index) != len(shape):
        raise IndexError(
            f"{len(index)} indices for a tensor of dimension {len(shape)}: give one per dimension"
        )
    position = offset
    for dim, (i, size, step) in enumerate(zip(index, shape, stride, strict=True)):
        if not -size <= i < size:
            raise IndexError(f"index {i} is out of bounds for dimension {dim} with size {size}")
        position += (i % size) * step
    return position


@piece(returns=lambda out, args: a_bool(out))
def is_contiguous(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether the elements lie in the storage in index order without gaps.

    Dimensions of size 1 do not count, since their stride is never used; an empty tensor is contiguous.
    """
    if 0 in shape:
        return True
    expected = 1
    for size, step in zip(reversed(shape), reversed(stride), strict=True):
        if size != 1 and step != expected:
            return False
        expected *= size
    return True


def _two_layouts(out: Any, args: tuple[Any, ...]) -> tuple[Ints, Ints]:
    shape, stride = parts(out, "(shape, stride)", 2)
    return ints(shape, len(args[0])), ints(stride, len(args[0]))


@piece(returns=_two_layouts)
def permute(shape: Sequence[int], stride: Sequence[int], dims: Sequence[int]) -> tuple[Ints, Ints]:
    """Shape and stride with the dimensions in the order `dims`; negative dims count from the end.

    Raises RuntimeError where dims has the wrong length or names one twice, IndexError out of range.
    """
    if len(dims) != len(shape):
        raise RuntimeError(
            f"permute: the tensor has {len(shape)} dimensions, but {len(dims)} were given: name each once"
        )
    order: list[int] = []
    for dim in dims:
        wrapped = wrap_dim(dim, len(shape))
        if wrapped in order:
            raise RuntimeError(f"permute: dimension {dim} is given twice: name each of them once")
        order.append(wrapped)
    return tuple(shape[d] for d in order), tuple(stride[d] for d in order)


def _layout_and_offset(out: Any, args: tuple[Any, ...]) -> tuple[Ints, Ints, int]:
    shape, stride, offset = parts(out, "(shape, stride, offset)", 3)
    return ints(shape, len(args[0])), ints(stride, len(args[0])), an_int(offset)


@piece(returns=_layout_and_offset)
def slice_view(
    shape: Sequence[int],
    stride: Sequence[int],
    offset: int,
    dim: int,
    start: int | None,
    stop: int | None,
    step: int | None,
) -> tuple[Ints, Ints, int]:
    """Shape, stride and offset of x[start:stop:step] along one dimension, by Python's rules for slices.

    None means the default, negative bounds count from the end, bounds beyond the end are clamped.
    Raises ValueError where step is not positive (a stride may not be negative), IndexError for a bad dim.
    """
    if not shape:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, len(shape))
    size = shape[dim]
    step = 1 if step is None else step
    if step <= 0:
        raise ValueError(f"step must be greater than zero, got {step}")
    start = 0 if start is None else start
    stop = size if stop is None else stop
    first = min(max(start + size if start < 0 else start, 0), size)
    last = min(max(stop + size if stop < 0 else stop, first), size)
    count = (last - first + step - 1) // step
    return (
        (*shape[:dim], count, *shape[dim + 1 :]),
        (*stride[:dim], stride[dim] * step, *stride[dim + 1 :]),
        offset + first * stride[dim],
    )


@piece(returns=lambda out, args: ints(out, len(args[2])))
def expand(shape: Sequence[int], stride: Sequence[int], size: Sequence[int]) -> Ints:
    """Strides that show a tensor at `size` without copying: a repeated dimension gets stride 0.

    Sizes are matched from the right; -1 keeps a size; new dimensions may be added in front.
    A dimension that keeps its size keeps its stride; a new one of size 1 gets the stride that an outermost
    dimension would have (its right neighbour's size * stride; 0 over a 0-d tensor).
    Raises RuntimeError where a size is neither the old one nor a repetition of size 1.
    """
    new = len(size) - len(shape)
    if new < 0:
        raise RuntimeError(
            f"expand: {len(size)} sizes are too few for a tensor of dimension {len(shape)}: "
            "give at least one per dimension"
        )
    strides = [0] * len(size)
    outer = 0
    for dim in reversed(range(len(size))):
        target = size[dim]
        had, step = (shape[dim - new], stride[dim - new]) if dim >= new else (1, outer)
        if target == -1:
            if dim < new:
                raise RuntimeError(f"expand: -1 keeps a size, but dimension {dim} is new: write its size")
            target = had
        if target != had:
            if had != 1 or target < 0:
                raise RuntimeError(
                    f"expand: the expanded size ({target}) must match the existing size ({had}) "
                    f"at dimension {dim}, as only a size of 1 can be repeated "
                    f"(target {list(size)}, tensor {list(shape)})"
                )
            step = 0
        strides[dim] = step
        outer = target * step
    return tuple(strides)


@piece(returns=lambda out, args: None if out is None else ints(out, len(args[2])))
def view_strides(shape: Sequence[int], stride: Sequence[int], size: Sequence[int]) -> Ints | None:
    """Strides that give the same elements in the same order the shape `size`; None where there are none.

    Seen from the right, the old dimensions form runs in which the step from one to the next is regular
    (stride == inner size * inner stride). A new dimension may split or join within a run, never across two.
    Raises RuntimeError where the number of elements differs. Source: at::detail::computeStride.
    """
    if numel(shape) != numel(size):
        raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {numel(shape)}")
    if 0 in shape:
        return tuple(stride) if tuple(size) == tuple(shape) else contiguous_strides(size)
    strides = [1] * len(size)
    target = len(size) - 1
    dim = len(shape) - 1
    while dim >= 0:
        base, elements = stride[dim], shape[dim]
        while dim > 0 and (shape[dim - 1] == 1 or stride[dim - 1] == base * elements):
            dim -= 1
            elements *= shape[dim]
        placed = 1
        while target >= 0 and (placed < elements or size[target] == 1):
            strides[target] = base * placed
            placed *= size[target]
            target -= 1
        if placed != elements:
            return None
        dim -= 1
    return tuple(strides)


def _size_stride_copies(out: Any, args: tuple[Any, ...]) -> tuple[Ints, Ints, bool]:
    size, stride, copies = parts(out, "(size, stride, copies)", 3)
    return ints(size, len(args[2])), ints(stride, len(args[2])), a_bool(copies)


@piece(returns=_size_stride_copies)
def reshape(shape: Sequence[int], stride: Sequence[int], size: Sequence[int]) -> tuple[Ints, Ints, bool]:
    """(size, stride, copies) of x.reshape(size): a view where one exists, else a contiguous copy.

    One entry of `size` may be -1 and is inferred. Raises RuntimeError where the elements do not fit.
    """
    full = infer_size(size, numel(shape))
    strides = view_strides(shape, stride, full)
    if strides is None:
        return full, contiguous_strides(full), True
    return full, strides, False


def infer_size(size: Sequence[int], elements: int) -> Ints:
    """`size` with its -1 replaced so that it holds `elements` elements; RuntimeError where nothing fits."""
    unknown = [dim for dim, n in enumerate(size) if n == -1]
    if len(unknown) > 1:
        raise RuntimeError("only one dimension can be inferred")
    for dim, n in enumerate(size):
        if n < -1:
            raise RuntimeError(f"invalid shape dimension {n} at index {dim} of shape {list(size)}")
    known = numel([n for n in size if n != -1])
    if unknown and known == 0 and elements == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(size)} because -1 could stand for any size"
        )
    if known != elements and not (unknown and known and elements % known == 0):
        raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {elements}")
    return tuple(elements // known if n == -1 else n for n in size)


def transpose(shape: Sequence[int], stride: Sequence[int], dim0: int, dim1: int) -> tuple[Ints, Ints]:
    """Shape and stride with two dimensions exchanged; IndexError out of range."""
    dim0, dim1 = wrap_dim(dim0, len(shape)), wrap_dim(dim1, len(shape))
    order = list(range(len(shape)))
    if order:
        order[dim0], order[dim1] = dim1, dim0
    return permute(shape, stride, order)


def squeeze(
    shape: Sequence[int], stride: Sequence[int], dims: Sequence[int] | None = None
) -> tuple[Ints, Ints]:
    """Shape and stride without dimensions of size 1: all of them, or those named in `dims`."""
    drop = set(range(len(shape)))
    if dims is not None:
        drop = set()
        for dim in dims:
            wrapped = wrap_dim(dim, len(shape))
            if wrapped in drop:
                raise RuntimeError(f"squeeze: dimension {dim} appears more than once in {list(dims)}")
            drop.add(wrapped)
    keep = [dim for dim, size in enumerate(shape) if size != 1 or dim not in drop]
    return tuple(shape[dim] for dim in keep), tuple(stride[dim] for dim in keep)


def unsqueeze(shape: Sequence[int], stride: Sequence[int], dim: int) -> tuple[Ints, Ints]:
    """Shape and stride with a dimension of size 1 inserted at `dim`, which may be len(shape).

    Its stride is never used; PyTorch gives it what the dimension to its right spans, and 1 at the end.
    """
    dim = wrap_dim(dim, len(shape) + 1)
    step = shape[dim] * stride[dim] if dim < len(shape) else 1
    return (*shape[:dim], 1, *shape[dim:]), (*stride[:dim], step, *stride[dim:])


def select(
    shape: Sequence[int], stride: Sequence[int], offset: int, dim: int, index: int
) -> tuple[Ints, Ints, int]:
    """Shape, stride and offset of x[index] along `dim`, which disappears; IndexError out of range."""
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, len(shape))
    size = shape[dim]
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for dimension {dim} with size {size}")
    start = address((index,), (size,), (stride[dim],), offset)
    return (*shape[:dim], *shape[dim + 1 :]), (*stride[:dim], *stride[dim + 1 :]), start


def storage_span(shape: Sequence[int], stride: Sequence[int], offset: int = 0) -> int:
    """How many elements a storage must hold for this layout to stay inside: last position + 1; 0 if empty."""
    if 0 in shape:
        return 0
    return offset + 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))


def check_bounds(shape: Sequence[int], stride: Sequence[int], offset: int, elements: int) -> None:
    """RuntimeError unless the layout stays inside a storage of `elements` elements."""
    if len(shape) != len(stride):
        raise RuntimeError(
            f"mismatch in length of strides and shape: {len(stride)} strides for {len(shape)} sizes"
        )
    if any(size < 0 for size in shape):
        raise RuntimeError(f"as_strided: sizes may not be negative, got {list(shape)}")
    if any(step < 0 for step in stride):
        raise RuntimeError(f"as_strided: Negative strides are not supported, got {list(stride)}")
    if offset < 0:
        raise RuntimeError(f"as_strided: invalid storage offset {offset}")
    needed = storage_span(shape, stride, offset)
    if needed > elements:
        raise RuntimeError(
            f"as_strided: sizes {list(shape)}, strides {list(stride)} and storage offset {offset} "
            f"reach element {needed - 1}, out of bounds for a storage of {elements} elements"
        )


def has_overlap(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether two indices may reach the same cell; False only where that is certain.

    Certain means: sorted by stride, every dimension steps past all that the smaller ones reach.
    """
    if 0 in shape:
        return False
    reach = 0
    for step, size in sorted((step, size) for size, step in zip(shape, stride, strict=True) if size > 1):
        if step <= reach:
            return True
        reach += (size - 1) * step
    return False


def is_dense(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether the elements fill a block of the storage, each cell once, in any order of dimensions.

    PyTorch calls this non-overlapping and dense; copies of such a tensor keep its strides.
    """
    if 0 in shape:
        return True
    expected = 1
    for step, size in sorted((step, size) for size, step in zip(shape, stride, strict=True) if size > 1):
        if step != expected:
            return False
        expected *= size
    return True


def dense_strides(shape: Sequence[int], stride: Sequence[int]) -> Ints:
    """Strides for a fresh copy that keeps the order in which the dimensions lie in memory (preserve_format).

    A dense layout is kept as it is. Otherwise dimensions are sorted by stride, where a stride of 0 says
    nothing about order and equal strides are ordered by size. Source: at::infer_dense_strides.
    """
    if is_dense(shape, stride):
        return tuple(stride)

    def lies_outside(a: int, b: int) -> bool | None:
        if 0 in (stride[a], stride[b]):
            return None
        if stride[a] != stride[b]:
            return stride[a] > stride[b]
        return True if shape[a] > shape[b] else None

    # An insertion sort, since "says nothing" makes the order partial and the result depend on the method.
    order = list(reversed(range(len(shape))))
    for i in range(1, len(order)):
        moving = i
        for j in reversed(range(i)):
            outside = lies_outside(order[j], order[moving])
            if outside:
                order[j], order[moving] = order[moving], order[j]
                moving = j
            elif outside is False:
                break
    strides = [0] * len(shape)
    step = 1
    for dim in order:
        strides[dim] = step
        step *= max(shape[dim], 1)
    return tuple(strides)
