"""KernelFunction: a kernel and where it came from (PyTorch: aten/src/ATen/core/boxing/KernelFunction.h)."""

from collections.abc import Callable
from typing import Any


class KernelFunction:
    """What a row of a dispatch table holds.

    function      kernel(key_set, *arguments); None for a fallthrough, which the dispatcher passes over
    registered    where, for people: "registered at native/binary_ops.py:12" without the first words
    boxed         the function is one (op, key_set, arguments) that serves any operator

    A boxed function is told the effective key set of the call. An unboxed one gets the set as it was looked
    up with, which may hold keys that the operator has fallthroughs for: it masks out what lies above it and
    hands on the rest.
    """

    __slots__ = ("function", "registered", "boxed")

    def __init__(self, function: Callable[..., Any] | None, registered: str, boxed: bool = False) -> None:
        self.function = function
        self.registered = registered
        self.boxed = boxed

    @property
    def is_fallthrough(self) -> bool:
        return self.function is None

    def bound_to(self, op: Any, effective: int) -> Callable[..., Any]:
        """A function (key_set, *arguments) that runs this kernel for calls of `op` with one effective key set."""
        function = self.function
        if function is None:
            raise RuntimeError("a fallthrough cannot be called: the dispatcher passes over it")
        if not self.boxed:
            return function

        def unboxed(key_set: int, *arguments: Any) -> Any:
            return function(op, effective, arguments)

        return unboxed

    def __repr__(self) -> str:
        kind = "fallthrough " if self.is_fallthrough else ""
        return f"<KernelFunction {kind}registered at {self.registered}>"


def place_of(function: Callable[..., Any]) -> str:
    """file:line of a function as dump() shows it, the file from `glassbox/` on."""
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    if code is None:
        return getattr(function, "__name__", type(function).__name__)
    return f"{short(code.co_filename)}:{code.co_firstlineno}"


def short(filename: str) -> str:
    """A path from its package on; another file's last two parts."""
    parts = filename.replace("\\", "/").split("/")
    if "glassbox" in parts:
        return "/".join(parts[len(parts) - 1 - parts[::-1].index("glassbox") :])
    return "/".join(parts[-2:])
