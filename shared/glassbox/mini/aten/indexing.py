"""Indexing: x[...] with ints, slices, None and Ellipsis makes a view (PyTorch: ATen/TensorIndexing.h)."""

import operator
from typing import Any, TypeVar

from ..c10 import geometry
from ..c10.tensor_impl import TensorImpl

T = TypeVar("T", bound=TensorImpl)


def index(self: T, key: Any) -> T:
    """The view that `key` names; one alias, however long the key."""
    items = key if isinstance(key, tuple) else (key,)
    named = sum(1 for item in items if item is not None and item is not Ellipsis)
    shape, stride, offset = self._shape, self._stride, self._offset
    left_out = len(shape) - named
    for item in items:
        _refuse_unknown(item)
    if isinstance(key, slice):
        _bounds(key)
    if left_out < 0:
        if not shape and not isinstance(items[0], slice):
            raise IndexError("invalid index of a 0-dim tensor. Use `tensor.item()` to convert it to a number")
        raise IndexError(f"too many indices for tensor of dimension {len(shape)}")
    dim = 0
    for item in items:
        if item is None:
            shape, stride = geometry.unsqueeze(shape, stride, dim)
            dim += 1
        elif item is Ellipsis:
            dim += left_out
        elif isinstance(item, slice):
            shape, stride, offset = geometry.slice_view(shape, stride, offset, dim, *_bounds(item))
            dim += 1
        else:
            shape, stride, offset = geometry.select(shape, stride, offset, dim, operator.index(item))
    return self.alias(shape, stride, offset)


def _refuse_unknown(item: Any) -> None:
    if item is None or item is Ellipsis or isinstance(item, slice):
        return
    if isinstance(item, str | bytes):
        raise TypeError(
            f"a tensor cannot be indexed with a {type(item).__name__}: use ints, slices, None and Ellipsis"
        )
    if isinstance(item, bool | list) or isinstance(item, TensorImpl) and item._shape:
        raise NotImplementedError(
            f"indexing with a {type(item).__name__} picks elements one by one and copies; it comes with the "
            f"operators. Views are made with ints, slices, None and Ellipsis"
        )
    if not hasattr(item, "__index__"):
        raise IndexError(
            f"only integers, slices (`:`), ellipsis (`...`) and None are valid indices, "
            f"got {type(item).__name__}"
        )


def _bounds(key: slice) -> tuple[int | None, int | None, int | None]:
    step = _bound(key.step)
    if step is not None and step <= 0:
        raise ValueError(f"step must be greater than zero, got {step}: a stride may not be negative")
    return _bound(key.start), _bound(key.stop), step


def _bound(value: Any) -> int | None:
    if value is None:
        return None
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(
            f"slice indices must be integers or None or have an __index__ method, got {type(value).__name__}"
        ) from None
