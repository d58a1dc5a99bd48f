"""Joining and rearranging: cat to padding (PyTorch: ATen/native/TensorShape.cpp, PadNd.cpp)."""

from typing import Any

import numpy as np

from ...c10 import dtype as dtypes
from ...c10 import geometry, layout, promotion
from ...c10.dtype import bfloat16
from ...c10.dtype import dtype as DType  # noqa: N812
from ...c10.tensor_impl import TensorImpl
from ..loop_layout import CHANNELS_INNERMOST, has_channels_innermost, laid_out
from .resize import (
    refuse_overlap,
    scalar_type,
    suggested_strides,
    with_strides,
)
from .resize import write_out as _write_out
from .structured import Structured

Ints = tuple[int, ...]


def _is_skipped(tensor: TensorImpl) -> bool:
    # cat has always let an empty 1-d tensor stand for nothing, whatever the shapes of the others.
    return tensor._shape == (0,)


def _check_cat(tensors: tuple[TensorImpl, ...], dim: int) -> tuple[int, Ints]:
    """The wrapped dim and the shape of the result; PyTorch's errors where the tensors do not fit together."""
    if not tensors:
        raise ValueError("cat(): expected a non-empty list of Tensors")
    for place, tensor in enumerate(tensors):
        if not tensor._shape:
            raise RuntimeError(f"zero-dimensional tensor (at position {place}) cannot be concatenated")
    model = next((tensor for tensor in tensors if not _is_skipped(tensor)), tensors[0])
    shape = model._shape
    axis = layout.wrap_dim(dim, len(shape))
    total = 0
    for place, tensor in enumerate(tensors):
        if tensor._device != model._device:
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{model._device} and {tensor._device}"
            )
        if _is_skipped(tensor):
            continue
        if len(tensor._shape) != len(shape):
            raise RuntimeError(
                f"Tensors must have same number of dimensions: got {len(shape)} and {len(tensor._shape)}"
            )
        for d, (mine, theirs) in enumerate(zip(shape, tensor._shape, strict=True)):
            if d != axis and mine != theirs:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {axis}. Expected size {mine} but got "
                    f"size {theirs} for tensor number {place} in the list."
                )
        total += tensor._shape[axis]
    return axis, (*shape[:axis], total, *shape[axis + 1 :])


def _common_dtype(tensors: tuple[TensorImpl, ...]) -> DType:
    first = tensors[0]._dtype
    if all(tensor._dtype is first for tensor in tensors):
        return first
    return promotion.common_dtype(
        tuple((each._dtype.name, promotion.TENSOR if each._shape else promotion.ZERO_DIM) for each in tensors)
    )


def _cat(ks: int, tensors: tuple[TensorImpl, ...], dim: int) -> Any:
    axis, shape = _check_cat(tensors, dim)
    dtype = _common_dtype(tensors)
    parts = [
        dtypes.convert(tensor.strided_array(), tensor._dtype, dtype)
        for tensor in tensors
        if not _is_skipped(tensor)
    ]
    first = tensors[0]
    if not parts:
        return TensorImpl.allocate((0,), (1,), dtype, first._device)
    if len(shape) == 4 and all(has_channels_innermost(tensor._shape, tensor._stride) for tensor in tensors):
        stride = laid_out(shape, CHANNELS_INNERMOST)
        return with_strides(np.concatenate(parts, axis), stride, first, dtype)
    joined = np.empty(shape, dtype.numpy)
    np.concatenate(parts, axis, out=joined)
    return TensorImpl.adopt(joined, dtype, first._device)


def _cat_out(ks: int, tensors: tuple[TensorImpl, ...], dim: int, out: TensorImpl) -> TensorImpl:
    refuse_overlap(out, tensors)
    result = _cat(ks, tensors, dim)
    if not promotion.can_cast(result._dtype, out._dtype):
        raise TypeError(
            f"cat(): input types can't be cast to the desired output type {scalar_type(out._dtype)}"
        )
    _write_out(out, result, True, keeps_layout=True)
    return out


cat = Structured("cat", _cat, None, _cat_out)


