"""Derivatives of neural-network operators, mostly second ones (PyTorch: torch/csrc/autograd/FunctionsManual.cpp).

A kernel such as native_batch_norm_backward is fast but says nothing of its own derivative. Where that is wanted, the
same gradient is written out in plain operators and differentiated (`differentiate`).
"""

from collections.abc import Callable
from typing import Any

from ..aten import ops as at
from ..c10 import layout
from ..c10.grad_mode import grad_enabled

Ints = tuple[int, ...]
NONE, MEAN, SUM = 0, 1, 2


def differentiate(
    expression: Callable[..., tuple[Any, ...]], inputs: tuple[Any, ...], grads: tuple[Any, ...]
) -> tuple[Any, ...]:
    """The gradients of expression(*inputs) at the inputs, given those of its results; None goes where None comes from.

    They can be differentiated again where this runs with grad mode on.
    """
    from .python_engine import grad

    create_graph = grad_enabled.get()
    token = grad_enabled.set(True)
    try:
        # An alias each: a gradient that reaches one input by way of another must not count.
        leaves = [None if each is None else at.alias(each) for each in inputs]
        for leaf in leaves:
            if leaf is not None and not leaf._requires_grad:
                leaf.requires_grad_()
        results = expression(*leaves)
        pairs = [(r, g) for r, g in zip(results, grads, strict=True) if r is not None and g is not None]
        wanted = [leaf for leaf in leaves if leaf is not None]
        found = iter(
            grad([r for r, _ in pairs], wanted, [g for _, g in pairs], create_graph=create_graph, allow_unused=True)
        )
    finally:
        grad_enabled.reset(token)
    return tuple(None if leaf is None else next(found) for leaf in leaves)


def batch_norm_double_backward(
    grads: Any,
    input: Any,  # noqa: A002
    weight: Any,
    grad_out: Any,
    running_mean: Any,
    running_var: Any,
    save_mean: Any,
    save_invstd: Any,
    train: bool,
    eps: float,
) -> tuple[Any, ...]:
    """The gradients of native_batch_norm_backward's three results at (input, weight, grad_out)."""
    dims = (0, *range(2, len(input._shape)))
    channels = (1, -1, *(1,) * (len(input._shape) - 2))

    def written_out(x: Any, w: Any, g: Any) -> tuple[Any, ...]:
        if train:
            mean = x.mean(dims, keepdim=True)
            invstd = ((x - mean) * (x - mean)).mean(dims, keepdim=True).add(eps).rsqrt()
        else:
            mean, invstd = running_mean.view(channels), (running_var + eps).rsqrt().view(channels)
        normed = (x - mean) * invstd
        scaled = invstd if w is None else invstd * w.view(channels)
        if train:
            at_input = scaled * (g - g.mean(dims, keepdim=True) - normed * (g * normed).mean(dims, keepdim=True))
        else:
            at_input = scaled * g
        return at_input, None if w is None else (g * normed).sum(dims), g.sum(dims)

    return differentiate(written_out, (input, weight, grad_out), grads)


def layer_norm_double_backward(
    grads: Any,
    input: Any,  # noqa: A002
    weight: Any,
    grad_out: Any,
    normalized_shape: Ints,
    mean: Any,
    rstd: Any,
) -> tuple[Any, ...]:
    """The gradients of native_layer_norm_backward's three results at (input, weight, grad_out)."""
    ndim = len(input._shape)
    inner = tuple(range(ndim - len(normalized_shape), ndim))
    outer = tuple(range(ndim - len(normalized_shape)))
    # The saved deviation holds the eps that the op was called with, as a number per row.
    spread = input - mean
    eps = (rstd.pow(-2) - (spread * spread).mean(inner, keepdim=True)).detach()

    def written_out(x: Any, w: Any, g: Any) -> tuple[Any, ...]:
        centred = x - x.mean(inner, keepdim=True)
        inverse = ((centred * centred).mean(inner, keepdim=True) + eps).rsqrt()
        normed = centred * inverse
        h = g if w is None else g * w
        at_input = inverse * (h - h.mean(inner, keepdim=True) - normed * (h * normed).mean(inner, keepdim=True))
        at_weight = None if w is None else _sum(g * normed, outer)
        return at_input, at_weight, _sum(g, outer)

    return differentiate(written_out, (input, weight, grad_out), grads)


