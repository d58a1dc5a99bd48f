"""Losses: how far a prediction is off (PyTorch: ATen/native/LossNLL.cpp, LossNLL2d.cpp, Loss.cpp).

reduction is 0 for one loss per element, 1 for their mean, 2 for their sum.
"""

import functools
from typing import Any

import numpy as np

from ...c10 import promotion
from ...c10.dtype import dtype as DType  # noqa: N812
from ...c10.dtype import float32, float64, int64, uint8
from ...c10.geometry import canonical
from ...c10.tensor_impl import TensorImpl, adopt
from .. import tensor_iterator
from .reductions import add_reduce
from .resize import forms, not_implemented, scalar_type, with_strides

NONE, MEAN, SUM = 0, 1, 2


def _check_nll(self: TensorImpl, target: TensorImpl, weight: TensorImpl | None, spatial: bool) -> None:
    shape, given = self._shape, target._shape
    if spatial:
        if len(given) != 3:
            raise RuntimeError(
                f"only batches of spatial targets supported (3D tensors) but got {list(given)}"
            )
        if len(shape) != 4:
            raise RuntimeError(
                f"only batches of spatial inputs supported (4D tensors), but got {list(shape)}"
            )
        fits = (shape[0], *shape[2:]) == given
    else:
        if not 0 < len(shape) <= 2:
            raise RuntimeError("input tensor should be 1D or 2D")
        if len(given) > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        fits = given in ((), (1,)) if len(shape) == 1 else shape[:1] == given
    if not fits:
        raise RuntimeError(f"size mismatch (got input: {list(shape)}, target: {list(given)})")
    if target._dtype is not int64 and target._dtype is not uint8:
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {scalar_type(target._dtype)}")
    classes = shape[0] if len(shape) == 1 else shape[1]
    if weight is not None:
        if weight._shape != (classes,):
            raise RuntimeError(
                f"weight tensor should be defined either for all {classes} classes or no classes "
                f"but got weight tensor of shape: {list(weight._shape)}"
            )
        if weight._dtype is not self._dtype and self._dtype.is_floating_point:
            raise RuntimeError(
                f"expected scalar type {scalar_type(self._dtype)} but found {scalar_type(weight._dtype)}"
            )
    if not self._dtype.is_floating_point:
        raise not_implemented("nll_loss_out_frame", self._dtype)


@functools.lru_cache(maxsize=16)
def _row_starts(rows: int, classes: int) -> np.ndarray:
    return np.arange(0, rows * classes, classes)


def _plain_places(
    self: TensorImpl, target: TensorImpl, weight: TensorImpl | None, ignore_index: int
) -> np.ndarray | None:
    """Where the wanted scores lie in the flat tensor; None where a row may be weighted, ignored or wrong."""
    shape, dtype = self._shape, self._dtype
    if weight is not None or len(shape) != 2 or target._dtype is not int64 or 0 in shape:
        return None
    rows, classes = shape
    if target._shape != (rows,) or 0 <= ignore_index < classes or not (dtype is float32 or dtype is float64):
        return None
    wanted = target.strided_array()
    # Seen as unsigned a negative number is larger than any class: one pass is enough.
    if np.maximum.reduce(wanted.view(np.uint64)) >= classes:
        return None
    return wanted + _row_starts(rows, classes)


def _targets(
    self: TensorImpl, target: TensorImpl, weight: TensorImpl | None, ignore_index: int
) -> tuple[np.ndarray, np.ndarray]:
    """Per row the class and its weight, both 0 where it is ignored; IndexError for what is no class."""
    classes = self._shape[0] if len(self._shape) == 1 else self._shape[1]
    wanted = target.strided_array().reshape(-1).astype(np.int64)
    ignored = wanted == ignore_index
    wrong = ~ignored & ((wanted < 0) | (wanted >= classes))
    if wrong.any():
        raise IndexError(f"Target {wanted[wrong][0]} is out of bounds.")
    wanted[ignored] = 0
    dtype = np.float64 if self._dtype.itemsize == 8 else np.float32
    weights = np.ones(len(wanted), dtype) if weight is None else weight.values()[wanted]
    return wanted, np.where(ignored, dtype(0), weights)


def _rows(array: np.ndarray) -> np.ndarray:
    """Scores of shape (C), (N, C) or (N, C, H, W) as one row of C per target."""
    if array.ndim == 4:
        return array.transpose(0, 2, 3, 1).reshape(-1, array.shape[1])
    return array.reshape(-1, array.shape[-1])


