"""Rows and elements by one index: index_select, scatter (PyTorch: ATen/native/ScatterGatherChecks.h)."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...c10 import dtype as dtypes
from ...c10 import geometry, layout
from ...c10.dtype import bfloat16, bool_, int32, int64
from ...c10.dtype import dtype as DType  # noqa: N812
from ...c10.tensor_impl import TensorImpl
from .resize import forms, refuse_overlap, scalar_type, write_out
from .structured import Structured

Number = bool | int | float


def element_of(value: Number | TensorImpl, dtype: DType) -> np.ndarray:
    """A number or 0-d tensor as one element as the storage holds it; RuntimeError where it does not fit."""
    if isinstance(value, TensorImpl):
        return dtypes.convert(value.strided_array(), value._dtype, dtype)
    element = np.asarray(dtypes.to_element(value, dtype))
    return dtypes.float32_to_bfloat16(element) if dtype is bfloat16 else element.astype(dtype.numpy)


def index_array(name: str, index: TensorImpl) -> np.ndarray:
    if index._dtype is not int64 and index._dtype is not int32:
        raise RuntimeError(
            f"{name}(): Expected dtype int32/int64 for index but got: {scalar_type(index._dtype)}"
        )
    return index.strided_array()


def check_range(index: np.ndarray, size: int, dim: int, error: type[Exception], lowest: int = 0) -> None:
    if lowest == 0 and index.dtype == np.int64:
        # Seen as unsigned a negative number is larger than any size: one pass is enough.
        fine = not index.size or index.view(np.uint64).max() < size
    else:
        fine = not index.size or bool(index.min() >= lowest and index.max() < size)
    if not fine:
        wrong = index[(index < lowest) | (index >= size)].flat[0]
        raise error(f"index {wrong} is out of bounds for dimension {dim} with size {size}")


def add_at(array: np.ndarray, dtype: DType, place: Any, values: np.ndarray) -> None:
    """array[place] += values, once for every time a place is named."""
    if dtype is bfloat16:
        wide = dtypes.bfloat16_to_float32(array)
        np.add.at(wide, place, dtypes.bfloat16_to_float32(values))
        array[...] = dtypes.float32_to_bfloat16(wide)
    elif dtype is bool_:
        np.logical_or.at(array, place, values)
    else:
        np.add.at(array, place, values)


def _index_select(ks: int, self: TensorImpl, dim: int, index: TensorImpl) -> Any:
    """The rows along `dim` that a 1-d index names, in its order; IndexError out of range, also below 0.

    RuntimeError out of range of dimension 1, and of any of a tensor of two or more that has no elements.
    """
    axis = layout.wrap_dim(dim, len(self._shape))
    if len(index._shape) > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    rows = index_array("index_select", index).reshape(-1)
    array = self.strided_array()
    size = self._shape[axis] if self._shape else 1
    if rows.size and not (rows.min() >= 0 and rows.max() < size):
        # PyTorch has kernels of their own for these, with errors of their own.
        apart = axis == 1 or len(self._shape) > 1 and 0 in self._shape
        raise (RuntimeError if apart else IndexError)(f"index out of range in self: dimension {axis} has size {size}")
    if not self._shape:
        if rows.size != 1:
            raise RuntimeError(
                f"index_select(): Index to scalar can have only 1 value, got {rows.size} value(s)"
            )
        return TensorImpl.adopt(array.copy(), self._dtype, self._device)
    return TensorImpl.adopt(np.ascontiguousarray(array.take(rows, axis)), self._dtype, self._device)


index_select = forms("index_select", _index_select, apart=True)


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def _index_add_into(
    array: np.ndarray, self: TensorImpl, dim: int, index: TensorImpl, source: TensorImpl, alpha: Number
) -> None:
    axis = layout.wrap_dim(dim, len(self._shape))
    if len(index._shape) > 1:
        raise IndexError(
            f"index_add_(): Index is supposed to be a vector, but got dim: {len(index._shape)} "
            f"with size: {list(index._shape)}"
        )
    rows = index_array("index_add_", index).reshape(-1)
    if self._dtype is not source._dtype:
        raise RuntimeError(
            f"index_add_(): self ({scalar_type(self._dtype)}) and source ({scalar_type(source._dtype)}) "
            "must have the same scalar type"
        )
    if axis > 0 and axis >= len(source._shape):
        raise RuntimeError(
            f"index_add_(): Indexing dim {axis} is out of bounds of the source tensor with dim {len(source._shape)}"
        )
    given = source._shape[axis] if source._shape else 1
    if rows.size != given:
        # PyTorch asks a source without dimensions for its size to say so, and that fails first.
        raise (RuntimeError if source._shape else IndexError)(
            f"index_add_(): Number of indices ({rows.size}) should be equal to source.size(dim): ({given}), "
            f"for dim: {axis}"
        )
    both = self._shape and source._shape
    if (_without(self._shape, axis) if both else self._shape) != (
        _without(source._shape, axis) if both else source._shape
    ):
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. "
            f"Got self.shape = {list(self._shape)} source.shape = {list(source._shape)}"
        )
    check_range(
        rows, self._shape[axis] if self._shape else 1, axis, RuntimeError if len(self._shape) > 1 else IndexError
    )
    values = source.strided_array()
    if alpha != 1:
        number = alpha if self._dtype.is_floating_point else int(alpha)
        scaled = source.values() * np.asarray(number).astype(source.values().dtype)
        values = dtypes.float32_to_bfloat16(scaled) if self._dtype is bfloat16 else scaled
    if not self._shape:
        array, values = array.reshape(1), values.reshape(1)
    place = (slice(None),) * axis + (rows,)
    add_at(array, self._dtype, place, values)


def _check_index_shape(name: str, self: TensorImpl, axis: int, index: TensorImpl, src: Any = None) -> bool:
    """Whether there is anything to do; RuntimeError where the index does not fit over self (or src)."""
    if 0 in index._shape:
        return False
    mine, picked = self._shape or (1,), index._shape or (1,)
    if len(mine) != len(picked):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    if any(n > m for d, (n, m) in enumerate(zip(picked, mine, strict=True)) if d != axis):
        raise RuntimeError(
            f"{name}: Size does not match: expected index {list(index._shape)} to be no larger than self "
            f"{list(self._shape)} apart from dimension {axis}"
        )
    if src is not None:
        given = src._shape or (1,)
        if len(given) != len(picked):
            raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
        if any(n > m for n, m in zip(picked, given, strict=True)):
            raise RuntimeError(
                f"Expected index {list(index._shape)} to be no larger than self {list(self._shape)} apart "
                f"from dimension {axis} and to be no larger size than src {list(src._shape)}"
            )
    return True


def _place(index: np.ndarray, axis: int) -> tuple[np.ndarray, ...]:
    """NumPy's index for x[i][index[i][j][k]][k] and its like: `index` along `axis`, own places elsewhere."""
    grid = _grid(index.shape)
    return (*grid[:axis], index, *grid[axis + 1 :])


