"""Arithmetic of two operands: add to pow, bitwise ops (PyTorch: ATen/native/BinaryOps.cpp, Pow.cpp)."""

import math
from typing import Any

import numpy as np

from ...c10 import geometry
from ...c10.dtype import bfloat16, bool_
from ...c10.tensor_impl import TensorImpl
from .. import tensor_iterator
from ..tensor_iterator import BINARY_FLOAT_OP, SCALAR_OP
from .loops import wrapped_number
from .pointwise import NUMBERS, WHOLE, Pointwise, binary, with_number
from .structured import Structured
from .unary_ops import trunc


def _check_alpha(self: TensorImpl, other: TensorImpl, alpha: Any) -> None:
    if alpha == 1 and alpha is not True:
        return
    metas = tensor_iterator.meta(self), tensor_iterator.meta(other)
    common = tensor_iterator.build(tensor_iterator.BINARY_OP, metas).common_dtype
    if isinstance(alpha, bool) and common is not bool_:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, float) and not common.is_floating_point:
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")


def _check_sub(self: TensorImpl, other: TensorImpl, alpha: Any) -> None:
    if self._dtype is bool_ and other._dtype is bool_:
        raise NotImplementedError(
            "Subtraction, the `-` operator, with two bool tensors is not supported: use `^` or logical_xor()."
        )
    if bool_ in (self._dtype, other._dtype):
        raise NotImplementedError(
            "Subtraction, the `-` operator, with a bool tensor is not supported: to invert a mask use `~` or "
            "logical_not()."
        )
    _check_alpha(self, other, alpha)


# With an alpha the product is rounded before the sum is; PyTorch fuses the two where the processor can.
add = binary("add", np.add, check=_check_alpha)
sub = binary("sub", np.subtract, dtypes=NUMBERS, check=_check_sub)
mul = binary("mul", np.multiply, wide_numbers=True)
div = binary("div", np.divide, BINARY_FLOAT_OP, wide_numbers=True)
maximum = binary("maximum", np.maximum)
minimum = binary("minimum", np.minimum)
bitwise_and = binary("bitwise_and", np.bitwise_and, dtypes=WHOLE)
bitwise_or = binary("bitwise_or", np.bitwise_or, dtypes=WHOLE)
bitwise_xor = binary("bitwise_xor", np.bitwise_xor, dtypes=WHOLE)
bitwise_and_scalar = with_number("bitwise_and_scalar", bitwise_and)
bitwise_or_scalar = with_number("bitwise_or_scalar", bitwise_or)
bitwise_xor_scalar = with_number("bitwise_xor_scalar", bitwise_xor)


def rsub(ks: int, self: TensorImpl, other: TensorImpl, alpha: Any) -> Any:
    """other - alpha * self."""
    return sub.functional(ks, other, self, alpha)


def rsub_scalar(ks: int, self: TensorImpl, other: Any, alpha: Any) -> Any:
    """number - alpha * self."""
    return sub.functional(ks, wrapped_number(other, self), self, alpha)


# Division that rounds


def _refuse_zero(a: np.ndarray, b: np.ndarray) -> None:
    if np.size(a) and not np.all(b):
        raise RuntimeError("ZeroDivisionError")


def _floor_divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind != "f":
        _refuse_zero(a, b)
    return np.floor_divide(a, b)


def _trunc_divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "f":
        return np.trunc(np.divide(a, b))
    _refuse_zero(a, b)
    down = np.floor_divide(a, b)
    inexact = np.not_equal(np.multiply(down, b), a)
    return np.add(down, inexact & (np.less(a, 0) != np.less(b, 0)), dtype=a.dtype)


def _remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind != "f":
        _refuse_zero(a, b)
        return np.remainder(a, b)
    # np.remainder gives a zero the sign of b, PyTorch leaves it that of a.
    rest = np.asarray(np.fmod(a, b))
    np.add(rest, b, out=rest, where=(rest != 0) & (np.less(b, 0) != (rest < 0)))
    return rest


