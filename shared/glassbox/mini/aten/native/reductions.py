"""Reductions: many elements become one (PyTorch: ATen/native/ReduceOps.cpp).

A kernel takes `dim` as an int, as a tuple of ints, or as None or () for all of them. Results are contiguous,
whatever the layout of the input.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...c10 import dtype as dtypes
from ...c10 import layout
from ...c10.dtype import bfloat16, bool_, float32, float64, int64, uint8
from ...c10.dtype import dtype as DType  # noqa: N812
from ...c10.geometry import canonical
from ...c10.pieces import cached
from ...c10.tensor_impl import TensorImpl, adopt
from .resize import forms, not_implemented, scalar_type, write_out
from .structured import Structured

Dim = int | tuple[int, ...] | None

# NumPy's type stubs know no keepdims that is a variable.
_add: Any = np.add
_multiply: Any = np.multiply
_or: Any = np.logical_or
_and: Any = np.logical_and

# From here on a contiguous sum is taken in two steps: NumPy is twice as fast over many columns as over one.
_LARGE_SUM = 1 << 14


@cached
def reduced_axes(ndim: int, dim: Dim) -> tuple[int, ...]:
    """The axes to reduce, wrapped; IndexError out of range, RuntimeError for one given twice."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    wrapped = [layout.wrap_dim(each, ndim) for each in ((dim,) if isinstance(dim, int) else dim)]
    for axis in wrapped:
        if wrapped.count(axis) > 1:
            raise RuntimeError(f"dim {axis} appears multiple times in the list of dims")
    return tuple(wrapped) if ndim else ()


def reduced_count(array: np.ndarray, axes: tuple[int, ...]) -> int:
    """How many elements become one."""
    return math.prod(array.shape[axis] for axis in axes)


def result_of(values: Any, dtype: DType, self: TensorImpl) -> Any:
    """Values as a contiguous tensor of `dtype` on the device of self."""
    array = np.asarray(values)
    if array.dtype is dtype.numpy and dtype is not bfloat16 and array.flags.c_contiguous:
        return TensorImpl.adopt(array, dtype, self._device)
    return TensorImpl.of_values(array, dtype, self._device)


def input_as(self: TensorImpl, dtype: DType) -> np.ndarray:
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
            total = _add.reduce(_add.reduce(flat[:whole].reshape(-1, width), 0))
            total = np.asarray(total + _add.reduce(flat[whole:]))
            return total.reshape((1,) * array.ndim) if keepdim else total
        if axes == (0,) and array.shape[0] >= 256:
            # Row by row the error grows with the number of rows; a block of rows at a time with its root.
            height = 1 << array.shape[0].bit_length() // 2
            whole = array.shape[0] // height * height
            blocks = array[:whole].reshape(-1, height, *array.shape[1:])
            total = _add.reduce(_add.reduce(blocks, 1), 0) + _add.reduce(array[whole:], 0)
            return total[None] if keepdim else total
    return _add.reduce(array, axes, None, None, keepdim)


def _sum_dtype(self: TensorImpl, dtype: DType | None) -> DType:
    if dtype is not None:
        return dtype
    return self._dtype if self._dtype.is_floating_point else int64


def _sum(ks: int, self: TensorImpl, dim: Dim, keepdim: bool, dtype: DType | None) -> Any:
    axes = reduced_axes(len(self._shape), dim)
    own = self._dtype
    if (own is float32 or own is float64) and (dtype is None or dtype is own):
        total = add_reduce(self.strided_array(), axes, keepdim)
        if total.ndim:
            return adopt(np.ascontiguousarray(total), total.shape, canonical[total.shape], own, self._device)
        return result_of(total, own, self)
    target = _sum_dtype(self, dtype)
    array = input_as(self, target)
    if target is bool_:
        return result_of(_or.reduce(array, axes, keepdims=keepdim), bool_, self)
    return result_of(add_reduce(array, axes, keepdim), target, self)


