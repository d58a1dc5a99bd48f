"""Pointwise kernels, each made of one function of arrays (PyTorch: ATen/native/BinaryOps.h, UnaryOps.h).

The function gets NumPy arrays in the dtype that is computed in (float32 for bfloat16) and returns one. Where
operands have the same dtype and shape and lie in memory in index order, nothing has to be worked out and the
function is called at once: that is the fast path in each factory below. Everything else goes through a
TensorIterator.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...c10.dtype import ALL, bfloat16, bool_, float32, float64, int64
from ...c10.dtype import dtype as DType  # noqa: N812
from ...c10.geometry import contiguous_strides
from ...c10.pieces import on_swap
from ...c10.tensor_impl import WRAPPED_NUMBER, TensorImpl
from .. import tensor_iterator
from ..tensor_iterator import BINARY_OP, COMPARISON_OP, UNARY_OP, TensorIteratorConfig
from .loops import Function, adopt, fresh, into, supported, wrapped_number
from .structured import Structured

EVERY = frozenset(ALL)
FLOATS = frozenset((float32, float64, bfloat16))
NUMBERS = EVERY - {bool_}
WHOLE = EVERY - FLOATS

# Python numbers that NumPy takes beside an array of the dtype as PyTorch does: converted to its precision, no
# further.
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

    dtypes: those that it computes in; label: its name in the error for another. scaled(a, b, alpha): what is
    computed where the op takes an alpha and that is not 1. check(self, other, alpha): refuses operands.
    wide_numbers: a single number after bfloat16 keeps float32's precision, as some of PyTorch's kernels have
    it.
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
            function(array, other.strided_array(), out=array)
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
    """The kernel of an op of any number of tensors and then numbers, in three forms."""
    label = label or f"{name}_cpu"
    fast = (EVERY if check is None and config is BINARY_OP else frozenset()) & dtypes - {bfloat16}

    def functional(ks: int, *args: Any) -> Any:
        operands = args[:tensors]
        first = operands[0]
        shape, stride, dtype, device = first._shape, first._stride, first._dtype, first._device
        if shape and dtype in fast and stride == canonical[shape]:
            for each in operands:
                if (
                    each._shape != shape
                    or each._dtype is not dtype
                    or each._stride != stride
                    or each._device is not device
                ):
                    break
            else:
                array = function(*[each.strided_array() for each in operands], *args[tensors:])
                return adopt(array, shape, stride, dtype, device)
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


def _scaled(function: Function, scaled: Function | None, alpha: Any) -> tuple[Function, tuple[Any, ...]]:
    if scaled is None or alpha == 1 and alpha is not True:
        return function, ()
    return scaled, (alpha,)
