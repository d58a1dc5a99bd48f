"""Indexing: x[...] as a row of operators.

PyTorch: torch/csrc/autograd/python_variable_indexing.cpp, ATen/TensorIndexing.h.

Ints, slices, None and Ellipsis become select, slice, unsqueeze, each a view of the one before. Tensors, lists and
bools pick elements one by one: they are kept until the views are made and go to index or index_put_ together. A bool,
or a mask without dimensions, picks all or nothing: row 0, or no row, of a new dimension of size 1.
"""

import operator
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .aten import ops as at
from .c10.dtype import bool_, int64, uint8
from .c10.tensor_impl import TensorImpl

# The end of a slice that goes on to the end.
END = sys.maxsize
MakeTensor = Callable[[Any], Any]


def getitem(self: Any, key: Any, make_tensor: MakeTensor) -> Any:
    """What `self[key]` gives: a view, or a copy where the key picks elements.

    make_tensor turns a list into a tensor.
    """
    view, picks = apply_key(self, key, make_tensor)
    if picks:
        return at.index_Tensor(view, picks)
    return at.alias(view) if view is self else view


def setitem(self: Any, key: Any, value: Any, make_tensor: MakeTensor) -> None:
    """`self[key] = value`, value being a tensor."""
    if isinstance(key, bool):
        if key:
            assign(at.unsqueeze(self, 0), value)
        return
    view, picks = apply_key(self, key, make_tensor, written=True)
    if not picks:
        assign(view, value)
        return
    if len(value._shape) > 0 and value._device.type != view._device.type:
        value = value.to(device=view._device)
    if value._dtype is not view._dtype and not value._shape and _is_mask(picks):
        value = value.to(view._dtype)
    ones = next((dim for dim, n in enumerate(value._shape) if n != 1), len(value._shape))
    if len(value._shape) > 1 and ones:
        value = at.view(value, value._shape[ones:])
    at.index_put_(view, picks, value, False)


def _is_mask(picks: tuple[Any, ...]) -> bool:
    given = [pick for pick in picks if pick is not None]
    return len(given) == 1 and given[0]._dtype in (bool_, uint8)


def assign(target: Any, value: Any) -> None:
    """What x[...] = value does once the view is there (PyTorch: copy_to in ATen/TensorIndexing.h).

    Leading sizes of 1 say nothing, so a value may have more dimensions than its target. It is expanded before it is
    copied, which lets x[None] = x be seen as the same elements.
    """
    if value._shape == target._shape:
        at.copy_(target, value, False)
    elif not value._shape:
        at.fill__Tensor(target, value)
    else:
        ones = next((dim for dim, n in enumerate(value._shape) if n != 1), len(value._shape))
        source = at.view(value, value._shape[ones:]) if ones else value
        at.copy_(target, at.expand(source, target._shape, False), False)


def apply_key(self: Any, key: Any, make_tensor: MakeTensor, written: bool = False) -> tuple[Any, tuple[Any, ...]]:
    """The view that the key's ints, slices, None and Ellipsis name, and the picking indices per dimension of it.

    written: it is to be written to, so that a slice of everything need not be a view.
    """
    items = [_as_index(item, make_tensor) for item in _items(key)]
    if isinstance(key, slice):
        bounds(key)
    named = sum(_dims_taken(item) for item in items)
    left_out = len(self._shape) - named
    if left_out < 0:
        if not self._shape and not isinstance(items[0], slice):
            raise IndexError("invalid index of a 0-dim tensor. Use `tensor.item()` to convert it to a number")
        raise IndexError(f"too many indices for tensor of dimension {len(self._shape)}")
    view, dim, covered = self, 0, 0
    picks: list[Any] = []
    for item in items:
        if item is None:
            view = at.unsqueeze(view, dim)
            dim += 1
        elif item is Ellipsis:
            dim += left_out
        elif isinstance(item, slice):
            start, stop, step = bounds(item)
            if len(items) == 1 and not written or not _is_whole(start, stop, step, view._shape[dim]):
                view = at.slice_Tensor(
                    view, dim, start or 0, END if stop is None else stop, 1 if step is None else step
                )
            dim += 1
        elif isinstance(item, bool | TensorImpl):
            if isinstance(item, bool) or not item._shape and item._dtype in (bool_, uint8):
                view = at.unsqueeze(view, dim)
                item = make_tensor([0]) if item else make_tensor([]).to(int64)
            picks += [None] * (dim - covered)
            picks.append(item)
            dim += len(item._shape) if item._dtype in (bool_, uint8) else 1
            covered = dim
        else:
            size = view._shape[dim]
            if not -size <= item < size:
                raise IndexError(f"index {item} is out of bounds for dimension {dim} with size {size}")
            view = at.select_int(view, dim, item)
    return view, tuple(picks)


# From this length on a list is always a tensor of indices.
LONGEST_TUPLE = 32


def _items(key: Any) -> list[Any]:
    """What a key holds; a list counts as a tuple where anything in it is no number (PyTorch: treatSequenceAsTuple)."""
    if isinstance(key, tuple):
        return list(key)
    if not isinstance(key, list) or len(key) >= LONGEST_TUPLE:
        return [key]
    if not any(item is None or item is Ellipsis or isinstance(item, _NO_NUMBERS) for item in key):
        return [key]
    warnings.warn(
        "a list that holds lists, slices, None, Ellipsis or tensors is taken for a tuple of indices. "
        "That is deprecated: write x[tuple(key)] for that, and x[mini.tensor(key)] for a tensor of indices",
        UserWarning,
        stacklevel=5,
    )
    return list(key)


_NO_NUMBERS = (Sequence, slice, TensorImpl, np.ndarray)


def _dims_taken(item: Any) -> int:
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    if isinstance(item, TensorImpl) and item._dtype in (bool_, uint8):
        return len(item._shape)
    return 1


def _is_whole(start: int | None, stop: int | None, step: int | None, size: int) -> bool:
    return start in (None, 0) and (stop is None or stop >= size) and step in (None, 1)


def _as_index(item: Any, make_tensor: MakeTensor) -> Any:
    """One item of a key as an int, slice, None, Ellipsis, bool or a tensor of picks."""
    if item is None or item is Ellipsis or isinstance(item, slice | bool):
        return item
    if isinstance(item, TensorImpl):
        if not item._shape and item._dtype not in (bool_, uint8) and not item._dtype.is_floating_point:
            return operator.index(item)  # type: ignore[arg-type]
        if item._dtype.is_floating_point:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        return item
    if isinstance(item, str | bytes):
        raise TypeError(
            f"a tensor cannot be indexed with a {type(item).__name__}: use ints, slices, None, Ellipsis or tensors"
        )
    if isinstance(item, list | tuple | range | np.ndarray):
        picked = make_tensor(item)
        if isinstance(item, list | tuple | range) and len(item) == 0:
            return picked.to(int64)
        return _as_index(picked, make_tensor) if picked._shape else picked
    if not hasattr(item, "__index__"):
        raise IndexError(
            f"only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
            f"(got {type(item).__name__})"
        )
    return operator.index(item)


def bounds(key: slice) -> tuple[int | None, int | None, int | None]:
    """A slice's start, stop and step as ints; ValueError for a step that goes nowhere or back."""
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


__all__ = ["apply_key", "assign", "bounds", "getitem", "setitem"]