def stack(ks: int, tensors: tuple[TensorImpl, ...], dim: int) -> Any:
    """Tensors of one shape along a new dimension; RuntimeError where the shapes differ or there is none."""
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    shape = tensors[0]._shape
    axis = layout.wrap_dim(dim, len(shape) + 1)
    for place, tensor in enumerate(tensors):
        if tensor._shape != shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and "
                f"{list(tensor._shape)} at entry {place}"
            )
    full = (*shape[:axis], len(tensors), *shape[axis:])
    if axis < len(shape):
        # Joined along the dimension that follows, which is then split in two: the layout is that of cat.
        joined = _cat(ks, tensors, axis)
        _, stride = geometry.view(joined._shape, joined._stride, full)
        assert stride is not None
        return TensorImpl.fresh(joined._storage, full, stride, joined._dtype, joined._device)
    return _cat(
        ks, tuple(each.alias((*shape, 1), (*each._stride, 1), each._offset) for each in tensors), axis
    )


def repeat(ks: int, self: TensorImpl, repeats: Ints) -> Any:
    """The tensor side by side `repeats` times per dimension; further repeats add dimensions in front."""
    if len(repeats) < len(self._shape):
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
        )
    padded = (1,) * (len(repeats) - len(self._shape)) + self._shape
    full = tuple(times * size for times, size in zip(repeats, padded, strict=True))
    if any(n < 0 for n in full):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(full)}: {list(full)}")
    array = np.ascontiguousarray(np.tile(self.strided_array(), repeats)).reshape(full)
    return TensorImpl.adopt(array, self._dtype, self._device)


def flip(ks: int, self: TensorImpl, dims: Ints) -> Any:
    """The order of the elements reversed along `dims`; the layout in memory is that of self."""
    ndim = len(self._shape)
    axes = [layout.wrap_dim(dim, ndim) for dim in dims]
    for axis in axes:
        if axes.count(axis) > 1:
            raise RuntimeError(f"dim {axis} appears multiple times in the list of dims")
    flipped = np.flip(self.strided_array(), tuple(axes)) if ndim else self.strided_array()
    return with_strides(flipped.copy(), geometry.dense_strides(self._shape, self._stride), self)


def roll(ks: int, self: TensorImpl, shifts: Ints, dims: Ints) -> Any:
    """Elements shifted along `dims`, coming in again at the other end; without dims, over the flat tensor."""
    if not shifts:
        raise RuntimeError("`shifts` required")
    if dims and len(dims) != len(shifts):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    if not dims:
        if len(shifts) != 1:
            raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:0")
        return TensorImpl.adopt(np.roll(self.strided_array(), shifts[0]), self._dtype, self._device)
    if 0 in self._shape:
        return with_strides(self.strided_array(), geometry.dense_strides(self._shape, self._stride), self)
    for dim in dims:
        if not self._shape:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        layout.wrap_dim(dim, len(self._shape))
    return with_strides(
        np.roll(self.strided_array(), shifts, dims), suggested_strides(self._shape, self), self
    )


def constant_pad_nd(ks: int, self: TensorImpl, pad: Ints, value: bool | int | float) -> Any:
    """`pad` says, from the last dimension on, how much to add before and after; negative numbers crop."""
    ndim = len(self._shape)
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * ndim:
        raise RuntimeError(
            f"Length of pad should be no more than twice the number of dimensions of the input. Pad length "
            f"is {len(pad)} while the input has {ndim} dimensions."
        )
    shape = list(self._shape)
    source, target = [slice(None)] * ndim, [slice(None)] * ndim
    for i in range(len(pad) // 2):
        dim, before, after = ndim - 1 - i, pad[2 * i], pad[2 * i + 1]
        size = self._shape[dim]
        shape[dim] = size + before + after
        if size + min(before, 0) + min(after, 0) < 0:
            raise RuntimeError(
                f"The input size {size}, plus negative padding {before} and {after} resulted in a negative "
                f"output size, which is invalid. Check dimension {dim} of your input."
            )
        source[dim] = slice(max(-before, 0), max(size - max(-after, 0), 0))
        target[dim] = slice(max(before, 0), max(shape[dim] - max(after, 0), 0))
    picked = self.strided_array()[tuple(source)]
    if all(n <= 0 for n in pad):
        return with_strides(picked.copy(), geometry.dense_strides(picked.shape, self._stride), self)
    filler = np.asarray(dtypes.to_element(value, self._dtype))
    if self._dtype is bfloat16:
        filler = dtypes.float32_to_bfloat16(filler)
    padded = np.full(shape, filler, self._dtype.numpy)
    if picked.size:
        padded[tuple(target)] = picked
    return with_strides(padded, suggested_strides(tuple(shape), self), self)
