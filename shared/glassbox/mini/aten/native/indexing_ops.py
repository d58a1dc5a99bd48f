"""Indexing: x[i, j] with tensors of indices and masks (PyTorch: ATen/native/TensorAdvancedIndexing.cpp)."""

import warnings
from typing import Any

import numpy as np

from ...c10 import geometry, layout
from ...c10.dtype import bfloat16, bfloat16_to_float32, bool_, float32_to_bfloat16, int32, int64, uint8
from ...c10.tensor_impl import TensorImpl
from .. import loop_layout
from ..memory_overlap import assert_no_overlap, has_internal_overlap
from .resize import forms, scalar_type, with_strides
from .scatter_gather import add_at, check_range, element_of

Indices = tuple[TensorImpl | None, ...]


def _advanced(self: TensorImpl, indices: Indices, checks: bool) -> tuple[Any, ...]:
    """What NumPy takes for `indices`: masks made into positions, None into whole dimensions.

    NumPy's rule for where the new dimensions go is PyTorch's: in place of the indexed ones where these lie
    side by side, in front otherwise.
    """
    if not any(index is not None for index in indices):
        raise IndexError("at least one index must be provided")
    if len(indices) > len(self._shape):
        raise IndexError(f"too many indices for tensor of dimension {len(self._shape)} (got {len(indices)})")
    places: list[Any] = []
    for index in indices:
        if index is None:
            places.append(slice(None))
        elif index._dtype in (bool_, uint8):
            _check_mask(self, index, len(places))
            found = np.nonzero(index.strided_array()) if index._shape else ()
            places.extend(found)
        elif index._dtype in (int64, int32):
            places.append(index.strided_array())
        else:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    if len(places) > len(self._shape):
        raise IndexError(f"too many indices for tensor of dimension {len(self._shape)} (got {len(places)})")
    arrays = [place for place in places if not isinstance(place, slice)]
    if not arrays:
        raise RuntimeError("a mask without dimensions picks nothing by itself: use x[mask], which adds a dimension")
    try:
        shared = (
            arrays[0].shape if len(arrays) == 1 else np.broadcast_shapes(*(each.shape for each in arrays))
        )
    except ValueError:
        shapes = ", ".join(str(list(array.shape)) for array in arrays)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
        ) from None
    if checks and 0 not in shared:
        for dim, place in enumerate(places):
            if not isinstance(place, slice):
                check_range(place, self._shape[dim], dim, IndexError, -self._shape[dim])
    return tuple(places)


def _check_mask(self: TensorImpl, mask: TensorImpl, dim: int) -> None:
    for d, n in enumerate(mask._shape):
        if dim + d >= len(self._shape) or n != self._shape[dim + d]:
            raise IndexError(
                f"The shape of the mask {list(mask._shape)} at index {d} does not match the shape "
                f"of the indexed tensor {list(self._shape)} at index {dim + d}"
            )


def _index_strides(self: TensorImpl, places: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of x[places]: a TensorIterator's over the indices and self, still where an index moves."""
    given = [place for place in places if not isinstance(place, slice)]
    if geometry.is_contiguous(self._shape, self._stride) and all(each.flags.c_contiguous for each in given):
        return geometry.contiguous_strides(shape)
    return _walked_strides(self, places, shape)


def _walked_strides(self: TensorImpl, places: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
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
    # NumPy finds what is out of range by itself, though without elements it looks less closely.
    places = _advanced(self, indices, 0 in self._shape)
    try:
        picked = np.asarray(self.strided_array()[places])
    except IndexError:
        _advanced(self, indices, True)
        raise
    return with_strides(picked, _index_strides(self, places, picked.shape), self)


index = forms("index", _index)


def _index_put_into(
    array: np.ndarray, self: TensorImpl, indices: Indices, values: TensorImpl, accumulate: bool
) -> None:
    places = _advanced(self, indices, True)
    given = values.strided_array()
    if self._dtype is not values._dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, "
            f"got {scalar_type(self._dtype)} for the destination and {scalar_type(values._dtype)} for the "
            "source."
        )
    shape = array[places].shape
    try:
        given = np.broadcast_to(given, shape)
    except ValueError:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values._shape)} cannot be broadcast to indexing "
            f"result of shape {list(shape)}"
        ) from None
    if np.may_share_memory(given, array):
        given = given.copy()
    if accumulate and self._dtype is bfloat16:
        _add_rounding(array, places, given)
    elif accumulate:
        add_at(array, self._dtype, places, given)
    else:
        array[places] = given


