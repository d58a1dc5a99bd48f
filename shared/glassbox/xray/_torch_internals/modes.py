"""Dispatch modes that look on: they see each operator call, change nothing, and leave nothing
(torch/utils/_python_dispatch.py).

A mode's handler runs with the mode switched off, so what an operator does in turn is out of its sight. A Looker lets
itself in again where Python code works on the operator's behalf: a tensor subclass, a branch of torch.cond.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any

from .access import missing, private

try:
    from torch.utils._python_dispatch import TorchDispatchMode
except ImportError:
    raise missing("torch.utils._python_dispatch.TorchDispatchMode") from None

_HigherOrder: Any = private("torch._ops.HigherOrderOperator")
_stack = private("torch.utils._python_dispatch._get_current_dispatch_mode_stack")
_depth_of_stack = private("torch._C._len_torch_dispatch_stack")
_no_handler = private("torch._C._disabled_torch_dispatch_impl")
# Higher-order operators whose functions run as they are where no other mode is on.
_BRANCHING = ("cond", "while_loop")


class Looker(TorchDispatchMode):
    """A dispatch mode whose `begins`, `ends` and `fails` a subclass fills in; the call itself is none of its business.

    It may be entered again inside of itself, which changes nothing, and left in any order with other modes, as
    generators do. It belongs to the thread that entered it: RuntimeError in another one. (Backward passes take it along
    into the threads of their devices.)
    """

    supports_higher_order_operators = True

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where
        self.level = 0
        self._entered = 0
        self._thread = 0
        self._handing_on: Any = None

    def begins(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """A call is about to run; what this returns is handed to `ends` or `fails`."""
        raise NotImplementedError

    def ends(self, begun: Any, result: Any) -> None:
        raise NotImplementedError

    def fails(self, begun: Any) -> None:
        raise NotImplementedError

    def __torch_dispatch__(
        self, func: Any, types: Sequence[Any], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if self._handing_on is not None and self._handing_on is func:
            self._handing_on = None
            return NotImplemented
        given = kwargs or {}
        begun = self.begins(func, args, given)
        try:
            if types or isinstance(func, _HigherOrder):
                result = self._special(func, types, args, given)
            else:
                result = func(*args, **given)
        except BaseException:
            self.fails(begun)
            raise
        self.ends(begun, result)
        return result

    def _special(self, func: Any, types: Sequence[Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        if _depth_of_stack():
            return func(*args, **kwargs)
        if isinstance(func, _HigherOrder):
            if func.name() in _BRANCHING:
                args = tuple(self._looking_into(arg) if callable(arg) else arg for arg in args)
            return func(*args, **kwargs)
        handlers = [kind for kind in types if kind.__torch_dispatch__ is not _no_handler]
        # FakeTensor and FunctionalTensor are PyTorch's own ways of running: what they call is no work of the program.
        if not handlers or any(hasattr(kind, "_mode_key") for kind in handlers):
            return func(*args, **kwargs)
        with self._again():
            self._handing_on = func
            try:
                return func(*args, **kwargs)
            finally:
                self._handing_on = None

    def _looking_into(self, branch: Callable[..., Any]) -> Callable[..., Any]:
        def seen(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                return branch(*args, **kwargs)

        return seen

    @contextmanager
    def _again(self) -> Iterator[None]:
        TorchDispatchMode.__enter__(self)
        self.level += 1
        try:
            yield
        finally:
            self.level -= 1
            leave(self)

    def __enter__(self) -> Any:
        thread = threading.get_ident()
        if self._entered and thread != self._thread:
            raise RuntimeError(
                f"{self.where}: this one is on in another thread, and a dispatch mode sees one thread only; make one "
                f"for each thread."
            )
        if not self._entered:
            self._thread = thread
            TorchDispatchMode.__enter__(self)
        self._entered += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if threading.get_ident() != self._thread:
            raise RuntimeError(
                f"{self.where}: the block was entered in one thread and left in another, which cannot switch the mode "
                f"off; leave it where it was entered."
            )
        self._entered -= 1
        if not self._entered:
            leave(self)


class LookerPastCompilers(Looker):
    """One that lets torch.compile do its work: compiled code runs, and only what it calls of the dispatcher is seen."""

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True


def leave(mode: Any) -> None:
    """Take a mode off this thread's stack, wherever it lies in it; the others stay on, in their order."""
    modes = _stack()
    above = []
    while modes and modes[-1] is not mode:
        above.append(modes.pop())
    if not modes:
        return
    for each in above:
        TorchDispatchMode.__exit__(each, None, None, None)
    TorchDispatchMode.__exit__(mode, None, None, None)
    for each in reversed(above):
        TorchDispatchMode.__enter__(each)


def unseen() -> AbstractContextManager[Any]:
    """`with unseen():` no dispatch mode of this thread sees what is called in the block."""
    context: AbstractContextManager[Any] = private("torch.utils._python_dispatch._disable_current_modes")()
    return context


@contextmanager
def unheard() -> Iterator[None]:
    """`with unheard():` unseen, and the __torch_function__ of tensor subclasses does not run either."""
    with private("torch._C.DisableTorchFunction")(), unseen():
        yield


def forget_hook(handle: Any) -> None:
    """Remove a global forward hook; PyTorch's own remove() leaves a note that it wanted keyword arguments."""
    handle.remove()
    private("torch.nn.modules.module._global_forward_hooks_with_kwargs").pop(handle.id, None)


def uncompiled(module: Any) -> Any:
    """The module that torch.compile wrapped; the module itself where it did not."""
    return getattr(module, "_orig_mod", module)


def is_compiled(function: Any) -> bool:
    """Whether torch.compile made this function or module."""
    optimized = private("torch._dynamo.eval_frame.OptimizedModule")
    return isinstance(function, optimized) or hasattr(function, "_torchdynamo_orig_callable")
