"""Functions of one operand: neg to erf (PyTorch: ATen/native/UnaryOps.cpp)."""

from typing import Any

import numpy as np

from ...c10.dtype import bool_
from ...c10.tensor_impl import TensorImpl
from ..tensor_iterator import UNARY_FLOAT_OP
from . import erf as error_function
from .loops import number_array
from .pointwise import FLOATS, NUMBERS, WHOLE, Pointwise, unary


def _check_neg(self: TensorImpl) -> None:
    if self._dtype is bool_:
        raise NotImplementedError(
            "Negation, the `-` operator, on a bool tensor is not supported: to invert a mask use `~` or "
            "logical_not()."
        )


def _sign(a: np.ndarray) -> np.ndarray:
    # np.sign keeps a NaN, which PyTorch makes 0.
    return np.subtract(np.greater(a, 0), np.less(a, 0), dtype=a.dtype) if a.dtype.kind != "b" else np.array(a)


def _of_floats(function: Any) -> Any:
    """A function that leaves whole numbers as they are."""
    return lambda a: function(a) if a.dtype.kind == "f" else np.array(a)


def _round(a: np.ndarray, decimals: int = 0) -> np.ndarray:
    if decimals == 0:
        return np.rint(a)
    ten_power = np.asarray(10.0 ** (decimals if decimals > 0 else -decimals)).astype(a.dtype)
    if decimals > 0:
        return np.divide(np.rint(np.multiply(a, ten_power)), ten_power)
    return np.multiply(np.rint(np.divide(a, ten_power)), ten_power)


def _sigmoid(a: np.ndarray) -> np.ndarray:
    return np.reciprocal(np.add(np.exp(np.negative(a)), number_array(1, a.dtype)))


neg = unary("neg", np.negative, dtypes=NUMBERS, check=_check_neg)
abs = unary("abs", np.abs, dtypes=NUMBERS)  # noqa: A001 - PyTorch's own name
sign = unary("sign", _sign)
bitwise_not = unary("bitwise_not", np.invert, dtypes=WHOLE)

floor = unary("floor", _of_floats(np.floor), dtypes=NUMBERS, label="floor_vml_cpu")
ceil = unary("ceil", _of_floats(np.ceil), dtypes=NUMBERS, label="ceil_vml_cpu")
trunc = unary("trunc", _of_floats(np.trunc), dtypes=NUMBERS, label="trunc_vml_cpu")
round = unary("round", _of_floats(np.rint), dtypes=NUMBERS, label="round_vml_cpu")  # noqa: A001
round_decimals = unary("round_decimals", _round, dtypes=FLOATS, label="round_cpu")

exp = unary("exp", np.exp, UNARY_FLOAT_OP)
expm1 = unary("expm1", np.expm1, UNARY_FLOAT_OP)
log = unary("log", np.log, UNARY_FLOAT_OP)
log1p = unary("log1p", np.log1p, UNARY_FLOAT_OP)
sqrt = unary("sqrt", np.sqrt, UNARY_FLOAT_OP)
rsqrt = unary("rsqrt", lambda a: np.reciprocal(np.sqrt(a)), UNARY_FLOAT_OP)
reciprocal = unary("reciprocal", np.reciprocal, UNARY_FLOAT_OP)
sin = unary("sin", np.sin, UNARY_FLOAT_OP)
cos = unary("cos", np.cos, UNARY_FLOAT_OP)
tanh = unary("tanh", np.tanh, UNARY_FLOAT_OP)
sigmoid = unary("sigmoid", _sigmoid, UNARY_FLOAT_OP)
erf = unary("erf", error_function.erf, UNARY_FLOAT_OP)


# relu: the 0 comes first in np.maximum, which returns its second argument, perhaps a -0.0, where both are
# zeros


def _check_relu(self: TensorImpl) -> None:
    if self._dtype is bool_:
        raise NotImplementedError("Boolean inputs not supported for relu")


# A 0-d array of the right dtype costs half of what a Python 0 does, which NumPy converts at every call.
_ZEROS = {dtype: np.zeros((), dtype) for dtype in {each.numpy for each in NUMBERS}}
_relu = unary("relu", lambda a: np.maximum(_ZEROS[a.dtype], a), dtypes=NUMBERS, check=_check_relu)
relu = Pointwise("relu", _relu.functional, _relu.inplace, _relu.out)
