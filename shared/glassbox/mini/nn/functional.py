"""functional: layers as functions of their weights (PyTorch: torch/nn/functional.py)."""

import math
import warnings
from typing import Any

from ..aten import ops as at
from ..aten.composites import broadcast
from ..autograd.grad_mode import no_grad
from ..c10.tensor_impl import TensorImpl

_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _reduction(name: str) -> int:
    try:
        return _REDUCTIONS[name]
    except KeyError:
        raise ValueError(f"{name} is not a valid value for reduction") from None


# Any: what passes the test has the methods of Tensor, which TensorImpl says nothing of.
_TENSOR: Any = TensorImpl
_MAYBE: Any = (TensorImpl, type(None))


def _no_tensor(function: str, needed: dict[str, Any], optional: dict[str, Any] | None = None) -> TypeError:
    """What to raise for the first argument that is no tensor, of those needed and of those that may be None."""
    for place, (name, value) in enumerate((needed | (optional or {})).items(), 1):
        if not isinstance(value, _TENSOR if name in needed else _MAYBE):
            kind = type(value).__name__
            return TypeError(f"{function}(): argument '{name}' (position {place}) must be Tensor, not {kind}")
    raise AssertionError(f"all arguments of {function}() are tensors")


def _ints(value: Any, count: int = 2) -> tuple[int, ...]:
    """One int for all directions, or one for each."""
    return (value,) * count if isinstance(value, int) else tuple(value)


def linear(input: Any, weight: Any, bias: Any = None, *, out: Any = None) -> Any:
    """input @ weight.T + bias over the last dimension; weight (out, in), bias (out)."""
    if not (isinstance(input, _TENSOR) and isinstance(weight, _TENSOR) and isinstance(bias, _MAYBE)):
        raise _no_tensor("linear", {"input": input, "weight": weight}, {"bias": bias})
    return at.linear(input, weight, bias) if out is None else at.linear_out(input, weight, bias, out)


# Convolutions


def conv1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """input (N, C, L) or (C, L), weight (out, C / groups, k); padding: ints, "same" or "valid"."""
    if not (isinstance(input, _TENSOR) and isinstance(weight, _TENSOR) and isinstance(bias, _MAYBE)):
        raise _no_tensor("conv1d", {"input": input, "weight": weight}, {"bias": bias})
    stride, dilation = _ints(stride, 1), _ints(dilation, 1)
    if isinstance(padding, str):
        return at.conv1d_padding(input, weight, bias, stride, padding, dilation, groups)
    return at.conv1d(input, weight, bias, stride, _ints(padding, 1), dilation, groups)


def conv2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """input (N, C, H, W) or (C, H, W), weight (out, C / groups, kH, kW); padding: ints, "same" or "valid"."""
    if not (isinstance(input, _TENSOR) and isinstance(weight, _TENSOR) and isinstance(bias, _MAYBE)):
        raise _no_tensor("conv2d", {"input": input, "weight": weight}, {"bias": bias})
    stride, dilation = _ints(stride), _ints(dilation)
    if isinstance(padding, str):
        return at.conv2d_padding(input, weight, bias, stride, padding, dilation, groups)
    return at.conv2d(input, weight, bias, stride, _ints(padding), dilation, groups)


# Activations


def relu(input: Any, inplace: bool = False) -> Any:
    if not isinstance(input, _TENSOR):
        raise _no_tensor("relu_" if inplace else "relu", {"input": input})
    return at.relu_(input) if inplace else at.relu(input)


def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    if not isinstance(input, _TENSOR):
        raise _no_tensor("leaky_relu", {"input": input})
    return at.leaky_relu_(input, negative_slope) if inplace else at.leaky_relu(input, negative_slope)


def gelu(input: Any, *, approximate: str = "none", out: Any = None) -> Any:
    if not isinstance(input, _TENSOR):
        raise _no_tensor("gelu", {"input": input})
    return at.gelu(input, approximate) if out is None else at.gelu_out(input, approximate, out)


def silu(input: Any, inplace: bool = False) -> Any:
    if not isinstance(input, _TENSOR):
        raise _no_tensor("silu", {"input": input})
    return at.silu_(input) if inplace else at.silu(input)


def softplus(input: Any, beta: float = 1, threshold: float = 20, *, out: Any = None) -> Any:
    if not isinstance(input, _TENSOR):
        raise _no_tensor("softplus", {"input": input})
    return at.softplus(input, beta, threshold) if out is None else at.softplus_out(input, beta, threshold, out)


def sigmoid(input: Any) -> Any:
    if not isinstance(input, _TENSOR):
        raise _no_tensor("sigmoid", {"input": input})
    return at.sigmoid(input)


def tanh(input: Any) -> Any:
    if not isinstance(input, _TENSOR):
        raise _no_tensor("tanh", {"input": input})
    return at.tanh(input)


def softmax(input: Any, dim: int | None = None, *, dtype: Any = None) -> Any:
    if not isinstance(input, _TENSOR):
        raise _no_tensor("softmax", {"input": input})
    return at.softmax_int(input, _softmax_dim("softmax", input, dim), dtype)


def log_softmax(input: Any, dim: int | None = None, *, dtype: Any = None) -> Any:
    if not isinstance(input, _TENSOR):
        raise _no_tensor("log_softmax", {"input": input})
    return at.log_softmax_int(input, _softmax_dim("log_softmax", input, dim), dtype)


def _softmax_dim(name: str, input: Any, dim: int | None) -> int:
    if dim is not None:
        return dim
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        UserWarning,
        stacklevel=3,
    )
    return 0 if input.dim() in (0, 1, 3) else 1


