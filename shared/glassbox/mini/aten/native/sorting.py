"""Sorting: elements in order, and where they came from (PyTorch: ATen/native/Sorting.cpp, TensorTopK.cpp).

NaN counts as larger than everything. Every sort here is stable.
"""

from typing import Any

import numpy as np

from ...c10 import geometry, layout
from ...c10.dtype import bool_, int64
from ...c10.tensor_impl import TensorImpl
from .resize import forms, with_strides


def _order(values: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    """Indices that sort along `axis`; equal elements keep their order in both directions."""
    if not descending:
        return np.argsort(values, axis=axis, kind="stable")
    backwards = np.argsort(np.flip(values, axis), axis=axis, kind="stable")
    return values.shape[axis] - 1 - np.flip(backwards, axis)


def _sort_stable(
    ks: int, self: TensorImpl, stable: bool | None, dim: int, descending: bool
) -> tuple[Any, Any]:
    axis = layout.wrap_dim(dim, len(self._shape))
    array = self.strided_array()
    stride = geometry.dense_strides(self._shape, self._stride)
    if not self._shape:
        return with_strides(array.copy(), stride, self), with_strides(
            np.zeros((), np.int64), stride, self, int64
        )
    order = _order(self.values(), axis, descending)
    picked = np.take_along_axis(array, order, axis)
    return with_strides(picked, stride, self), with_strides(order, stride, self, int64)


def sort(ks: int, self: TensorImpl, dim: int, descending: bool) -> tuple[Any, Any]:
    """Values in order along `dim`, and their indices; the layout in memory is that of self."""
    return _sort_stable(ks, self, False, dim, descending)


def _topk(ks: int, self: TensorImpl, k: int, dim: int, largest: bool, sorted: bool) -> tuple[Any, Any]:
    axis = layout.wrap_dim(dim, len(self._shape))
    if self._dtype is bool_:
        raise RuntimeError("topk does not support bool dtypes on CPU")
    if not 0 <= k <= (self._shape[axis] if self._shape else 1):
        raise RuntimeError(
            f"selected index k out of range: {k} along dimension {axis} of {list(self._shape)}"
        )
    array = self.strided_array()
    if not self._shape:
        return with_strides(array.copy(), (), self), with_strides(np.zeros((), np.int64), (), self, int64)
    first = (slice(None),) * axis + (slice(k),)
    order = np.ascontiguousarray(_order(self.values(), axis, largest)[first])
    picked = np.take_along_axis(array, order, axis)
    stride = geometry.contiguous_strides(picked.shape)
    return with_strides(picked, stride, self), with_strides(order, stride, self, int64)


sort_stable = forms("sort", _sort_stable, outs=2, keeps_layout=True)
topk = forms("topk", _topk, outs=2)