@functools.lru_cache(maxsize=64)
def _grid(shape: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Per dimension the positions along it, broadcast over the others."""
    return tuple(np.ogrid[tuple(slice(n) for n in shape)])


def _gather(ks: int, self: TensorImpl, dim: int, index: TensorImpl, sparse_grad: bool) -> Any:
    axis = layout.wrap_dim(dim, len(self._shape))
    places = index.strided_array() if 0 in index._shape else index_array("gather", index)
    if not _check_index_shape("gather", self, axis, index):
        stride = geometry.contiguous_strides(index._shape)
        return TensorImpl.allocate(index._shape, stride, self._dtype, self._device)
    array = self.strided_array().reshape(self._shape or (1,))
    places = places.reshape(index._shape or (1,))
    check_range(places, array.shape[axis], axis, RuntimeError)
    picked = array[_place(places, axis)].reshape(index._shape)
    return TensorImpl.adopt(np.ascontiguousarray(picked).reshape(index._shape), self._dtype, self._device)


gather = forms("gather", _gather, apart=True)


def _scatter_into(
    array: np.ndarray,
    self: TensorImpl,
    dim: int,
    index: TensorImpl,
    src: TensorImpl | Number,
    adds: bool = False,
) -> None:
    axis = layout.wrap_dim(dim, len(self._shape))
    if 0 in index._shape:
        return
    places = index_array("scatter", index)
    given = src if isinstance(src, TensorImpl) else None
    if given is not None and given._dtype is not self._dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if not _check_index_shape("scatter", self, axis, index, given):
        return
    shape = index._shape or (1,)
    places, array = places.reshape(shape), array.reshape(self._shape or (1,))
    check_range(places, array.shape[axis], axis, RuntimeError)
    if given is not None:
        values = given.strided_array().reshape(given._shape or (1,))[tuple(slice(n) for n in shape)]
    else:
        values = element_of(src, self._dtype)
    if adds:
        add_at(array, self._dtype, _place(places, axis), values)
    else:
        array[_place(places, axis)] = values


def _scatter_add_into(
    array: np.ndarray, self: TensorImpl, dim: int, index: TensorImpl, src: TensorImpl
) -> None:
    _scatter_into(array, self, dim, index, src, True)


_REDUCTIONS = {"add": np.add, "multiply": np.multiply}


def _scatter_reduce_into(
    array: np.ndarray, self: TensorImpl, dim: int, index: TensorImpl, src: TensorImpl | Number, reduce: str
) -> None:
    if reduce not in _REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either add or multiply, got {reduce}.")
    if 0 in index._shape:
        return
    axis = layout.wrap_dim(dim, len(self._shape))
    places = index_array("scatter", index).reshape(index._shape or (1,))
    given = src if isinstance(src, TensorImpl) else None
    if given is not None and given._dtype is not self._dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    _check_index_shape("scatter", self, axis, index, given)
    target = array.reshape(self._shape or (1,))
    check_range(places, target.shape[axis], axis, RuntimeError)
    if given is not None:
        values = given.strided_array().reshape(given._shape or (1,))[tuple(slice(n) for n in places.shape)]
    else:
        values = element_of(src, self._dtype)
    if self._dtype is not bfloat16:
        _REDUCTIONS[reduce].at(target, _place(places, axis), values)
        return
    wide = dtypes.bfloat16_to_float32(target)
    _REDUCTIONS[reduce].at(wide, _place(places, axis), dtypes.bfloat16_to_float32(values))
    target[...] = dtypes.float32_to_bfloat16(wide)


def writing_forms(name: str, write: Callable[..., None]) -> Structured:
    """The forms of an op that writes into a copy of self, or into self: write(array, self, *args)."""

    def functional(ks: int, self: TensorImpl, *args: Any) -> Any:
        array = np.array(self.strided_array(), order="C")
        write(array, self, *args)
        return TensorImpl.adopt(array, self._dtype, self._device)

    def inplace(ks: int, self: TensorImpl, *args: Any) -> TensorImpl:
        refuse_overlap(self, args)
        write(self.strided_array(), self, *args)
        return self

    def out(ks: int, self: TensorImpl, *args: Any) -> TensorImpl:
        refuse_overlap(args[-1], args[:-1])
        write_out(args[-1], functional(ks, self, *args[:-1]), False)
        return args[-1]

    return Structured(name, functional, inplace, out)


index_add = writing_forms("index_add", _index_add_into)
scatter = writing_forms("scatter", _scatter_into)
scatter_reduce = writing_forms("scatter_reduce", _scatter_reduce_into)
scatter_add = writing_forms("scatter_add", _scatter_add_into)
