"""Reductions: many elements become one (PyTorch: ATen/native/ReduceOps.cpp).

A kernel takes `dim` as an int, as a tuple of ints, or as None or () for all of them. Results are contiguous,
whatever the layout of the input.
"""

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ...c10 import dtype as dtypes
from ...c10 import layout
from ...c10.dtype import bfloat16, bool_, float32, float64, int64, uint8
from ...c10.dtype import dtype as DType  # noqa: N812
from ...c10.pieces import cached
from ...c10.tensor_impl import TensorImpl
from .resize import forms, not_implemented, scalar_type
from .structured import Structured

Dim = int | tuple[int, ...] | None

# From here on a contiguous sum is taken in two steps: NumPy is twice as fast over many columns as over one.
_LARGE_SUM = 1 << 14


@cached
def _axes(ndim: int, dim: Dim) -> tuple[int, ...]:
    """The axes to reduce, wrapped; IndexError out of range, RuntimeError for one given twice."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    wrapped = [layout.wrap_dim(each, ndim) for each in ((dim,) if isinstance(dim, int) else dim)]
    for axis in wrapped:
        if wrapped.count(axis) > 1:
            raise RuntimeError(f"dim {axis} appears multiple times in the list of dims")
    return tuple(wrapped) if ndim else ()


def _count(array: np.ndarray, axes: tuple[int, ...]) -> int:
    return math.prod(array.shape[axis] for axis in axes)


def _result(values: Any, dtype: DType, self: TensorImpl) -> Any:
    return TensorImpl.of_values(np.asarray(values), dtype, self._device)


def _input(self: TensorImpl, dtype: DType) -> np.ndarray:
    """The elements converted to `dtype`, in which the reduction computes; bfloat16 computes in float32."""
    if dtype is bfloat16:
        return dtypes.convert(self.strided_array(), self._dtype, float32)
    return dtypes.convert(self.strided_array(), self._dtype, dtype)


def add_reduce(array: np.ndarray, axes: tuple[int, ...], keepdim: bool = False) -> np.ndarray:
    """The sum over some axes, in the array's own dtype, with rounding errors that grow slowly."""
    if array.size >= _LARGE_SUM and array.flags.c_contiguous and array.dtype.kind == "f":
        if len(axes) == array.ndim:
            flat = array.reshape(-1)
            width = 1 << flat.size.bit_length() // 2
            whole = flat.size // width * width
            total = np.add.reduce(np.add.reduce(flat[:whole].reshape(-1, width), 0))
            total = np.asarray(total + np.add.reduce(flat[whole:]))
            return total.reshape((1,) * array.ndim) if keepdim else total
        if axes == (0,) and array.shape[0] >= 256:
            # Row by row the error grows with the number of rows; a block of rows at a time with its root.
            height = 1 << array.shape[0].bit_length() // 2
            whole = array.shape[0] // height * height
            blocks = array[:whole].reshape(-1, height, *array.shape[1:])
            total = np.add.reduce(np.add.reduce(blocks, 1), 0) + np.add.reduce(array[whole:], 0)
            return total[None] if keepdim else total
    return np.add.reduce(array, axes, None, None, keepdim)


def _sum_dtype(self: TensorImpl, dtype: DType | None) -> DType:
    if dtype is not None:
        return dtype
    return self._dtype if self._dtype.is_floating_point else int64


def _sum(ks: int, self: TensorImpl, dim: Dim, keepdim: bool, dtype: DType | None) -> Any:
    target = _sum_dtype(self, dtype)
    array = _input(self, target)
    axes = _axes(len(self._shape), dim)
    if target is bool_:
        return _result(np.logical_or.reduce(array, axes, keepdims=keepdim), bool_, self)
    return _result(add_reduce(array, axes, keepdim), target, self)


def sum_all(ks: int, self: TensorImpl, dtype: DType | None) -> Any:
    """The sum of all elements, 0-d; of ints in int64."""
    own = self._dtype
    if dtype is None and (own is float32 or own is float64):
        array = self.strided_array()
        if array.size < _LARGE_SUM:
            total = np.empty((), own.numpy)
            np.add.reduce(array, None, None, total)
            return TensorImpl.adopt(total, own, self._device)
    return _sum(ks, self, None, False, dtype)


def _mean(ks: int, self: TensorImpl, dim: Dim, keepdim: bool, dtype: DType | None) -> Any:
    target = self._dtype if dtype is None else dtype
    if not target.is_floating_point:
        what = "infer output dtype. Input" if dtype is None else "use the dtype asked for. Output"
        raise RuntimeError(
            f"mean(): could not {what} dtype must be either a floating point or complex dtype. "
            f"Got: {scalar_type(target)}"
        )
    array = _input(self, target)
    axes = _axes(len(self._shape), dim)
    total = add_reduce(array, axes, keepdim)
    return _result(np.true_divide(total, _count(array, axes), dtype=array.dtype), target, self)


def mean_all(ks: int, self: TensorImpl, dtype: DType | None) -> Any:
    """The mean of all elements, 0-d; RuntimeError for dtypes that hold no fractions."""
    return _mean(ks, self, None, False, dtype)


