"""Pointwise kernels from one function of arrays each: binary, unary, comparison (PyTorch: ATen/native/cpu/Loops.h).

The function gets NumPy arrays in the dtype that is computed in (float32 for bfloat16) and returns one. Where operands
have the same dtype and shape and lie in memory in index order, nothing has to be worked out and the function is called
at once: that is the fast path in each factory below. Everything else goes through a TensorIterator.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...c10.dtype import (
    ALL,
    bfloat16,
    bfloat16_to_float32,
    bool_,
    float32,
    float32_to_bfloat16,
    float64,
    int64,
    to_element,
)
from ...c10.dtype import dtype as DType  # noqa: N812
from ...c10.geometry import byte_strides, contiguous_strides, dense_strides
from ...c10.inference_mode import blocks as inference_blocks
from ...c10.pieces import cached, on_swap
from ...c10.storage import Storage
from ...c10.tensor_impl import WRAPPED_NUMBER, TensorImpl
from .. import copy as copies
from .. import tensor_iterator
from ..tensor_iterator import BINARY_OP, COMPARISON_OP, UNARY_OP, TensorIterator, TensorIteratorConfig
from .resize import not_implemented, resize_output
from .structured import Structured

Function = Callable[..., Any]

EVERY = frozenset(ALL)
FLOATS = frozenset((float32, float64, bfloat16))
NUMBERS = EVERY - {bool_}
WHOLE = EVERY - FLOATS

# Python numbers that NumPy takes beside an array of the dtype as PyTorch does: converted to its precision, no further.
_PLAIN_NUMBERS: dict[DType, tuple[type, ...]] = {float32: (float, int), float64: (float, int), int64: (int,)}


class _Canonical(dict[tuple[int, ...], tuple[int, ...]]):
    """Shape -> contiguous strides: a plain dict is the cheapest thing to ask on the fast path."""

    def __missing__(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        if len(self) >= 4096:
            self.clear()
        stride = self[shape] = contiguous_strides(shape)
        return stride


canonical = _Canonical()
on_swap(canonical.clear)


class Pointwise(Structured):
    """A structured kernel that has all three forms."""

    __slots__ = ()
    inplace: Function
    out: Function


def binary(
    name: str,
    function: Function,
    config: TensorIteratorConfig = BINARY_OP,
    *,
    dtypes: frozenset[DType] = EVERY,
    label: str = "",
    scaled: Function | None = None,
    check: Callable[..., None] | None = None,
    wide_numbers: bool = False,
) -> Pointwise:
    """The kernel of an op of two tensors, `kernel(ks, self, other)`, in three forms.

    dtypes: those that it computes in; label: its name in the error for another. scaled(a, b, alpha): what is computed
    where the op takes an alpha and that is not 1. check(self, other, alpha): refuses operands. wide_numbers: a single
    number after bfloat16 keeps float32's precision, as some of PyTorch's kernels have it.
    """
    label = label or f"{name}_cpu"
    result_dtype = config.static_dtype
    fast = (FLOATS if config.promote_integer_inputs_to_float else EVERY) & dtypes - {bfloat16}
    # Of the functions only a ufunc can be told where to write.
    writes = isinstance(function, np.ufunc) and result_dtype is None

    def functional(ks: int, self: TensorImpl, other: TensorImpl, alpha: Any = 1) -> Any:
        shape, dtype, stride = self._shape, self._dtype, self._stride
        simple = dtype in fast and alpha == 1 and alpha is not True
        if simple and shape and stride == canonical[shape]:
            if dtype is other._dtype and shape == other._shape:
                if stride == other._stride and self._device is other._device:
                    # strided_array() without its frame where the arrays are there.
                    a, b = self._array, other._array
                    if a is None or b is None:
                        a, b = self.strided_array(), other.strided_array()
                    array = function(a, b)
                    return adopt(array, shape, stride, result_dtype or dtype, self._device)
            elif other._meta is WRAPPED_NUMBER and 0 not in shape:
                number = other.strided_array().item()
                if type(number) in _PLAIN_NUMBERS.get(dtype, ()):
                    array = function(self.strided_array(), number)
                    return adopt(array, shape, stride, result_dtype or dtype, self._device)
        if check:
            check(self, other, alpha)
        iterator = tensor_iterator.build(
            config,
            (
                (shape, stride, dtype, self._meta is WRAPPED_NUMBER),
                (other._shape, other._stride, other._dtype, other._meta is WRAPPED_NUMBER),
            ),
        )
        if simple and iterator.direct and self._device is other._device:
            array = function(self.strided_array(), other.strided_array())
            if array.flags.c_contiguous:
                return adopt(
                    array, iterator.shape, iterator.output_stride, iterator.result_dtype, self._device
                )
        supported(label, dtypes, iterator.common_dtype)
        return fresh(iterator, *_scaled(function, scaled, alpha), (self, other), wide_numbers)

    def out(ks: int, self: TensorImpl, other: TensorImpl, *alpha_and_out: Any) -> Any:
        *alpha, target = alpha_and_out
        if check:
            check(self, other, *alpha or (1,), target)
        call, scalars = _scaled(function, scaled, *alpha or (1,))
        return into(target, config, call, scalars, (self, other), label, dtypes, wide_numbers)

    def inplace(ks: int, self: TensorImpl, other: TensorImpl, alpha: Any = 1) -> Any:
        shape, dtype = self._shape, self._dtype
        if (
            writes
            and shape
            and alpha == 1
            and dtype is other._dtype
            and shape == other._shape
            and dtype in fast
            and self._storage is not other._storage
            and self._device is other._device
            and self._stride == canonical[shape]
            and alpha is not True
        ):
            array = self.strided_array()
            function(array, other.strided_array(), array)
            return self
        return out(ks, self, other, alpha, self)

    return Pointwise(name, functional, inplace, out)


def comparison(
    name: str, function: Function, dtypes: frozenset[DType] = EVERY
) -> tuple[Pointwise, Pointwise]:
    """The kernels of an op that answers with bools: with a tensor, and with a number, on the other side."""
    with_tensor = binary(name, function, COMPARISON_OP, dtypes=dtypes)
    return with_tensor, with_number(f"{name}_scalar", with_tensor)


def with_number(name: str, kernel: Pointwise) -> Pointwise:
    """A binary kernel whose second operand is a Python number."""
    return Pointwise(
        name,
        lambda ks, self, other, *rest: kernel.functional(ks, self, wrapped_number(other, self), *rest),
        lambda ks, self, other, *rest: kernel.inplace(ks, self, wrapped_number(other, self), *rest),
        lambda ks, self, other, *rest: kernel.out(ks, self, wrapped_number(other, self), *rest),
    )


def unary(
    name: str,
    function: Function,
    config: TensorIteratorConfig = UNARY_OP,
    *,
    dtypes: frozenset[DType] = EVERY,
    label: str = "",
    check: Callable[[TensorImpl], None] | None = None,
) -> Pointwise:
    """The kernel of an op of one tensor and perhaps numbers, `kernel(ks, self, *numbers)`, in three forms.

    dtypes, label, check: as for binary.
    """
    label = label or f"{name}_cpu"
    result_dtype = config.static_dtype
    fast = (FLOATS if config.promote_integer_inputs_to_float else EVERY) & dtypes - {bfloat16}

    def functional(ks: int, self: TensorImpl, *numbers: Any) -> Any:
        shape, dtype = self._shape, self._dtype
        if shape and dtype in fast and self._stride == canonical[shape]:
            array = function(self.strided_array(), *numbers)
            return adopt(array, shape, self._stride, result_dtype or dtype, self._device)
        if check:
            check(self)
        iterator = tensor_iterator.build(config, (tensor_iterator.meta(self),))
        supported(label, dtypes, iterator.common_dtype)
        return fresh(iterator, function, numbers, (self,))

    def out(ks: int, self: TensorImpl, *numbers_and_out: Any) -> Any:
        *numbers, target = numbers_and_out
        if check:
            check(self)
        return into(target, config, function, numbers, (self,), label, dtypes)

    def inplace(ks: int, self: TensorImpl, *numbers: Any) -> Any:
        return out(ks, self, *numbers, self)

    return Pointwise(name, functional, inplace, out)


def pointwise(
    name: str,
    function: Function,
    tensors: int,
    config: TensorIteratorConfig = BINARY_OP,
    *,
    dtypes: frozenset[DType] = EVERY,
    label: str = "",
    check: Callable[..., None] | None = None,
) -> Pointwise:
    """The kernel of an op of any number of tensors and then numbers, in three forms; no fast path."""
    label = label or f"{name}_cpu"

    def functional(ks: int, *args: Any) -> Any:
        operands = args[:tensors]
        if check:
            check(*operands)
        iterator = tensor_iterator.build(config, tuple(map(tensor_iterator.meta, operands)))
        supported(label, dtypes, iterator.common_dtype)
        return fresh(iterator, function, args[tensors:], operands)

    def out(ks: int, *args: Any) -> Any:
        operands, target = args[:tensors], args[-1]
        if check:
            check(*operands)
        return into(target, config, function, args[tensors:-1], operands, label, dtypes)

    return Pointwise(name, functional, lambda ks, self, *rest: out(ks, self, *rest, self), out)


# What the forms share


def adopt(
    array: np.ndarray, shape: tuple[int, ...], stride: tuple[int, ...], dtype: DType, device: Any
) -> Any:
    """A fresh tensor over an array in index order, for callers that know its layout already."""
    # TensorImpl.adopt without what is known here: a ufunc's result for such operands is contiguous.
    storage = _new(Storage)
    storage.owner = array
    storage._nbytes = array.nbytes
    if inference_blocks[0]:
        return TensorImpl.fresh(storage, shape, stride, dtype, device)
    return TensorImpl.tensor_class(storage, shape, stride, 0, dtype, device, device.keys, [0], None, array)


_new = Storage.__new__


def fresh(
    iterator: TensorIterator,
    function: Function,
    numbers: Sequence[Any],
    operands: Sequence[TensorImpl],
    wide_numbers: bool = False,
) -> Any:
    """The function's result in a new tensor."""
    device = operands[0]._device
    if len(operands) > 1 and any(each._device is not device for each in operands):
        device = tensor_iterator.common_device(operands)
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
    return TensorImpl.fresh(Storage(array), shape, stride, iterator.result_dtype, device)


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
        function(*arrays, *numbers, target)
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
    """A function's result as elements of `dtype`, rounded first to the dtype that stands for the computation."""
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

    Kernels only read it, so that equal numbers share one. Raises TypeError for anything else, RuntimeError for a whole
    number beyond int64.
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
    tensor = TensorImpl.adopt(array, dtype, device)
    tensor._meta = WRAPPED_NUMBER
    return tensor


_shared_number = cached(_wrap)


def _scaled(function: Function, scaled: Function | None, alpha: Any) -> tuple[Function, tuple[Any, ...]]:
    if scaled is None or alpha == 1 and alpha is not True:
        return function, ()
    return scaled, (alpha,)


def _assert_numbers_fit(operands: Sequence[TensorImpl], common: DType) -> None:
    for each in operands:
        if each._meta is WRAPPED_NUMBER and not common.is_floating_point:
            to_element(each.strided_array().item(), common)


def _view(self: TensorImpl, shape: tuple[int, ...], stride: tuple[int, ...]) -> np.ndarray:
    itemsize = self._dtype.itemsize
    return np.ndarray(
        shape, self._dtype.numpy, self._storage.owner, self._offset * itemsize, byte_strides(stride, itemsize)
    )
