"""Writes that write nothing: the tensor as it would be after fill_, copy_ or a write through a view (PyTorch: ATen/native/TensorShape.cpp).

functionalize puts these in the place of writes; under autograd they are ordinary differentiable operators.
"""

from typing import Any

from ...c10 import geometry, layout
from .factory_ops import clone, copy_, fill_, zero_

Ints = tuple[int, ...]


def fill(ks: int, self: Any, value: Any) -> Any:
    """self's shape and dtype, every element a number or the value of a 0-d tensor."""
    return fill_(ks, clone(ks, self, None), value)


def zero(ks: int, self: Any) -> Any:
    """self's shape and dtype, every element 0."""
    return zero_(ks, clone(ks, self, None))


def copy(ks: int, self: Any, src: Any, non_blocking: bool) -> Any:
    """The elements of src in self's shape and dtype."""
    return copy_(ks, clone(ks, self, None), src, non_blocking)


def select_scatter(ks: int, self: Any, src: Any, dim: int, index: int) -> Any:
    """self with `src` at one index of a dimension; RuntimeError where it does not fit."""
    return _scattered(ks, self, src, geometry.select(self._shape, self._stride, 0, dim, index), "select")


def slice_scatter(
    ks: int, self: Any, src: Any, dim: int, start: int | None, end: int | None, step: int
) -> Any:
    """self with `src` in a range of indices of a dimension; RuntimeError where it does not fit."""
    where = geometry.slice_view(self._shape, self._stride, 0, dim, start, end, step)
    return _scattered(ks, self, src, where, "slice")


def as_strided_scatter(ks: int, self: Any, src: Any, size: Ints, stride: Ints, storage_offset: int | None) -> Any:
    """self with `src` where as_strided(size, stride, storage_offset) would look; RuntimeError where it does not fit."""
    offset = self._offset if storage_offset is None else storage_offset
    return _scattered(ks, self, src, (size, stride, offset - self._offset), "as_strided")


def _scattered(ks: int, self: Any, src: Any, where: tuple[Ints, Ints, int], view: str) -> Any:
    """A copy of self, strides kept, with src written through a view (shape, stride, offset from self's) of it."""
    shape, stride, offset = where
    if src._shape != shape:
        raise RuntimeError(
            f"expected src to have a size equal to the {view} of self. src size = {list(src._shape)}, {view} size = "
            f"{list(shape)}"
        )
    result = clone_preserve_strides(self)
    copy_(ks, result.alias(shape, stride, result._offset + offset), src, False)
    return result


def clone_preserve_strides(self: Any) -> Any:
    """A copy with self's own strides and offset, of all that its storage holds up to there; dense where elements overlap."""
    if layout.has_overlap(self._shape, self._stride):
        return clone(0, self, None)
    span = layout.storage_span(self._shape, self._stride, self._offset)
    whole = self.alias((span,), (1,), 0)
    copied = clone(0, whole, None)
    copied._shape, copied._stride, copied._offset, copied._array = self._shape, self._stride, self._offset, None
    return copied