def sum_all(ks: int, self: TensorImpl, dtype: DType | None) -> Any:
    """The sum of all elements, 0-d; of ints in int64."""
    own = self._dtype
    if dtype is None and (own is float32 or own is float64):
        array = self.strided_array()
        if array.size < _LARGE_SUM:
            total = np.empty((), own.numpy)
            _add.reduce(array, None, None, total)
            return adopt(total, (), (), own, self._device)
    return _sum(ks, self, None, False, dtype)


def _mean(ks: int, self: TensorImpl, dim: Dim, keepdim: bool, dtype: DType | None) -> Any:
    target = self._dtype if dtype is None else dtype
    if not target.is_floating_point:
        what = "infer output dtype. Input" if dtype is None else "use the dtype asked for. Output"
        raise RuntimeError(
            f"mean(): could not {what} dtype must be either a floating point or complex dtype. "
            f"Got: {scalar_type(target)}"
        )
    array = input_as(self, target)
    axes = reduced_axes(len(self._shape), dim)
    total = add_reduce(array, axes, keepdim)
    return result_of(np.true_divide(total, reduced_count(array, axes), dtype=array.dtype), target, self)


def mean_all(ks: int, self: TensorImpl, dtype: DType | None) -> Any:
    """The mean of all elements, 0-d; RuntimeError for dtypes that hold no fractions."""
    return _mean(ks, self, None, False, dtype)


def prod_all(ks: int, self: TensorImpl, dtype: DType | None) -> Any:
    """The product of all elements, 0-d; of ints in int64."""
    return _prod(ks, self, None, False, dtype)


def _prod(ks: int, self: TensorImpl, dim: Dim, keepdim: bool, dtype: DType | None) -> Any:
    target = _sum_dtype(self, dtype)
    array = input_as(self, target)
    axes = reduced_axes(len(self._shape), dim)
    if target is bool_:
        return result_of(_and.reduce(array, axes, keepdims=keepdim), bool_, self)
    return result_of(_multiply.reduce(array, axes, keepdims=keepdim), target, self)


sum_dim = forms("sum", _sum, dtype_at=3)
mean_dim = forms("mean", _mean, dtype_at=3)
prod_dim = forms("prod", _prod, dtype_at=3)


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


def _extreme(name: str, ufunc: Any) -> Callable[..., Any]:
    def kernel(ks: int, self: TensorImpl, dim: Dim, keepdim: bool) -> Any:
        _refuse_empty(name, self._shape, dim, RuntimeError)
        axes = reduced_axes(len(self._shape), dim)
        return result_of(ufunc.reduce(self.values(), axes, keepdims=keepdim), self._dtype, self)

    return kernel


amax_out = forms("amax", _extreme("amax", np.maximum))
amin_out = forms("amin", _extreme("amin", np.minimum))


def max_all(ks: int, self: TensorImpl) -> Any:
    """The largest of all elements, NaN if there is one; RuntimeError for an empty tensor."""
    _refuse_empty("max", self._shape, None, RuntimeError)
    return result_of(np.maximum.reduce(self.values(), None), self._dtype, self)


def min_all(ks: int, self: TensorImpl) -> Any:
    """The smallest of all elements, NaN if there is one; RuntimeError for an empty tensor."""
    _refuse_empty("min", self._shape, None, RuntimeError)
    return result_of(np.minimum.reduce(self.values(), None), self._dtype, self)


