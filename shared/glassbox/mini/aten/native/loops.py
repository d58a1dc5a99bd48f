"""Running a planned loop: operands as arrays, the result as a tensor (PyTorch: ATen/native/cpu/Loops.h).

A function of arrays gets its operands in the dtype that is computed in and seen as the TensorIterator walks
them; what it returns becomes the storage of a fresh tensor, or is written into a given one.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...c10.dtype import bfloat16, bfloat16_to_float32, bool_, float32_to_bfloat16, float64, int64, to_element
from ...c10.dtype import dtype as DType  # noqa: N812
from ...c10.geometry import byte_strides, dense_strides
from ...c10.pieces import cached
from ...c10.storage import Storage
from ...c10.tensor_impl import WRAPPED_NUMBER, TensorImpl, adopt
from .. import copy as copies
from .. import tensor_iterator
from ..tensor_iterator import TensorIterator, TensorIteratorConfig
from .resize import not_implemented, resize_output

Function = Callable[..., Any]


def fresh(
    iterator: TensorIterator,
    function: Function,
    numbers: Sequence[Any],
    operands: Sequence[TensorImpl],
    wide_numbers: bool = False,
) -> Any:
    """The function's result in a new tensor."""
    device = operands[0]._device
    for each in operands:
        if each._device is not device:
            device = tensor_iterator.common_device(operands)
            break
    result = function(*load(iterator, operands, wide_numbers), *numbers)
    array = to_storage(result, iterator.common_dtype, iterator.result_dtype)
    shape, stride = iterator.shape, iterator.output_stride
    if not iterator.adopts:
        tensor = TensorImpl.allocate(shape, stride, iterator.result_dtype, device)
        tensor.strided_array()[...] = array
        return tensor
    if iterator.views is not None and array.shape != iterator.loop_shape[::-1]:
        array = np.broadcast_to(array, iterator.loop_shape[::-1])
    if not array.flags.c_contiguous:
        array = array.copy()
    if iterator.views is None:
        return adopt(array, shape, stride, iterator.result_dtype, device)
    return TensorImpl.fresh(Storage.over(array), shape, stride, iterator.result_dtype, device)


def into(
    out: TensorImpl,
    config: TensorIteratorConfig,
    function: Function,
    numbers: Sequence[Any],
    operands: Sequence[TensorImpl],
    label: str,
    dtypes: frozenset[DType],
    wide_numbers: bool = False,
) -> Any:
    """The function's result written into `out`, which is resized where it is no operand itself."""
    tensor_iterator.compute_mem_overlaps(out, operands)
    metas = tuple(map(tensor_iterator.meta, operands))
    read_write = any(each is out for each in operands)
    iterator = tensor_iterator.build(config, metas, tensor_iterator.meta(out), read_write)
    supported(label, dtypes, iterator.common_dtype)
    tensor_iterator.common_device((out, *operands))
    if resize_output(out, iterator.shape):
        out._stride, out._array = iterator.output_stride, None
    arrays = load(iterator, operands, wide_numbers)
    target = out.strided_array()
    if (
        iterator.plain
        and out._dtype is iterator.common_dtype
        and isinstance(function, np.ufunc)
        and not config.static_dtype
    ):
        function(*arrays, *numbers, out=target)
    else:
        target[...] = to_storage(function(*arrays, *numbers), iterator.common_dtype, out._dtype)
    return out


def load(iterator: TensorIterator, operands: Sequence[TensorImpl], wide_numbers: bool) -> list[np.ndarray]:
    """The operands as arrays in the dtype that is computed in, seen as the iterator walks them."""
    common = iterator.common_dtype
    if not iterator.config.scalars_have_layout:
        _assert_numbers_fit(operands, common)
    if iterator.views is None:
        arrays = [each.strided_array() for each in operands]
    else:
        # The iterator reckons with the layout of a converted copy, so that is made first.
        operands = [
            copies.fresh_copy(each, dense_strides(each._shape, each._stride), common)
            if casts and each._shape
            else each
            for each, casts in zip(operands, iterator.casts, strict=True)
        ]
        arrays = [_view(each, *view) for each, view in zip(operands, iterator.views, strict=True)]
    if iterator.plain:
        return arrays
    for i, each in enumerate(operands):
        array = arrays[i]
        if each._dtype is bfloat16:
            array = bfloat16_to_float32(array)
        if each._dtype is not common and iterator.casts[i]:
            if common is not bfloat16:
                array = array.astype(common.numpy)
            else:
                array = array.astype(np.float32)
                if not (wide_numbers and i == 1 and array.size == 1):
                    array = bfloat16_to_float32(float32_to_bfloat16(array))
        arrays[i] = array
    return arrays


def to_storage(result: Any, computed: DType, dtype: DType) -> np.ndarray:
    """A function's result as elements of `dtype`, rounded first to the dtype that is computed in."""
    array = np.asarray(result)
    if computed is bfloat16 and array.dtype.kind == "f":
        array = float32_to_bfloat16(array)
        if dtype is bfloat16:
            return array
        array = bfloat16_to_float32(array)
    if array.dtype == dtype.numpy:
        return array
    return float32_to_bfloat16(array.astype(np.float32)) if dtype is bfloat16 else array.astype(dtype.numpy)


def supported(label: str, dtypes: frozenset[DType], common: DType) -> None:
    """NotImplementedError where a kernel has no code for the dtype it would compute in."""
    if common not in dtypes:
        raise not_implemented(label, common)


def wrapped_number(number: Any, beside: TensorImpl) -> Any:
    """A Python number as a 0-d tensor that promotion takes for a number; a tensor as it is.

    Kernels only read it, so that equal numbers share one. Raises TypeError for anything else, RuntimeError
    for a whole number beyond int64.
    """
    if isinstance(number, TensorImpl):
        return number
    if number == 0 and type(number) is not int:
        # 0.0 and -0.0 are equal and must not be taken for each other.
        return _wrap(number, beside._device)
    return _shared_number(number, beside._device)


def _wrap(number: Any, device: Any) -> Any:
    if isinstance(number, bool | np.bool_):
        dtype = bool_
    elif isinstance(number, int | np.integer):
        dtype = int64
    elif isinstance(number, float | np.floating):
        dtype = float64
    else:
        raise TypeError(f"expected a number or a tensor, got {type(number).__name__}")
    try:
        array = np.array(number, dtype.numpy)
    except OverflowError:
        raise RuntimeError(f"value {number} cannot be converted to type int64 without overflow") from None
    array.flags.writeable = False
    tensor = TensorImpl.adopt(array, dtype, device)
    tensor._meta = WRAPPED_NUMBER
    return tensor


_shared_number = cached(_wrap)


def number_array(number: Any, dtype: np.dtype) -> np.ndarray:
    """A Python number as a 0-d array, remembered: NumPy converts a bare number anew at every call."""
    return _number_array(number, dtype) if number else np.array(number, dtype)


@cached
def _number_array(number: Any, dtype: np.dtype) -> np.ndarray:
    return np.array(number, dtype)


def _assert_numbers_fit(operands: Sequence[TensorImpl], common: DType) -> None:
    for each in operands:
        if each._meta is WRAPPED_NUMBER and not common.is_floating_point:
            to_element(each.strided_array().item(), common)


def _view(self: TensorImpl, shape: tuple[int, ...], stride: tuple[int, ...]) -> np.ndarray:
    itemsize = self._dtype.itemsize
    return np.ndarray(
        shape, self._dtype.numpy, self._storage.owner, self._offset * itemsize, byte_strides(stride, itemsize)
    )