# Normalization


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
    """input (N, C, ...), everything else (C); in training the running statistics are written to.

    ValueError where training would take the statistics of a single number.
    """
    if not (
        isinstance(input, _TENSOR)
        and isinstance(weight, _MAYBE)
        and isinstance(bias, _MAYBE)
        and isinstance(running_mean, _MAYBE)
        and isinstance(running_var, _MAYBE)
    ):
        optional = {"weight": weight, "bias": bias, "running_mean": running_mean, "running_var": running_var}
        raise _no_tensor("batch_norm", {"input": input}, optional)
    if training and math.prod((input.shape[0], *input.shape[2:])) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    return at.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)


def layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """Over the last dimensions, which are normalized_shape."""
    if not (isinstance(input, _TENSOR) and isinstance(weight, _MAYBE) and isinstance(bias, _MAYBE)):
        raise _no_tensor("layer_norm", {"input": input}, {"weight": weight, "bias": bias})
    return at.layer_norm(input, tuple(normalized_shape), weight, bias, eps, True)


# Pooling


def max_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    if not isinstance(input, _TENSOR):
        raise _no_tensor("max_pool2d", {"input": input})
    stride = () if stride is None else _ints(stride)
    numbers = _ints(kernel_size), stride, _ints(padding), _ints(dilation), ceil_mode
    return at.max_pool2d_with_indices(input, *numbers) if return_indices else at.max_pool2d(input, *numbers)


def avg_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    out: Any = None,
) -> Any:
    """input (N, C, H, W) or (C, H, W)."""
    if not isinstance(input, _TENSOR):
        raise _no_tensor("avg_pool2d", {"input": input})
    stride, padding = () if stride is None else _ints(stride), _ints(padding)
    arguments = (input, _ints(kernel_size), stride, padding, ceil_mode, count_include_pad, divisor_override)
    return at.avg_pool2d(*arguments) if out is None else at.avg_pool2d_out(*arguments, out)


def adaptive_avg_pool2d(input: Any, output_size: Any) -> Any:
    """input (N, C, H, W) or (C, H, W); None in output_size: as many as there are."""
    if not isinstance(input, _TENSOR):
        raise _no_tensor("adaptive_avg_pool2d", {"input": input})
    if isinstance(output_size, int) or len(output_size) != 2:
        return at.adaptive_avg_pool2d(input, _ints(output_size))
    size = tuple(output_size)
    if len(input.shape) <= len(size):
        raise ValueError(f"Input dimension should be at least {len(size) + 1}")
    ends = input.shape[-len(size) :]
    return at.adaptive_avg_pool2d(input, tuple(there if n is None else n for there, n in zip(ends, size, strict=True)))


def pad(input: Any, pad: Any, mode: str = "constant", value: float | None = None) -> Any:
    """pad: how many to add before and after, in pairs from the last dimension on; negative ones take away."""
    if not isinstance(input, _TENSOR):
        raise _no_tensor("pad", {"input": input})
    if mode != "constant":
        raise NotImplementedError(f"only padding with a constant is here, not mode {mode!r}")
    return at.constant_pad_nd(input, tuple(pad), 0 if value is None else value)


# Dropout and embedding


def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Each element zeroed with probability p while training, the others scaled up to keep the mean."""
    if not isinstance(input, _TENSOR):
        raise _no_tensor("dropout", {"input": input})
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return at.dropout_(input, p, training) if inplace else at.dropout(input, p, training)


def embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """Rows of `weight`; with max_norm those that are longer are first scaled down to it, in `weight` itself."""
    if not (isinstance(weight, _TENSOR) and isinstance(input, _TENSOR)):
        raise _no_tensor("embedding", {"weight": weight, "indices": input})
    if padding_idx is None:
        padding_idx = -1
    elif not -len(weight) <= padding_idx < len(weight):
        raise AssertionError("Padding_idx must be within num_embeddings")
    elif padding_idx < 0:
        padding_idx += len(weight)
    if max_norm is not None:
        with no_grad():
            at.embedding_renorm_(weight.detach(), at.contiguous(input, "contiguous_format"), max_norm, norm_type)
    return at.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


# Losses


def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """input (N, C, ...) logits; target (N, ...) classes, or probabilities of input's shape; weight (C)."""
    if not (isinstance(input, _TENSOR) and isinstance(target, _TENSOR) and isinstance(weight, _MAYBE)):
        raise _no_tensor("cross_entropy_loss", {"input": input, "target": target}, {"weight": weight})
    return at.cross_entropy_loss(input, target, weight, _reduction(reduction), ignore_index, label_smoothing)


def nll_loss(input: Any, target: Any, weight: Any = None, *, ignore_index: int = -100, reduction: str = "mean") -> Any:
    """input (N, C, ...) log-probabilities; target (N, ...) classes; weight (C)."""
    if not (isinstance(input, _TENSOR) and isinstance(target, _TENSOR) and isinstance(weight, _MAYBE)):
        raise _no_tensor("nll_loss_nd", {"input": input, "target": target}, {"weight": weight})
    return at.nll_loss_nd(input, target, weight, _reduction(reduction), ignore_index)


def mse_loss(input: Any, target: Any, *, reduction: str = "mean") -> Any:
    """Both of one shape, or broadcast with a warning."""
    if not (isinstance(input, _TENSOR) and isinstance(target, _TENSOR)):
        raise _no_tensor("mse_loss", {"input": input, "target": target})
    if input._shape != target._shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This "
            "will likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            stacklevel=2,
        )
        shape = broadcast(input._shape, target._shape)
        input, target = at.expand(input, shape, False), at.expand(target, shape, False)
    return at.mse_loss(input, target, _reduction(reduction))
