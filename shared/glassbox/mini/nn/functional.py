"""functional: layers as functions of their weights (PyTorch: torch/nn/functional.py)."""

from typing import Any

from ..aten import ops as at

_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _reduction(name: str) -> int:
    try:
        return _REDUCTIONS[name]
    except KeyError:
        raise ValueError(f"{name} is not a valid value for reduction") from None


def _ints(value: Any) -> tuple[int, ...]:
    return (value, value) if isinstance(value, int) else tuple(value)


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    return at.linear(input, weight, bias)


def conv2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    return at.conv2d(input, weight, bias, _ints(stride), _ints(padding), _ints(dilation), groups)


def relu(input: Any, inplace: bool = False) -> Any:
    return at.relu_(input) if inplace else at.relu(input)


def softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    return at.softmax_int(input, dim, dtype)


def log_softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    return at.log_softmax_int(input, dim, dtype)


def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    if training and input.numel() // max(input.shape[1], 1) <= 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    return at.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)


def layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    return at.layer_norm(input, tuple(normalized_shape), weight, bias, eps, False)


def max_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:
    stride = () if stride is None else _ints(stride)
    return at.max_pool2d(input, _ints(kernel_size), stride, _ints(padding), _ints(dilation), ceil_mode)


def avg_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:
    stride = () if stride is None else _ints(stride)
    return at.avg_pool2d(
        input, _ints(kernel_size), stride, _ints(padding), ceil_mode, count_include_pad, None
    )


def adaptive_avg_pool2d(input: Any, output_size: Any) -> Any:
    size = _ints(output_size)
    full = tuple(input.shape[dim] if n is None else n for dim, n in zip((-2, -1), size, strict=True))
    return at.adaptive_avg_pool2d(input, full)


def dropout(input: Any, p: float = 0.5, training: bool = True) -> Any:
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return at.dropout(input, p, training)


def embedding(input: Any, weight: Any, padding_idx: int | None = None) -> Any:
    return at.embedding(weight, input, -1 if padding_idx is None else padding_idx, False, False)


def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    return at.cross_entropy_loss(input, target, weight, _reduction(reduction), ignore_index, label_smoothing)


def nll_loss(
    input: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean"
) -> Any:
    return at.nll_loss_nd(input, target, weight, _reduction(reduction), ignore_index)


def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    return at.mse_loss(input, target, _reduction(reduction))
