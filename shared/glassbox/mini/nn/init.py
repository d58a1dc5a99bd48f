"""init: how parameters begin (PyTorch: torch/nn/init.py). Every function writes in place, outside of autograd."""

import math
import warnings
from typing import Any

from ..aten import ops as at
from ..c10.device import device as Device  # noqa: N812
from ..c10.grad_mode import grad_enabled


def empty(shape: tuple[int, ...], dtype: Any, device: Any) -> Any:
    """A tensor that is not set, for a parameter to begin from."""
    return at.empty_memory_format(shape, dtype, None if device is None else Device(device).without_index(), None)


def _write(method: str, tensor: Any, *args: Any, **kwargs: Any) -> Any:
    token = grad_enabled.set(False)
    try:
        return getattr(tensor, method)(*args, **kwargs)
    finally:
        grad_enabled.reset(token)


def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """From a to b, all equally likely."""
    return _write("uniform_", tensor, a, b, generator=generator)


def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    return _write("normal_", tensor, mean, std, generator=generator)


def constant_(tensor: Any, val: float) -> Any:
    return _write("fill_", tensor, val)


def ones_(tensor: Any) -> Any:
    return constant_(tensor, 1.0)


def zeros_(tensor: Any) -> Any:
    return _write("zero_", tensor)


def eye_(tensor: Any) -> Any:
    """A matrix with ones on the diagonal; ValueError for what is none."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    return _write("copy_", tensor, at.eye_m(rows, columns, tensor.dtype, tensor.device))


def fans(tensor: Any) -> tuple[int, int]:
    """(fan_in, fan_out) of a weight: how many numbers each output is made of, and each input goes into."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor that keeps variance over a nonlinearity; param: the negative slope of "leaky_relu"."""
    if nonlinearity in ("linear", "conv1d", "conv2d", "sigmoid"):
        return 1.0
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is not None and (isinstance(param, bool) or not isinstance(param, int | float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Variance 2 / (fan_in + fan_out): Glorot and Bengio, 2010."""
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / float(sum(fans(tensor))))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(sum(fans(tensor)))), generator)


def kaiming_uniform_(
    tensor: Any,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Any:
    """Variance gain**2 / fan: He et al., 2015. a: the negative slope of the nonlinearity."""
    if 0 in tensor.shape:
        return _untouched(tensor)
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Any,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Any:
    if 0 in tensor.shape:
        return _untouched(tensor)
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def _untouched(tensor: Any) -> Any:
    warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
    return tensor


def _kaiming_std(tensor: Any, a: float, mode: str, nonlinearity: str) -> float:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan = fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)
