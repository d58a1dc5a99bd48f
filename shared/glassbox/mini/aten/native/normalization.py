"""Normalization: batch norm and layer norm (PyTorch: ATen/native/Normalization.cpp, layer_norm.cpp).

Statistics are taken in float64 from differences to the mean, applied in the dtype that the op computes in.
For a bfloat16 input with float32 parameters the statistics are float32.
"""

import math
from typing import Any

import numpy as np

from ...c10 import dtype as dtypes
from ...c10.dtype import bfloat16, float32
from ...c10.dtype import dtype as DType  # noqa: N812
from ...c10.tensor_impl import TensorImpl
from .resize import not_implemented, suggested_strides, with_strides

MaybeTensor = TensorImpl | None
Three = tuple[Any, Any, Any]


def _statistics_dtype(name: str, input: TensorImpl, *parameters: MaybeTensor) -> DType:
    """The dtype of mean and deviation: the parameters' own, which may be float32 beside a bfloat16 input."""
    if not input._dtype.is_floating_point:
        raise not_implemented(name, input._dtype)
    found = {each._dtype for each in parameters if each is not None}
    if found <= {input._dtype}:
        return input._dtype
    if input._dtype is bfloat16 and found == {float32}:
        return float32
    raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")


def _fresh(values: np.ndarray, dtype: DType, like: TensorImpl) -> Any:
    return TensorImpl.of_values(values, dtype, like._device)


def _like_input(values: np.ndarray, input: TensorImpl) -> Any:
    fresh = _fresh(values, input._dtype, input)
    return with_strides(fresh.strided_array(), suggested_strides(input._shape, input), input)


def _store(target: TensorImpl, values: np.ndarray) -> None:
    source = dtypes.float64 if values.dtype == np.float64 else float32
    target.strided_array()[...] = dtypes.convert(values, source, target._dtype)


def _mean_and_variance(values: np.ndarray, axes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    mean = np.asarray(np.mean(values, axes, np.float64, keepdims=True))
    deviation = values - mean.astype(values.dtype) if values.dtype == np.float32 else values - mean
    # What the rounded mean leaves over is put right by the mean of the differences.
    offset = np.mean(deviation, axes, np.float64, keepdims=True)
    variance = np.mean(np.square(deviation), axes, np.float64, keepdims=True) - np.square(offset)
    return mean, np.asarray(np.maximum(variance, 0))


def _check_batch_norm(input: TensorImpl, parameters: dict[str, MaybeTensor]) -> None:
    features = input._shape[1] if len(input._shape) > 1 else input._shape[0] if input._shape else 0
    for name, each in parameters.items():
        if each is not None and math.prod(each._shape) != features:
            raise RuntimeError(f"{name} should contain {features} elements not {math.prod(each._shape)}")


def _per_channel(tensor: MaybeTensor, ndim: int, default: float) -> np.ndarray:
    if tensor is None:
        return np.full((1,) * ndim, default, np.float32)
    return tensor.values().reshape((1, -1, *(1,) * (ndim - 2))[-ndim:] if ndim > 1 else (-1,))


def native_batch_norm(
    ks: int,
    input: TensorImpl,
    weight: MaybeTensor,
    bias: MaybeTensor,
    running_mean: MaybeTensor,
    running_var: MaybeTensor,
    training: bool,
    momentum: float,
    eps: float,
) -> Three:
    """(x - mean) / sqrt(var + eps) * weight + bias per channel; also mean and 1 / sqrt(var + eps).

    Channels are dimension 1. In training the statistics are the batch's, and the running ones move towards
    them by `momentum`; else they are the running ones and the other two results are empty.
    RuntimeError where sizes or dtypes do not fit.
    """
    _check_batch_norm(
        input, {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    )
    dtype = _statistics_dtype("batch_norm", input, weight, bias, running_mean, running_var)
    values = input.values()
    ndim = values.ndim
    if training:
        if not values.size and ndim > 1:
            raise RuntimeError(
                f"input tensor must have at least one element, but got input_sizes = {list(input._shape)}"
            )
        axes = (0, *range(2, ndim))
        mean, variance = _mean_and_variance(values, axes)
        count = values.size // values.shape[1]
        for running, now in ((running_mean, mean), (running_var, variance * (count / max(count - 1, 0.5)))):
            if running is not None:
                if running is running_var and count == 1:
                    now = np.full_like(variance, np.nan)
                kept = running.values().astype(np.float64)
                _store(running, momentum * now.reshape(-1) + (1 - momentum) * kept)
        invstd = 1 / np.sqrt(variance + eps)
        saved = (_fresh(mean.reshape(-1), dtype, input), _fresh(invstd.reshape(-1), dtype, input))
    else:
        if running_mean is None or running_var is None:
            raise RuntimeError(
                "batch_norm: running_mean and running_var must be given where training is False"
            )
        mean = _per_channel(running_mean, ndim, 0)
        invstd = 1 / np.sqrt(_per_channel(running_var, ndim, 1).astype(np.float64) + eps)
        saved = (_fresh(np.empty(0), dtype, input), _fresh(np.empty(0), dtype, input))
    # The mean goes first: folded into the shift it would leave rounding errors of a large scale.
    out = np.subtract(values, mean.astype(values.dtype))
    np.multiply(out, (invstd * _per_channel(weight, ndim, 1)).astype(values.dtype), out)
    if bias is not None:
        np.add(out, _per_channel(bias, ndim, 0).astype(values.dtype), out)
    return (_like_input(out, input), *saved)


def native_batch_norm_backward(
    ks: int,
    grad_out: TensorImpl,
    input: TensorImpl,
    weight: MaybeTensor,
    running_mean: MaybeTensor,
    running_var: MaybeTensor,
    save_mean: MaybeTensor,
    save_invstd: MaybeTensor,
    train: bool,
    eps: float,
    output_mask: tuple[bool, bool, bool],
) -> Three:
    """The gradients of input, weight and bias; None where output_mask says that nobody asks."""
    values, grad = input.values(), grad_out.values()
    ndim = values.ndim
    axes = (0, *range(2, ndim))
    if train:
        mean, invstd = _per_channel(save_mean, ndim, 0), _per_channel(save_invstd, ndim, 1)
    else:
        mean = _per_channel(running_mean, ndim, 0)
        invstd = 1 / np.sqrt(_per_channel(running_var, ndim, 1) + eps)
    dtype = _statistics_dtype("batch_norm_backward", input, weight, running_mean)
    normal = (values - mean) * invstd
    to_bias = np.add.reduce(grad, axes, keepdims=True)
    to_weight = np.add.reduce(grad * normal, axes, keepdims=True)
    scale = invstd * _per_channel(weight, ndim, 1)
    grad_input = None
    if output_mask[0]:
        moved = grad
        if train:
            count = values.size // values.shape[1]
            moved = grad - (to_bias + normal * to_weight) / values.dtype.type(count)
        grad_input = _like_input((moved * scale).astype(values.dtype, copy=False), input)
    return (
        grad_input,
        _fresh(to_weight.reshape(-1), dtype, input) if output_mask[1] else None,
        _fresh(to_bias.reshape(-1), dtype, input) if output_mask[2] else None,
    )


def _check_layer_norm(
    input: TensorImpl, normalized_shape: tuple[int, ...], weight: MaybeTensor, bias: MaybeTensor
) -> int:
    """How many leading dimensions are not normalized; RuntimeError where shapes do not fit."""
    if not normalized_shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, "
            "but got normalized_shape = []"
        )
    for name, each in (("weight", weight), ("bias", bias)):
        if each is not None and each._shape != tuple(normalized_shape):
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{list(each._shape)} and normalized_shape = {list(normalized_shape)}"
            )
    outer = len(input._shape) - len(normalized_shape)
    if outer < 0 or input._shape[outer:] != tuple(normalized_shape):
        wanted = ", ".join(["*", *map(str, normalized_shape)])
        raise RuntimeError(
            f"Given normalized_shape={list(normalized_shape)}, expected input with shape [{wanted}], "
            f"but got input of size{list(input._shape)}"
        )
    return outer


