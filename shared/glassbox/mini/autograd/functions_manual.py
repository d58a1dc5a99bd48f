"""Derivatives of views, products, joins and indexing (PyTorch: torch/csrc/autograd/FunctionsManual.cpp).

Everything here is made of operators on tensors, so a formula can itself be differentiated. Formulas also see the names
of functions_pointwise, functions_reduction and functions_nn.
"""

import sys
from typing import Any

import numpy as np

from ..aten import composites
from ..aten import ops as at
from ..c10 import layout
from ..c10.device import CPU
from ..c10.dtype import int64
from ..c10.pieces import of_shape, piece
from ..c10.tensor_impl import TensorImpl
from .functions_pointwise import maybe_multiply

Ints = tuple[int, ...]
Geometry = tuple[Ints, Ints, int]


def zeros_like(tensor: Any) -> Any:
    return at.zeros_like(tensor, None, None, None)


# Views


def as_strided_backward(grad: Any, base: Geometry, view: Geometry) -> Any:
    """The gradient of a strided view at its base: each place gets the sum of what saw it.

    base, view: (shape, stride, offset); the result has the base's shape. Where a base's elements share places, each of
    them gets an equal part of a place's gradient.
    """
    base_shape, base_stride, base_offset = base
    shape, stride, offset = view
    low = min(base_offset, offset)
    elements = max(
        layout.storage_span(base_shape, base_stride, base_offset) - low,
        layout.storage_span(shape, stride, offset) - low,
        1,
    )
    flat = grad.new_zeros((elements,))
    if layout.numel(shape):
        if layout.has_overlap(shape, stride):
            flat = flat.index_add_(0, _places(shape, stride, offset - low), grad.reshape(-1))
        else:
            flat.as_strided(shape, stride, offset - low).copy_(grad)
    if layout.numel(base_shape) and layout.has_overlap(base_shape, base_stride):
        flat = _shared_out(flat, _places(base_shape, base_stride, base_offset - low))
    return flat.as_strided(base_shape, base_stride, base_offset - low)


def _shared_out(flat: Any, places: Any) -> Any:
    """Each place's gradient divided by how many elements see it."""
    counts = np.bincount(places.strided_array(), minlength=flat._shape[0])
    times = TensorImpl.of_values(np.maximum(counts, 1), flat._dtype, flat._device)
    return flat / times


def _places(shape: Ints, stride: Ints, offset: int) -> Any:
    """The storage positions of all elements in index order, int64[numel]."""
    places = np.full((), offset, np.int64)
    for size, step in zip(shape, stride, strict=True):
        places = places[..., None] + np.arange(size, dtype=np.int64) * step
    return TensorImpl.of_values(places.reshape(-1), int64, CPU)


def copy_slices_backward(grad: Any, base: Geometry, view: Geometry, fn: Any, wanted: Any) -> tuple[Any, ...]:
    """The gradient of a write through a view: under the view through `fn`, elsewhere as it is.

    wanted: the edges of the write's node; only what they lead to is needed.
    """
    base_shape, base_stride, base_offset = base
    shape, stride, offset = view
    result = grad.new_empty_strided(base_shape, base_stride)
    result.copy_(grad)
    part = result.as_strided(shape, stride, result._offset + offset - base_offset)
    results = list(fn.apply(part.clone(memory_format="contiguous_format")))
    if wanted[0] is not None:
        part.copy_(results[0]) if results[0] is not None else part.zero_()
        results[0] = result
    return tuple(results)


def permute_backward(grad: Any, dims: Ints) -> Any:
    """The dimensions back in their order."""
    ndim = len(dims)
    order = [0] * ndim
    for place, dim in enumerate(dims):
        order[layout.wrap_dim(dim, ndim)] = place
    return grad.permute(tuple(order))


def squeeze_backward(grad: Any, shape: Ints, dims: Any = None) -> Any:
    """The dimensions of size 1 that were dropped put back."""
    if not shape:
        return grad
    chosen = range(len(shape)) if dims is None else {layout.wrap_dim(dim, len(shape)) for dim in dims}
    for dim in sorted(chosen):
        if shape[dim] == 1:
            grad = grad.unsqueeze(dim)
    return grad


def slice_backward(grad: Any, shape: Ints, dim: int, start: Any, end: Any, step: int) -> Any:
    return at.slice_backward(grad, shape, dim, 0 if start is None else start, sys.maxsize if end is None else end, step)


