"""Pointwise kernels, each made of one function of arrays (PyTorch: ATen/native/BinaryOps.h, UnaryOps.h).

The function gets NumPy arrays in the dtype that is computed in (float32 for bfloat16) and returns one. Where
operands have the same dtype and shape and lie in memory in index order, nothing has to be worked out and the
function is called at once: that is the fast path in each factory below. Everything else goes through a
TensorIterator. While a piece that makes its plans is replaced, everything does: no dtype is in a fast path then.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...c10.dtype import ALL, bfloat16, bool_, float32, float64, int64
from ...c10.dtype import dtype as DType  # noqa: N812
from ...c10.geometry import canonical
from ...c10.pieces import on_swap
from ...c10.tensor_impl import WRAPPED_NUMBER, TensorImpl
from .. import tensor_iterator
from ..tensor_iterator import BINARY_OP, COMPARISON_OP, UNARY_OP, TensorIterator, TensorIteratorConfig
from .loops import Function, adopt, fresh, into, number_array, supported, wrapped_number
from .structured import Structured

EVERY = frozenset(ALL)
FLOATS = frozenset((float32, float64, bfloat16))
NUMBERS = EVERY - {bool_}
WHOLE = EVERY - FLOATS

# Python numbers that only have to be converted to go with an array of the dtype.
_PLAIN_NUMBERS: dict[DType, tuple[type, ...]] = {float32: (float, int), float64: (float, int), int64: (int,)}

# How many plans a kernel keeps.
_MOST = 4096

# The dtypes that each fast path is open for: now, and while the framework makes its own plans.
_open: list[tuple[set[DType], frozenset[DType]]] = []


def unplanned(dtypes: frozenset[DType]) -> set[DType]:
    """These dtypes for a fast path to look its own up in; empty while a piece that makes plans is replaced."""
    now = set(dtypes) if tensor_iterator.own_pieces() else set()
    _open.append((now, dtypes))
    return now


def _open_and_close() -> None:
    own = tensor_iterator.own_pieces()
    for now, dtypes in _open:
        if own:
            now.update(dtypes)
        else:
            now.clear()


on_swap(_open_and_close)


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
    check: Callable[..., None] | None = None,
    wide_numbers: bool = False,
) -> Pointwise:
    """The kernel of an op of two tensors, `kernel(ks, self, other)`, in three forms.

    Of an op that takes an alpha the function gets alpha * other. dtypes: those that it computes in; label:
    its name in the error for another. check(self, other, alpha): refuses operands. wide_numbers: a single
    number after bfloat16 keeps float32's precision, as some of PyTorch's kernels have it.
    """
    label = label or f"{name}_cpu"
    result_dtype = config.static_dtype
    fast = unplanned((FLOATS if config.promote_integer_inputs_to_float else EVERY) & dtypes - {bfloat16})
    # Of the functions only a ufunc can be told where to write.
    writes = isinstance(function, np.ufunc) and result_dtype is None

    # Iterators of calls that need nothing but the function: same dtype, an output in index order.
    plans: dict[Any, TensorIterator] = {}
    on_swap(plans.clear)

    def functional(ks: int, self: TensorImpl, other: TensorImpl, alpha: Any = 1) -> Any:
        shape, stride, dtype, device = self._shape, self._stride, self._dtype, self._device
        simple = (
            dtype in fast and dtype is other._dtype and device is other._device and alpha == 1 and alpha is not True
        )
        if simple:
            # strided_array() without its frame where the arrays are there.
            a, b = self._array, other._array
            if a is None or b is None:
                a, b = self.strided_array(), other.strided_array()
            if shape and shape == other._shape and stride == other._stride and stride == canonical[shape]:
                return adopt(function(a, b), shape, stride, result_dtype or dtype, device)
            plan = plans.get((shape, stride, other._shape, other._stride, dtype))
            if plan is not None:
                return adopt(function(a, b), plan.shape, plan.output_stride, plan.result_dtype, device)
        elif shape and dtype in fast and stride == canonical[shape]:
            second = _second(self, other, alpha)
            if second is not None:
                array = function(self.strided_array(), second)
                return adopt(array, shape, stride, result_dtype or dtype, device)
        if check:
            check(self, other, alpha)
        iterator = tensor_iterator.build(config, (tensor_iterator.meta(self), tensor_iterator.meta(other)))
        supported(label, dtypes, iterator.common_dtype)
        if simple and iterator.direct:
            array = function(self.strided_array(), other.strided_array())
            if array.flags.c_contiguous:
                if len(plans) >= _MOST:
                    plans.clear()
                plans[shape, stride, other._shape, other._stride, dtype] = iterator
                return adopt(array, iterator.shape, iterator.output_stride, iterator.result_dtype, device)
        return fresh(iterator, _scaled(function, alpha), (), (self, other), wide_numbers)

    def out(ks: int, self: TensorImpl, other: TensorImpl, *alpha_and_out: Any) -> Any:
        *given, target = alpha_and_out
        alpha = given[0] if given else 1
        if check:
            check(self, other, alpha)
        return into(target, config, _scaled(function, alpha), (), (self, other), label, dtypes, wide_numbers)

    def inplace(ks: int, self: TensorImpl, other: TensorImpl, alpha: Any = 1) -> Any:
        shape, dtype = self._shape, self._dtype
        if (
            writes
            and shape
            and dtype in fast
            and self._stride == canonical[shape]
            and self._storage is not other._storage
        ):
            second: np.ndarray | None
            if dtype is other._dtype and shape == other._shape and self._device is other._device and _is_one(alpha):
                second = other.strided_array()
            else:
                second = _second(self, other, alpha)
            if second is not None:
                array = self.strided_array()
                function(array, second, out=array)
                return self
        return out(ks, self, other, alpha, self)

    return Pointwise(name, functional, inplace, out)


def comparison(name: str, function: Function, dtypes: frozenset[DType] = EVERY) -> tuple[Pointwise, Pointwise]:
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
    fast = unplanned((FLOATS if config.promote_integer_inputs_to_float else EVERY) & dtypes - {bfloat16})

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
    fast = unplanned((EVERY if check is None and config is BINARY_OP else frozenset()) & dtypes - {bfloat16})

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


def _is_one(alpha: Any) -> bool:
    return alpha == 1 and alpha is not True


def _second(self: TensorImpl, other: TensorImpl, alpha: Any) -> np.ndarray | None:
    """What goes beside `self`, which lies in index order, where it is a number or other times alpha.

    None where it takes a TensorIterator to say.
    """
    dtype = self._dtype
    plain = _PLAIN_NUMBERS.get(dtype, ())
    if other._meta is WRAPPED_NUMBER:
        number = other.strided_array().item()
        if type(number) in plain and 0 not in self._shape and _is_one(alpha):
            return number_array(number, dtype.numpy)
    elif (
        type(alpha) in plain
        and dtype is other._dtype
        and self._shape == other._shape
        and self._stride == other._stride
        and self._device is other._device
    ):
        return np.multiply(other.strided_array(), number_array(alpha, dtype.numpy))
    return None


def _scaled(function: Function, alpha: Any) -> Function:
    """The function of self and alpha * other; the product is rounded before the function sees it."""
    if _is_one(alpha):
        return function
    # An alpha wraps around in a small integer type, where NumPy would refuse it.
    return lambda a, b: function(a, np.multiply(b, np.asarray(alpha).astype(b.dtype)))
