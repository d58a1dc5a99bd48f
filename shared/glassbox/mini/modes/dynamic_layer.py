"""The stack of function transforms, such as a vmap in a vmap (PyTorch: aten/src/ATen/functorch/DynamicLayer.cpp).

Inside a transform every call gets two keys more. FuncTorchDynamicLayerFrontMode lies above everything: its
kernel sends the call, with all other keys above Python excluded, to the one key of the innermost transform.
What that transform calls in turn comes down to FuncTorchDynamicLayerBackMode, whose kernel takes the
transform off the stack and calls again as if from outside, so that the next one, or in the end autograd and
the backend, get their turn.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..aten.core.dispatcher import OperatorHandle, dispatcher
from ..aten.core.kernel_function import KernelFunction, place_of
from ..c10.dispatch_key import DispatchKey
from ..c10.dispatch_key_set import BACKEND_MASK, FULL, bits
from ..c10.local_dispatch_key_set import local_keys
from .python_dispatch import BELOW_PYTHON

FRONT = bits(DispatchKey.FuncTorchDynamicLayerFrontMode)
BACK = bits(DispatchKey.FuncTorchDynamicLayerBackMode)
# What is left to a transform whatever its own key is.
_BELOW = BELOW_PYTHON | bits(DispatchKey.Python) | BACK | BACKEND_MASK


class DynamicLayer:
    """One transform that is running.

    level        1 for the outermost
    included     what its key lets calls meet, as bits
    batch_size, randomness   vmap's: how many examples, and what random operators do
    """

    __slots__ = ("level", "included", "forced", "batch_size", "randomness", "entered")

    def __init__(
        self, level: int, included: int, forced: int = 0, batch_size: int = 0, randomness: str = "error"
    ) -> None:
        """included: the keys above Python that a call may have here; forced: those of them that each call gets."""
        self.level = level
        self.included = included
        self.forced = forced
        self.batch_size = batch_size
        self.randomness = randomness
        # The thread's key sets when calls came to this layer, the innermost call last.
        self.entered: list[tuple[int, int]] = []


_stack: ContextVar[tuple[DynamicLayer, ...]] = ContextVar("dynamic_layers", default=())


def current_layer() -> DynamicLayer | None:
    """The innermost transform of this thread; None outside of any."""
    stack = _stack.get()
    return stack[-1] if stack else None


def depth() -> int:
    """How many transforms this thread is in."""
    return len(_stack.get())


@contextmanager
def layer(included: int, forced: int = 0, batch_size: int = 0, randomness: str = "error") -> Iterator[DynamicLayer]:
    """A transform more for the block."""
    stack = _stack.get()
    pushed = DynamicLayer(len(stack) + 1, included, forced, batch_size, randomness)
    keys = local_keys.get()
    _stack.set((*stack, pushed))
    local_keys.set((keys[0] | FRONT | BACK, keys[1]))
    try:
        yield pushed
    finally:
        local_keys.set(keys)
        _stack.set(stack)


def front_fallback(op: OperatorHandle, key_set: int, arguments: tuple[Any, ...]) -> Any:
    """Every operator at the front: to the innermost transform's key and nowhere else above Python."""
    top = _stack.get()[-1]
    keys = local_keys.get()
    top.entered.append(keys)
    local_keys.set((keys[0] | top.forced, keys[1] & FULL & (_BELOW | top.included)))
    try:
        return op.call(*arguments)
    finally:
        local_keys.set(keys)
        top.entered.pop()


def back_fallback(op: OperatorHandle, key_set: int, arguments: tuple[Any, ...]) -> Any:
    """Every operator at the back: on to what is outside of the innermost transform."""
    stack = _stack.get()
    keys = local_keys.get()
    outside = stack[-1].entered[-1]
    _stack.set(stack[:-1])
    if len(stack) == 1:
        outside = (outside[0] & ~(FRONT | BACK), outside[1])
    local_keys.set(outside)
    try:
        return op.call(*arguments)
    finally:
        local_keys.set(keys)
        _stack.set(stack)


def register_all() -> None:
    """The fallbacks of both keys."""
    for key, function in (
        (DispatchKey.FuncTorchDynamicLayerFrontMode, front_fallback),
        (DispatchKey.FuncTorchDynamicLayerBackMode, back_fallback),
    ):
        dispatcher.register_fallback(key, KernelFunction(function, place_of(function), boxed=True))
