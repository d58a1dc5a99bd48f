"""Activations with their backward ops, functions of three operands (PyTorch: ATen/native/Activation.cpp).

The backward ones are ops of their own, as in PyTorch: autograd calls them.
"""

import math
from typing import Any

import numpy as np

from ...c10.dtype import float32
from ...c10.geometry import canonical
from ...c10.tensor_impl import TensorImpl, adopt
from ..tensor_iterator import UNARY_OP
from .erf import erf
from .pointwise import FLOATS, NUMBERS, Pointwise, binary, pointwise, unary, unplanned


def _threshold_backward(x: np.ndarray, grad: np.ndarray, threshold: Any) -> np.ndarray:
    passes = np.logical_not(np.less_equal(x, threshold))
    if grad.dtype.kind != "f":
        return np.multiply(grad, passes)
    # The bits of a float times 0 or 1: the float's own product with 0 is NaN for an infinity, and -0.0 for
    # half of all numbers. Choosing with np.where takes twice as long.
    bits = np.asarray(grad).view(np.int32 if grad.dtype.itemsize == 4 else np.int64)
    return np.asarray(np.multiply(bits, passes)).view(grad.dtype)


def _softplus(x: np.ndarray, beta: Any, threshold: Any) -> np.ndarray:
    scaled = np.multiply(x, beta)
    return np.where(scaled > threshold, x, np.divide(np.log1p(np.exp(scaled)), beta))


def _softplus_backward(grad: np.ndarray, x: np.ndarray, beta: Any, threshold: Any) -> np.ndarray:
    z = np.exp(np.multiply(x, beta))
    return np.where(np.multiply(x, beta) > threshold, grad, grad * z / (z + 1))


def _gelu(x: np.ndarray, approximate: str) -> np.ndarray:
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(_GELU_SCALE * (x + _GELU_CUBIC * x * x * x)))
    return 0.5 * x * (1 + erf(np.multiply(x, math.sqrt(0.5))))


def _gelu_backward(grad: np.ndarray, x: np.ndarray, approximate: str) -> np.ndarray:
    if approximate == "tanh":
        inner = np.tanh(_GELU_SCALE * (x + _GELU_CUBIC * x * x * x))
        slope = _GELU_SCALE * (1 + 3 * _GELU_CUBIC * x * x)
        return grad * (0.5 * (1 + inner) + 0.5 * x * (1 - inner * inner) * slope)
    below = 0.5 * (1 + erf(np.multiply(x, math.sqrt(0.5))))
    density = np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    return grad * (below + x * density)


_GELU_SCALE = math.sqrt(2 / math.pi)
_GELU_CUBIC = 0.044715


def _silu(x: np.ndarray) -> np.ndarray:
    return np.divide(x, np.add(np.exp(np.negative(x)), 1))


def _silu_backward(grad: np.ndarray, x: np.ndarray) -> np.ndarray:
    s = np.divide(1, np.add(np.exp(np.negative(x)), 1))
    return grad * s * (1 + x * (1 - s))


def _leaky_relu(x: np.ndarray, slope: Any) -> np.ndarray:
    return np.where(np.greater(x, 0), x, np.multiply(x, slope))


def _leaky_relu_backward(x: np.ndarray, grad: np.ndarray, slope: Any, self_is_result: bool) -> np.ndarray:
    if self_is_result and slope < 0:
        raise RuntimeError("In-place leakyReLu backward calculation has no answer for a negative slope")
    return np.where(np.greater(x, 0), grad, np.multiply(grad, slope))


def _self_first(kernel: Pointwise) -> Pointwise:
    """The kernel with its first two operands exchanged, for ops that ask self before grad for its layout."""
    return Pointwise(
        kernel.name,
        lambda ks, grad, self, *rest: kernel.functional(ks, self, grad, *rest),
        lambda ks, grad, self, *rest: kernel.out(ks, self, grad, *rest, grad),
        lambda ks, grad, self, *rest: kernel.out(ks, self, grad, *rest),
    )


