"""Factories: where tensors come from (PyTorch: ATen/native/TensorFactories.cpp)."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .c10 import dtype as dtypes
from .c10 import geometry
from .c10.device import CPU
from .c10.device import device as Device  # noqa: N812
from .c10.dtype import dtype as DType  # noqa: N812
from .c10.storage import Storage
from .tensor import Sizes, Tensor, _sizes


def empty(*size: Sizes, dtype: DType | None = None, device: Any = None) -> Tensor:
    """A tensor of the given size, float32 unless said otherwise, whose elements are whatever was there."""
    return _empty("empty", size, dtype, device)


def zeros(*size: Sizes, dtype: DType | None = None, device: Any = None) -> Tensor:
    """All elements 0."""
    return _filled(_empty("zeros", size, dtype, device), 0)


def ones(*size: Sizes, dtype: DType | None = None, device: Any = None) -> Tensor:
    """All elements 1."""
    return _filled(_empty("ones", size, dtype, device), 1)


def full(size: Sequence[int], fill_value: Any, dtype: DType | None = None, device: Any = None) -> Tensor:
    """All elements `fill_value`, whose type gives the dtype where none is given."""
    dtype = dtypes.of_scalar(fill_value) if dtype is None else dtype
    return _filled(_empty("full", (size,), dtype, device), fill_value)


def empty_like(other: Tensor, dtype: DType | None = None) -> Tensor:
    """An unset tensor with the shape, dtype, and order of dimensions in memory of `other`."""
    stride = geometry.dense_strides(other._shape, other._stride)
    return Tensor.allocate(other._shape, stride, other._dtype if dtype is None else dtype, other._device)


def zeros_like(other: Tensor, dtype: DType | None = None) -> Tensor:
    """empty_like with all elements 0."""
    return _filled(empty_like(other, dtype), 0)


def ones_like(other: Tensor, dtype: DType | None = None) -> Tensor:
    """empty_like with all elements 1."""
    return _filled(empty_like(other, dtype), 1)


def arange(start: Any, end: Any = None, step: Any = 1, dtype: DType | None = None) -> Tensor:
    """start, start + step, ... before end (1-d); int64 where all three are ints, else float32."""
    if end is None:
        start, end = 0, start
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    count = math.ceil((end - start) / step)
    if dtype is None:
        whole = all(isinstance(n, int | np.integer) for n in (start, end, step))
        dtype = dtypes.int64 if whole else dtypes.float32
    source = dtypes.float64 if dtype.is_floating_point else dtypes.int64
    values = (start + np.arange(count) * step).astype(source.numpy)
    return _adopt(dtypes.convert(values, source, dtype), dtype)


def tensor(data: Any, dtype: DType | None = None, device: Any = None) -> Tensor:
    """A copy of `data`: a number, nested lists or tuples of numbers, a NumPy array or a tensor.

    The dtype is float32 where any number is a float or there is none, bool where all are bools, else int64.
    Raises ValueError where nested lists have unequal lengths, TypeError for what is no number.
    """
    if device is not None:
        Device(device)
    if isinstance(data, Tensor):
        return data.to(data.dtype if dtype is None else dtype, copy=True)
    if isinstance(data, np.ndarray | np.generic):
        source = dtypes.from_numpy_dtype(data.dtype)
        target = source if dtype is None else dtype
        return _adopt(
            np.array(dtypes.convert(np.asarray(data, source.numpy), source, target), order="C"), target
        )
    shape = _nested_shape(data)
    flat: list[Any] = []
    _flatten(data, shape, 0, flat)
    if dtype is None:
        dtype = _common_dtype(flat)
    # Unlike fill_, a float too large for its dtype becomes inf here.
    elements = flat if dtype.is_floating_point else [dtypes.to_element(value, dtype) for value in flat]
    source = dtypes.float64 if dtype.is_floating_point else dtype
    values = np.array(elements, source.numpy).reshape(shape)
    return _adopt(dtypes.convert(values, source, dtype), dtype)


def _empty(name: str, size: tuple[Any, ...], dtype: DType | None, device: Any) -> Tensor:
    shape = _sizes(name, size)
    if any(n < 0 for n in shape):
        raise RuntimeError(f"{name}: Dimension size must be non-negative, got {list(shape)}")
    where = CPU if device is None else Device(device)
    return Tensor.allocate(
        shape, geometry.contiguous_strides(shape), dtypes.float32 if dtype is None else dtype, where
    )


def _filled(fresh: Tensor, value: Any) -> Tensor:
    fresh.fill_(value)
    # Filling is part of making: the reader of a new tensor finds its version at 0.
    fresh._version_counter[0] = 0
    return fresh


def _adopt(array: np.ndarray, dtype: DType) -> Tensor:
    shape = array.shape
    return Tensor(Storage(array), shape, geometry.contiguous_strides(shape), 0, dtype, CPU, [0])


def _nested_shape(data: Any) -> tuple[int, ...]:
    shape = []
    while isinstance(data, list | tuple):
        shape.append(len(data))
        if not data:
            break
        data = data[0]
    return tuple(shape)


def _flatten(data: Any, shape: tuple[int, ...], depth: int, flat: list[Any]) -> None:
    if depth == len(shape):
        if isinstance(data, list | tuple):
            raise TypeError(f"expected a number at depth {depth}, got a list: make all rows equally deep")
        value = data.item() if isinstance(data, Tensor) else data
        if value is None:
            raise RuntimeError("Could not infer dtype of NoneType")
        if not isinstance(value, bool | int | float | np.number | np.bool_):
            raise TypeError(f"tensor() takes numbers, got {type(value).__name__}")
        flat.append(value)
        return
    if not isinstance(data, list | tuple):
        raise TypeError(f"not a sequence at depth {depth}: make all rows equally deep")
    if len(data) != shape[depth]:
        raise ValueError(f"expected sequence of length {shape[depth]} at dim {depth} (got {len(data)})")
    for item in data:
        _flatten(item, shape, depth + 1, flat)


def _common_dtype(flat: list[Any]) -> DType:
    found = {dtypes.of_scalar(value) for value in flat}
    if not found or dtypes.float32 in found:
        return dtypes.float32
    return dtypes.int64 if dtypes.int64 in found else dtypes.bool_
