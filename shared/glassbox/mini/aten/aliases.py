"""Aliases: operators that are another one by a second name.

PyTorch: CompositeImplicitAutograd kernels that only call on.
"""

from collections.abc import Callable
from typing import Any

from . import ops as at

ALIASES = {
    "absolute": "abs",
    "clip": "clamp",
    "concat": "cat",
    "concatenate": "cat",
    "divide": "div",
    "fix": "trunc",
    "ger": "outer",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "moveaxis": "movedim",
    "multiply": "mul",
    "negative": "neg",
    "not_equal": "ne",
    "subtract": "sub",
    "swapaxes": "transpose",
    "swapdims": "transpose",
    "true_divide": "div",
}
# Overloads that are called otherwise there.
_OVERLOADS = {"swapaxes": "transpose_int", "swapdims": "transpose_int"}


def __getattr__(name: str) -> Callable[..., Any]:
    """The kernel of an alias' overload: multiply__Tensor for multiply_.Tensor."""
    for alias in sorted(ALIASES, key=len, reverse=True):
        rest = name[len(alias) :]
        if name.startswith(alias) and (not rest or rest[0] == "_"):
            target = _OVERLOADS.get(name) or ALIASES[alias] + rest
            return _calling(target)
    raise AttributeError(name)


def _calling(target: str) -> Callable[..., Any]:
    def kernel(ks: int, *arguments: Any) -> Any:
        return getattr(at, target)(*arguments)

    kernel.__name__ = kernel.__qualname__ = target
    return kernel
