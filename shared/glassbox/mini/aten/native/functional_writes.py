"""Writes that write nothing: a tensor as it would be after fill_ or copy_ (PyTorch: ATen/native/TensorShape.cpp).

functionalize puts these in the place of writes; under autograd they are ordinary differentiable operators.
"""

from typing import Any

from ...c10 import geometry, layout
from ..memory_overlap import has_internal_overlap
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
    copied = clone_preserve_strides(self)
    where = geometry.select(copied._shape, copied._stride, copied._offset, dim, index)
    return _written(copied, src, where, "select")


def slice_scatter(ks: int, self: Any, src: Any, dim: int, start: int | None, end: int | None, step: int) -> Any:
    """self with `src` in a range of indices of a dimension; RuntimeError where it does not fit."""
    copied = clone_preserve_strides(self)
    where = geometry.slice_view(copied._shape, copied._stride, copied._offset, dim, start, end, step)
    return _written(copied, src, where, "slice")


def as_strided_scatter(ks: int, self: Any, src: Any, size: Ints, stride: Ints, storage_offset: int | None) -> Any:
    """self with `src` where as_strided(size, stride, storage_offset) would look; RuntimeError where it does not fit."""
    copied = clone_preserve_strides(self)
    offset = copied._offset if storage_offset is None else storage_offset
    layout.check_bounds(size, stride, offset, copied._storage.nbytes() // copied._dtype.itemsize)
    return _written(copied, src, (size, stride, offset), "as_strided")


def _written(copied: Any, src: Any, where: tuple[Ints, Ints, int], view: str) -> Any:
    """The copy, with src written through a view (shape, stride, offset) of it."""
    if src._shape != where[0]:
        raise RuntimeError(
            f"expected src to have a size equal to the {view} of self. src size = {list(src._shape)}, {view} size = "
            f"{list(where[0])}"
        )
    copy_(0, copied.alias(*where), src, False)
    return copied


def clone_preserve_strides(self: Any) -> Any:
    """A copy with self's own strides and offset, of all that its storage holds up to there; dense where
    elements overlap.
    """
    if has_internal_overlap(self._shape, self._stride):
        return clone(0, self, None)
    span = layout.storage_span(self._shape, self._stride, self._offset)
    copied = clone(0, self.alias((span,), (1,), 0), None)
    copied._shape, copied._stride, copied._offset, copied._array = self._shape, self._stride, self._offset, None
    return copied
