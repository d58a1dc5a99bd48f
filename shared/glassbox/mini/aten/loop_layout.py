"""Loop layout: the arithmetic of a TensorIterator (PyTorch: ATen/ExpandUtils.cpp, ATen/TensorIterator.cpp).

The functions marked @piece can be replaced while the framework runs; all take tuples or lists of ints and
return tuples of ints.
"""

from collections.abc import Sequence
from typing import Any

from ..c10 import layout
from ..c10.pieces import ints, parts, piece

Ints = tuple[int, ...]


def _a_shape(out: Any, args: tuple[Any, ...]) -> Ints:
    return ints(out, max(len(args[0]), len(args[1])))


@piece(returns=_a_shape)
def broadcast_shapes(a: Sequence[int], b: Sequence[int]) -> Ints:
    """The shape that two shapes broadcast to: matched from the right, a size of 1 stretches to the other.

    Raises RuntimeError where two sizes differ and neither is 1. Source: at::infer_size.
    """
    ndim = max(len(a), len(b))
    shape = []
    for dim in range(ndim):
        at_a, at_b = dim - ndim + len(a), dim - ndim + len(b)
        size_a = a[at_a] if at_a >= 0 else 1
        size_b = b[at_b] if at_b >= 0 else 1
        if size_a != size_b and size_a != 1 and size_b != 1:
            raise RuntimeError(
                f"The size of tensor a ({size_a}) must match the size of tensor b ({size_b}) "
                f"at non-singleton dimension {dim}"
            )
        shape.append(size_b if size_a == 1 else size_a)
    return tuple(shape)


def loop_order(shape: Sequence[int], operand_strides: Sequence[Sequence[int]]) -> Ints:
    """Dimensions from the innermost loop to the outermost: those with small strides first.

    The operands are asked in turn, and one with stride 0 in either of two dimensions has no opinion; nor has
    one with equal strides, unless the sizes differ. Where nobody has one, the later dimension goes inside.
    Source: TensorIteratorBase::reorder_dimensions.
    """

    def belongs_outside(a: int, b: int) -> bool | None:
        for stride in operand_strides:
            if stride[a] == 0 or stride[b] == 0:
                continue
            if stride[a] != stride[b]:
                return stride[a] > stride[b]
            if shape[a] > shape[b]:
                return True
        return None

    # An insertion sort, since "no opinion" makes the order partial and the result depend on the method.
    order = list(reversed(range(len(shape))))
    for i in range(1, len(order)):
        moving = i
        for j in reversed(range(i)):
            outside = belongs_outside(order[j], order[moving])
            if outside:
                order[j], order[moving] = order[moving], order[j]
                moving = j
            elif outside is False:
                break
    return tuple(order)


@piece(returns=lambda out, args: ints(out, len(args[0])))
def output_strides(shape: Sequence[int], operand_strides: Sequence[Sequence[int]]) -> Ints:
    """Strides of a fresh result: dense, with the dimensions in the order in which the operands have theirs.

    operand_strides: per operand one stride for each dimension of `shape`, 0 where it is repeated.
    """
    order = loop_order(shape, operand_strides)
    if order == tuple(reversed(range(len(shape)))):
        return layout.contiguous_strides(shape)
    strides = [0] * len(shape)
    step = 1
    for dim in order:
        strides[dim] = step
        step *= shape[dim]
    return tuple(strides)


def _coalesced(out: Any, args: tuple[Any, ...]) -> tuple[Ints, tuple[Ints, ...]]:
    shape, strides = parts(out, "(shape, strides of every operand)", 2)
    if not isinstance(shape, tuple | list) or not isinstance(strides, tuple | list):
        raise ValueError("(shape, strides of every operand), each a tuple")
    return ints(shape, len(shape)), tuple(ints(each, len(shape)) for each in strides)


@piece(returns=_coalesced)
def coalesce_dimensions(
    shape: Sequence[int], operand_strides: Sequence[Sequence[int]]
) -> tuple[Ints, tuple[Ints, ...]]:
    """Shape and strides with neighbouring dimensions joined where every operand allows it; innermost first.

    A dimension joins the one inside it if for each operand its stride is that one's size * stride; a size of
    1 joins with anything.
    """
    if len(shape) <= 1:
        return tuple(shape), tuple(tuple(stride) for stride in operand_strides)
    sizes = [shape[0]]
    strides = [[stride[0]] for stride in operand_strides]
    for dim in range(1, len(shape)):
        size, inner = shape[dim], sizes[-1]
        if (
            size == 1
            or inner == 1
            or all(s[dim] == inner * t[-1] for s, t in zip(operand_strides, strides, strict=True))
        ):
            if inner == 1:
                for own, stride in zip(strides, operand_strides, strict=True):
                    own[-1] = stride[dim]
            sizes[-1] = inner * size
        else:
            sizes.append(size)
            for own, stride in zip(strides, operand_strides, strict=True):
                own.append(stride[dim])
    return tuple(sizes), tuple(tuple(own) for own in strides)


# The dimensions (N, C, H, W) of a picture, outermost in memory first, where the channels of a pixel lie side by side.
CHANNELS_INNERMOST = (0, 2, 3, 1)


def laid_out(shape: Ints, order: Ints) -> Ints:
    """Strides of a dense tensor whose dimensions lie in memory in `order`, the first one outermost."""
    strides = [0] * len(shape)
    step = 1
    for dim in reversed(order):
        strides[dim] = step
        step *= shape[dim]
    return tuple(strides)


def has_channels_innermost(shape: Ints, stride: Ints) -> bool:
    """Whether strides say that the channels lie innermost (PyTorch: c10/core/MemoryFormat.h)."""
    if len(shape) != 4 or stride[1] == 0:
        return False
    reach = 0
    for dim in (1, 3, 2, 0):
        if shape[dim] == 0 or stride[dim] < reach:
            return False
        if dim == 0 and reach == stride[1]:
            # Where height, width and channels are all 1 nothing tells the formats apart: contiguous.
            return False
        reach = stride[dim] * max(shape[dim], 1)
    return True
