"""Indexing: picking and placing elements by tensors of indices (PyTorch: ATen/native/TensorAdvancedIndexing.cpp)."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...c10 import dtype as dtypes
from ...c10 import geometry, layout
from ...c10.dtype import bfloat16, bool_, int32, int64, uint8
from ...c10.dtype import dtype as DType  # noqa: N812
from ...c10.tensor_impl import TensorImpl
from .. import loop_layout
from .resize import forms, scalar_type, with_strides
from .resize import write_out as _write_out
from .structured import Structured

Number = bool | int | float
Indices = tuple[TensorImpl | None, ...]


def _element(value: Number | TensorImpl, dtype: DType) -> np.ndarray:
    """A number or a 0-d tensor as one element as the storage holds it; RuntimeError for a number that does not fit."""
    if isinstance(value, TensorImpl):
        return dtypes.convert(value.strided_array(), value._dtype, dtype)
    element = np.asarray(dtypes.to_element(value, dtype))
    return dtypes.float32_to_bfloat16(element) if dtype is bfloat16 else element.astype(dtype.numpy)


def _index_array(name: str, index: TensorImpl) -> np.ndarray:
    if index._dtype is not int64 and index._dtype is not int32:
        raise RuntimeError(
            f"{name}(): Expected dtype int32/int64 for index but got: {scalar_type(index._dtype)}"
        )
    return index.strided_array()


def _check_range(index: np.ndarray, size: int, dim: int, error: type[Exception], lowest: int = 0) -> None:
    if index.size and not (lowest <= index.min() and index.max() < size):
        wrong = index[(index < lowest) | (index >= size)].flat[0]
        raise error(f"index {wrong} is out of bounds for dimension {dim} with size {size}")


def _add_at(array: np.ndarray, dtype: DType, place: Any, values: np.ndarray) -> None:
    """array[place] += values, once for every time a place is named."""
    if dtype is bfloat16:
        wide = dtypes.bfloat16_to_float32(array)
        np.add.at(wide, place, dtypes.bfloat16_to_float32(values))
        array[...] = dtypes.float32_to_bfloat16(wide)
    elif dtype is bool_:
        np.logical_or.at(array, place, values)
    else:
        np.add.at(array, place, values)


# One index per row


def index_select(ks: int, self: TensorImpl, dim: int, index: TensorImpl) -> Any:
    """The rows along `dim` that a 1-d index names, in its order; IndexError out of range, also below 0."""
    axis = layout.wrap_dim(dim, len(self._shape))
    if len(index._shape) > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    rows = _index_array("index_select", index).reshape(-1)
    array = self.strided_array()
    size = self._shape[axis] if self._shape else 1
    if rows.size and not (0 <= rows.min() and rows.max() < size):
        raise IndexError(f"index out of range in self: dimension {axis} has size {size}")
    if not self._shape:
        if rows.size != 1:
            raise RuntimeError(
                f"index_select(): Index to scalar can have only 1 value, got {rows.size} value(s)"
            )
        return TensorImpl.adopt(array.copy(), self._dtype, self._device)
    return TensorImpl.adopt(np.ascontiguousarray(array.take(rows, axis)), self._dtype, self._device)


def _index_add_into(
    array: np.ndarray, self: TensorImpl, dim: int, index: TensorImpl, source: TensorImpl, alpha: Number
) -> None:
    axis = layout.wrap_dim(dim, len(self._shape))
    if len(index._shape) > 1:
        raise IndexError(
            f"index_add_(): Index is supposed to be a vector, but got dim: {len(index._shape)} "
            f"with size: {list(index._shape)}"
        )
    rows = _index_array("index_add_", index).reshape(-1)
    if self._dtype is not source._dtype:
        raise RuntimeError(
            f"index_add_(): self ({scalar_type(self._dtype)}) and source ({scalar_type(source._dtype)}) "
            "must have the same scalar type"
        )
    given = source._shape[axis] if source._shape else 1
    if rows.size != given:
        if not self._shape:
            raise IndexError(f"a 0-dim tensor takes one index, got {rows.size}")
        raise RuntimeError(
            f"index_add_(): Number of indices ({rows.size}) should be equal to source.size(dim): ({given}), "
            f"for dim: {axis}"
        )
    if self._shape[:axis] + self._shape[axis + 1 :] != source._shape[:axis] + source._shape[axis + 1 :]:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. "
            f"Got self.shape = {list(self._shape)} source.shape = {list(source._shape)}"
        )
    _check_range(rows, self._shape[axis] if self._shape else 1, axis, RuntimeError if self._shape else IndexError)
    values = source.strided_array()
    if alpha != 1:
        number = alpha if self._dtype.is_floating_point else int(alpha)
        scaled = source.values() * np.asarray(number).astype(source.values().dtype)
        values = dtypes.float32_to_bfloat16(scaled) if self._dtype is bfloat16 else scaled
    if not self._shape:
        array, values = array.reshape(1), values.reshape(1)
    place = (slice(None),) * axis + (rows,)
    _add_at(array, self._dtype, place, values)


# One index per element


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
                f"Expected index {list(index._shape)} to be no larger than self {list(self._shape)} apart from "
                f"dimension {axis} and to be no larger size than src {list(src._shape)}"
            )
    return True


def _place(index: np.ndarray, axis: int) -> tuple[np.ndarray, ...]:
    """NumPy's index for x[i][index[i][j][k]][k] and its like: the index along `axis`, own positions elsewhere."""
    grid: list[Any] = list(np.ogrid[tuple(slice(n) for n in index.shape)])
    grid[axis] = index
    return tuple(grid)


