"""Factories and copies: making tensors, moving bytes (PyTorch: ATen/native/TensorFactories.cpp, Copy.cpp)."""

import math
from typing import Any

import numpy as np

from ...c10 import dtype as dtypes
from ...c10 import geometry, layout
from ...c10.device import CPU
from ...c10.device import device as Device  # noqa: N812
from ...c10.dtype import bfloat16, bool_, float32, float64, int64
from ...c10.dtype import dtype as DType  # noqa: N812
from ...c10.tensor_impl import TensorImpl
from .. import memory_overlap
from .resize import not_implemented

Ints = tuple[int, ...]
Number = bool | int | float


def empty(ks: int, size: Ints, dtype: DType | None, device: Device | None, memory_format: str | None) -> Any:
    """A contiguous tensor whose elements are not set; float32 on the CPU unless said otherwise."""
    if any(n < 0 for n in size):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {list(size)}")
    return TensorImpl.allocate(size, geometry.contiguous_strides(size), dtype or float32, device or CPU)


def empty_strided(ks: int, size: Ints, stride: Ints, dtype: DType | None, device: Device | None) -> Any:
    """A tensor with the given strides whose elements are not set."""
    if len(size) != len(stride):
        raise RuntimeError(
            f"mismatch in length of strides and shape: {len(stride)} strides for {len(size)} sizes"
        )
    if any(n < 0 for n in size):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {list(size)}")
    if any(n < 0 for n in stride):
        raise RuntimeError(f"Negative strides are not supported, got {list(stride)}")
    return TensorImpl.allocate(size, stride, dtype or float32, device or CPU)


def fill_(ks: int, self: TensorImpl, value: Number | TensorImpl) -> TensorImpl:
    """Every element set to a number, which has to fit the dtype, or to the value of a 0-d tensor."""
    if isinstance(value, TensorImpl):
        if value._shape:
            raise RuntimeError(
                "fill_ only supports 0-dimension value tensor but got tensor with "
                f"{len(value._shape)} dimensions."
            )
        memory_overlap.assert_no_internal_overlap(self)
        self.strided_array()[...] = dtypes.convert(value.strided_array(), value._dtype, self._dtype)
        return self
    element = dtypes.to_element(value, self._dtype)
    if self._dtype is bfloat16:
        self.strided_array()[...] = dtypes.float32_to_bfloat16(np.asarray(element))
    else:
        self.strided_array()[...] = element
    return self


def zero_(ks: int, self: TensorImpl) -> TensorImpl:
    """Every element set to 0."""
    self.strided_array()[...] = 0
    return self


def copy_(ks: int, self: TensorImpl, src: TensorImpl, non_blocking: bool) -> TensorImpl:
    """The elements of `src`, broadcast to the shape of self and converted to its dtype, written into self.

    Raises RuntimeError where the shapes do not fit, where two elements of self share a cell, or where the two
    overlap without being the same elements.
    """
    if self is src or _is_same_data(self, src):
        return self
    array = self.strided_array()
    if src._shape != self._shape:
        if len(src._shape) > len(self._shape):
            raise RuntimeError(
                f"output with shape {list(self._shape)} doesn't match the broadcast shape {list(src._shape)}"
            )
        geometry.expand(src._shape, src._stride, self._shape)
    memory_overlap.assert_no_internal_overlap(self)
    if self._storage is src._storage:
        memory_overlap.assert_no_partial_overlap(self, src)
    array[...] = dtypes.convert(src.strided_array(), src._dtype, self._dtype)
    return self


def _is_same_data(self: TensorImpl, src: TensorImpl) -> bool:
    return (
        self._storage is src._storage
        and self._dtype is src._dtype
        and (self._shape, self._stride, self._offset) == (src._shape, src._stride, src._offset)
    )


def clone(ks: int, self: TensorImpl, memory_format: str | None) -> Any:
    """A copy; it keeps the order of the dimensions in memory unless memory_format is "contiguous_format"."""
    return to_copy(ks, self, None, None, False, memory_format)


