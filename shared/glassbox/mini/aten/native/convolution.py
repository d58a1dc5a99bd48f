"""Convolution in one and two dimensions (PyTorch: ATen/native/Convolution.cpp, ConvolutionMM2d.cpp).

The patches under the kernel are laid out as columns of a matrix, so that BLAS does the sums (im2col).
Groups are a batch of smaller products. A 1-d convolution is a 2-d one of height 1.
"""

from typing import Any

import numpy as np

from ...c10.dtype import bool_, int64
from ...c10.tensor_impl import TensorImpl
from ..loop_layout import CHANNELS_INNERMOST, has_channels_innermost, laid_out
from .resize import not_implemented, scalar_type, with_strides

Ints = tuple[int, ...]
Pair = tuple[int, int]


class _Plan:
    """The sizes of one convolution: what the kernel meets where."""

    __slots__ = (
        "kernel",
        "stride",
        "padding",
        "dilation",
        "groups",
        "size",
        "out_size",
        "channels_innermost",
        "flat",
    )

    def __init__(
        self, input: TensorImpl, weight: TensorImpl, stride: Ints, padding: Ints, dilation: Ints, groups: int
    ) -> None:
        self.flat = len(weight._shape) == 3
        self.groups = groups
        self.kernel = self._pair(weight._shape[2:], 1)
        self.stride = self._pair(stride, 1)
        self.padding = self._pair(padding, 0)
        self.dilation = self._pair(dilation, 1)
        self.size = self._pair(input._shape[2:], 1)
        self.channels_innermost = has_channels_innermost(input._shape, input._stride) or has_channels_innermost(
            weight._shape, weight._stride
        )
        sizes: list[int] = []
        for n, k, s, p, d in zip(
            self.size, self.kernel, self.stride, self.padding, self.dilation, strict=True
        ):
            reach = d * (k - 1) + 1
            if n + 2 * p < reach:
                padded = " x ".join(str(m + 2 * q) for m, q in zip(self.size, self.padding, strict=True))
                raise RuntimeError(
                    f"Calculated padded input size per channel: ({padded}). Kernel size: "
                    f"({' x '.join(map(str, self.kernel))}). Kernel size can't be greater than "
                    "actual input size"
                )
            sizes.append((n + 2 * p - reach) // s + 1)
        self.out_size: Pair = (sizes[0], sizes[1])

    def _pair(self, values: Ints, filler: int) -> Pair:
        if self.flat:
            return filler, values[0]
        return values[0], values[-1]

    def is_pointwise(self) -> bool:
        return self.kernel == (1, 1) and self.stride == (1, 1) and self.padding == (0, 0)

    def padded(self, array: np.ndarray) -> np.ndarray:
        """(N, C, H, W) with zeros around."""
        (h, w), (ph, pw) = self.size, self.padding
        if (ph, pw) == (0, 0):
            return array
        wide = np.zeros((*array.shape[:2], h + 2 * ph, w + 2 * pw), array.dtype)
        wide[:, :, ph : ph + h, pw : pw + w] = array
        return wide

    def under(self, padded: np.ndarray, i: int, j: int) -> np.ndarray:
        """What cell (i, j) of the kernel meets at every output position: a view (N, C, OH, OW)."""
        (oh, ow), (sh, sw), (dh, dw) = self.out_size, self.stride, self.dilation
        rows = slice(i * dh, i * dh + (oh - 1) * sh + 1, sh)
        return padded[:, :, rows, slice(j * dw, j * dw + (ow - 1) * sw + 1, sw)]

    def columns(self, array: np.ndarray) -> np.ndarray:
        """Patches of (N, C, H, W) as (N, groups, C / groups * KH * KW, OH * OW)."""
        n, c = array.shape[:2]
        (kh, kw), (oh, ow) = self.kernel, self.out_size
        rows = c // self.groups * kh * kw
        if self.is_pointwise():
            return array.reshape(n, self.groups, rows, oh * ow)
        padded = self.padded(array)
        patches = np.empty((n, c, kh, kw, oh, ow), array.dtype)
        for i in range(kh):
            for j in range(kw):
                patches[:, :, i, j] = self.under(padded, i, j)
        return patches.reshape(n, self.groups, rows, oh * ow)

    def images(self, columns: np.ndarray, channels: int) -> np.ndarray:
        """The inverse of `columns`, in which cells that several patches share are summed."""
        n = columns.shape[0]
        (kh, kw), (oh, ow), (h, w), (ph, pw) = self.kernel, self.out_size, self.size, self.padding
        if self.is_pointwise():
            return columns.reshape(n, channels, h, w)
        patches = columns.reshape(n, channels, kh, kw, oh, ow)
        padded = np.zeros((n, channels, h + 2 * ph, w + 2 * pw), columns.dtype)
        for i in range(kh):
            for j in range(kw):
                target = self.under(padded, i, j)
                np.add(target, patches[:, :, i, j], target)
        return padded[:, :, ph : ph + h, pw : pw + w]


def _check(
    input: TensorImpl,
    weight: TensorImpl,
    bias: TensorImpl | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    groups: int,
) -> None:
    shape, kernel = input._shape, weight._shape
    if transposed:
        raise NotImplementedError("transposed convolutions are not implemented here")
    if len(kernel) not in (3, 4):
        raise NotImplementedError(
            f"convolutions here have one or two dimensions; the weight is {list(kernel)}"
        )
    if any(p < 0 for p in padding):
        raise RuntimeError("negative padding is not supported")
    if any(s <= 0 for s in stride):
        raise RuntimeError("non-positive stride is not supported")
    if any(d <= 0 for d in dilation):
        raise RuntimeError(f"dilation should be greater than zero, but got {list(dilation)}")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if len(shape) != len(kernel):
        raise RuntimeError(
            f"Expected {len(kernel)}-dimensional input for {len(kernel)}-dimensional weight {list(kernel)}, "
            f"but got {len(shape)}-dimensional input of size {list(shape)} instead"
        )
    if kernel[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, "
            f"but got weight of size {list(kernel)} instead"
        )
    if kernel[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, "
            f"but got weight of size {list(kernel)} instead"
        )
    if shape[1] != kernel[1] * groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(kernel)}, expected input{list(shape)} to have "
            f"{kernel[1] * groups} channels, but got {shape[1]} channels instead"
        )
    if bias is not None and bias._shape != (kernel[0],):
        raise RuntimeError(
            f"Given weight of size {list(kernel)}, expected bias to be 1-dimensional with {kernel[0]} "
            f"elements, but got bias of size {list(bias._shape)} instead"
        )


