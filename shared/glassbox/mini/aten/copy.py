"""Copies inside of kernels: elements moved to another layout or dtype (PyTorch: ATen/native/Copy.cpp)."""

from typing import Any, TypeVar

import numpy as np

from ..c10 import geometry, layout
from ..c10.device import device as Device  # noqa: N812
from ..c10.dtype import bfloat16, convert, float64, to_element
from ..c10.dtype import dtype as DType  # noqa: N812
from ..c10.tensor_impl import TensorImpl

T = TypeVar("T", bound=TensorImpl)


def fresh_copy(self: T, stride: layout.Ints, dtype: DType) -> T:
    """A new tensor with the elements of `self`, its own storage, the given strides and dtype."""
    copy = self.allocate(self._shape, stride, dtype, self._device)
    copy.strided_array()[...] = convert(self.strided_array(), self._dtype, dtype)
    return copy


def to(self: T, dtype: DType, device: Device, copy: bool) -> T:
    """`self` if dtype and device are right already and no copy is asked for, else a converted copy."""
    if dtype is self._dtype and device == self._device and not copy:
        return self
    return fresh_copy(self, geometry.dense_strides(self._shape, self._stride), dtype)


def scalar_tensor(self: T, value: Any, dtype: DType) -> T:
    """A number as a 0-d tensor of `dtype` beside `self`; RuntimeError where it does not fit.

    Unlike in fill_, a number too large for bfloat16 becomes inf.
    """
    scalar = self.allocate((), (), dtype, self._device)
    wide = float64 if dtype is bfloat16 else dtype
    scalar.strided_array()[...] = convert(np.asarray(to_element(value, wide)), wide, dtype)
    return scalar
