"""SavedVariable: a tensor kept for the backward pass (PyTorch: torch/csrc/autograd/saved_variable.h).

It remembers at which version it was saved, so a change in between is an error and not a wrong gradient. An output of
the node itself is kept without its grad_fn, which would make a circle.
"""

import weakref
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from ..aten.core.dispatcher import watchers
from ..c10.dispatch_key_set import PYTHON
from ..c10.grad_mode import grad_enabled
from ..c10.local_dispatch_key_set import local_keys
from ..c10.tensor_impl import WRAPPED_NUMBER
from . import anomaly
from .node import LEAF_FIRST
from .variable import gradient_edge

Hooks = tuple[Callable[[Any], Any], Callable[[Any], Any]]

# How many saved_tensors_hooks blocks are open in the process: while there is none, saving costs no look-up.
hook_blocks = [0]
_default_hooks: ContextVar[tuple[Hooks, ...]] = ContextVar("saved_tensors_hooks", default=())
_disabled: ContextVar[str] = ContextVar("saved_tensors_hooks_disabled", default="")

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)


class SavedVariable:
    """One saved tensor; `unpack(node)` gives it back.

    tensor, version   what was saved, and its version then
    output_nr         which output of the saving node it is; -1 for an input
    fn                for an output written into a view: the view's grad_fn then, weakly; else None
    hooks             (pack, unpack), with what pack gave in `packed`; else None
    """

    __slots__ = ("tensor", "version", "output_nr", "fn", "hooks", "packed")

    # Made by save, without a constructor call.
    tensor: Any
    version: int
    output_nr: int
    fn: weakref.ref[Any] | None
    hooks: Hooks | None
    packed: Any

    def register_hooks(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        """Keep pack_hook(tensor) instead of the tensor; unpack_hook(packed) gives it back in the backward pass."""
        for hook in (pack_hook, unpack_hook):
            if not callable(hook):
                raise TypeError(f"a saved tensor's hooks must be functions, got {type(hook).__name__}")
        if self.hooks is not None:
            raise RuntimeError("Calling register_hooks on a saved tensor whose hooks have already been set")
        if self.tensor is None:
            raise RuntimeError("Calling register_hooks on a saved tensor after it has been freed is forbidden")
        self._pack(self.tensor, pack_hook, unpack_hook)

    def _pack(self, tensor: Any, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        if tensor._meta is WRAPPED_NUMBER:
            # Equal numbers share a tensor, which is not for others to see or to write to.
            tensor = tensor.of_values(tensor.values().copy(), tensor._dtype, tensor._device)
            tensor._meta, self.version = WRAPPED_NUMBER, 0
        before = grad_enabled.get()
        grad_enabled.set(False)
        try:
            packed = pack_hook(tensor)
        finally:
            grad_enabled.set(before)
        if tensor._version_counter[0] != self.version:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can "
                "not be modified by in-place operations as this can lead to unexpected side-effects."
            )
        # Of an input only where its gradient goes is needed again, not its values.
        edge = gradient_edge(tensor) if self.output_nr < 0 else None
        self.hooks = (pack_hook, unpack_hook)
        self.packed = (packed, edge)
        self.tensor = _PACKED

    def unpack(self, node: Any = None) -> Any:
        """The tensor as it was; RuntimeError where it was changed in place since or has been freed.

        node: the node that saved it, for a saved output.
        """
        tensor = self.tensor
        if tensor is None:
            raise RuntimeError(FREED)
        if self.hooks is not None:
            return self._unpack_by_hook(node)
        if tensor._version_counter[0] != self.version:
            raise RuntimeError(self._changed(node))
        if self.output_nr >= 0 and node is not None:
            return self._as_output(tensor, node) if grad_enabled.get() else _seen_without_history(tensor)
        return tensor

    def release(self) -> None:
        """Let go of the tensor."""
        self.tensor = None
        self.hooks = None
        self.packed = None

    def _as_output(self, tensor: Any, node: Any) -> Any:
        if not tensor._dtype.is_floating_point:
            return tensor
        output = _without_history(tensor)
        fn = getattr(self, "fn", None)
        view_node = fn() if fn is not None else None
        output._grad_fn, output._output_nr = (node, self.output_nr) if view_node is None else (view_node, 0)
        output._requires_grad = True
        return output

    def _unpack_by_hook(self, node: Any) -> Any:
        assert self.hooks is not None
        packed, edge = self.packed
        tensor = self.hooks[1](packed)
        if not hasattr(tensor, "_key_set"):
            raise TypeError(
                f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(tensor)}"
            )
        if self.output_nr >= 0:
            return tensor if node is None else self._as_output(tensor, node)
        tensor = tensor.shallow_copy(tensor._version_counter)
        if edge is not None:
            tensor._requires_grad = True
            if edge[0].next_edges == () and edge[0].sequence_nr == LEAF_FIRST:
                tensor._grad_accumulator = weakref.ref(edge[0])
            else:
                tensor._grad_fn, tensor._output_nr = edge
        return tensor

    def _changed(self, node: Any) -> str:
        tensor = self.tensor
        kind = f"mini.{tensor._dtype.name} {list(tensor._shape)}"
        if self.output_nr >= 0 and node is not None:
            origin = f", which is output {self.output_nr} of {node.name()},"
        elif tensor._grad_fn is not None:
            origin = f", which is output {tensor._output_nr} of {tensor._grad_fn.name()},"
        else:
            origin = ""
        return (
            f"one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"[{kind}]{origin} is at version {tensor._version_counter[0]}; expected version {self.version} instead. "
            f"{_HINT[anomaly.is_enabled()]}"
        )


