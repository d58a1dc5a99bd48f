"""Derivatives of reductions (PyTorch: torch/csrc/autograd/FunctionsManual.cpp)."""

import math
from typing import Any

from ..aten import ops as at
from ..c10 import layout
from ..c10.grad_mode import grad_enabled
from ..c10.pieces import of_shape, piece

Ints = tuple[int, ...]
numel = layout.numel


def unsqueeze_multiple(tensor: Any, dims: Ints, ndim: int) -> Any:
    """Dimensions of size 1 put back where a reduction over `dims` dropped them."""
    for dim in sorted(layout.wrap_dim(each, ndim) for each in dims):
        tensor = tensor.unsqueeze(dim)
    return tensor


def restore_dims(tensor: Any, ndim: int, dims: Any, keepdim: bool) -> Any:
    """The result of a reduction, or its gradient, with the reduced dimensions back as size 1."""
    if keepdim or ndim == 0:
        return tensor
    if not dims:
        return tensor.expand((1,) * ndim)
    return unsqueeze_multiple(tensor, dims, ndim)


def reduced_numel(shape: Ints, dims: Any) -> int:
    """How many elements one result is made of."""
    if not dims:
        return numel(shape)
    return numel(tuple(shape[dim] for dim in dims)) if shape else 1


@piece(returns=of_shape(1))
def sum_backward(grad: Any, shape: Ints, dims: Any, keepdim: bool) -> Any:
    """The gradient of a sum spread over what was summed."""
    if not keepdim and shape and dims:
        grad = unsqueeze_multiple(grad, dims, len(shape))
    return at.expand(grad, shape, False)


def mean_backward(grad: Any, shape: Ints, dims: Any, keepdim: bool) -> Any:
    return sum_backward(grad, shape, dims, keepdim) / reduced_numel(shape, dims)


def prod_backward(grad: Any, self: Any, result: Any, dim: int | None, keepdim: bool) -> Any:
    """The product of the others, which is result / self where nothing is zero."""
    self = self.to(grad._dtype)
    if not self._shape:
        return grad.clone()
    if dim is None:
        # One row of everything, so that the rest need not know.
        row = self.reshape(-1)
        return prod_backward(grad, row, result, 0, False).view(self._shape)
    grad = restore_dims(grad, len(self._shape), (dim,), keepdim)
    result = restore_dims(result, len(self._shape), (dim,), keepdim)
    zeros = self == 0
    if not zeros.any().item():
        return (grad * result).div(self)
    return grad * (_others_by_steps(self, dim) if grad_enabled.get() else _others_at_zeros(self, result, zeros, dim))


def _others_at_zeros(self: Any, result: Any, zeros: Any, dim: int) -> Any:
    """The product of the others: beside one zero only that one has any, beside two none has."""
    filled = self.masked_fill(zeros, 1)
    rest = filled.prod(dim, keepdim=True)
    count = zeros.sum(dim, keepdim=True)
    lone = at.logical_and(zeros, count == 1)
    return at.where_self(lone, rest, (result / filled).masked_fill(count > 0, 0))


def _others_by_steps(self: Any, dim: int) -> Any:
    """The same, step by step from both ends, for a formula that is to be differentiated at zeros too."""
    parts = self.unbind(dim)
    before, after = [at.ones_like(parts[0], None, None, None)], [at.ones_like(parts[0], None, None, None)]
    for part in parts[:-1]:
        before.append(before[-1] * part)
    for part in reversed(parts[1:]):
        after.append(after[-1] * part)
    return at.stack([left * right for left, right in zip(before, reversed(after), strict=True)], dim)