def _gather(ks: int, self: TensorImpl, dim: int, index: TensorImpl, sparse_grad: bool) -> Any:
    axis = layout.wrap_dim(dim, len(self._shape))
    places = _index_array("gather", index)
    if not _check_index_shape("gather", self, axis, index):
        stride = geometry.contiguous_strides(index._shape)
        return TensorImpl.allocate(index._shape, stride, self._dtype, self._device)
    array = self.strided_array().reshape(self._shape or (1,))
    places = places.reshape(index._shape or (1,))
    _check_range(places, array.shape[axis], axis, RuntimeError)
    picked = array[_place(places, axis)].reshape(index._shape)
    return TensorImpl.adopt(np.ascontiguousarray(picked).reshape(index._shape), self._dtype, self._device)


gather = forms("gather", _gather)


def _scatter_into(
    array: np.ndarray,
    self: TensorImpl,
    dim: int,
    index: TensorImpl,
    src: TensorImpl | Number,
    adds: bool = False,
) -> None:
    axis = layout.wrap_dim(dim, len(self._shape))
    places = _index_array("scatter", index)
    from_tensor = isinstance(src, TensorImpl)
    if from_tensor and src._dtype is not self._dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if not _check_index_shape("scatter", self, axis, index, src if from_tensor else None):
        return
    shape = index._shape or (1,)
    places, array = places.reshape(shape), array.reshape(self._shape or (1,))
    _check_range(places, array.shape[axis], axis, RuntimeError)
    if from_tensor:
        values = src.strided_array().reshape(src._shape or (1,))[tuple(slice(n) for n in shape)]
    else:
        values = _element(src, self._dtype)
    if adds:
        _add_at(array, self._dtype, _place(places, axis), values)
    else:
        array[_place(places, axis)] = values


def _scatter_add_into(
    array: np.ndarray, self: TensorImpl, dim: int, index: TensorImpl, src: TensorImpl
) -> None:
    _scatter_into(array, self, dim, index, src, True)


def _writing(name: str, write: Callable[..., None]) -> Structured:
    """The forms of an op that writes into a copy of self, or into self: write(array, self, *args)."""

    def functional(ks: int, self: TensorImpl, *args: Any) -> Any:
        array = np.array(self.strided_array(), order="C")
        write(array, self, *args)
        return TensorImpl.adopt(array, self._dtype, self._device)

    def inplace(ks: int, self: TensorImpl, *args: Any) -> TensorImpl:
        write(self.strided_array(), self, *args)
        return self

    def out(ks: int, self: TensorImpl, *args: Any) -> TensorImpl:
        _write_out(args[-1], functional(ks, self, *args[:-1]), False)
        return args[-1]

    return Structured(name, functional, inplace, out)


index_add = _writing("index_add", _index_add_into)
scatter = _writing("scatter", _scatter_into)
scatter_add = _writing("scatter_add", _scatter_add_into)


# x[i, j] with tensors of indices