_HINT = {
    False: (
        "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
        "mini.autograd.set_detect_anomaly(True)."
    ),
    True: (
        "Hint: the backtrace further above shows the operation that failed to compute its gradient. The variable in "
        "question was changed in there or anywhere later."
    ),
}


class _Packed:
    """Stands in a SavedVariable for the tensor that its hook keeps."""


_PACKED = _Packed()


def _without_history(tensor: Any) -> Any:
    """The same elements and version outside of the graph.

    PyTorch's is a detach, which whoever looks on may count; nobody else need pay for the call.
    """
    if watchers or local_keys.get()[0] & PYTHON:
        return tensor.detach()
    return tensor.shallow_copy(tensor._version_counter)


def _seen_without_history(tensor: Any) -> Any:
    """The same where nothing is recorded, so that only a look-on could tell the tensor from its copy."""
    seen = watchers or local_keys.get()[0] & PYTHON
    return tensor.detach() if seen and tensor._dtype.is_floating_point else tensor


def save(tensor: Any, output_nr: int = -1) -> SavedVariable:
    """A SavedVariable of the tensor; output_nr says which output of the saving node it is, -1 that it is an input."""
    counter = tensor._version_counter
    if counter is None:
        raise RuntimeError(
            "Inference tensors cannot be saved for backward. To work around you can make a clone to get a normal "
            "tensor and use it in autograd."
        )
    saved = SavedVariable()
    original = tensor
    if output_nr >= 0 and tensor._grad_fn is None:
        # An output that has no gradient, such as batch_norm's statistics, is kept like an input.
        output_nr = -1
    elif output_nr >= 0:
        # Without its grad_fn, which holds what is made here.
        saved.fn = None if tensor._base is None else weakref.ref(tensor._grad_fn)
        tensor = _without_history(tensor)
    saved.tensor = tensor
    saved.version = counter[0]
    saved.output_nr = output_nr
    saved.hooks = None
    if hook_blocks[0]:
        stack = _default_hooks.get()
        if stack:
            # An output is shown as it is seen from outside, though not the very object.
            shown = tensor if tensor is original else saved._as_output(tensor, original._grad_fn)
            saved._pack(shown, *stack[-1])
    return saved


class SavedList:
    """Several saved tensors of one argument."""

    __slots__ = ("items",)

    def __init__(self, tensors: Any) -> None:
        self.items: list[SavedVariable | None] | None = [None if tensor is None else save(tensor) for tensor in tensors]

    def unpack(self, node: Any = None) -> tuple[Any, ...]:
        if self.items is None:
            raise RuntimeError(FREED)
        return tuple([None if item is None else item.unpack(node) for item in self.items])

    def release(self) -> None:
        self.items = None


class saved_tensors_hooks:  # noqa: N801 - PyTorch's own name
    """`with saved_tensors_hooks(pack_hook, unpack_hook):` what is saved in the block is kept as pack_hook(tensor)."""

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self._hooks: Hooks = (pack_hook, unpack_hook)
        self._before: list[tuple[Hooks, ...]] = []

    def __enter__(self) -> None:
        stack = _default_hooks.get()
        if _disabled.get():
            raise RuntimeError(_disabled.get())
        self._before.append(stack)
        _default_hooks.set((*stack, self._hooks))
        hook_blocks[0] += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        hook_blocks[0] -= 1
        _default_hooks.set(self._before.pop())


class disable_saved_tensors_hooks:  # noqa: N801 - PyTorch's own name
    """`with disable_saved_tensors_hooks(message):` saved_tensors_hooks in the block raises RuntimeError(message)."""

    def __init__(self, error_message: str) -> None:
        self._message = error_message
        self._before: list[str] = []

    def __enter__(self) -> None:
        if _default_hooks.get():
            raise RuntimeError(self._message)
        self._before.append(_disabled.get())
        _disabled.set(self._message)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _disabled.set(self._before.pop())