def var_backward(grad: Any, self: Any, dims: Any, correction: Any, keepdim: bool) -> Any:
    """2 / (n - correction) * (x - mean)."""
    freedom = reduced_numel(self._shape, dims) - (1 if correction is None else correction)
    grad = restore_dims(grad, len(self._shape), dims, keepdim)
    mean = self.mean(dims if dims else None, keepdim=True) if self._shape else self
    if freedom <= 0:
        flat = at.full_like(self, math.inf, None, None, None)
        return grad * flat.masked_fill(self == mean, math.nan)
    return (2.0 / freedom) * grad * (self - mean)


def std_backward(grad: Any, self: Any, result: Any, dims: Any, correction: Any, keepdim: bool) -> Any:
    """Through the variance; 0 where the deviation is 0."""
    halved = (grad / (result * 2)).masked_fill(result == 0, 0)
    return var_backward(halved, self, dims, correction, keepdim)


def var_mean_backward(grads: Any, self: Any, dims: Any, correction: Any, keepdim: bool) -> Any:
    var, mean = grads
    found = None
    if var is not None:
        found = var_backward(var, self, dims, correction, keepdim)
    if mean is not None:
        grad = restore_dims(mean, len(self._shape), dims, keepdim)
        part = grad.expand(self._shape) / reduced_numel(self._shape, dims)
        found = part if found is None else found + part
    return found


def amax_backward(grad: Any, self: Any, result: Any, dims: Any, keepdim: bool) -> Any:
    """Shared evenly among the places that hold the result."""
    ndim = len(self._shape)
    grad, result = restore_dims(grad, ndim, dims, keepdim), restore_dims(result, ndim, dims, keepdim)
    mask = self == result
    count = mask.sum(dims if dims else None, keepdim=True) if ndim else mask.sum()
    return grad * mask / count


def max_backward(grad: Any, self: Any, result: Any) -> Any:
    """The same over everything, where a result that is not a number is held by all that are not."""
    mask = at.logical_or(self == result, at.logical_and(self.isnan(), result.isnan()))
    return mask * (grad / mask.sum())


def value_selecting_reduction_backward(grad: Any, shape: Ints, dim: int, indices: Any, keepdim: bool) -> Any:
    """To the one place that was selected."""
    if not keepdim and shape:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return grad.new_zeros(shape).scatter_(dim, indices, grad)


def logsumexp_backward(grad: Any, self: Any, result: Any, dims: Any, keepdim: bool) -> Any:
    ndim = len(self._shape)
    grad, result = restore_dims(grad, ndim, dims, keepdim), restore_dims(result, ndim, dims, keepdim)
    return grad * (self - result).exp()


def cumsum_backward(grad: Any, dim: int) -> Any:
    """Every element went into all sums from its place on."""
    if len(grad._shape) == 0 or numel(grad._shape) <= 1:
        return grad
    return grad.flip((dim,)).cumsum(dim).flip((dim,))


def vector_norm_backward(grad: Any, self: Any, result: Any, order: float, dims: Any, keepdim: bool) -> Any:
    """The derivative of a p-norm; 0 at the corners, and no gradient at all for p = 0, which counts."""
    if order == 0:
        return None
    ndim = len(self._shape)
    grad, norm = restore_dims(grad, ndim, dims, keepdim), restore_dims(result, ndim, dims, keepdim)
    if order == 1:
        return self.sign() * grad
    if order == 2:
        return grad * (self / norm).masked_fill(norm == 0, 0)
    size = self.abs()
    if abs(order) == math.inf:
        mask = size == norm
        count = mask.sum(dims if dims else None, keepdim=True) if ndim else mask.sum()
        return self.sign() * (grad / count) * mask
    if order < 1:
        scaled = self.sign() * size.pow(order - 1).masked_fill(size == 0, 0)
        return scaled * grad * norm.pow(1 - order)
    if order < 2:
        scaled = self.sign() * size.pow(order - 1)
        return scaled * (grad / norm.pow(order - 1)).masked_fill(norm == 0, 0)
    scaled = self * size.pow(order - 2)
    return scaled * (grad / norm.pow(order - 1)).masked_fill(norm == 0, 0)