def split_backward(grads: Any, sizes: Ints, dim: int, shape: Ints) -> Any:
    """The parts' gradients joined; zeros where none came."""
    first = next(grad for grad in grads if grad is not None)
    dim = layout.wrap_dim(dim, len(shape))
    parts = [
        grad if grad is not None else first.new_zeros((*shape[:dim], size, *shape[dim + 1 :]))
        for grad, size in zip(grads, sizes, strict=True)
    ]
    return at.cat(parts, dim)


def split_sizes(shape: Ints, size: int, dim: int) -> Ints:
    """The sizes of split's parts."""
    whole = shape[layout.wrap_dim(dim, len(shape))]
    return tuple(min(size, whole - start) for start in range(0, whole, size)) if whole else (0,)


def unbind_backward(grads: Any, dim: int) -> Any:
    """The slices' gradients stacked; zeros where none came."""
    first = next(grad for grad in grads if grad is not None)
    return at.stack([grad if grad is not None else first.new_zeros(first._shape) for grad in grads], dim)


def to_copy_backward(grad: Any, dtype: Any, device: Any) -> Any:
    """The gradient back in the dtype and on the device that the values came from."""
    return at.to_dtype_layout(grad, dtype, device, False, False, None)


# Products


@piece(returns=of_shape(2))
def mm_mat1_backward(grad: Any, mat2: Any, shape: Ints, stride: Ints, alpha: Any) -> Any:
    """The gradient of the left factor of a matrix product, laid out in memory as the factor is."""
    if stride[0] == 1 and stride[1] == shape[0]:
        return maybe_multiply(mat2.mm(grad.t()).t(), alpha)
    return maybe_multiply(grad.mm(mat2.t()), alpha)


@piece(returns=of_shape(2))
def mm_mat2_backward(grad: Any, mat1: Any, shape: Ints, stride: Ints, alpha: Any) -> Any:
    """The gradient of the right factor of a matrix product, laid out in memory as the factor is."""
    if stride[0] == 1 and stride[1] == shape[0]:
        return maybe_multiply(grad.t().mm(mat1).t(), alpha)
    return maybe_multiply(mat1.t().mm(grad), alpha)


# Joins


def cat_backward(grad: Any, shapes: tuple[Ints, ...], dtypes: tuple[Any, ...], dim: int) -> list[Any]:
    """The part of each tensor that was joined."""
    # An empty 1-d tensor may be joined with anything and takes no room.
    ndim = len(grad._shape)
    dim = layout.wrap_dim(dim, ndim)
    parts, start = [], 0
    for shape, dtype in zip(shapes, dtypes, strict=True):
        if shape == (0,):
            parts.append(grad.new_zeros((0,)))
            continue
        part = grad.narrow(dim, start, shape[dim])
        parts.append(part if grad._dtype is dtype else part.to(dtype))
        start += shape[dim]
    return parts


def stack_backward(grad: Any, dtypes: tuple[Any, ...], dim: int) -> list[Any]:
    """The slice of each tensor that was stacked."""
    return [
        part if part._dtype is dtype else part.to(dtype) for part, dtype in zip(grad.unbind(dim), dtypes, strict=True)
    ]


def repeat_backward(grad: Any, repeats: Ints, shape: Ints) -> Any:
    """The sum over the repetitions: each dimension is cut into (repetition, element)."""
    if any(times == 0 for times in repeats):
        return grad.new_zeros(shape)
    lead = len(repeats) - len(shape)
    cut: list[int] = []
    dims: list[int] = []
    for place, times in enumerate(repeats):
        if times != 1 or place < lead:
            dims.append(len(cut))
            cut.append(times)
        if place >= lead:
            cut.append(shape[place - lead])
    return grad.reshape(tuple(cut)).sum(tuple(dims)) if dims else grad


# Indices


def gather_backward(grad: Any, self: Any, dim: int, index: Any) -> Any:
    """Each gradient added where its element was taken from."""
    return grad.new_zeros(self._shape).scatter_add_(dim, index, grad)


def index_add_source_backward(grad: Any, source: Any, dim: int, index: Any) -> Any:
    if source._shape:
        return grad.index_select(dim, index).expand(source._shape)
    return grad.index_select(dim, index.squeeze(0))


def masked_select_backward(grad: Any, self: Any, mask: Any) -> Any:
    """The gradients put where the mask picked, over the shape that mask and tensor broadcast to."""
    full = composites.broadcast(self._shape, mask._shape)
    # A mask picks along dimensions, so there is at least one.
    place = mask.expand(full) if full else mask.reshape((1,))
    return at.index_put(grad.new_zeros(full or (1,)), (place,), grad, False).view(full)
