"""Contexts: which dispatch modes and functorch transforms are at work in this thread (torch/utils/_python_dispatch.py,
torch/_functorch/pyfunctorch.py).
"""

from __future__ import annotations

from typing import Any

from .access import private


def dispatch_modes() -> list[str]:
    """The classes of the dispatch modes that are on, outermost first."""
    stack = private("torch.utils._python_dispatch._get_current_dispatch_mode_stack")()
    return [type(mode).__name__ for mode in stack]


def transforms() -> list[tuple[str, int]]:
    """The functorch transforms that are running, outermost first: ("vmap", 1), ("grad", 2)."""
    stack = private("torch._C._functorch.get_interpreter_stack")() or []
    return [(str(layer.key()).rpartition(".")[2].lower(), int(layer.level())) for layer in stack]


def wrapper_level(tensor: Any) -> int | None:
    """The level of the transform that wrapped a tensor; None for one that none has wrapped."""
    level = int(private("torch._C._functorch.maybe_get_level")(tensor))
    return level if level > 0 else None
