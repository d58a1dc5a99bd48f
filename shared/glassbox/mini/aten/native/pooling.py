"""Pooling in two dimensions (PyTorch: ATen/native/DilatedMaxPool2d.cpp, AveragePool2d.cpp).

The loop runs over the cells of the window; each step handles that cell for all output positions at once.
Inputs are (N, C, H, W) or (C, H, W); results are channels last where the input is.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...c10 import layout
from ...c10.dtype import bool_, int64
from ...c10.tensor_impl import TensorImpl
from .resize import forms, not_implemented, suggested_strides, with_strides

Ints = tuple[int, ...]
Pair = tuple[int, int]


def _pair(name: str, what: str, values: Ints) -> Pair:
    if len(values) not in (1, 2):
        raise RuntimeError(f"{name}: {what} must either be a single int, or a tuple of two ints")
    return values[0], values[-1]


class _Windows:
    """Where the windows of a pooling lie over an image, and the images padded so that all fit."""

    def __init__(
        self,
        name: str,
        input: TensorImpl,
        kernel_size: Ints,
        stride: Ints,
        padding: Ints,
        dilation: Ints,
        ceil_mode: bool,
    ) -> None:
        self.kernel = _pair(name, "kernel_size", kernel_size)
        self.stride = _pair(name, "stride", stride) if stride else self.kernel
        self.padding = _pair(name, "padding", padding)
        self.dilation = _pair(name, "dilation", dilation)
        shape = input._shape
        if any(n <= 0 for n in self.kernel):
            raise RuntimeError(f"kernel size should be greater than zero, but got {list(self.kernel)}")
        if any(n <= 0 for n in self.stride):
            raise RuntimeError("stride should not be zero")
        if any(n <= 0 for n in self.dilation):
            raise RuntimeError(f"dilation should be greater than zero, but got {list(self.dilation)}")
        if len(shape) not in (3, 4) or 0 in shape[1:] or len(shape) == 3 and shape[0] == 0:
            raise RuntimeError(
                f"Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, "
                f"but got:{list(shape)}"
            )
        self.size: Pair = (shape[-2], shape[-1])
        out: list[int] = []
        for n, k, s, p, d in zip(
            self.size, self.kernel, self.stride, self.padding, self.dilation, strict=True
        ):
            if not 0 <= p <= (d * (k - 1) + 1) // 2:
                raise RuntimeError(
                    f"pad should be at least 0 and at most half of effective kernel size, but got pad={p}, "
                    f"kernel_size={k} and dilation={d}"
                )
            count = (n + 2 * p - d * (k - 1) - 1 + (s - 1 if ceil_mode else 0)) // s + 1
            # In ceil mode the last window may not start in the padding behind the image.
            out.append(count - 1 if ceil_mode and (count - 1) * s >= n + p else count)
        if min(out) < 1:
            planes = shape[-3]
            raise RuntimeError(
                f"Given input size: ({planes}x{self.size[0]}x{self.size[1]}). Calculated output size: "
                f"({planes}x{out[0]}x{out[1]}). Output size is too small"
            )
        self.out_size: Pair = (out[0], out[1])
        self.out_shape = (*shape[:-2], *out)

    def starts(self, axis: int) -> np.ndarray:
        """Where each window begins along H (0) or W (1); below 0 in the padding."""
        return np.arange(self.out_size[axis]) * self.stride[axis] - self.padding[axis]

    def padded(self, array: np.ndarray, filler: Any) -> np.ndarray:
        """A copy of the images, large enough for all windows, with `filler` around."""
        (h, w), (ph, pw) = self.size, self.padding
        full = []
        for n, count, k, s, p, d in zip(
            self.size, self.out_size, self.kernel, self.stride, self.padding, self.dilation, strict=True
        ):
            full.append(max((count - 1) * s + d * (k - 1) + 1, n + p))
        wide = np.full((*array.shape[:-2], *full), filler, array.dtype)
        wide[..., ph : ph + h, pw : pw + w] = array
        return wide

    def cells(self, padded: np.ndarray) -> Iterator[tuple[int, int, np.ndarray]]:
        """Per cell of the window: its offsets, and a view of what it sees at every output position."""
        (oh, ow), (sh, sw), (dh, dw) = self.out_size, self.stride, self.dilation
        for i in range(self.kernel[0]):
            for j in range(self.kernel[1]):
                rows = slice(i * dh, i * dh + (oh - 1) * sh + 1, sh)
                columns = slice(j * dw, j * dw + (ow - 1) * sw + 1, sw)
                yield i * dh, j * dw, padded[..., rows, columns]


def _like(values: np.ndarray, input: TensorImpl) -> Any:
    fresh = TensorImpl.of_values(values, input._dtype, input._device)
    return with_strides(fresh.strided_array(), suggested_strides(values.shape, input), input)


def _max_pool2d(
    ks: int, self: TensorImpl, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> tuple[Any, Any]:
    windows = _Windows("max_pool2d", self, kernel_size, stride, padding, dilation, ceil_mode)
    if self._dtype is bool_:
        raise not_implemented("max_pool2d", bool_)
    values = self.values()
    floats = values.dtype.kind == "f"
    lowest = -np.inf if floats else np.iinfo(values.dtype).min
    rows, columns = windows.starts(0)[:, None], windows.starts(1)
    width = windows.size[1]
    best = np.full(windows.out_shape, lowest, values.dtype)
    # Which cell of a window holds its largest element, from 1 on: arithmetic is faster than masked copies.
    cells, found = np.zeros(windows.out_shape, np.int16), np.empty(windows.out_shape, np.int16)
    offsets: list[int] = []
    with_nan = floats and bool(np.isnan(values).any())
    for nr, (i, j, seen) in enumerate(windows.cells(windows.padded(values, lowest))):
        better = seen > best
        if with_nan:
            # NaN wins, and the last one stays.
            better |= np.isnan(seen)
        np.maximum(best, seen, out=best)
        np.maximum(cells, np.multiply(better, np.int16(nr + 1), found), out=cells)
        offsets.append(i * width + j)
    # Where nothing exceeds the lowest number, the first cell inside the image is named.
    first = _first_inside(rows, windows.dilation[0]) * width + _first_inside(columns, windows.dilation[1])
    places = rows * width + columns + np.array([0, *offsets]).take(cells)
    np.copyto(places, first, where=cells == 0)
    indices = with_strides(places, suggested_strides(places.shape, self), self, int64)
    return _like(best, self), indices


def _first_inside(starts: np.ndarray, dilation: int) -> np.ndarray:
    return np.where(starts < 0, starts + -(starts // dilation) * dilation, starts)


def _max_pool2d_backward(
    ks: int,
    grad_output: TensorImpl,
    self: TensorImpl,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    ceil_mode: bool,
    indices: TensorImpl,
) -> Any:
    windows = _Windows("max_pool2d", self, kernel_size, stride, padding, dilation, ceil_mode)
    if not self._dtype.is_floating_point:
        raise not_implemented("max_pool2d_backward", self._dtype)
    if grad_output._shape != windows.out_shape or indices._shape != windows.out_shape:
        raise RuntimeError(
            f"max_pool2d_backward: grad_output {list(grad_output._shape)} and indices {list(indices._shape)} "
            f"must have the shape of the output {list(windows.out_shape)}"
        )
    grad = grad_output.values()
    planes = layout.numel(self._shape[:-2])
    size = windows.size[0] * windows.size[1]
    spread = np.zeros(planes * size, grad.dtype)
    places = indices.strided_array().reshape(planes, -1) + (np.arange(planes) * size)[:, None]
    np.add.at(spread, places.reshape(-1), grad.reshape(-1))
    return _like(spread.reshape(self._shape), self)


def _divisors(windows: _Windows, count_include_pad: bool, divisor_override: int | None) -> np.ndarray:
    """What the sum in each window is divided by, (OH, OW): the cells that count."""
    if divisor_override is not None:
        return np.full(windows.out_size, divisor_override)
    lengths = []
    for axis in (0, 1):
        start, n, p = windows.starts(axis), windows.size[axis], windows.padding[axis]
        end = np.minimum(start + windows.kernel[axis], n + p)
        if not count_include_pad:
            start, end = np.maximum(start, 0), np.minimum(end, n)
        lengths.append(end - start)
    return lengths[0][:, None] * lengths[1]


def _check_avg_pool(self: TensorImpl, divisor_override: int | None) -> None:
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    if not self._dtype.is_floating_point and self._dtype is not int64:
        raise not_implemented("avg_pool2d", self._dtype)


def _avg_pool2d(
    ks: int,
    self: TensorImpl,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    windows = _Windows("avg_pool2d", self, kernel_size, stride, padding, (1, 1), ceil_mode)
    _check_avg_pool(self, divisor_override)
    values = self.values()
    total = np.zeros(windows.out_shape, values.dtype)
    for _, _, seen in windows.cells(windows.padded(values, 0)):
        np.add(total, seen, total)
    divisors = _divisors(windows, count_include_pad, divisor_override)
    if values.dtype.kind == "f":
        return _like(total / divisors.astype(values.dtype), self)
    return _like(np.trunc(total / divisors).astype(values.dtype), self)


def _avg_pool2d_backward(
    ks: int,
    grad_output: TensorImpl,
    self: TensorImpl,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    windows = _Windows("avg_pool2d", self, kernel_size, stride, padding, (1, 1), ceil_mode)
    _check_avg_pool(self, divisor_override)
    grad = grad_output.values()
    share = grad / _divisors(windows, count_include_pad, divisor_override).astype(grad.dtype)
    wide = windows.padded(np.zeros(self._shape, grad.dtype), 0)
    for _, _, seen in windows.cells(wide):
        np.add(seen, share, seen)
    (h, w), (ph, pw) = windows.size, windows.padding
    return _like(wide[..., ph : ph + h, pw : pw + w], self)


def _adaptive_windows(size: int, out: int) -> list[slice]:
    """For each of `out` outputs the part of `size` inputs that it averages; neighbours may share some."""
    return [slice(i * size // out, -(-(i + 1) * size // out)) for i in range(out)]


def _check_adaptive(name: str, self: TensorImpl, out_size: Ints) -> None:
    shape = self._shape
    if len(shape) not in (3, 4):
        raise RuntimeError(f"{name}(): Expected 3D or 4D tensor, but got {list(shape)}")
    for dim in range(1 - len(shape) + 1, 0):
        if shape[dim] == 0:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has "
                f"sizes {list(shape)} with dimension {len(shape) + dim} being empty"
            )
    if not self._dtype.is_floating_point and 0 not in (*shape[:-2], *out_size):
        raise not_implemented(name, self._dtype)


def adaptive_avg_pool2d(ks: int, self: TensorImpl, output_size: Ints) -> Any:
    """Images averaged to the given height and width; RuntimeError for what does not fit."""
    if len(output_size) != 2:
        raise RuntimeError("adaptive_avg_pool2d: output_size must be 2")
    _check_adaptive("adaptive_avg_pool2d", self, output_size)
    if min(output_size) < 0:
        raise RuntimeError(f"adaptive_avg_pool2d: sizes may not be negative, got {list(output_size)}")
    values = self.values()
    out = np.empty((*values.shape[:-2], *output_size), values.dtype)
    for i, rows in enumerate(_adaptive_windows(values.shape[-2], output_size[0])):
        for j, columns in enumerate(_adaptive_windows(values.shape[-1], output_size[1])):
            out[..., i, j] = np.mean(values[..., rows, columns], (-2, -1))
    return _like(out, self)


def adaptive_avg_pool2d_backward(ks: int, grad_output: TensorImpl, self: TensorImpl) -> Any:
    """Each output's gradient, shared among the inputs that it averages."""
    _check_adaptive("adaptive_avg_pool2d_backward", grad_output, grad_output._shape[-2:])
    grad = grad_output.values()
    spread = np.zeros(self._shape, grad.dtype)
    for i, rows in enumerate(_adaptive_windows(self._shape[-2], grad.shape[-2])):
        for j, columns in enumerate(_adaptive_windows(self._shape[-1], grad.shape[-1])):
            cells = (rows.stop - rows.start) * (columns.stop - columns.start)
            spread[..., rows, columns] += (grad[..., i, j] / grad.dtype.type(cells))[..., None, None]
    return _like(spread, self)


max_pool2d_with_indices = forms("max_pool2d_with_indices", _max_pool2d, outs=2)
max_pool2d_with_indices_backward = forms("max_pool2d_with_indices_backward", _max_pool2d_backward)
avg_pool2d = forms("avg_pool2d", _avg_pool2d)
avg_pool2d_backward = forms("avg_pool2d_backward", _avg_pool2d_backward)
