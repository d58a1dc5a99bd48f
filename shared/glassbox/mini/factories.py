"""Factories: where tensors come from (PyTorch: ATen/native/TensorFactories.cpp)."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .aten import copy as copies
from .c10 import dtype as dtypes
from .c10 import geometry
from .c10.device import CPU
from .c10.device import device as Device  # noqa: N812
from .c10.dtype import dtype as DType  # noqa: N812
from .c10.tensor_impl import MAX_DIMS
from .tensor import Sizes, Tensor, _a_tensor, _sizes

_Number = bool | int | float | np.number | np.bool_


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
    if not isinstance(size, tuple | list):
        raise TypeError(f"full() takes a tuple or list of sizes, got {size!r}: write full(({size!r},), ...)")
    if isinstance(fill_value, Tensor):
        fill_value, dtype = fill_value.item(), fill_value.dtype if dtype is None else dtype
    if not isinstance(fill_value, _Number):
        raise TypeError(f"full() fills with a number, got {type(fill_value).__name__}")
    fresh = _empty("full", (size,), dtypes.of_scalar(fill_value) if dtype is None else dtype, device)
    return _filled(fresh, copies.scalar_tensor(fresh, fill_value, fresh.dtype))


def empty_like(other: Tensor, dtype: DType | None = None) -> Tensor:
    """An unset tensor with the shape, dtype, and order of dimensions in memory of `other`."""
    return _empty_like("empty_like", other, dtype)


def zeros_like(other: Tensor, dtype: DType | None = None) -> Tensor:
    """empty_like with all elements 0."""
    return _filled(_empty_like("zeros_like", other, dtype), 0)


def ones_like(other: Tensor, dtype: DType | None = None) -> Tensor:
    """empty_like with all elements 1."""
    return _filled(_empty_like("ones_like", other, dtype), 1)


def arange(start: Any, end: Any = None, step: Any = 1, dtype: DType | None = None) -> Tensor:
    """start, start + step, ... before end (1-d); int64 where all three are ints, else float32.

    Raises RuntimeError where that is no finite row of numbers or one too long for memory, NotImplementedError
    for bool.
    """
    if end is None:
        start, end = 0, start
    for number in (start, end, step):
        if not isinstance(number, _Number):
            raise TypeError(f"arange() takes numbers, got {type(number).__name__}")
    count = _count(start, end, step)
    if dtype is None:
        whole = all(isinstance(n, int | np.integer) for n in (start, end, step))
        dtype = dtypes.int64 if whole else dtypes.float32
    dtype = dtypes.named(dtype, "arange")
    if dtype is dtypes.bool_:
        raise NotImplementedError("arange() is not implemented for bool: two values make no row of numbers")
    source = dtypes.float64 if dtype.is_floating_point else dtypes.int64
    try:
        values = (start + np.arange(count) * step).astype(source.numpy)
    except (MemoryError, ValueError, OverflowError):
        raise RuntimeError(f"can't allocate memory: arange() would have {count:,} elements") from None
    return _adopt(dtypes.convert(values, source, dtype), dtype)


def tensor(data: Any, dtype: DType | None = None, device: Any = None) -> Tensor:
    """A copy of `data`: a number, nested lists, tuples or ranges of them, a NumPy array or a tensor.

    The dtype is float32 where any number is a float or there is none, bool where all are bools, else int64.
    Raises ValueError where nested lists have unequal lengths or more than 64 levels, TypeError or
    RuntimeError for what is no number.
    """
    if device is not None:
        Device(device)
    if dtype is not None:
        dtype = dtypes.named(dtype, "tensor")
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
    dtype = dtypes.float32 if dtype is None else dtypes.named(dtype, name)
    return Tensor.allocate(shape, geometry.contiguous_strides(shape), dtype, where)


def _empty_like(name: str, other: Tensor, dtype: DType | None) -> Tensor:
    _a_tensor(name, other)
    stride = geometry.dense_strides(other._shape, other._stride)
    dtype = other._dtype if dtype is None else dtypes.named(dtype, name)
    return Tensor.allocate(other._shape, stride, dtype, other._device)


def _filled(fresh: Tensor, value: Any) -> Tensor:
    fresh.fill_(value)
    # Filling is part of making: the reader of a new tensor finds its version at 0.
    fresh._version_counter[0] = 0
    return fresh


def _count(start: Any, end: Any, step: Any) -> int:
    """How many numbers start, start + step, ... lie before end."""
    if not (step > 0 or step < 0):
        raise RuntimeError(f"step must be nonzero, got {step}")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    return math.ceil((end - start) / step)


def _adopt(array: np.ndarray, dtype: DType) -> Tensor:
    return Tensor.adopt(array, dtype, CPU)


def _nested_shape(data: Any) -> tuple[int, ...]:
    shape: list[int] = []
    while _is_sequence(data):
        if len(shape) == MAX_DIMS:
            # Also where a list that holds itself ends.
            raise ValueError(f"too many dimensions '{type(data).__name__}': more than {MAX_DIMS} levels")
        shape.append(len(data))
        if len(data) == 0:
            break
        data = data[0]
    return tuple(shape)


def _is_sequence(data: Any) -> bool:
    if isinstance(data, np.ndarray):
        return data.ndim > 0
    return isinstance(data, Sequence) and not isinstance(data, str | bytes | Tensor)


def _flatten(data: Any, shape: tuple[int, ...], depth: int, flat: list[Any]) -> None:
    if depth == len(shape):
        if _is_sequence(data):
            raise TypeError(
                f"expected a number at depth {depth}, got a {type(data).__name__}: make all rows equally deep"
            )
        value = data.item() if isinstance(data, Tensor) else data
        if isinstance(value, str | bytes | complex):
            raise TypeError(f"tensor() takes numbers, got {type(value).__name__}")
        if not isinstance(value, _Number):
            raise RuntimeError(f"Could not infer dtype of {type(value).__name__}")
        flat.append(value)
        return
    if not _is_sequence(data):
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