def _check_dtypes(
    input: TensorImpl, weight: TensorImpl, bias: TensorImpl | None, dilation: Ints
) -> None:
    if input._dtype is bool_:
        raise not_implemented("slow_conv2d_cpu", bool_)
    for name, each in (("weight", weight), ("bias", bias)):
        if each is not None and input._dtype is not each._dtype:
            raise RuntimeError(
                f"Input type ({scalar_type(input._dtype)}) and {name} type ({scalar_type(each._dtype)}) should be the "
                f"same"
            )
    if any(d != 1 for d in dilation) and not input._dtype.is_floating_point and input._dtype is not int64:
        raise not_implemented("slow_conv_dilated<>", input._dtype)


def _images(tensor: TensorImpl) -> np.ndarray:
    """(N, C, H, W) or (N, C, L) as a 4-d array."""
    values = tensor.values()
    return values[:, :, None] if values.ndim == 3 else values


def _result(array: np.ndarray, plan: _Plan, like: TensorImpl) -> Any:
    """A 4-d array as a tensor in the layout that the plan asks for; without a height where it is 1-d."""
    if plan.flat:
        array = array.reshape(array.shape[0], array.shape[1], array.shape[3])
    fresh = TensorImpl.of_values(array, like._dtype, like._device)
    if not plan.channels_innermost:
        return fresh
    return with_strides(fresh.strided_array(), laid_out(array.shape, CHANNELS_INNERMOST), like)


def convolution(
    ks: int,
    input: TensorImpl,
    weight: TensorImpl,
    bias: TensorImpl | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
) -> Any:
    """input (N, C, *size) with weight (O, C / groups, *kernel) -> (N, O, *out), in one or two dimensions.

    Channels last where input or weight are so. RuntimeError where shapes, options or dtypes do not fit.
    """
    _check(input, weight, bias, stride, padding, dilation, transposed, groups)
    plan = _Plan(input, weight, stride, padding, dilation, groups)
    _check_dtypes(input, weight, bias, dilation)
    array = _images(input)
    out_channels = weight._shape[0]
    kernel = weight.values().reshape(groups, out_channels // groups, -1)
    columns = plan.columns(array)
    # A batch of one group goes to BLAS as it is.
    product = np.matmul(kernel[0], columns[:, 0]) if groups == 1 else np.matmul(kernel, columns)
    out = product.reshape(array.shape[0], out_channels, *plan.out_size)
    if bias is not None:
        np.add(out, bias.values().reshape(1, -1, 1, 1).astype(out.dtype, copy=False), out)
    return _result(out, plan, input)


def convolution_backward(
    ks: int,
    grad_output: TensorImpl,
    input: TensorImpl,
    weight: TensorImpl,
    bias_sizes: Ints | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
    output_mask: tuple[bool, bool, bool],
) -> tuple[Any, Any, Any]:
    """The gradients of input, weight and bias; None where output_mask says that nobody asks."""
    _check(input, weight, None, stride, padding, dilation, transposed, groups)
    plan = _Plan(input, weight, stride, padding, dilation, groups)
    _check_dtypes(input, weight, None, dilation)
    array, grad = _images(input), _images(grad_output)
    count, channels, out_channels = array.shape[0], array.shape[1], weight._shape[0]
    by_group = grad.reshape(count, groups, out_channels // groups, -1)
    kernel = weight.values().reshape(groups, out_channels // groups, -1)
    grad_input = grad_weight = grad_bias = None
    if output_mask[0]:
        spread = np.matmul(kernel.transpose(0, 2, 1), by_group)
        grad_input = _result(plan.images(spread, channels), plan, input)
    if output_mask[1]:
        columns = plan.columns(array)
        total = np.zeros(kernel.shape, kernel.dtype)
        for image in range(count):
            total += np.matmul(by_group[image], columns[image].transpose(0, 2, 1))
        shape = (out_channels, channels // groups, *plan.kernel)
        grad_weight = _result(total.reshape(shape), plan, weight)
    if output_mask[2]:
        summed = np.add.reduce(grad, (0, 2, 3))
        grad_bias = TensorImpl.of_values(np.asarray(summed), grad_output._dtype, grad_output._device)
    return grad_input, grad_weight, grad_bias
