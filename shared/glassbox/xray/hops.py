"""Onion: every kernel that really ran for a program, nested (aten/src/ATen/core/dispatch/Dispatcher.h).

PyTorch can print as much only in a debug build (TORCH_SHOW_DISPATCH_TRACE).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..records import Onion
from ..records.dispatch import not_hooked
from ._which import over_mini, require_eager

_NOTE = "seen by hooks around all kernels, which were there for the whole process while it ran"


def onion(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Onion:
    """Call fn(*args, **kwargs) once and give every kernel that the dispatcher ran for it, the outermost first.

    Each hop is one kernel of one operator for one key, with the key set that it was called with, why the table holds
    it and where it was registered; kernels that it called in turn are one step deeper. Layers that are not there for
    a call, or fall through, do not appear. `onion(lambda: ...)` looks at anything; what fn returns is dropped.

    For PyTorch, hooks are put around all kernels of all registered operators (some 90,000, which takes two seconds) and
    taken away again whatever happens. They are there for the whole process, so run nothing quick beside it.
    Written down is what this thread does, and what the autograd engine does in other threads for it. Results and
    gradients are the same to the bit. Kernels that were registered from Python for just one key are not hooked; where
    an autograd kernel hands on to one, it is inferred and marked. Nor are those of a backend without a device here,
    where fake tensors can claim to lie (FakeTensorMode); the note says so. What gives a tensor another class
    (nn.Parameter, as_subclass) runs without its detach or alias being seen.

    Over mini tensors the same from the mini-framework, without torch.

    RuntimeError inside of another onion, or where fn makes a tensor of a subclass from data, which C++ refuses while
    kernels are hooked; make it before. ValueError for a compiled function; where fn calls one, its first call shows
    what compiling runs. Whatever fn raises is raised.
    """
    if over_mini(fn, args, kwargs):
        return _of_mini(fn, args, kwargs)
    require_eager(fn, "onion")
    from ._kernel_hooks import KernelHooks
    from ._kernel_rows import backends_without_rows

    hooks = KernelHooks()
    with hooks:
        left = hooks.unwatched()
        try:
            fn(*args, **kwargs)
        except RuntimeError as error:
            if "already associated to a python object" not in str(error):
                raise
            raise RuntimeError(
                "onion: PyTorch cannot make a tensor of another class from data while kernels are hooked; make it "
                "before, and let the function use it."
            ) from error
    seen = hooks.take()
    absent = tuple(sorted(backends_without_rows(key for hop in seen for key in hop.keys)))
    return Onion(seen, _note(left, absent), absent)


def _note(unwatched: set[str], absent: tuple[str, ...]) -> str:
    note = _NOTE
    if unwatched:
        note += f"; kernels that are Python's for one key alone were not hooked (of {', '.join(sorted(unwatched))})"
    if absent:
        note += f"; {not_hooked(absent)}"
    return note


def _of_mini(fn: Callable[..., Any], args: Any, kwargs: Any) -> Onion:
    from .. import mini

    with mini.record() as seen:
        fn(*args, **kwargs)
    return seen.hops
