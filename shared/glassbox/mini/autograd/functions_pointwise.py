"""Derivatives of pointwise operators (PyTorch: torch/csrc/autograd/FunctionsManual.cpp)."""

import math
from typing import Any

from ..aten import ops as at
from ..aten.native.loops import wrapped_number
from ..c10.grad_mode import grad_enabled

TWO_OVER_SQRT_PI = 2 / math.sqrt(math.pi)


def maybe_multiply(grad: Any, factor: Any) -> Any:
    """grad * factor; grad itself where the factor is 1."""
    return grad if factor == 1 else grad * factor


def where_or_zero(condition: Any, grad: Any) -> Any:
    """The gradient where the condition holds, zero elsewhere: also where the gradient is not a number."""
    return at.where_self(condition, grad, wrapped_number(0, grad))


def zero_or_where(condition: Any, grad: Any) -> Any:
    """Zero where the condition holds, the gradient elsewhere."""
    return at.where_self(condition, wrapped_number(0, grad), grad)


def share_ties(grad: Any, tied: Any) -> Any:
    """Half of the gradient where two operands tie: the other half is the other's."""
    return at.where_self(tied, grad / 2, grad)


def div_self_backward(grad: Any, other: Any, rounding_mode: str | None = None) -> Any:
    """Steps are flat, so a rounded quotient has the derivative 0."""
    return grad / other if rounding_mode is None else at.zeros_like(grad, None, None, None)


def div_other_backward(grad: Any, self: Any, other: Any, rounding_mode: str | None = None) -> Any:
    if rounding_mode is not None:
        return at.zeros_like(grad, None, None, None)
    return -grad * ((self / other) / other)


def pow_backward(grad: Any, self: Any, exponent: Any) -> Any:
    """d/dx x**n with a number n: 0 everywhere for n = 0, also at x = 0."""
    if exponent == 0:
        return at.zeros_like(self, None, None, None)
    return grad * (exponent * self.pow(exponent - 1))


def pow_self_backward(grad: Any, self: Any, exponent: Any) -> Any:
    return zero_or_where(exponent == 0, grad * (exponent * self.pow(exponent - 1)))


def pow_exponent_backward(grad: Any, self: Any, exponent: Any, result: Any) -> Any:
    """x**n * log(x); where x is 0 and n is not negative, 0."""
    flat = at.logical_and(self == 0, exponent >= 0)
    return grad * zero_or_where(flat, result * self.log())


def pow_scalar_backward(grad: Any, base: Any, exponent: Any, result: Any) -> Any:
    """The same with a number for a base."""
    logarithm = math.log(base) if base > 0 else -math.inf if base == 0 else math.nan
    slope = result * logarithm
    return grad * (zero_or_where(exponent >= 0, slope) if base == 0 else slope)


def clamp_backward(grad: Any, self: Any, low: Any, high: Any) -> Any:
    """What lies between the bounds: strictly between numbers, while a tensor that is met shares the gradient."""
    if not hasattr(low if low is not None else high, "_key_set"):
        inside = self > low if low is not None else None
        if high is not None:
            below = self < high
            inside = below if inside is None else at.logical_and(inside, below)
        return where_or_zero(inside, grad)
    if low is None:
        return share_ties(grad, self == high).masked_fill(self > high, 0)
    if high is None:
        return share_ties(grad, self == low).masked_fill(self < low, 0)
    tied = at.logical_and(at.logical_or(self == low, self == high), low < high)
    return share_ties(grad, tied).masked_fill(at.logical_or(self < low, self > high), 0)


def clamp_min_backward(grad: Any, self: Any, low: Any, high: Any) -> Any:
    """The lower bound's part: where it is the result."""
    if high is None:
        return share_ties(grad, self == low).masked_fill(self > low, 0)
    taken = at.logical_and(self < low, low <= high)
    tied = at.logical_and(self == low, low < high)
    return share_ties(grad, tied).masked_fill(at.logical_not(at.logical_or(taken, tied)), 0)


def clamp_max_backward(grad: Any, self: Any, low: Any, high: Any) -> Any:
    """The upper bound's part: where it is the result, and everywhere where the bounds are the wrong way round."""
    if low is None:
        return share_ties(grad, self == high).masked_fill(self < high, 0)
    taken = at.logical_or(at.logical_and(self > high, low <= high), low > high)
    tied = at.logical_and(self == high, low < high)
    return share_ties(grad, tied).masked_fill(at.logical_not(at.logical_or(taken, tied)), 0)


def silu_backward(grad: Any, self: Any) -> Any:
    """d/dx x * sigmoid(x): one kernel, or written out where it will be differentiated in turn."""
    if not grad_enabled.get():
        return at.silu_backward(grad, self)
    s = self.sigmoid()
    return grad * s * (1 + self * (1 - s))


def gelu_second(self: Any, approximate: str) -> Any:
    """The second derivative of gelu."""
    if approximate == "none":
        # gelu = x * cdf(x), so gelu'' = 2 * pdf(x) + x * pdf'(x) with pdf'(x) = -x * pdf(x).
        density = (self * self * -0.5).exp() * (1 / math.sqrt(2 * math.pi))
        return density * (2 - self * self)
    # gelu = x / 2 * (1 + tanh(u)).
    root = math.sqrt(2 / math.pi)
    square = self * self
    inner = root * self * (1 + 0.044715 * square)
    first = root * (1 + 3 * 0.044715 * square)
    second = root * 6 * 0.044715 * self
    tanh = inner.tanh()
    slope = 1 - tanh * tanh
    return slope * first + 0.5 * self * (slope * second - 2 * tanh * slope * first * first)


def softplus_second(self: Any, beta: float, threshold: float) -> Any:
    """The second derivative of softplus; 0 where it is taken for a straight line."""
    s = (self * beta).sigmoid()
    return (s * (1 - s) * beta).masked_fill(self * beta > threshold, 0)
