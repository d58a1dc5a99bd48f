"""Embedding: rows of a table, looked up by index (PyTorch: ATen/native/Embedding.cpp)."""

from typing import Any

import numpy as np

from ...c10 import dtype as dtypes
from ...c10.dtype import bfloat16, float32, float64, int32, int64
from ...c10.tensor_impl import TensorImpl
from .resize import scalar_type


def _indices(indices: TensorImpl) -> np.ndarray:
    if indices._dtype is not int64 and indices._dtype is not int32:
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; "
            f"but got {scalar_type(indices._dtype)} instead (while checking arguments for embedding)"
        )
    return indices.strided_array()


def embedding(
    ks: int, weight: TensorImpl, indices: TensorImpl, padding_idx: int, scale_grad_by_freq: bool, sparse: bool
) -> Any:
    """Rows of a table (n, d) for indices of any shape -> (*shape, d); IndexError for one out of range."""
    if len(weight._shape) != 2:
        raise RuntimeError("'weight' must be 2-D")
    places = _indices(indices)
    rows = weight._shape[0]
    if places.size and not (places.min() >= 0 and places.max() < rows):
        raise IndexError(f"index out of range in self: the table has {rows} rows")
    return TensorImpl.adopt(weight.strided_array().take(places, 0), weight._dtype, weight._device)


def embedding_renorm_(
    ks: int, self: TensorImpl, indices: TensorImpl, max_norm: float, norm_type: float
) -> TensorImpl:
    """Rows of a table that are looked up and longer than max_norm, by the norm_type norm, scaled down to it."""
    if not self._dtype.is_floating_point:
        raise RuntimeError(
            f"norm(): input dtype should be either floating point or complex. Got {scalar_type(self._dtype)} instead."
        )
    rows = np.unique(_indices(indices))
    table = self.strided_array()
    source = float64 if self._dtype is float64 else float32
    for row in rows:
        values = dtypes.convert(table[row], self._dtype, source)
        norm = np.linalg.norm(values.astype(np.float64), norm_type)
        if norm > max_norm:
            scaled = values * values.dtype.type(max_norm / (norm + 1e-7))
            table[row] = dtypes.convert(scaled, source, self._dtype)
    return self


def embedding_dense_backward(
    ks: int,
    grad_output: TensorImpl,
    indices: TensorImpl,
    num_weights: int,
    padding_idx: int,
    scale_grad_by_freq: bool,
) -> Any:
    """The gradient of the table: per row the sum of what flowed to it; none for the row `padding_idx`."""
    places = _indices(indices).reshape(-1)
    width = grad_output._shape[-1]
    grad = grad_output.values().reshape(-1, width)
    kept = (places >= 0) & (places < num_weights) & (places != padding_idx)
    places, grad = places[kept], grad[kept]
    if scale_grad_by_freq:
        grad = grad / np.bincount(places, minlength=num_weights)[places, None].astype(grad.dtype)
    table = np.zeros((num_weights, width), grad.dtype)
    np.add.at(table, places, grad)
    if grad_output._dtype is bfloat16:
        table = dtypes.float32_to_bfloat16(table)
    return TensorImpl.adopt(table, grad_output._dtype, grad_output._device)
