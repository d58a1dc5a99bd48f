"""Softmax and its kin along one dimension (PyTorch: ATen/native/SoftMax.cpp).

bfloat16 computes in float32 and rounds once. Results are contiguous.
"""

import functools
from typing import Any

import numpy as np

from ...c10 import layout
from ...c10.dtype import dtype as DType  # noqa: N812
from ...c10.dtype import float32, float64
from ...c10.tensor_impl import TensorImpl
from .resize import forms, not_implemented


def _axis_and_values(
    name: str, self: TensorImpl, dim: int, half_to_float: bool = False
) -> tuple[int, np.ndarray]:
    axis = layout.wrap_dim(dim, len(self._shape))
    if half_to_float:
        raise RuntimeError("softmax with half to float conversion is not supported on CPU")
    if not self._dtype.is_floating_point and 0 not in self._shape:
        raise not_implemented(name, self._dtype)
    # A 0-d tensor is one row of one element.
    return axis, np.atleast_1d(self.values())


def _shifted(values: np.ndarray, axis: int) -> np.ndarray:
    """A fresh array less its largest element per row, so that exp cannot overflow; contiguous."""
    out = np.empty(values.shape, values.dtype)
    return np.subtract(values, np.maximum.reduce(values, axis, keepdims=True), out)


def _tensor(values: np.ndarray, self: TensorImpl, dtype: DType) -> Any:
    if (
        values.dtype == dtype.numpy
        and values.shape == self._shape
        and values.flags.c_contiguous
        and values.size
    ):
        return TensorImpl.adopt(values, dtype, self._device)
    return TensorImpl.of_values(values.reshape(self._shape), dtype, self._device)


def _forward(ks: int, self: TensorImpl, dim: int, half_to_float: bool) -> Any:
    axis, values = _axis_and_values("softmax_kernel_impl", self, dim, half_to_float)
    if not values.size:
        return _tensor(values, self, self._dtype)
    powers = _shifted(values, axis)
    np.exp(powers, powers)
    np.divide(powers, np.add.reduce(powers, axis, keepdims=True), powers)
    return _tensor(powers, self, self._dtype)


def _is_table(self: TensorImpl, dim: int) -> bool:
    """Many short rows: what the last layer of a classifier gives."""
    shape, dtype = self._shape, self._dtype
    return (
        len(shape) == 2
        and (dim == 1 or dim == -1)
        and 0 < shape[1] <= _SHORT
        and shape[0] >= _SHORT
        and (dtype is float32 or dtype is float64)
    )


# NumPy reduces a short last axis slowly, so such a table is turned first.
_SHORT = 32


def _log_forward(ks: int, self: TensorImpl, dim: int, half_to_float: bool) -> Any:
    if _is_table(self, dim) and not half_to_float:
        columns = np.array(self.strided_array().T, order="C")
        np.subtract(columns, np.maximum.reduce(columns, 0), columns)
        total = np.add.reduce(np.exp(columns), 0)
        np.subtract(columns, np.log(total, total), columns)
        return TensorImpl.adopt(np.array(columns.T, order="C"), self._dtype, self._device)
    axis, values = _axis_and_values("log_softmax_kernel_impl", self, dim, half_to_float)
    if not values.size:
        return _tensor(values, self, self._dtype)
    shifted = _shifted(values, axis)
    total = np.add.reduce(np.exp(shifted), axis, keepdims=True)
    np.subtract(shifted, np.log(total, total), shifted)
    return _tensor(shifted, self, self._dtype)


@functools.lru_cache(maxsize=64)
def _ones(count: int, dtype: np.dtype) -> np.ndarray:
    return np.ones(count, dtype)


def _backward(ks: int, grad_output: TensorImpl, output: TensorImpl, dim: int, input_dtype: DType) -> Any:
    axis, grad = _axis_and_values("softmax_backward_lastdim_kernel_impl", grad_output, dim)
    out = np.atleast_1d(output.values())
    product = np.multiply(grad, out, np.empty(grad.shape, grad.dtype))
    total = np.add.reduce(product, axis, keepdims=True)
    np.subtract(product, np.multiply(out, total), product)
    return _tensor(product, grad_output, input_dtype)


def _log_backward(ks: int, grad_output: TensorImpl, output: TensorImpl, dim: int, input_dtype: DType) -> Any:
    if _is_table(grad_output, dim) and grad_output._dtype is input_dtype and output._shape == grad_output._shape:
        rows = grad_output.strided_array()
        spread = np.exp(output.strided_array())
        np.multiply(spread, rows.dot(_ones(rows.shape[1], rows.dtype))[:, None], spread)
        spread = np.subtract(rows, spread, np.empty(rows.shape, rows.dtype))
        return TensorImpl.adopt(spread, input_dtype, grad_output._device)
    axis, grad = _axis_and_values("log_softmax_backward_lastdim_kernel_impl", grad_output, dim)
    spread = np.exp(np.atleast_1d(output.values()), np.empty(grad.shape, grad.dtype))
    np.multiply(spread, np.add.reduce(grad, axis, keepdims=True), spread)
    np.subtract(grad, spread, spread)
    return _tensor(spread, grad_output, input_dtype)


softmax_out = forms("_softmax", _forward)
log_softmax_out = forms("_log_softmax", _log_forward)
softmax_backward_data = forms("_softmax_backward_data", _backward)
log_softmax_backward_data = forms("_log_softmax_backward_data", _log_backward)
