"""Call path: what a call goes through from the Python slot to the backend (torch/csrc, aten/src/ATen/core/dispatch)."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from typing import Any

from ..records import CallPath
from ._names import call_node
from ._which import over_mini, require_eager


def call_path(fn: Callable[..., Any], *args: Any, op: str = "", below: bool = False, **kwargs: Any) -> CallPath:
    """Call fn(*args, **kwargs) once and give the functions that its first operator call goes through.

    op      another operator call than the first: "addmm", "aten.add.Tensor"
    below   also read C++ frames below the backend's key, from the same operator failing on purpose in a process of its
            own (some seconds); only for operators of two tensors and more

    Each frame belongs to one of eight stations, or to none and then says so; what is there only because we look is
    marked. No stack can be taken below the backend's key: what is known of stations 5 to 8 comes from the result, the
    dispatch table and native_functions.yaml, and each says which. C++ frames are had on Linux; elsewhere the rest is
    given and the note says so. The first reading of symbols in a process takes a second
    or more, and says so on stderr.

    Over mini tensors the same stations from the mini-framework's Python frames, without torch; `a.beside(b)` of two
    paths draws them next to each other.

    TypeError for what cannot be called; ValueError where fn calls no operator, or none called `op`, or is compiled.
    Whatever fn raises is raised.
    """
    if not callable(fn):
        raise TypeError(f"call_path: {fn!r} cannot be called; pass a function, such as call_path(lambda: a + b).")
    written = _written(sys._getframe(1), fn, args)
    if over_mini(fn, args, kwargs):
        from ._path_in_mini import path_in_mini

        return path_in_mini(fn, args, kwargs, op, written)
    require_eager(fn, "call_path")
    from ._path_in_torch import path_in_torch

    return path_in_torch(fn, args, kwargs, op, written, below)


def _written(frame: Any, fn: Any, args: tuple[Any, ...]) -> str:
    """The call as the program has it: "a + b" for `lambda: a + b`, "torch.add(a, b)" for torch.add, a, b."""
    node = call_node(frame)
    if node is None or not node.args or any(isinstance(arg, ast.Starred) for arg in node.args):
        return f"{getattr(fn, '__name__', type(fn).__name__)}(...)"
    called, *given = node.args
    if isinstance(called, ast.Lambda):
        return ast.unparse(called.body)
    named = [f"{each.arg}={ast.unparse(each.value)}" for each in node.keywords if each.arg not in (None, "op", "below")]
    return f"{ast.unparse(called)}({', '.join([*map(ast.unparse, given), *named])})"
