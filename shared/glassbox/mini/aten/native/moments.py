"""Moments and norms: how far elements lie out (PyTorch: ATen/native/ReduceOps.cpp, LinearAlgebra.cpp)."""

import math
import warnings
from typing import Any

import numpy as np

from ...c10.dtype import dtype as DType  # noqa: N812
from ...c10.tensor_impl import TensorImpl
from .reductions import Dim, add_reduce, input_as, reduced_axes, reduced_count, result_of
from .resize import forms, scalar_type

# NumPy's type stubs know no keepdims that is a variable.
_add: Any = np.add
_maximum: Any = np.maximum
_minimum: Any = np.minimum


def _variance(
    name: str, self: TensorImpl, dim: Dim, correction: float | None, keepdim: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Variance and mean in float64, which PyTorch's running sums have too."""
    if not self._dtype.is_floating_point:
        raise RuntimeError(f"{name}: std and var only support floating point and complex dtypes")
    array = self.values().astype(np.float64)
    axes = reduced_axes(len(self._shape), dim)
    count = reduced_count(array, axes)
    freedom = max(0.0, count - (1 if correction is None else correction))
    if freedom <= 0:
        warnings.warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction "
            "factor (input numel divided by output numel).",
            UserWarning,
            stacklevel=3,
        )
    with np.errstate(all="ignore"):
        # From the first element on, so that equal elements have no variance at all.
        first = array[tuple(slice(1) if axis in axes else slice(None) for axis in range(array.ndim))]
        apart = array - first if array.size else array
        offset = np.asarray(_add.reduce(apart, axes, keepdims=True)) / count
        mean = first + offset if array.size else offset
        squares = np.asarray(_add.reduce(np.square(apart - offset), axes, keepdims=keepdim))
        return np.asarray(squares / freedom), mean if keepdim else mean.reshape(squares.shape)


def var_correction(ks: int, self: TensorImpl, dim: Dim, correction: float | None, keepdim: bool) -> Any:
    """The variance, divided by n - correction (None: 1); RuntimeError for dtypes that hold no fractions."""
    return result_of(_variance("var", self, dim, correction, keepdim)[0], self._dtype, self)


def std_correction(ks: int, self: TensorImpl, dim: Dim, correction: float | None, keepdim: bool) -> Any:
    """The square root of the variance."""
    return result_of(np.sqrt(_variance("std", self, dim, correction, keepdim)[0]), self._dtype, self)


def var_mean_correction(
    ks: int, self: TensorImpl, dim: Dim, correction: float | None, keepdim: bool
) -> tuple[Any, Any]:
    """Variance and mean in one go."""
    variance, mean = _variance("var_mean", self, dim, correction, keepdim)
    return result_of(variance, self._dtype, self), result_of(mean, self._dtype, self)


def _vector_norm(ks: int, self: TensorImpl, ord: float, dim: Dim, keepdim: bool, dtype: DType | None) -> Any:
    if not self._dtype.is_floating_point:
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. "
            f"Got {scalar_type(self._dtype)}"
        )
    target = self._dtype if dtype is None else dtype
    if not target.is_floating_point or target.itemsize < self._dtype.itemsize:
        raise RuntimeError(
            f"linalg.vector_norm: the dtype of the input ({scalar_type(self._dtype)}) should be convertible "
            f"without narrowing to the specified dtype ({scalar_type(target)})"
        )
    axes = reduced_axes(len(self._shape), dim)
    array = np.abs(input_as(self, target))
    if (ord < 0 or ord == math.inf) and reduced_count(array, axes) == 0:
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {ord} norm on an empty tensor because the operation "
            "does not have an identity"
        )
    with np.errstate(all="ignore"):
        if abs(ord) == math.inf:
            norm = (_maximum if ord > 0 else _minimum).reduce(array, axes, keepdims=keepdim)
        elif ord == 0:
            norm = _add.reduce(array != 0, axes, array.dtype, keepdims=keepdim)
        elif ord == 1:
            norm = add_reduce(array, axes, keepdim)
        elif ord == 2:
            norm = np.sqrt(add_reduce(np.square(array), axes, keepdim))
        else:
            power = add_reduce(np.power(array, array.dtype.type(ord)), axes, keepdim)
            norm = np.power(power, array.dtype.type(1 / ord))
    return result_of(norm, target, self)


linalg_vector_norm_out = forms("linalg_vector_norm", _vector_norm, dtype_at=4)
