"""Seeing tensors: a number for each, and their metadata, at the price of a few attribute reads (c10/core/TensorImpl.h).

A tensor is told by its TensorImpl, as PyTorch tells it: Python's object for it may go and come back, and its id() may
be given to another one. A weak reference of C++ keeps the address taken, and lets the memory go. Weak references have
one effect that a program can see: torch.utils.swap_tensors refuses tensors that have some. So they are let go of
around it, and at the end of a block.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch.nn import Parameter

from .access import missing, private
from .modes import unseen

# What one look at a tensor gives: its number, shape, stride, offset, dtype, device, the storage's number (0: none), and
# what is special about it.
Seen = tuple[int, Any, Any, int, Any, Any, int, str]

_IMMUTABLE = frozenset(
    {int, float, bool, type(None), str, complex, torch.dtype, torch.device, torch.layout, torch.memory_format}
)
_FIRST_SWEEP = 4096
_STORAGE = torch.UntypedStorage
_NEEDED = (
    (torch.Tensor, "_cdata"),
    *((_STORAGE, name) for name in ("_cdata", "_weak_ref", "_expired", "_free_weak_ref")),
)


class Text(str):
    """How a log writes what is neither tensor, number nor list."""

    __slots__ = ()


_open: list[Eyes] = []
_unpatched: list[Any] = []
_lock = threading.Lock()


class Eyes:
    """Looks at values: tensors become tuples (Seen), sequences lists, and nothing that is kept holds a tensor.

    To be opened before looking and closed after; then it holds nothing, and what it sees later has new numbers.
    """

    def __init__(self) -> None:
        for kind, name in _NEEDED:
            if not hasattr(kind, name):
                raise missing(f"{kind.__name__}.{name}")
        self._tensors: dict[int, int] = {}
        self._storages: dict[int, int] = {}
        self._tensor_refs: dict[int, Any] = {}
        self._next_tensor = 0
        self._next_storage = 1
        self._sweep_at = _FIRST_SWEEP
        self._weak = private("torch._C._WeakTensorRef")
        self._modes = private("torch._C._len_torch_dispatch_stack")
        self._function_modes = private("torch._C._len_torch_function_stack")
        self._unheard = private("torch._C.DisableTorchFunction")

    def open(self) -> None:
        with _lock:
            if not _open:
                _unpatched.append(private("torch._C._swap_tensor_impl"))
                torch._C._swap_tensor_impl = _swap
            _open.append(self)

    def close(self) -> None:
        with _lock:
            if self in _open:
                _open.remove(self)
                if not _open:
                    torch._C._swap_tensor_impl = _unpatched.pop()
        self._tensors.clear()
        self._tensor_refs.clear()
        for key in list(self._storages):
            self._forget_storage(key)

    def hold(self, tensor: Any) -> None:
        """Keep the address of a known tensor taken."""
        if tensor._cdata in self._tensors:
            self._tensor_refs[tensor._cdata] = self._weak(tensor)

    def let_go(self, tensor: Any) -> None:
        self._tensor_refs.pop(tensor._cdata, None)

    def look(self, values: Sequence[Any]) -> list[Any]:
        """The values of one call, in their order."""
        if self._function_modes():
            # A mode for torch functions would be told of each attribute that is read.
            with self._unheard():
                return self._look_at(values)
        return self._look_at(values)

    def _look_at(self, values: Sequence[Any]) -> list[Any]:
        seen: list[Any] = []
        for value in values:
            kind = type(value)
            if kind is torch.Tensor or kind is Parameter:
                try:
                    key = value._cdata
                    number = self._tensors.get(key)
                    storage = value.untyped_storage()._cdata
                    place = self._storages.get(storage)
                    seen.append(
                        (
                            self._new_tensor(value, key) if number is None else number,
                            value.shape,
                            value.stride(),
                            value.storage_offset(),
                            value.dtype,
                            value.device,
                            self._new_storage(value) if place is None else place,
                            "",
                        )
                    )
                except (RuntimeError, NotImplementedError):
                    seen.append(self._look_at_odd(value))
            elif kind in _IMMUTABLE:
                seen.append(value)
            elif isinstance(value, torch.Tensor):
                # A subclass may be asked for its sizes through __torch_function__ or the dispatcher.
                with self._unheard(), unseen() if self._modes() else nullcontext():
                    seen.append(self._look_at_odd(value))
            elif isinstance(value, (list, tuple)):
                seen.append(self._look_at(value))
            else:
                seen.append(Text(_in_words(value)))
        return seen

    def _look_at_odd(self, tensor: Any) -> Seen:
        """A tensor that lacks something: nested, sparse, of a subclass."""
        key = tensor._cdata
        number = self._tensors.get(key)
        if number is None:
            number = self._new_tensor(tensor, key)
        shape = _or(lambda: tuple(_plain(n) for n in tensor.shape), None)
        if shape is None:
            shape = tuple(_or(lambda k=k: _plain(tensor.size(k)), "*") for k in range(_or(tensor.dim, 0)))
        strides = _or(lambda: tuple(_plain(n) for n in tensor.stride()), ())
        offset = _or(lambda: _plain(tensor.storage_offset()), 0)
        place = 0 if tensor.is_nested else self.storage_of(tensor)
        layout = str(tensor.layout).removeprefix("torch.").lstrip("_")
        what = "nested" if tensor.is_nested else "" if layout == "strided" else layout
        if type(tensor) not in (torch.Tensor, Parameter):
            what = type(tensor).__name__
        return number, shape, strides, offset, tensor.dtype, tensor.device, place, what

    def storage_of(self, tensor: Any) -> int:
        """The number of a tensor's storage; 0 for one without."""
        storage = _or(lambda: tensor.untyped_storage()._cdata, 0)
        if not storage:
            return 0
        return self._storages.get(storage) or self._new_storage(tensor)

    def _new_tensor(self, tensor: Any, key: int) -> int:
        number = self._tensors[key] = self._next_tensor
        self._next_tensor += 1
        self._tensor_refs[key] = self._weak(tensor)
        if len(self._tensors) > self._sweep_at:
            self.sweep()
            self._sweep_at = max(_FIRST_SWEEP, 2 * len(self._tensors))
        return number

    def _new_storage(self, tensor: Any) -> int:
        # The weak reference is its address; it is counted, and has to be given back.
        key = tensor.untyped_storage()._weak_ref()
        number = self._storages[key] = self._next_storage
        self._next_storage += 1
        return number

    def sweep(self) -> None:
        """Forget tensors and storages that are gone, whose addresses may be used again."""
        for key in [key for key, ref in self._tensor_refs.items() if ref.expired()]:
            del self._tensor_refs[key], self._tensors[key]
        for key in [key for key in self._storages if _STORAGE._expired(key)]:
            self._forget_storage(key)

    def _forget_storage(self, key: int) -> None:
        del self._storages[key]
        _STORAGE._free_weak_ref(key)

    def __del__(self) -> None:
        for key in list(self._storages):
            self._forget_storage(key)


def _swap(one: Any, other: Any) -> None:
    """What torch.utils.swap_tensors calls while eyes are open."""
    looking = list(_open)
    for eyes in looking:
        eyes.let_go(one)
        eyes.let_go(other)
    try:
        _unpatched[0](one, other)
    finally:
        for eyes in looking:
            eyes.hold(one)
            eyes.hold(other)


def _or(read: Any, otherwise: Any) -> Any:
    try:
        return read()
    except Exception:
        return otherwise


def _plain(size: Any) -> Any:
    """A size as a number, or as text where it is symbolic."""
    return size if type(size) is int else str(size)


def _in_words(value: Any) -> str:
    if isinstance(value, torch.Generator):
        return f"Generator({value.device})"
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return str(value)
    if isinstance(value, dict):
        return f"{{{', '.join(map(str, value))}}}"
    if callable(value):
        return str(getattr(value, "__name__", type(value).__name__))
    return type(value).__name__