def to_copy(
    ks: int,
    self: TensorImpl,
    dtype: DType | None,
    device: Device | None,
    non_blocking: bool,
    memory_format: str | None,
) -> Any:
    """A copy of another dtype or on another device."""
    dtype = self._dtype if dtype is None else dtype
    if memory_format == "contiguous_format":
        stride = geometry.contiguous_strides(self._shape)
    else:
        stride = geometry.dense_strides(self._shape, self._stride)
    copy = TensorImpl.allocate(self._shape, stride, dtype, device or self._device)
    copy.strided_array()[...] = dtypes.convert(self.strided_array(), self._dtype, dtype)
    return copy


def local_scalar_dense(ks: int, self: TensorImpl) -> Number:
    """The one element as a Python number; RuntimeError where there is not exactly one."""
    if layout.numel(self._shape) != 1:
        raise RuntimeError(
            f"a Tensor with {layout.numel(self._shape)} elements cannot be converted to Scalar"
        )
    return self.values().item()


def arange_start_step(
    ks: int, start: Number, end: Number, step: Number, dtype: DType | None, device: Device | None
) -> Any:
    """start, start + step, ... before end (1-d); int64 where all are ints, else float32.

    Raises RuntimeError where that is no finite row of numbers or one too long for memory,
    NotImplementedError for bool.
    """
    whole = not any(isinstance(n, float) for n in (start, end, step))
    dtype = dtype or (int64 if whole else float32)
    if dtype is bool_:
        raise not_implemented("arange_cpu", bool_)
    count = _count(start, end, step)
    if not dtype.is_floating_point:
        # Only the number of elements looks at fractions.
        start, step = int(start), int(step)
    source = float64 if dtype.is_floating_point else int64
    try:
        values = (start + np.arange(count) * step).astype(source.numpy)
    except (MemoryError, ValueError, OverflowError):
        raise RuntimeError(f"can't allocate memory: arange() would have {count:,} elements") from None
    return TensorImpl.adopt(dtypes.convert(values, source, dtype), dtype, device or CPU)


def _count(start: Number, end: Number, step: Number) -> int:
    """How many numbers start, start + step, ... lie before end."""
    if not (step > 0 or step < 0):
        raise RuntimeError(f"step must be nonzero, got {step}")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if isinstance(start, float) or isinstance(end, float) or isinstance(step, float):
        return math.ceil((end - start) / step)
    return -((start - end) // step)


def linspace(
    ks: int, start: Number, end: Number, steps: int, dtype: DType | None, device: Device | None
) -> Any:
    """`steps` numbers from start to end, both included (1-d); float32 unless said otherwise."""
    dtype = dtype or float32
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    if dtype is bool_ and steps > 1:
        raise not_implemented("linspace_cpu", bool_)
    if not dtype.is_floating_point:
        start, end = int(start), int(end)
    wide = float64.numpy if not dtype.is_floating_point or dtype is float64 else float32.numpy
    first, last = wide.type(start), wide.type(end)
    step = (last - first) / wide.type(max(steps - 1, 1))
    places = np.arange(steps)
    # Both halves count from their own end, so that the ends are met exactly.
    near = first + step * places.astype(wide)
    far = last - step * (steps - 1 - places).astype(wide)
    values = np.where(places < steps / 2, near, far) if steps != 1 else np.full(1, first)
    if not dtype.is_floating_point:
        return TensorImpl.adopt(np.trunc(values).astype(dtype.numpy), dtype, device or CPU)
    return TensorImpl.of_values(values, dtype, device or CPU)


def eye(ks: int, n: int, dtype: DType | None, device: Device | None) -> Any:
    """(n, n), 1 on the diagonal, else 0."""
    return eye_m(ks, n, n, dtype, device)


def eye_m(ks: int, n: int, m: int, dtype: DType | None, device: Device | None) -> Any:
    """(n, m), 1 on the diagonal, else 0; RuntimeError for a negative size."""
    if n < 0 or m < 0:
        raise RuntimeError(f"n and m must be greater or equal to 0, got {n} and {m}")
    return TensorImpl.of_values(np.eye(n, m), dtype or float32, device or CPU)