def _fmod(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind != "f":
        _refuse_zero(a, b)
    return np.fmod(a, b)


floor_divide = binary("floor_divide", _floor_divide, dtypes=NUMBERS, label="div_floor_cpu", wide_numbers=True)
_trunc_divide_once = binary("trunc_divide", _trunc_divide, dtypes=NUMBERS, label="div_trunc_cpu", wide_numbers=True)
remainder = binary("remainder", _remainder, dtypes=NUMBERS)
fmod = binary("fmod", _fmod, dtypes=NUMBERS)
remainder_scalar = with_number("remainder_scalar", remainder)
fmod_scalar = with_number("fmod_scalar", fmod)

def _rounds_twice(self: TensorImpl, other: TensorImpl) -> bool:
    # PyTorch rounds the quotient of two bfloat16 tensors before it cuts it, unlike that by a number.
    return self._dtype is bfloat16 and other._dtype is bfloat16 and math.prod(other._shape) != 1


def _trunc_functional(ks: int, self: TensorImpl, other: TensorImpl) -> Any:
    if not _rounds_twice(self, other):
        return _trunc_divide_once.functional(ks, self, other)
    return trunc.inplace(ks, div.functional(ks, self, other))


def _trunc_out(ks: int, self: TensorImpl, other: TensorImpl, out: TensorImpl) -> Any:
    if not _rounds_twice(self, other):
        return _trunc_divide_once.out(ks, self, other, out)
    return trunc.inplace(ks, div.out(ks, self, other, out))


trunc_divide = Pointwise(
    "trunc_divide", _trunc_functional, lambda ks, self, other: _trunc_out(ks, self, other, self), _trunc_out
)
_DIVISIONS = {None: div, "floor": floor_divide, "trunc": trunc_divide}


def _division(rounding_mode: str | None) -> Pointwise:
    if rounding_mode not in _DIVISIONS:
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    return _DIVISIONS[rounding_mode]


div_mode = Pointwise(
    "div_mode",
    lambda ks, self, other, mode: _division(mode).functional(ks, self, other),
    lambda ks, self, other, mode: _division(mode).inplace(ks, self, other),
    lambda ks, self, other, mode, out: _division(mode).out(ks, self, other, out),
)


def remainder_scalar_tensor(ks: int, self: Any, other: TensorImpl) -> Any:
    """number % tensor."""
    return remainder.functional(ks, wrapped_number(self, other), other)


# Powers


def _power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "f":
        return np.power(a, b)
    negative = np.less(b, 0)
    if not np.any(negative):
        return np.power(a, b)
    # A whole number to a negative power: 1 and -1 have one, of all others nothing is left.
    odd = np.where(np.remainder(b, 2) == 1, a, np.ones_like(a))
    small = np.where(np.abs(a) == 1, odd, np.zeros_like(a))
    return np.where(negative, small, np.power(a, np.where(negative, np.zeros_like(b), b)))


def _power_of_number(a: np.ndarray, exponent: Any) -> np.ndarray:
    exponent = exponent if isinstance(exponent, int | float) else exponent.item()
    if exponent == 0:
        return np.ones_like(a)
    if exponent == 1:
        return np.array(a)
    if exponent == 2:
        return np.multiply(a, a)
    if exponent == 3:
        return np.multiply(np.multiply(a, a), a)
    if a.dtype.kind == "f":
        if exponent == 0.5:
            return np.sqrt(a)
        if exponent == -0.5:
            return np.divide(1, np.sqrt(a))
        if exponent == -1:
            return np.divide(1, a)
        if exponent == -2:
            return np.divide(1, np.multiply(a, a))
    elif exponent < 0:
        raise _negative_power()
    return np.power(a, exponent)


def _check_exponent(self: TensorImpl, exponent: TensorImpl, *rest: Any) -> None:
    whole = not self._dtype.is_floating_point and not exponent._dtype.is_floating_point
    if whole and exponent.strided_array().item() < 0:
        raise _negative_power()


def _negative_power() -> RuntimeError:
    return RuntimeError("Integers to negative integer powers are not allowed.")


pow_tensor_tensor = binary("pow_tensor_tensor", _power, dtypes=NUMBERS, label="pow")
pow_tensor_scalar = with_number(
    "pow_tensor_scalar", binary("pow", _power_of_number, SCALAR_OP, check=_check_exponent)
)


def _pow_scalar(ks: int, self: Any, exponent: TensorImpl) -> Any:
    result = pow_tensor_tensor.functional(ks, wrapped_number(self, exponent), exponent)
    if result._stride == geometry.contiguous_strides(result._shape):
        return result
    # PyTorch gives this one result contiguous strides whatever the exponent's are.
    return result.of_values(result.values(), result._dtype, result._device)


def _pow_scalar_out(ks: int, self: Any, exponent: TensorImpl, out: TensorImpl) -> Any:
    return pow_tensor_tensor.out(ks, wrapped_number(self, exponent), exponent, out)


pow_scalar = Structured("pow_scalar", _pow_scalar, None, _pow_scalar_out)