def native_layer_norm(
    ks: int,
    input: TensorImpl,
    normalized_shape: tuple[int, ...],
    weight: MaybeTensor,
    bias: MaybeTensor,
    eps: float,
) -> Three:
    """(x - mean) / sqrt(var + eps) * weight + bias over the last dimensions; also mean, 1 / sqrt(var + eps).

    The latter two have size 1 where the input is normalized. RuntimeError where shapes or dtypes do not fit.
    """
    outer = _check_layer_norm(input, normalized_shape, weight, bias)
    dtype = _statistics_dtype("LayerNormKernelImpl", input, weight, bias)
    values = input.values()
    axes = tuple(range(outer, values.ndim))
    if values.size:
        mean, variance = _mean_and_variance(values, axes)
    else:
        mean = variance = np.zeros((*values.shape[:outer], *(1,) * len(axes)))
    invstd = 1 / np.sqrt(variance + eps)
    out = (values - mean) * invstd
    if weight is not None:
        out = out * weight.values()
    if bias is not None:
        out = out + bias.values()
    return (
        _fresh(out, input._dtype, input),
        _fresh(mean, dtype, input),
        _fresh(invstd, dtype, input),
    )


def native_layer_norm_backward(
    ks: int,
    grad_out: TensorImpl,
    input: TensorImpl,
    normalized_shape: tuple[int, ...],
    mean: TensorImpl,
    rstd: TensorImpl,
    weight: MaybeTensor,
    bias: MaybeTensor,
    output_mask: tuple[bool, bool, bool],
) -> Three:
    """The gradients of input, weight and bias; None where output_mask says that nobody asks."""
    outer = _check_layer_norm(input, normalized_shape, weight, bias)
    values, grad = input.values(), grad_out.values()
    axes, rows = tuple(range(outer, values.ndim)), tuple(range(outer))
    normal = (values - mean.values()) * rstd.values()
    grad_input = None
    if output_mask[0]:
        scaled = grad if weight is None else grad * weight.values()
        count = values.dtype.type(max(math.prod(normalized_shape), 1))
        along = np.add.reduce(scaled, axes, keepdims=True)
        with_normal = np.add.reduce(scaled * normal, axes, keepdims=True)
        grad_input = _fresh(
            (scaled - (along + normal * with_normal) / count) * rstd.values(), input._dtype, input
        )
    dtype = input._dtype if weight is None else weight._dtype
    return (
        grad_input,
        _fresh(np.asarray(np.add.reduce(grad * normal, rows)), dtype, input) if output_mask[1] else None,
        _fresh(np.asarray(np.add.reduce(grad, rows)), dtype, input) if output_mask[2] else None,
    )
