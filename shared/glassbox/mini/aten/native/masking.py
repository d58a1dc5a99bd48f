"""Masking: picking and placing elements by bools (PyTorch: ATen/native/TensorAdvancedIndexing.cpp)."""

from typing import Any

import numpy as np

from ...c10 import dtype as dtypes
from ...c10.dtype import bfloat16, bool_, int64
from ...c10.tensor_impl import TensorImpl
from .resize import forms
from .structured import Structured

Number = bool | int | float


def _broadcast(self: TensorImpl, mask: TensorImpl) -> tuple[np.ndarray, np.ndarray]:
    array, where = self.strided_array(), mask.strided_array()
    try:
        array, where = np.broadcast_arrays(array, where)
    except ValueError:
        raise RuntimeError(
            f"The size of tensor a {list(self._shape)} must match the size of tensor b {list(mask._shape)} "
            "at every dimension where neither is 1"
        ) from None
    return array, where


def _filler(self: TensorImpl, mask: TensorImpl, value: Number | TensorImpl) -> np.ndarray:
    if mask._dtype is not bool_:
        raise RuntimeError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype {mask._dtype.name}"
        )
    if isinstance(value, TensorImpl):
        if value._shape:
            raise RuntimeError(
                "masked_fill_ only supports a 0-dimensional value tensor, "
                f"but got tensor with {len(value._shape)} dimension(s)."
            )
        return dtypes.convert(value.strided_array(), value._dtype, self._dtype)
    element = np.asarray(dtypes.to_element(value, self._dtype))
    return dtypes.float32_to_bfloat16(element) if self._dtype is bfloat16 else element


def masked_fill(ks: int, self: TensorImpl, mask: TensorImpl, value: Number | TensorImpl) -> Any:
    """A copy, broadcast with `mask`, with `value` where it is True; RuntimeError where that does not fit."""
    filler = _filler(self, mask, value)
    array, where = _broadcast(self, mask)
    filled = np.array(array, order="C")
    np.copyto(filled, filler, "unsafe", where)
    return TensorImpl.adopt(filled, self._dtype, self._device)


def masked_fill_(ks: int, self: TensorImpl, mask: TensorImpl, value: Number | TensorImpl) -> TensorImpl:
    """masked_fill into self; RuntimeError where the mask has more dimensions or sizes than self."""
    filler = _filler(self, mask, value)
    array, _ = _broadcast(self, mask)
    if array.shape != self._shape:
        raise RuntimeError(
            f"output with shape {list(self._shape)} doesn't match the broadcast shape {list(array.shape)}"
        )
    np.copyto(self.strided_array(), filler, "unsafe", mask.strided_array())
    return self


def _masked_select(ks: int, self: TensorImpl, mask: TensorImpl) -> Any:
    if mask._dtype is not bool_:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    array, where = _broadcast(self, mask)
    return TensorImpl.adopt(array[where], self._dtype, self._device)


masked_select = forms("masked_select", _masked_select, apart=True)


def nonzero(ks: int, self: TensorImpl) -> Any:
    """Indices of the elements that are not 0: (number of them, dimensions), stored column by column."""
    array = self.strided_array() if self._dtype is bool_ else self.values()
    found = np.array(np.nonzero(array.reshape(-1) if array.ndim == 0 else array), np.int64)
    if array.ndim == 0:
        return TensorImpl.allocate((found.shape[1], 0), (1, found.shape[1]), int64, self._device)
    columns = TensorImpl.adopt(found, int64, self._device)
    ndim, count = found.shape
    return TensorImpl.fresh(columns._storage, (count, ndim), (1, count), int64, self._device)


def _outside(name: str, self: TensorImpl, diagonal: int, lower: bool) -> np.ndarray:
    """Where a matrix keeps nothing: above the diagonal, or below it."""
    if len(self._shape) < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
    rows, columns = self._shape[-2:]
    kept = np.tri(rows, columns, diagonal if lower else diagonal - 1, bool)
    return ~kept if lower else kept


def _triangle(name: str, lower: bool) -> Structured:
    def kernel(ks: int, self: TensorImpl, diagonal: int) -> Any:
        outside = _outside(name, self, diagonal, lower)
        cut = np.array(self.strided_array(), order="C")
        cut[..., outside] = 0
        return TensorImpl.adopt(cut, self._dtype, self._device)

    def inplace(ks: int, self: TensorImpl, diagonal: int) -> TensorImpl:
        outside = _outside(name, self, diagonal, lower)
        self.strided_array()[..., outside] = 0
        return self

    return Structured(name, kernel, inplace, forms(name, kernel).out)


tril = _triangle("tril", True)
triu = _triangle("triu", False)