def _advanced(self: TensorImpl, indices: Indices) -> tuple[Any, ...]:
    """What NumPy takes for `indices`: masks made into positions, None into whole dimensions; all checked.

    NumPy's rule for where the new dimensions go is PyTorch's: in place of the indexed ones where these lie side
    by side, in front otherwise.
    """
    if not any(index is not None for index in indices):
        raise IndexError("at least one index must be provided")
    places: list[Any] = []
    for index in indices:
        if index is None:
            places.append(slice(None))
        elif index._dtype in (bool_, uint8):
            for d, n in enumerate(index._shape):
                if len(places) + d >= len(self._shape) or n != self._shape[len(places) + d]:
                    raise IndexError(
                        f"The shape of the mask {list(index._shape)} at index {d} does not match the shape of the "
                        f"indexed tensor {list(self._shape)} at index {len(places) + d}"
                    )
            found = np.nonzero(index.strided_array()) if index._shape else ()
            places.extend(found)
        elif index._dtype in (int64, int32):
            places.append(index.strided_array())
        else:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    if len(places) > len(self._shape):
        raise IndexError(f"too many indices for tensor of dimension {len(self._shape)} (got {len(places)})")
    arrays = [place for place in places if not isinstance(place, slice)]
    try:
        shared = np.broadcast_shapes(*(array.shape for array in arrays))
    except ValueError:
        shapes = ", ".join(str(list(array.shape)) for array in arrays)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
        ) from None
    for dim, place in enumerate(places):
        if not isinstance(place, slice) and 0 not in shared:
            size = self._shape[dim]
            if size == 0:
                raise IndexError(f"index is out of bounds for dimension {dim} with size 0")
            _check_range(place, size, dim, IndexError, -size)
    return tuple(places)


def _index_strides(self: TensorImpl, places: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of x[places]: a TensorIterator's over self, with stride 0 where an index moves, and the indices."""
    given = [dim for dim, place in enumerate(places) if not isinstance(place, slice)]
    apart = given[-1] - given[0] + 1 != len(given)
    before = 0 if apart else given[0]
    kept = [step for dim, step in enumerate(self._stride) if dim not in given]
    shared = np.broadcast_shapes(*(places[dim].shape for dim in given))
    after = len(kept) - before
    itemsize = self._dtype.itemsize
    operands = [tuple(step * itemsize for step in (*kept[:before], *(0 for _ in shared), *kept[before:]))]
    for dim in given:
        moved = np.broadcast_to(places[dim], shared)
        steps = (0 if n == 1 else step for n, step in zip(moved.shape, moved.strides, strict=True))
        operands.append((*(0 for _ in range(before)), *steps, *(0 for _ in range(after))))
    return loop_layout.output_strides(shape, tuple(operands))


def _index(ks: int, self: TensorImpl, indices: Indices) -> Any:
    places = _advanced(self, indices)
    picked = np.asarray(self.strided_array()[places])
    return with_strides(picked, _index_strides(self, places, picked.shape), self)


index = forms("index", _index)


def _index_put_into(
    array: np.ndarray, self: TensorImpl, indices: Indices, values: TensorImpl, accumulate: bool
) -> None:
    places = _advanced(self, indices)
    given = values.strided_array()
    if self._dtype is not values._dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, "
            f"got {scalar_type(self._dtype)} for the destination and {scalar_type(values._dtype)} for the source."
        )
    shape = array[places].shape
    try:
        given = np.broadcast_to(given, shape)
    except ValueError:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values._shape)} cannot be broadcast to indexing result "
            f"of shape {list(shape)}"
        ) from None
    if np.may_share_memory(given, array):
        given = given.copy()
    if accumulate:
        _add_at(array, self._dtype, places, given)
    else:
        array[places] = given


def index_put(ks: int, self: TensorImpl, indices: Indices, values: TensorImpl, accumulate: bool) -> Any:
    """A copy of self, in its layout, with values (broadcast) written, or added, where the indices say."""
    stride = geometry.dense_strides(self._shape, self._stride)
    copy = with_strides(self.strided_array().copy(), stride, self)
    _index_put_into(copy.strided_array(), self, indices, values, accumulate)
    return copy


def index_put_(
    ks: int, self: TensorImpl, indices: Indices, values: TensorImpl, accumulate: bool
) -> TensorImpl:
    """index_put into self; RuntimeError where two elements of self share a cell."""
    if layout.has_overlap(self._shape, self._stride):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory "
            "location. Please clone() the tensor before performing the operation."
        )
    _index_put_into(self.strided_array(), self, indices, values, accumulate)
    return self