def _nll_forward(
    spatial: bool,
    self: TensorImpl,
    target: TensorImpl,
    weight: TensorImpl | None,
    reduction: int,
    ignore_index: int,
) -> tuple[Any, Any]:
    places = None if spatial else _plain_places(self, target, weight, ignore_index)
    if places is None:
        _check_nll(self, target, weight, spatial)
    elif reduction != NONE:
        # All rows count alike, which is what most programs ask for.
        dtype, device = self._dtype, self._device
        loss = np.empty((), dtype.numpy)
        np.add.reduce(self.strided_array().reshape(-1).take(places), out=loss)
        count = np.empty((), dtype.numpy)
        count[()] = places.size
        np.divide(loss, -count if reduction == MEAN else -1, loss)
        return adopt(loss, (), (), dtype, device), adopt(count, (), (), dtype, device)
    wanted, weights = _targets(self, target, weight, ignore_index)
    rows = _rows(self.values())
    scores = rows[np.arange(len(wanted)), wanted] if rows.size else np.zeros(len(wanted), rows.dtype)
    # An ignored row counts nothing, even where its score is infinite.
    losses = np.where(weights == 0, rows.dtype.type(0), -scores * weights)
    batched = spatial or len(self._shape) == 2
    total = (
        np.zeros((), rows.dtype) if reduction == NONE and batched else np.asarray(add_reduce(weights, (0,)))
    )
    if reduction == NONE:
        loss = losses.reshape(target._shape if batched else ())
    else:
        loss = np.asarray(add_reduce(losses, (0,)))
        if reduction == MEAN:
            loss = np.divide(loss, total, np.empty((), rows.dtype))
    return (
        TensorImpl.of_values(loss, self._dtype, self._device),
        TensorImpl.of_values(total, self._dtype, self._device),
    )


def _nll_backward(
    spatial: bool,
    grad_output: TensorImpl,
    self: TensorImpl,
    target: TensorImpl,
    weight: TensorImpl | None,
    reduction: int,
    ignore_index: int,
    total_weight: TensorImpl,
) -> Any:
    places = None if spatial else _plain_places(self, target, weight, ignore_index)
    grad = grad_output.values().reshape(-1)
    if places is not None:
        spread = np.zeros(self._shape, grad.dtype)
        share = np.negative(grad)
        if reduction == MEAN:
            np.divide(share, total_weight.values(), share)
        spread.reshape(-1)[places] = share
        return adopt(spread, self._shape, canonical[self._shape], self._dtype, self._device)
    _check_nll(self, target, weight, spatial)
    wanted, weights = _targets(self, target, weight, ignore_index)
    if reduction == MEAN:
        # Divided once, not per row: what the mean divides by is the same for all.
        grad = grad / total_weight.values()
    spread = -np.where(weights == 0, weights.dtype.type(0), weights * grad)
    shape = self._shape
    by_class = np.zeros((len(wanted), shape[0] if len(shape) == 1 else shape[1]), weights.dtype)
    by_class[np.arange(len(wanted)), wanted] = spread
    if spatial:
        n, c, h, w = shape
        by_class = by_class.reshape(n, h, w, c).transpose(0, 3, 1, 2)
    return TensorImpl.of_values(by_class.reshape(shape), self._dtype, self._device)


nll_loss_forward = forms("nll_loss_forward", lambda ks, *args: _nll_forward(False, *args), outs=2)
nll_loss_backward = forms("nll_loss_backward", lambda ks, *args: _nll_backward(False, *args))


def nll_loss2d_forward(ks: int, *args: Any) -> tuple[Any, Any]:
    """nll_loss_forward of scores (N, C, H, W) and targets (N, H, W)."""
    return _nll_forward(True, *args)


def nll_loss2d_backward(ks: int, *args: Any) -> Any:
    """The gradient of nll_loss2d_forward for its scores."""
    return _nll_backward(True, *args)


def _pair(name: str, self: TensorImpl, target: TensorImpl) -> tuple[DType, np.ndarray, tuple[int, ...]]:
    """self - target in the dtype they meet in, and the strides that a result of every element has."""
    plan = tensor_iterator.build(
        tensor_iterator.BINARY_OP, (tensor_iterator.meta(self), tensor_iterator.meta(target))
    )
    dtype = plan.common_dtype
    if not dtype.is_floating_point:
        raise not_implemented(name, dtype)
    wide = promotion.compute_dtype(dtype).numpy
    return dtype, np.subtract(self.values(), target.values(), dtype=wide), plan.output_stride


def _mse(ks: int, self: TensorImpl, target: TensorImpl, reduction: int) -> Any:
    dtype, difference, stride = _pair("mse_cpu", self, target)
    squares = np.asarray(np.square(difference))
    if reduction == NONE:
        fresh = TensorImpl.of_values(squares, dtype, self._device)
        return with_strides(fresh.strided_array(), stride, fresh)
    total = np.asarray(add_reduce(squares, tuple(range(squares.ndim))))
    if reduction == MEAN:
        total = np.divide(total, squares.size, np.empty((), squares.dtype))
    return TensorImpl.of_values(total, dtype, self._device)


def mse_loss_backward(
    ks: int, grad_output: TensorImpl, self: TensorImpl, target: TensorImpl, reduction: int
) -> Any:
    """grad_output * 2 * (self - target), divided by the number of elements where the loss was their mean."""
    dtype, difference, _ = _pair("mse_backward_cpu_out", self, target)
    factor = 2.0 / difference.size if reduction == MEAN and difference.size else 2.0
    grad = difference.dtype.type(factor) * difference * grad_output.values()
    return TensorImpl.of_values(np.asarray(grad), dtype, self._device)


mse_loss = forms("mse_loss", _mse)