def _sum(tensor: Any, dims: Ints) -> Any:
    return tensor.sum(dims) if dims else tensor


def convolution_double_backward(
    grads: Any,
    grad_output: Any,
    input: Any,  # noqa: A002
    weight: Any,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
    mask: tuple[bool, ...],
) -> tuple[Any, ...]:
    """The gradients of convolution_backward's three results at (grad_output, input, weight).

    A convolution is linear in each operand, so these are convolutions and their gradients once more.
    """
    at_input, at_weight, at_bias = grads
    settings = (stride, padding, dilation, transposed, output_padding, groups)

    def convolve(x: Any, w: Any) -> Any:
        return at.convolution(x, w, None, *settings)

    to_output = to_input = to_weight = None
    if mask[0]:
        parts = []
        if at_input is not None:
            parts.append(convolve(at_input, weight))
        if at_weight is not None:
            parts.append(convolve(input, at_weight))
        if at_bias is not None:
            parts.append(at_bias.view((1, -1, *(1,) * (len(grad_output._shape) - 2))).expand(grad_output._shape))
        to_output = parts[0] if parts else None
        for part in parts[1:]:
            to_output = to_output + part
    if mask[1] and at_weight is not None:
        to_input = at.convolution_backward(grad_output, input, at_weight, None, *settings, (True, False, False))[0]
    if mask[2] and at_input is not None:
        to_weight = at.convolution_backward(grad_output, at_input, weight, None, *settings, (False, True, False))[1]
    return to_output, to_input, to_weight


def softmax_double_backward(grad: Any, grad_output: Any, output: Any, dim: int) -> Any:
    """The gradient of _softmax_backward_data at the softmax's output y: its value is y * (g - sum(y * g))."""
    return (
        grad_output * grad
        - (output * grad_output).sum(dim, keepdim=True) * grad
        - grad_output * (grad * output).sum(dim, keepdim=True)
    )


def log_softmax_double_backward(grad: Any, output: Any, dim: int) -> Any:
    """The gradient of _log_softmax_backward_data at the gradient g: its value is g - exp(y) * sum(g)."""
    return grad - (grad * output.exp()).sum(dim, keepdim=True)


def mse_loss_double_backward(grad: Any, reduction: int) -> Any:
    doubled = grad * 2
    return doubled / layout.numel(grad._shape) if reduction == MEAN else doubled


def max_pool_double_backward(grad: Any, indices: Any, dims: int) -> Any:
    """What the pooling picked, picked from the gradient."""
    lead = indices._shape[:-dims]
    if not layout.numel(indices._shape):
        return grad.new_zeros(indices._shape)
    return grad.reshape((*lead, -1)).gather(-1, indices.reshape((*lead, -1))).view(indices._shape)


def embedding_double_backward(grad: Any, indices: Any, padding_idx: int) -> Any:
    """The rows that were looked up, of the gradient."""
    rows = grad.index_select(0, indices.reshape(-1))
    if padding_idx >= 0:
        padded = (indices == padding_idx).reshape((-1, 1))
        rows = rows.masked_fill(padded, 0)
    return rows.view((*indices._shape, grad._shape[1]))


def dropout_scale(p: float, train: bool | None) -> float:
    """What dropout multiplies the elements with that it keeps."""
    if train is False:
        return 1.0
    return 0.0 if p == 1 else 1.0 / (1.0 - p)


def dropout_double_backward(grad: Any, grad_output: Any, mask: Any, scale: float) -> Any:
    return grad.type_as(grad_output) * (mask.type_as(grad_output) * scale)
