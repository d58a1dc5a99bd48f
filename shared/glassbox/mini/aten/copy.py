"""Copies and writes: where bytes move (PyTorch: ATen/native/Copy.cpp, Fill.cpp, ATen/MemoryOverlap.cpp)."""

from typing import Any, TypeVar

import numpy as np

from ..c10 import geometry, layout
from ..c10.device import device as Device  # noqa: N812
from ..c10.dtype import bfloat16, convert, float32_to_bfloat16, float64, to_element
from ..c10.dtype import dtype as DType  # noqa: N812
from ..c10.tensor_impl import TensorImpl
from . import view_ops

T = TypeVar("T", bound=TensorImpl)


def fresh_copy(self: T, stride: layout.Ints, dtype: DType) -> T:
    """A new tensor with the elements of `self`, its own storage, the given strides and dtype."""
    copy = self.allocate(self._shape, stride, dtype, self._device)
    copy.strided_array()[...] = convert(self.strided_array(), self._dtype, dtype)
    return copy


def clone(self: T) -> T:
    """A copy, always; it keeps the order of the dimensions in memory (preserve_format)."""
    return fresh_copy(self, geometry.dense_strides(self._shape, self._stride), self._dtype)


def contiguous(self: T) -> T:
    """`self` if it is contiguous already, else a copy that is."""
    if geometry.is_contiguous(self._shape, self._stride):
        return self
    return fresh_copy(self, geometry.contiguous_strides(self._shape), self._dtype)


def reshape(self: T, size: tuple[int, ...]) -> T:
    """A view where strides allow it, else a copy with contiguous strides."""
    full, stride, copies = geometry.reshape(self._shape, self._stride, size)
    if not copies:
        return self.alias(full, stride, self._offset)
    copy = fresh_copy(self, geometry.contiguous_strides(self._shape), self._dtype)
    return self.fresh(copy._storage, full, stride, self._dtype, self._device)


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


def fill_(self: T, value: Any) -> T:
    """Every element set to a number or to a 0-d tensor's value.

    A number may go into a tensor whose elements share cells, since all get the same; a tensor may not, as
    that is a copy_ (of a clone where it lies over the same storage). Raises RuntimeError for a tensor that is
    not 0-d and a number that does not fit.
    """
    if isinstance(value, TensorImpl):
        if value._shape:
            raise RuntimeError(
                f"fill_ takes a number or a 0-dim tensor, got a tensor with {len(value._shape)} dimensions"
            )
        return copy_(self, clone(value) if value._storage is self._storage else value)
    self.strided_array()[...] = _element(value, self._dtype)
    self.bump_version()
    return self


def _element(value: Any, dtype: DType) -> np.ndarray:
    number = to_element(value, dtype)
    return float32_to_bfloat16(np.asarray(number)) if dtype is bfloat16 else np.asarray(number)


def copy_(self: T, src: TensorImpl) -> T:
    """Write the elements of `src`, broadcast to the shape of `self` and converted to its dtype.

    Raises RuntimeError where the shapes do not fit, where an element of `self` would be written twice, or
    where `src` overlaps `self` without being the same elements.
    """
    if _is_same_data(self, src):
        self.bump_version()
        return self
    _assert_no_overlap(self, src)
    if len(src._shape) > len(self._shape):
        raise RuntimeError(
            f"output with shape {list(self._shape)} doesn't match the broadcast shape {list(src._shape)}"
        )
    geometry.expand(src._shape, src._stride, self._shape)
    self.strided_array()[...] = convert(src.strided_array(), src._dtype, self._dtype)
    self.bump_version()
    return self


def assign(self: T, value: TensorImpl) -> None:
    """What x[...] = value does once the view is there (PyTorch: copy_to in ATen/TensorIndexing.h).

    Leading sizes of 1 say nothing, so a value may have more dimensions than its target. It is expanded before
    it is copied, which lets x[None] = x be seen as the same elements.
    """
    if value._shape == self._shape:
        copy_(self, value)
    elif not value._shape:
        fill_(self, value)
    else:
        ones = next((dim for dim, n in enumerate(value._shape) if n != 1), len(value._shape))
        copy_(self, view_ops.expand(view_ops.view(value, value._shape[ones:]), self._shape))


def _is_same_data(self: TensorImpl, src: TensorImpl) -> bool:
    return (
        self._storage is src._storage
        and self._dtype is src._dtype
        and (self._shape, self._stride, self._offset) == (src._shape, src._stride, src._offset)
    )


def _assert_no_overlap(self: TensorImpl, src: TensorImpl) -> None:
    if 0 in self._shape:
        return
    if any(step == 0 and size > 1 for size, step in zip(self._shape, self._stride, strict=True)):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory "
            "location. Please clone() the tensor before performing the operation."
        )
    if self._storage is not src._storage or 0 in src._shape:
        return
    # PyTorch looks no further where a layout has gaps or overlaps: comparing spans would prove nothing.
    if not (layout.is_dense(self._shape, self._stride) and layout.is_dense(src._shape, src._stride)):
        return
    mine = _byte_span(self)
    theirs = _byte_span(src)
    same = mine == theirs and self._stride == src._stride
    if not same and mine[0] < theirs[1] and theirs[0] < mine[1]:
        raise RuntimeError(
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to "
            "a single memory location. Please clone() the tensor before performing the operation."
        )


def _byte_span(self: TensorImpl) -> tuple[int, int]:
    itemsize = self._dtype.itemsize
    end = layout.storage_span(self._shape, self._stride, self._offset)
    return self._offset * itemsize, end * itemsize