def prod_all(ks: int, self: TensorImpl, dtype: DType | None) -> Any:
    """The product of all elements, 0-d; of ints in int64."""
    return _prod(ks, self, None, False, dtype)


def _prod(ks: int, self: TensorImpl, dim: Dim, keepdim: bool, dtype: DType | None) -> Any:
    target = _sum_dtype(self, dtype)
    array = _input(self, target)
    axes = _axes(len(self._shape), dim)
    if target is bool_:
        return _result(np.logical_and.reduce(array, axes, keepdims=keepdim), bool_, self)
    return _result(np.multiply.reduce(array, axes, keepdims=keepdim), target, self)


sum_dim = forms("sum", _sum, dtype_at=3)
mean_dim = forms("mean", _mean, dtype_at=3)
prod_dim = forms("prod", _prod, dtype_at=3)


def _variance(
    name: str, self: TensorImpl, dim: Dim, correction: float | None, keepdim: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Variance and mean in float64, which PyTorch's running sums have too."""
    if not self._dtype.is_floating_point:
        raise RuntimeError(f"{name}: std and var only support floating point and complex dtypes")
    array = self.values().astype(np.float64)
    axes = _axes(len(self._shape), dim)
    count = _count(array, axes)
    freedom = max(0.0, count - (1 if correction is None else correction))
    if freedom <= 0:
        warnings.warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction "
            "factor (input numel divided by output numel).",
            UserWarning,
            stacklevel=3,
        )
    with np.errstate(all="ignore"):
        mean = np.asarray(np.add.reduce(array, axes, keepdims=True)) / count
        squares = np.asarray(np.add.reduce(np.square(array - mean), axes, keepdims=keepdim))
        return np.asarray(squares / freedom), mean if keepdim else mean.reshape(squares.shape)


def var_correction(ks: int, self: TensorImpl, dim: Dim, correction: float | None, keepdim: bool) -> Any:
    """The variance, divided by n - correction (None: 1); RuntimeError for dtypes that hold no fractions."""
    return _result(_variance("var", self, dim, correction, keepdim)[0], self._dtype, self)


def std_correction(ks: int, self: TensorImpl, dim: Dim, correction: float | None, keepdim: bool) -> Any:
    """The square root of the variance."""
    return _result(np.sqrt(_variance("std", self, dim, correction, keepdim)[0]), self._dtype, self)


def var_mean_correction(
    ks: int, self: TensorImpl, dim: Dim, correction: float | None, keepdim: bool
) -> tuple[Any, Any]:
    """Variance and mean in one go."""
    variance, mean = _variance("var_mean", self, dim, correction, keepdim)
    return _result(variance, self._dtype, self), _result(mean, self._dtype, self)


def _refuse_empty(name: str, shape: tuple[int, ...], dim: Dim, without: type[Exception]) -> None:
    """An extreme of nothing does not exist: `without` where no dim was given, else IndexError."""
    if 0 not in shape:
        return
    if dim is None or dim == ():
        raise without(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. "
            "Specify the reduction dim with the 'dim' argument."
        )
    for each in (dim,) if isinstance(dim, int) else dim:
        axis = layout.wrap_dim(each, len(shape))
        if shape[axis] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {axis} to have non-zero size.")


def _extreme(name: str, ufunc: np.ufunc) -> Callable[..., Any]:
    def kernel(ks: int, self: TensorImpl, dim: Dim, keepdim: bool) -> Any:
        _refuse_empty(name, self._shape, dim, RuntimeError)
        axes = _axes(len(self._shape), dim)
        return _result(ufunc.reduce(self.values(), axes, keepdims=keepdim), self._dtype, self)

    return kernel


amax_out = forms("amax", _extreme("amax", np.maximum))
amin_out = forms("amin", _extreme("amin", np.minimum))


def max_all(ks: int, self: TensorImpl) -> Any:
    """The largest of all elements, NaN if there is one; RuntimeError for an empty tensor."""
    _refuse_empty("max", self._shape, None, RuntimeError)
    return _result(np.maximum.reduce(self.values(), None), self._dtype, self)


def min_all(ks: int, self: TensorImpl) -> Any:
    """The smallest of all elements, NaN if there is one; RuntimeError for an empty tensor."""
    _refuse_empty("min", self._shape, None, RuntimeError)
    return _result(np.minimum.reduce(self.values(), None), self._dtype, self)


