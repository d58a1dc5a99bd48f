"""TorchDispatchMode: Python that sees every operator call (PyTorch: torch/utils/_python_dispatch.py).

An active mode puts two keys into the thread's included set. Python lies below autograd and autocast, so a
mode sees what is left to do once those have done their part. PythonTLSSnapshot lies on top of them and only
writes down how the thread's key sets were on the way in, for a handler that wants to call operators as if
from outside.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from ..aten.core.boxing import returned
from ..aten.core.dispatcher import OperatorHandle, dispatcher
from ..aten.core.kernel_function import KernelFunction, place_of
from ..c10.dispatch_key import DispatchKey
from ..c10.dispatch_key_set import FULL, PYTHON, bits, full_after
from ..c10.local_dispatch_key_set import local_keys

BELOW_PYTHON = full_after(DispatchKey.Python)
BELOW_SNAPSHOT = full_after(DispatchKey.PythonTLSSnapshot)
# What a handler's own calls may meet: a mode further out and everything below.
_IN_HANDLER = FULL & (BELOW_PYTHON | bits(DispatchKey.Python))

_modes: ContextVar[tuple["TorchDispatchMode", ...]] = ContextVar("dispatch_modes", default=())
_keys_on_entry: ContextVar[tuple[int, int] | None] = ContextVar("keys_on_entry", default=None)


class TorchDispatchMode:
    """`with mode:` every operator call of the block goes to the mode's __torch_dispatch__.

    A subclass overrides __torch_dispatch__(self, func, types, args=(), kwargs=None): func is the OpOverload
    called, types is empty (there are no tensor subclasses here), args and kwargs are as Python writes them,
    with defaults left out. What it returns is the call's result; func(*args, **kwargs) goes on to the
    kernel. While it runs the mode is off and the keys above Python are excluded. Modes nest: the innermost
    sees a call first.
    """

    def __torch_dispatch__(
        self, func: Any, types: tuple[Any, ...], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        raise NotImplementedError(f"{type(self).__name__} needs a __torch_dispatch__(func, types, args, kwargs)")

    def __enter__(self) -> Any:
        _modes.set((*_modes.get(), self))
        included, allowed = local_keys.get()
        local_keys.set((included | PYTHON, allowed))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        outer = _modes.get()[:-1]
        _modes.set(outer)
        if not outer:
            included, allowed = local_keys.get()
            local_keys.set((included & ~PYTHON, allowed))


def current_modes() -> tuple[TorchDispatchMode, ...]:
    """The modes of this thread, the outermost first."""
    return _modes.get()


def python_fallback(op: OperatorHandle, key_set: int, arguments: tuple[Any, ...]) -> Any:
    """The kernel of every operator at the Python key: hands the call to the innermost mode."""
    modes = _modes.get()
    if not modes:
        return op.redispatch(key_set & BELOW_PYTHON, *arguments)
    args, kwargs = op.unbind(arguments)
    keys = local_keys.get()
    outer = modes[:-1]
    _modes.set(outer)
    local_keys.set((keys[0] if outer else keys[0] & ~PYTHON, keys[1] & _IN_HANDLER))
    try:
        result = modes[-1].__torch_dispatch__(op.overload, (), args, kwargs)
    finally:
        _modes.set(modes)
        local_keys.set(keys)
    return returned(op, arguments, result)


def snapshot_fallback(op: OperatorHandle, key_set: int, arguments: tuple[Any, ...]) -> Any:
    """The kernel of every operator at PythonTLSSnapshot: remembers the thread's key sets and goes on."""
    if _keys_on_entry.get() is not None:
        return op.redispatch(key_set & BELOW_SNAPSHOT, *arguments)
    _keys_on_entry.set(local_keys.get())
    try:
        return op.redispatch(key_set & BELOW_SNAPSHOT, *arguments)
    finally:
        _keys_on_entry.set(None)


@contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """In a handler: calls of the block run as if from outside, with autograd and autocast, but without the mode.

    PyTorch: torch.overrides.enable_reentrant_dispatch. RuntimeError outside of a handler.
    """
    keys = _keys_on_entry.get()
    if keys is None:
        raise RuntimeError("enable_reentrant_dispatch() is for a handler: there is no call that could be entered again")
    before = local_keys.get()
    local_keys.set(keys)
    _keys_on_entry.set(None)
    try:
        yield
    finally:
        _keys_on_entry.set(keys)
        local_keys.set(before)


def register_all() -> None:
    """The fallbacks of both keys."""
    for key, function in ((DispatchKey.Python, python_fallback), (DispatchKey.PythonTLSSnapshot, snapshot_fallback)):
        dispatcher.register_fallback(key, KernelFunction(function, place_of(function), boxed=True))
