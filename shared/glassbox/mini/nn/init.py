"""init: how parameters begin (PyTorch: torch/nn/init.py). Every function writes in place, outside of autograd."""

import math
from typing import Any

from ..aten import ops as at
from ..c10.device import device as Device  # noqa: N812


def empty(shape: tuple[int, ...], dtype: Any, device: Any) -> Any:
    """A tensor that is not set, for a parameter to begin from."""
    return at.empty_memory_format(shape, dtype, None if device is None else Device(device), None)


def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0) -> Any:
    tensor.detach().uniform_(a, b)
    return tensor


def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0) -> Any:
    tensor.detach().normal_(mean, std)
    return tensor


def constant_(tensor: Any, val: float) -> Any:
    tensor.detach().fill_(val)
    return tensor


def zeros_(tensor: Any) -> Any:
    return constant_(tensor, 0.0)


def ones_(tensor: Any) -> Any:
    return constant_(tensor, 1.0)


def fans(tensor: Any) -> tuple[int, int]:
    """(fan_in, fan_out) of a weight: how many numbers each output is made of, and each input goes into."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor that keeps variance over a nonlinearity."""
    if nonlinearity in ("linear", "conv1d", "conv2d", "sigmoid"):
        return 1.0
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1 + slope**2))
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def kaiming_uniform_(
    tensor: Any, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> Any:
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(
    tensor: Any, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> Any:
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity))


def _kaiming_std(tensor: Any, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan = fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)