silu = unary("silu", _silu, dtypes=FLOATS)
gelu = unary("gelu", _gelu, dtypes=FLOATS, label="GeluKernelImpl")
softplus = unary("softplus", _softplus, dtypes=FLOATS)
leaky_relu = unary("leaky_relu", _leaky_relu, dtypes=FLOATS)
silu_backward = binary("silu_backward", _silu_backward, dtypes=FLOATS)
gelu_backward = pointwise("gelu_backward", _gelu_backward, 2, dtypes=FLOATS, label="GeluBackwardKernelImpl")
softplus_backward = pointwise("softplus_backward", _softplus_backward, 2, dtypes=FLOATS)
leaky_relu_backward = _self_first(pointwise("leaky_relu_backward", _leaky_relu_backward, 2, dtypes=FLOATS))
_threshold = _self_first(pointwise("threshold", _threshold_backward, 2, dtypes=NUMBERS))


_fast = unplanned(frozenset({float32}))


def _relu_backward(ks: int, grad: TensorImpl, self: TensorImpl, threshold: Any) -> Any:
    shape, stride, dtype = grad._shape, grad._stride, grad._dtype
    if (
        dtype in _fast
        and dtype is self._dtype
        and shape
        and shape == self._shape
        and stride == self._stride == canonical[shape]
        and grad._device is self._device
    ):
        array = _threshold_backward(self.strided_array(), grad.strided_array(), threshold)
        return adopt(array, shape, stride, dtype, grad._device)
    return _threshold.functional(ks, grad, self, threshold)


threshold_backward = Pointwise("threshold_backward", _relu_backward, _threshold.inplace, _threshold.out)
tanh_backward = binary("tanh_backward", lambda grad, y: grad * (1 - y * y), dtypes=FLOATS)
sigmoid_backward = binary("sigmoid_backward", lambda grad, y: grad * ((1 - y) * y), dtypes=FLOATS)


# Three operands


def _number(value: Any, like: np.ndarray) -> np.ndarray:
    return np.asarray(value).astype(like.dtype)


def _addcmul(a: np.ndarray, b: np.ndarray, c: np.ndarray, value: Any) -> np.ndarray:
    return np.add(a, np.multiply(b if value == 1 else np.multiply(_number(value, b), b), c))


def _addcdiv(a: np.ndarray, b: np.ndarray, c: np.ndarray, value: Any) -> np.ndarray:
    return np.add(a, np.divide(b if value == 1 else np.multiply(_number(value, b), b), c))


def _check_addcdiv(self: TensorImpl, tensor1: TensorImpl, tensor2: TensorImpl) -> None:
    if not tensor1._dtype.is_floating_point and not tensor2._dtype.is_floating_point:
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported: convert one of tensor1 and tensor2 to "
            "floating point, or divide with div(..., rounding_mode='trunc')."
        )


def _lerp(a: np.ndarray, b: np.ndarray, weight: Any) -> np.ndarray:
    w = _number(weight, a)
    # From the nearer end, so that weights 0 and 1 give the ends themselves.
    away = np.subtract(b, a)
    near = np.add(a, np.multiply(w, away))
    far = np.subtract(b, np.multiply(away, np.subtract(_number(1, a), w)))
    return np.where(np.abs(w) < 0.5, near, far)


def _check_lerp(self: TensorImpl, end: TensorImpl, *weight: TensorImpl) -> None:
    for name, each in zip(("end", "weight"), (end, *weight), strict=False):
        if each._dtype is not self._dtype and (name == "end" or each._shape):
            raise RuntimeError(f"expected dtype {self._dtype.name} for `{name}` but got dtype {each._dtype.name}")


addcmul = pointwise("addcmul", _addcmul, 3, dtypes=NUMBERS, label="addcmul_cpu_out")
addcdiv = pointwise("addcdiv", _addcdiv, 3, dtypes=FLOATS, label="addcdiv_cpu_out", check=_check_addcdiv)
lerp_scalar = pointwise("lerp_scalar", _lerp, 2, dtypes=FLOATS, label="lerp_kernel_scalar", check=_check_lerp)
lerp_tensor = pointwise("lerp_tensor", _lerp, 3, UNARY_OP, dtypes=FLOATS, label="lerp_kernel_tensor", check=_check_lerp)
