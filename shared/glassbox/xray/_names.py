"""Names for tensors: what the caller wrote, or the variable that holds them (PyTorch tensors have no
names).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import FrameType
from typing import Any


def argument_names(frame: FrameType, args: Sequence[Any]) -> list[str]:
    """A label for each positional argument of the call that `frame` is in.

    The source text of the argument where it can be found for certain, else the one variable that is bound to
    the object, else $0, $1, ... by position.
    """
    written = _written(frame, len(args))
    return [text or _variable(frame, arg) or f"${k}" for k, (text, arg) in enumerate(zip(written, args, strict=True))]


def _written(frame: FrameType, count: int) -> list[str]:
    try:
        # part of IPython; it identifies the call being executed from its bytecode, and says None when unsure
        import executing
    except ImportError:
        return [""] * count
    try:
        node = executing.Source.executing(frame).node
    except Exception:
        return [""] * count
    if not isinstance(node, ast.Call) or len(node.args) != count:
        return [""] * count
    if any(isinstance(arg, ast.Starred) for arg in node.args):
        return [""] * count
    texts = [ast.unparse(arg) for arg in node.args]
    return [text if len(text) <= 40 else "" for text in texts]


def _variable(frame: FrameType, value: Any) -> str:
    for scope in (frame.f_locals, frame.f_globals):
        names = [n for n, v in list(scope.items()) if v is value and not n.startswith("_")]
        if len(names) == 1:
            return names[0]
    return ""
