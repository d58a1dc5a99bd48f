"""tensor, as_tensor, from_numpy, arange: tensors made of Python's and NumPy's data.

PyTorch: torch/csrc/utils/tensor_new.cpp.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from .aten import ops as at
from .c10 import dtype as dtypes
from .c10 import promotion
from .c10.device import CPU
from .c10.device import device as Device  # noqa: N812
from .c10.dtype import dtype as DType  # noqa: N812
from .c10.storage import Storage
from .c10.tensor_impl import MAX_DIMS
from .tensor import Tensor

_Number = bool | int | float | np.number | np.bool_


def tensor(data: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A copy of `data`: a number, nested lists, tuples or ranges of them, a NumPy array or a tensor.

    The dtype is float32 where any number is a float or there is none, bool where all are bools, else int64; numbers of
    NumPy and tensors in a list bring dtypes of their own.
    Raises ValueError where nested lists have unequal lengths or more than 64 levels, TypeError or RuntimeError for
    what is no number.
    """
    where = CPU if device is None else Device(device).without_index()
    made = _make(data, None if dtype is None else dtypes.named(dtype, "tensor"))
    if where.type != made._device.type:
        made = at.to_dtype_layout(made, None, where, False, False, None)
    return made.requires_grad_() if requires_grad else made


def as_tensor(data: Any, dtype: DType | None = None, device: Any = None) -> Tensor:
    """`data` as a tensor, sharing the memory of an array or being the tensor itself where nothing has to change."""
    if isinstance(data, Tensor):
        return data.to(dtype=dtype, device=device)
    if isinstance(data, np.ndarray) and (dtype is None or dtypes.from_numpy_dtype(data.dtype) is dtype):
        found = from_numpy(data)
        return found if device is None else found.to(device)
    return tensor(data, dtype=dtype, device=device)


def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor over the memory of `array`: a change in one is seen in the other.

    TypeError for what is no array or has a dtype without a counterpart, ValueError for strides that a tensor cannot
    have.
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    dtype = dtypes.from_numpy_dtype(array.dtype)
    if any(step < 0 for step in array.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array with array.copy().)"
        )
    if any(step % array.itemsize for step in array.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array first."
        )
    owner, stride = _owner_of(array), tuple(step // array.itemsize for step in array.strides)
    offset = (array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]) // array.itemsize
    found = Tensor.fresh(Storage.over(owner), array.shape, stride, dtype, CPU)
    found._offset = offset if array.size else 0
    return found


def _owner_of(array: np.ndarray) -> np.ndarray:
    """A C-contiguous array that owns all the memory `array` looks at."""
    base = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    if base.flags.c_contiguous and base.dtype == array.dtype:
        return base
    span = 1 + sum((n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)) // array.itemsize
    if array.size == 0:
        return np.empty(0, array.dtype)
    return np.lib.stride_tricks.as_strided(array, (span,), (array.itemsize,))


def _make(data: Any, dtype: DType | None) -> Tensor:
    if isinstance(data, Tensor):
        made = data.detach().clone()
        return made if dtype is None else made.to(dtype)
    if isinstance(data, np.ndarray | np.generic):
        source = dtypes.from_numpy_dtype(data.dtype)
        target = source if dtype is None else dtype
        return _adopt(np.array(dtypes.convert(np.asarray(data, source.numpy), source, target), order="C"), target)
    shape = _nested_shape(data)
    flat: list[Any] = []
    kinds: set[type | DType] = set()
    _flatten(data, shape, 0, flat, kinds)
    if dtype is None:
        dtype = _common_dtype(kinds)
    # Unlike fill_, a float too large for its dtype becomes inf here.
    elements = flat if dtype.is_floating_point else [dtypes.to_element(value, dtype) for value in flat]
    source = dtypes.float64 if dtype.is_floating_point else dtype
    values = np.array(elements, source.numpy).reshape(shape)
    return _adopt(dtypes.convert(values, source, dtype), dtype)


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


def _flatten(data: Any, shape: tuple[int, ...], depth: int, flat: list[Any], kinds: set[type | DType]) -> None:
    """Adds the numbers in `data` to flat, and their types, or the dtypes of tensors among them, to kinds."""
    if depth == len(shape):
        if _is_sequence(data):
            raise TypeError(
                f"expected a number at depth {depth}, got a {type(data).__name__}: make all rows equally deep"
            )
        value = data
        if isinstance(data, Tensor):
            if data.numel() != 1:
                raise ValueError("only one element tensors can be converted to Python scalars")
            value = data.item()
            kinds.add(data._dtype)
        if isinstance(value, str | bytes | complex):
            raise TypeError(f"tensor() takes numbers, got {type(value).__name__}")
        if not isinstance(value, _Number):
            raise RuntimeError(f"Could not infer dtype of {type(value).__name__}")
        if value is data:
            kinds.add(type(value))
        flat.append(value)
        return
    if not _is_sequence(data):
        raise TypeError(f"not a sequence at depth {depth}: make all rows equally deep")
    if isinstance(data, np.ndarray):
        kinds.add(data.dtype.type)
    if len(data) != shape[depth]:
        raise ValueError(f"expected sequence of length {shape[depth]} at dim {depth} (got {len(data)})")
    for item in data:
        _flatten(item, shape, depth + 1, flat, kinds)


def _common_dtype(kinds: set[type | DType]) -> DType:
    """What the dtypes of all numbers are promoted to; a number of NumPy's has its own, one of Python's the default."""
    names = {(kind if isinstance(kind, DType) else _dtype_of(kind)).name for kind in kinds}
    return dtypes.by_name(functools.reduce(promotion.promote_types, sorted(names))) if names else dtypes.float32


def _dtype_of(number: type) -> DType:
    if issubclass(number, np.generic):
        name = np.dtype(number).name
        found = next((dtype for dtype in dtypes.ALL if dtype.name == name), None)
        if found is not None:
            return found
    return dtypes.of_scalar(number(0))


__all__ = ["as_tensor", "from_numpy", "tensor"]
