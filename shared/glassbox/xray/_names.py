"""Names for tensors: what the caller wrote, or the variable that holds them (PyTorch tensors have no
names).
"""

from __future__ import annotations

import ast
import itertools
import linecache
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
    node = call_node(frame)
    if node is None or len(node.args) != count or any(isinstance(arg, ast.Starred) for arg in node.args):
        return [""] * count
    texts = [ast.unparse(arg) for arg in node.args]
    return [text if len(text) <= 40 else "" for text in texts]


def call_node(frame: FrameType) -> ast.Call | None:
    """The call that `frame` is in, as it is written; None where Python does not know the place in the source."""
    place = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    first, last, begin, end = place
    if first is None or last is None or begin is None or end is None:
        return None
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)[first - 1 : last]
    if len(lines) != last - first + 1:
        return None
    # columns count bytes of UTF-8
    raw = [line.encode() for line in lines]
    raw[-1] = raw[-1][:end]
    raw[0] = raw[0][begin:]
    try:
        node = ast.parse(b"(" + b"".join(raw) + b")", mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return node if isinstance(node, ast.Call) else None


def _variable(frame: FrameType, value: Any) -> str:
    for scope in (frame.f_locals, frame.f_globals):
        names = [n for n, v in list(scope.items()) if v is value and n.isidentifier() and not n.startswith("_")]
        if len(names) == 1:
            return names[0]
    return ""
