"""What formulas of derivatives.yaml call (PyTorch: torch/csrc/autograd/FunctionsManual.cpp).

Everything here is made of operators on tensors, so a formula can itself be differentiated.
"""

from typing import Any

from ..aten import ops as at
from ..c10 import layout

Ints = tuple[int, ...]
Layout = tuple[Ints, Ints, int]


def maybe_multiply(grad: Any, factor: Any) -> Any:
    """grad * factor; grad itself where the factor is 1."""
    return grad if factor == 1 else grad * factor


def unsqueeze_multiple(tensor: Any, dims: Ints, ndim: int) -> Any:
    """Dimensions of size 1 put back where a reduction over `dims` dropped them."""
    for dim in sorted(layout.wrap_dim(each, ndim) for each in dims):
        tensor = tensor.unsqueeze(dim)
    return tensor


def sum_backward(grad: Any, shape: Ints, dims: Any, keepdim: bool) -> Any:
    """The gradient of a sum spread over what was summed."""
    if not keepdim and shape and dims:
        grad = unsqueeze_multiple(grad, dims, len(shape))
    return grad.expand(shape)


def as_strided_backward(grad: Any, base: Layout, view: Layout) -> Any:
    """The gradient of a strided view at its base: each place gets the sum of what saw it.

    base, view: (shape, stride, offset); the result has the base's shape.
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
        places = _places(shape, stride, offset - low)
        flat = flat.index_add(0, places, grad.reshape(-1))
    return flat.as_strided(base_shape, base_stride, base_offset - low)


def _places(shape: Ints, stride: Ints, offset: int) -> Any:
    """The storage positions of all elements in index order, int64[numel]."""
    import numpy as np

    from ..c10.device import CPU
    from ..c10.dtype import int64
    from ..c10.tensor_impl import TensorImpl

    places = np.full((), offset, np.int64)
    for size, step in zip(shape, stride, strict=True):
        places = places[..., None] + np.arange(size, dtype=np.int64) * step
    return TensorImpl.of_values(places.reshape(-1), int64, CPU)


def copy_slices_backward(grad: Any, base: Layout, view: Layout, fn: Any, edges: Any) -> tuple[Any, ...]:
    """The gradient of a write through a view: under the view through `fn`, elsewhere as it is."""
    base_shape, base_stride, base_offset = base
    shape, stride, offset = view
    result = grad.new_empty_strided(base_shape, base_stride)
    result.copy_(grad)
    part = result.as_strided(shape, stride, result.storage_offset() + offset - base_offset)
    results = fn(part.clone()) if len(fn.next_edges) != 1 else (fn(part.clone()),)
    part.copy_(results[0]) if results[0] is not None else part.zero_()
    return (result, *results[1 : len(edges)])


def permute_backward(grad: Any, dims: Ints) -> Any:
    """The dimensions back in their order."""
    ndim = len(dims)
    order = [0] * ndim
    for place, dim in enumerate(dims):
        order[layout.wrap_dim(dim, ndim)] = place
    return grad.permute(tuple(order))


def squeeze_backward(grad: Any, shape: Ints, dims: Any = None) -> Any:
    """The dimensions of size 1 that were dropped put back."""
    chosen = range(len(shape)) if dims is None else {layout.wrap_dim(dim, len(shape)) for dim in dims} if shape else ()
    for dim in sorted(chosen):
        if shape[dim] == 1:
            grad = grad.unsqueeze(dim)
    return grad


def select_backward(grad: Any, shape: Ints, dim: int, index: int) -> Any:
    return at.select_backward(grad, shape, dim, index)


def slice_backward(grad: Any, shape: Ints, dim: int, start: Any, end: Any, step: int) -> Any:
    return at.slice_backward(grad, shape, dim, 0 if start is None else start, shape[dim] if end is None else end, step)


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
    return tuple(min(size, whole - at_) for at_ in range(0, whole, size)) if whole else (0,)


def unbind_backward(grads: Any, dim: int) -> Any:
    """The slices' gradients stacked; zeros where none came."""
    first = next(grad for grad in grads if grad is not None)
    return at.stack([grad if grad is not None else first.new_zeros(first._shape) for grad in grads], dim)


def mm_mat1_grad(grad: Any, mat2: Any, alpha: Any) -> Any:
    """The gradient of the left factor of a matrix product."""
    return maybe_multiply(grad.mm(mat2.t()), alpha)


def mm_mat2_grad(grad: Any, mat1: Any, alpha: Any) -> Any:
    """The gradient of the right factor of a matrix product."""
    return maybe_multiply(mat1.t().mm(grad), alpha)