def _argument(name: str, find: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(ks: int, self: TensorImpl, dim: int | None, keepdim: bool) -> Any:
        if self._dtype is bool_:
            raise RuntimeError(f"{name}(): does not support bool input")
        _refuse_empty(name, self._shape, dim, IndexError)
        axes = reduced_axes(len(self._shape), dim)
        values = self.values()
        if dim is None:
            found = np.asarray(find(values))
            return result_of(found.reshape((1,) * values.ndim if keepdim else ()), int64, self)
        return result_of(find(values, axis=axes[0], keepdims=keepdim) if axes else 0, int64, self)

    return kernel


argmax_out = forms("argmax", _argument("argmax", np.argmax))
argmin_out = forms("argmin", _argument("argmin", np.argmin))


def _extreme_and_place(name: str, find: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(ks: int, self: TensorImpl, dim: int, keepdim: bool) -> tuple[Any, Any]:
        _refuse_empty(name, self._shape, dim, IndexError)
        axes = reduced_axes(len(self._shape), dim)
        array = self.strided_array()
        if not axes:
            return _copy(array, self), result_of(0, int64, self)
        places = find(self.values(), axis=axes[0], keepdims=True)
        picked = np.take_along_axis(array, places, axes[0])
        if not keepdim:
            places, picked = places.squeeze(axes[0]), picked.squeeze(axes[0])
        return _copy(picked, self), result_of(places, int64, self)

    return kernel


def _copy(array: np.ndarray, self: TensorImpl) -> Any:
    return TensorImpl.adopt(np.array(array, order="C"), self._dtype, self._device)


max_dim = forms("max", _extreme_and_place("max", np.argmax), outs=2)
min_dim = forms("min", _extreme_and_place("min", np.argmin), outs=2)


def _truth(ufunc: Any) -> Callable[..., Any]:
    def kernel(ks: int, self: TensorImpl, dim: Dim, keepdim: bool) -> Any:
        # An empty list of dims reduces nothing here, unlike everywhere else.
        axes = () if dim == () else reduced_axes(len(self._shape), dim)
        found = ufunc.reduce(self.values() != 0, axes, keepdims=keepdim)
        return result_of(found, uint8 if self._dtype is uint8 else bool_, self)

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
        if args[-1]._dtype is bool_ and args[0]._dtype is uint8:
            # The result is that of bools, which no uint8 can be cast to.
            result = functional(ks, *args[:-1])
            answers = TensorImpl.adopt(result.strided_array() != 0, bool_, result._device)
            write_out(args[-1], answers, False)
            return args[-1]
        return plain.out(ks, *args)

    return Structured(name, functional, None, out)


_all, _any = _truth(_and), _truth(_or)
all_dim = _truth_forms("all", _all)
any_dim = _truth_forms("any", _any)
all_dims = _truth_forms("all", _all)
any_dims = _truth_forms("any", _any)
all_all = _truth_forms("all", lambda ks, self: _all(ks, self, None, False))
any_all = _truth_forms("any", lambda ks, self: _any(ks, self, None, False))


def count_nonzero(ks: int, self: TensorImpl, dim: Dim) -> Any:
    """How many elements are not 0."""
    axes = reduced_axes(len(self._shape), dim)
    return result_of(np.count_nonzero(self.values(), axis=axes), int64, self)


def _logsumexp(ks: int, self: TensorImpl, dim: Dim, keepdim: bool) -> Any:
    target = self._dtype if self._dtype.is_floating_point else float32
    array = input_as(self, target)
    axes = reduced_axes(len(self._shape), dim)
    largest = np.maximum.reduce(array, axes, keepdims=True, initial=-np.inf)
    # An infinite maximum would leave inf - inf.
    shift = np.where(np.isinf(largest), array.dtype.type(0), largest)
    with np.errstate(all="ignore"):
        total = np.log(_add.reduce(np.exp(array - shift), axes, keepdims=keepdim))
    return result_of(total + shift.reshape(np.shape(total)), target, self)


logsumexp_out = forms("logsumexp", _logsumexp, casts=True)


def _cumsum(ks: int, self: TensorImpl, dim: int, dtype: DType | None) -> Any:
    target = _sum_dtype(self, dtype)
    array = input_as(self, target)
    axes = reduced_axes(len(self._shape), dim)
    if not axes:
        return result_of(array.copy(), target, self)
    if target is bool_:
        raise not_implemented("cumsum_out_cpu", bool_)
    # The running sum is kept in float64, as in PyTorch.
    wide = np.float64 if array.dtype.kind == "f" else array.dtype
    return result_of(np.add.accumulate(array, axes[0], dtype=wide).astype(array.dtype), target, self)


cumsum_out = forms("cumsum", _cumsum, inplace=True, dtype_at=2)