def _add_rounding(array: np.ndarray, places: tuple[Any, ...], given: np.ndarray) -> None:
    """array[places] += given for bits of bfloat16, rounded after every addition, as PyTorch does in this op."""
    # Elements of an expanded tensor may be one cell, so cells are told apart by where they lie.
    steps = [np.arange(n).reshape(-1, *(1,) * (array.ndim - 1 - d)) for d, n in enumerate(array.shape)]
    lies = sum((at * step for at, step in zip(steps, array.strides, strict=True)), np.zeros(array.shape, np.int64))
    cells = lies[places].reshape(-1)
    order = np.argsort(cells, kind="stable")
    first = np.searchsorted(cells[order], cells[order])
    turn = np.empty(cells.size, np.int64)
    turn[order] = np.arange(cells.size) - first
    where = np.arange(array.size).reshape(array.shape)[places].reshape(-1)
    values = given.reshape(-1)
    for nr in range(int(turn.max()) + 1 if cells.size else 0):
        now = np.unravel_index(where[turn == nr], array.shape)
        sums = bfloat16_to_float32(array[now]) + bfloat16_to_float32(values[turn == nr])
        array[now] = float32_to_bfloat16(sums)


def _fill_masked(array: np.ndarray, self: TensorImpl, indices: Indices, values: TensorImpl, accumulate: bool) -> bool:
    """Writes one value under one mask as masked_fill_ does, which converts it; False where it is not that.

    PyTorch: canDispatchToMaskedFill.
    """
    given = [index for index in indices if index is not None]
    if accumulate or len(given) != 1 or given[0]._dtype not in (bool_, uint8) or len(indices) > len(self._shape):
        return False
    mask = given[0]
    if layout.numel(values._shape) != 1 or values._device.type != "cpu" or mask._device != self._device:
        return False
    before = next(dim for dim, index in enumerate(indices) if index is not None)
    _check_mask(self, mask, before)
    if mask._dtype is not bool_:
        raise RuntimeError(
            f"index_put_ of one value only supports boolean masks, but got mask with dtype {mask._dtype.name}"
        )
    after = len(self._shape) - before - len(mask._shape)
    where = mask.strided_array().reshape(mask._shape + (1,) * after)
    np.copyto(array, element_of(values.values().item(), self._dtype), "unsafe", where)
    return True


def index_put(ks: int, self: TensorImpl, indices: Indices, values: TensorImpl, accumulate: bool) -> Any:
    """A copy of self, in its layout, with values (broadcast) written, or added, where the indices say."""
    stride = geometry.dense_strides(self._shape, self._stride)
    copy = with_strides(self.strided_array().copy(), stride, self)
    array = copy.strided_array()
    if not _fill_masked(array, self, indices, values, accumulate):
        _index_put_into(array, self, indices, values, accumulate)
    return copy


def index_put_(
    ks: int, self: TensorImpl, indices: Indices, values: TensorImpl, accumulate: bool
) -> TensorImpl:
    """index_put into self; UserWarning where two elements of self share a cell.

    RuntimeError where values or an index share cells with self.
    """
    if has_internal_overlap(self._shape, self._stride):
        warnings.warn(
            "Use of index_put_ on expanded tensors is deprecated. Please clone() the tensor before performing this "
            "operation.",
            UserWarning,
            stacklevel=2,
        )
    array = self.strided_array()
    if _fill_masked(array, self, indices, values, accumulate):
        return self
    for read in (values, *indices):
        if read is not None:
            assert_no_overlap(self, read)
    _index_put_into(array, self, indices, values, accumulate)
    return self