def _argument(name: str, find: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(ks: int, self: TensorImpl, dim: int | None, keepdim: bool) -> Any:
        if self._dtype is bool_:
            raise RuntimeError(f"{name}(): does not support bool input")
        _refuse_empty(name, self._shape, dim, IndexError)
        axes = _axes(len(self._shape), dim)
        values = self.values()
        if dim is None:
            found = np.asarray(find(values))
            return _result(found.reshape((1,) * values.ndim if keepdim else ()), int64, self)
        return _result(find(values, axis=axes[0], keepdims=keepdim) if axes else 0, int64, self)

    return kernel


argmax_out = forms("argmax", _argument("argmax", np.argmax))
argmin_out = forms("argmin", _argument("argmin", np.argmin))


def _extreme_and_place(name: str, find: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(ks: int, self: TensorImpl, dim: int, keepdim: bool) -> tuple[Any, Any]:
        _refuse_empty(name, self._shape, dim, IndexError)
        axes = _axes(len(self._shape), dim)
        array = self.strided_array()
        if not axes:
            return _copy(array, self), _result(0, int64, self)
        places = find(self.values(), axis=axes[0], keepdims=True)
        picked = np.take_along_axis(array, places, axes[0])
        if not keepdim:
            places, picked = places.squeeze(axes[0]), picked.squeeze(axes[0])
        return _copy(picked, self), _result(places, int64, self)

    return kernel


def _copy(array: np.ndarray, self: TensorImpl) -> Any:
    return TensorImpl.adopt(np.array(array, order="C"), self._dtype, self._device)


max_dim = forms("max", _extreme_and_place("max", np.argmax), outs=2)
min_dim = forms("min", _extreme_and_place("min", np.argmin), outs=2)


def _truth(ufunc: np.ufunc) -> Callable[..., Any]:
    def kernel(ks: int, self: TensorImpl, dim: Dim, keepdim: bool) -> Any:
        # An empty list of dims reduces nothing here, unlike everywhere else.
        axes = () if dim == () else _axes(len(self._shape), dim)
        found = ufunc.reduce(self.values() != 0, axes, keepdims=keepdim)
        return _result(found, uint8 if self._dtype is uint8 else bool_, self)

    return kernel


def _truth_forms(name: str, functional: Callable[..., Any]) -> Structured:
    """Forms whose out tensor may be a bool or, whatever the input, a uint8 tensor."""
    plain = forms(name, functional, casts=True)

    def out(ks: int, *args: Any) -> Any:
        if args[-1]._dtype not in (bool_, uint8):
            raise RuntimeError(
                f"{name} only supports bool tensor for result, got: {scalar_type(args[-1]._dtype)}"
            )
        assert plain.out is not None
        return plain.out(ks, *args)

    return Structured(name, functional, None, out)


_all, _any = _truth(np.logical_and), _truth(np.logical_or)
all_dim = _truth_forms("all", _all)
any_dim = _truth_forms("any", _any)
all_dims = _truth_forms("all", _all)
any_dims = _truth_forms("any", _any)
all_all = _truth_forms("all", lambda ks, self: _all(ks, self, None, False))
any_all = _truth_forms("any", lambda ks, self: _any(ks, self, None, False))


def count_nonzero(ks: int, self: TensorImpl, dim: Dim) -> Any:
    """How many elements are not 0."""
    axes = _axes(len(self._shape), dim)
    return _result(np.count_nonzero(self.values(), axis=axes), int64, self)


def _logsumexp(ks: int, self: TensorImpl, dim: Dim, keepdim: bool) -> Any:
    target = self._dtype if self._dtype.is_floating_point else float32
    array = _input(self, target)
    axes = _axes(len(self._shape), dim)
    largest = np.maximum.reduce(array, axes, keepdims=True, initial=-np.inf)
    # An infinite maximum would leave inf - inf.
    shift = np.where(np.isinf(largest), array.dtype.type(0), largest)
    with np.errstate(all="ignore"):
        total = np.log(np.add.reduce(np.exp(array - shift), axes, keepdims=keepdim))
    return _result(total + shift.reshape(np.shape(total)), target, self)


logsumexp_out = forms("logsumexp", _logsumexp, casts=True)


def _cumsum(ks: int, self: TensorImpl, dim: int, dtype: DType | None) -> Any:
    target = _sum_dtype(self, dtype)
    array = _input(self, target)
    axes = _axes(len(self._shape), dim)
    if target is bool_:
        raise not_implemented("cumsum_out_cpu", bool_)
    if not axes:
        return _result(array, target, self)
    # The running sum is kept in float64, as in PyTorch.
    wide = np.float64 if array.dtype.kind == "f" else array.dtype
    return _result(np.add.accumulate(array, axes[0], dtype=wide).astype(array.dtype), target, self)


cumsum_out = forms("cumsum", _cumsum, inplace=True, dtype_at=2)


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
    axes = _axes(len(self._shape), dim)
    array = np.abs(_input(self, target))
    if (ord < 0 or ord == math.inf) and _count(array, axes) == 0:
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {ord} norm on an empty tensor because the operation "
            "does not have an identity"
        )
    with np.errstate(all="ignore"):
        if abs(ord) == math.inf:
            norm = (np.maximum if ord > 0 else np.minimum).reduce(array, axes, keepdims=keepdim)
        elif ord == 0:
            norm = np.add.reduce(array != 0, axes, array.dtype, keepdims=keepdim)
        elif ord == 1:
            norm = add_reduce(array, axes, keepdim)
        elif ord == 2:
            norm = np.sqrt(add_reduce(np.square(array), axes, keepdim))
        else:
            power = add_reduce(np.power(array, array.dtype.type(ord)), axes, keepdim)
            norm = np.power(power, array.dtype.type(1 / ord))
    return _result(norm, target, self)


linalg_vector_norm_out = forms("linalg_vector_norm", _vector_norm, dtype_at=4)
