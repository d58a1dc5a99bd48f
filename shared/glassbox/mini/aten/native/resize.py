"""Resize: results that go into a tensor that is there already (PyTorch: ATen/native/Resize.cpp).

`forms` makes a structured kernel of a function that computes a fresh result: its out= form resizes the
caller's tensor and copies into it, its in-place form writes into self.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ...c10 import geometry, layout
from ...c10.dtype import bool_, convert
from ...c10.dtype import dtype as DType  # noqa: N812
from ...c10.tensor_impl import TensorImpl
from ..loop_layout import CHANNELS_INNERMOST, has_channels_innermost, laid_out
from .structured import Structured

Ints = tuple[int, ...]

# What PyTorch's messages call the dtypes.
SCALAR_TYPES = {
    "float64": "Double",
    "float32": "Float",
    "bfloat16": "BFloat16",
    "int64": "Long",
    "int32": "Int",
    "int16": "Short",
    "int8": "Char",
    "uint8": "Byte",
    "bool": "Bool",
}


def scalar_type(dtype: DType) -> str:
    """PyTorch's name of a dtype in messages, such as Float for float32."""
    return SCALAR_TYPES[dtype.name]


def not_implemented(name: str, dtype: DType) -> NotImplementedError:
    """The error of a kernel that has no code for a dtype."""
    return NotImplementedError(f"\"{name}\" not implemented for '{scalar_type(dtype)}'")


def forms(
    name: str,
    functional: Callable[..., Any],
    *,
    inplace: bool = False,
    outs: int = 1,
    casts: bool = False,
    dtype_at: int | None = None,
    apart: bool = False,
    keeps_layout: bool = False,
) -> Structured:
    """A structured kernel out of `functional(ks, *args)`, which returns a fresh tensor or a tuple of `outs`.

    casts: whether an out tensor of another dtype is taken, where the result can be cast to it.
    dtype_at: which of args is the op's `dtype`; where that is None the dtype of the out tensor holds.
    keeps_layout: an out tensor that is resized gets the strides that a fresh result has.
    apart: an out tensor must share no memory with the arguments.
    """

    def out(ks: int, *args: Any) -> Any:
        given, targets = args[:-outs], args[-outs:]
        for target in targets:
            refuse_overlap(target, given if apart else ())
        results = functional(ks, *_with_dtype(given, targets[0]))
        for target, result in zip(targets, results if outs > 1 else (results,), strict=True):
            write_out(target, result, casts, keeps_layout, given if apart else ())
        return targets if outs > 1 else targets[0]

    def into_self(ks: int, self: TensorImpl, *args: Any) -> TensorImpl:
        result = functional(ks, *_with_dtype((self, *args), self))
        if result._shape != self._shape:
            raise RuntimeError(
                f"output with shape {list(self._shape)} doesn't match the broadcast shape "
                f"{list(result._shape)}"
            )
        refuse_overlap(self, ())
        write_out(self, result, casts)
        return self

    def _with_dtype(given: tuple[Any, ...], target: TensorImpl) -> tuple[Any, ...]:
        if dtype_at is None or given[dtype_at] is not None:
            return given
        return (*given[:dtype_at], target._dtype, *given[dtype_at + 1 :])

    return Structured(name, functional, into_self if inplace else None, out)


def refuse_overlap(target: TensorImpl, sources: tuple[Any, ...]) -> None:
    """RuntimeError where writing `target` would write an element twice, or one of `sources`."""
    from ..memory_overlap import assert_no_internal_overlap, assert_no_overlap

    assert_no_internal_overlap(target)
    for each in sources:
        for tensor in each if isinstance(each, tuple) else (each,):
            if isinstance(tensor, TensorImpl):
                assert_no_overlap(target, tensor)


def write_out(
    out: TensorImpl,
    result: TensorImpl,
    casts: bool,
    keeps_layout: bool = False,
    sources: tuple[Any, ...] = (),
) -> None:
    """Resize `out` to the shape of `result` and copy the elements; RuntimeError for a wrong dtype.

    keeps_layout: what is resized gets the strides of the result. sources: what it may not lie over by then.
    """
    source, target = result._dtype, out._dtype
    if casts:
        if not _can_cast(source, target):
            raise RuntimeError(
                f"result type {scalar_type(source)} can't be cast to the desired output type "
                f"{scalar_type(target)}"
            )
    elif source is not target:
        raise RuntimeError(f"Expected out tensor to have dtype {source.name}, but got {target.name} instead")
    if out._device != result._device:
        raise RuntimeError(
            f"Expected out tensor to be on device {result._device}, but got {out._device} instead"
        )
    if resize_output(out, result._shape) and keeps_layout:
        out._stride, out._array = result._stride, None
    if sources:
        refuse_overlap(out, sources)
    out.strided_array()[...] = convert(result.strided_array(), source, target)


def _can_cast(source: DType, target: DType) -> bool:
    if source.is_floating_point and not target.is_floating_point:
        return False
    return source is bool_ or target is not bool_


def resize_output(out: TensorImpl, shape: Ints) -> bool:
    """Give `out` the shape of a result, contiguous; UserWarning where it held elements. True if changed."""
    if out._shape == shape:
        return False
    if 0 not in out._shape:
        warnings.warn(
            f"An output with one or more elements was resized since it had shape {list(out._shape)}, "
            f"which does not match the required output shape {list(shape)}. Resize it to 0 elements first "
            "to reuse it.",
            UserWarning,
            stacklevel=3,
        )
    set_sizes_contiguous(out, shape)
    return True


def set_sizes_contiguous(self: TensorImpl, shape: Ints) -> None:
    """Other sizes for the same storage, which grows where it is too small; new elements are not set."""
    stride = geometry.contiguous_strides(shape)
    needed = layout.storage_span(shape, stride, self._offset) * self._dtype.itemsize
    storage = self._storage
    if needed > storage.owner.nbytes:
        grown = np.empty(needed, np.uint8)
        grown[: storage.owner.nbytes] = storage.bytes()
        storage.owner = grown
    self._shape, self._stride, self._array = shape, stride, None


def resize_(ks: int, self: TensorImpl, size: Ints, memory_format: str | None) -> TensorImpl:
    """Other sizes in place. Raises RuntimeError for a negative size, or if autograd tracks self."""
    if any(n < 0 for n in size):
        raise RuntimeError(f"resize_: sizes may not be negative, got {list(size)}")
    if self._requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    if size != self._shape:
        set_sizes_contiguous(self, size)
    return self


def suggested_strides(shape: Ints, like: TensorImpl) -> Ints:
    """Strides of a result of `shape`: with the channels innermost where `like` has them so, else contiguous."""
    if len(shape) == 4 and has_channels_innermost(like._shape, like._stride):
        return laid_out(shape, CHANNELS_INNERMOST)
    return geometry.contiguous_strides(shape)


def with_strides(array: np.ndarray, stride: Ints, like: TensorImpl, dtype: DType | None = None) -> Any:
    """A fresh tensor on the device of `like` with the elements of `array`, laid out by `stride`.

    `array` holds elements as the storage does.
    """
    dtype = like._dtype if dtype is None else dtype
    if stride == geometry.contiguous_strides(array.shape):
        return TensorImpl.adopt(np.require(array, requirements=["C", "O"]), dtype, like._device)
    fresh = TensorImpl.allocate(array.shape, stride, dtype, like._device)
    fresh.strided_array()[...] = array
    return fresh
