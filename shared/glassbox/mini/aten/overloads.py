"""Overloads: forms of an operator that another of its forms does.

PyTorch: CompositeImplicitAutograd kernels in ATen/native.
"""

from typing import Any

from ..c10 import dtype as dtypes
from ..c10 import layout
from . import ops as at

Ints = tuple[int, ...]


def where_ScalarSelf(ks: int, condition: Any, self: Any, other: Any) -> Any:  # noqa: N802
    return at.where_self(condition, _as_tensor(self, other), other)


def where_ScalarOther(ks: int, condition: Any, self: Any, other: Any) -> Any:  # noqa: N802
    return at.where_self(condition, self, _as_tensor(other, self))


def where_Scalar(ks: int, condition: Any, self: Any, other: Any) -> Any:  # noqa: N802
    return at.where_self(condition, _as_tensor(self, condition), _as_tensor(other, condition))


def _as_tensor(number: Any, beside: Any) -> Any:
    from ..python_arg_parser import wrapped_number

    return wrapped_number(number)


def max_other(ks: int, self: Any, other: Any) -> Any:
    return at.maximum(self, other)


def max_out(ks: int, self: Any, other: Any, out: Any) -> Any:
    return at.maximum_out(self, other, out)


def min_other(ks: int, self: Any, other: Any) -> Any:
    return at.minimum(self, other)


def min_out(ks: int, self: Any, other: Any, out: Any) -> Any:
    return at.minimum_out(self, other, out)


def var(ks: int, self: Any, unbiased: bool) -> Any:
    return at.var_correction(self, None, int(unbiased), False)


def var_dim(ks: int, self: Any, dim: Any, unbiased: bool, keepdim: bool) -> Any:
    return at.var_correction(self, dim, int(unbiased), keepdim)


def std(ks: int, self: Any, unbiased: bool) -> Any:
    return at.std_correction(self, None, int(unbiased), False)


def std_dim(ks: int, self: Any, dim: Any, unbiased: bool, keepdim: bool) -> Any:
    return at.std_correction(self, dim, int(unbiased), keepdim)


def var_mean(ks: int, self: Any, unbiased: bool) -> Any:
    return at.var_mean_correction(self, None, int(unbiased), False)


def var_mean_dim(ks: int, self: Any, dim: Any, unbiased: bool, keepdim: bool) -> Any:
    return at.var_mean_correction(self, dim, int(unbiased), keepdim)


def std_mean(ks: int, self: Any, unbiased: bool) -> Any:
    return std_mean_correction(ks, self, None, int(unbiased), False)


def std_mean_dim(ks: int, self: Any, dim: Any, unbiased: bool, keepdim: bool) -> Any:
    return std_mean_correction(ks, self, dim, int(unbiased), keepdim)


def std_mean_correction(ks: int, self: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    return at.std_correction(self, dim, correction, keepdim), at.mean_dim(self, dim, keepdim, None)


def stack_out(ks: int, tensors: tuple[Any, ...], dim: int, out: Any) -> Any:
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    shapes = {tensor._shape for tensor in tensors}
    if len(shapes) > 1:
        raise RuntimeError(f"stack expects each tensor to be equal size, but got {sorted(shapes)}")
    axis = layout.wrap_dim(dim, len(tensors[0]._shape) + 1)
    return at.cat_out(tuple(at.unsqueeze(tensor, axis) for tensor in tensors), axis, out)


def narrow_Tensor(ks: int, self: Any, dim: int, start: Any, length: int) -> Any:  # noqa: N802
    if start._shape or start._dtype.is_floating_point or start._dtype is dtypes.bool_:
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    return at.narrow(self, dim, start.item(), length)


def linspace_Tensor_Tensor(ks: int, start: Any, end: Any, steps: int, dtype: Any, device: Any) -> Any:  # noqa: N802
    if start._shape or end._shape:
        raise RuntimeError(
            f"linspace only supports 0-dimensional start and end tensors, but got start with {len(start._shape)} "
            f"dimension(s) and end with {len(end._shape)} dimension(s)."
        )
    return at.linspace(start.item(), end.item(), steps, dtype, device)


def linspace_Tensor_Scalar(ks: int, start: Any, end: Any, steps: int, dtype: Any, device: Any) -> Any:  # noqa: N802
    if start._shape:
        raise RuntimeError(
            f"linspace only supports 0-dimensional start and end tensors, but got start with {len(start._shape)} "
            "dimension(s)."
        )
    return at.linspace(start.item(), end, steps, dtype, device)


def linspace_Scalar_Tensor(ks: int, start: Any, end: Any, steps: int, dtype: Any, device: Any) -> Any:  # noqa: N802
    if end._shape:
        raise RuntimeError(
            f"linspace only supports 0-dimensional start and end tensors, but got end with {len(end._shape)} "
            "dimension(s)."
        )
    return at.linspace(start, end.item(), steps, dtype, device)


def conv1d_padding(
    ks: int,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Ints,
    padding: str,
    dilation: Ints,
    groups: int,  # noqa: A002
) -> Any:
    return _padded_convolution(at.conv1d, 1, input, weight, bias, stride, padding, dilation, groups)


def conv2d_padding(
    ks: int,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Ints,
    padding: str,
    dilation: Ints,
    groups: int,  # noqa: A002
) -> Any:
    return _padded_convolution(at.conv2d, 2, input, weight, bias, stride, padding, dilation, groups)


def _padded_convolution(
    convolve: Any,
    dims: int,
    input: Any,  # noqa: A002
    weight: Any,
    bias: Any,
    stride: Ints,
    padding: str,
    dilation: Ints,
    groups: int,
) -> Any:
    """ "valid": no padding; "same": as much as keeps the size, one more behind than in front where that is odd."""
    if len(weight._shape) != dims + 2:
        raise RuntimeError(f"conv{dims}d takes a weight with {dims + 2} dimensions, but got {list(weight._shape)}")
    if padding == "valid":
        return convolve(input, weight, bias, stride, (0,) * dims, dilation, groups)
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if any(step != 1 for step in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    dilation = dilation * dims if len(dilation) == 1 else dilation
    total = [d * (k - 1) for d, k in zip(dilation, weight._shape[2:], strict=True)]
    if any(each % 2 for each in total):
        behind = [pair for each in reversed(total) for pair in (0, each % 2)]
        input = at.constant_pad_nd(input, tuple(behind), 0)  # noqa: A001
    return convolve(input, weight, bias, stride, tuple(each // 2 for each in total), dilation, groups)
