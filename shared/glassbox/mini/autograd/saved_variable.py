"""SavedVariable: a tensor kept for the backward pass (PyTorch: torch/csrc/autograd/saved_variable.h).

It remembers at which version it was saved, so a change in between is an error and not a wrong gradient. An output of the
node itself is kept without its grad_fn, which would make a circle.
"""

from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Any

Hooks = tuple[Callable[[Any], Any], Callable[[Any], Any]]

# How many saved_tensors_hooks blocks are open in the process: while there is none, saving costs no look-up.
hook_blocks = [0]
_default_hooks: ContextVar[tuple[Hooks, ...]] = ContextVar("saved_tensors_hooks", default=())

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)


class SavedVariable:
    """One saved tensor; `unpack(node)` gives it back."""

    __slots__ = ("tensor", "version", "output_nr", "hooks", "packed")

    # Made by save, without a constructor call.
    tensor: Any
    version: int
    output_nr: int
    hooks: Hooks | None
    packed: Any

    def register_hooks(self, pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> None:
        """Keep pack(tensor) instead of the tensor; unpack(packed) gives it back in the backward pass."""
        from ..c10.grad_mode import grad_enabled

        if self.hooks is not None:
            raise RuntimeError("Calling register_hooks on a saved tensor whose hooks have already been set")
        if self.tensor is None:
            raise RuntimeError("Calling register_hooks on a saved tensor after it has been freed")
        self.hooks = (pack, unpack)
        token = grad_enabled.set(False)
        try:
            self.packed = (pack(self.tensor.detach()), self.tensor)
        finally:
            grad_enabled.reset(token)
        if self.output_nr < 0:
            # Only where it came from is needed again: its edge, not its values.
            from .node import gradient_edge

            self.packed = (self.packed[0], gradient_edge(self.tensor), self.tensor._requires_grad)
        else:
            self.packed = (self.packed[0], None, False)
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
        counter = tensor._version_counter
        if counter is not None and counter[0] != self.version:
            raise RuntimeError(self._changed(node))
        if self.output_nr >= 0 and node is not None and tensor._dtype.is_floating_point:
            tensor = tensor.detach()
            tensor._grad_fn = node
            tensor._requires_grad = True
            tensor._output_nr = self.output_nr
        return tensor

    def release(self) -> None:
        """Let go of the tensor."""
        self.tensor = None
        self.hooks = None
        self.packed = None

    def _unpack_by_hook(self, node: Any) -> Any:
        assert self.hooks is not None
        packed, edge, requires_grad = self.packed
        tensor = self.hooks[1](packed)
        if getattr(tensor, "_key_set", None) is None:
            raise TypeError(
                f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(tensor)}"
            )
        tensor = tensor.detach()
        if self.output_nr >= 0 and node is not None:
            edge = (node, self.output_nr)
        if edge is not None and tensor._dtype.is_floating_point:
            from .node import AccumulateGrad

            if isinstance(edge[0], AccumulateGrad):
                import weakref

                tensor._requires_grad = True
                tensor._grad_accumulator = weakref.ref(edge[0])
            else:
                tensor._grad_fn, tensor._output_nr = edge
                tensor._requires_grad = True
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
            f"Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
            f"mini.autograd.set_detect_anomaly(True)."
        )


class _Packed:
    """Stands in a SavedVariable for the tensor that its hook keeps."""


_PACKED = _Packed()


def save(tensor: Any, output_nr: int = -1) -> SavedVariable:
    """A SavedVariable of the tensor; output_nr says which output of the saving node it is, -1 that it is an input."""
    counter = tensor._version_counter
    if counter is None:
        raise RuntimeError(
            "Inference tensors cannot be saved for backward. To work around you can make a clone to get a normal "
            "tensor and use it in autograd."
        )
    saved = SavedVariable()
    saved.tensor = tensor if output_nr < 0 or tensor._grad_fn is None else tensor.detach()
    saved.version = counter[0]
    saved.output_nr = output_nr
    saved.hooks = None
    if hook_blocks[0]:
        stack = _default_hooks.get()
        if stack:
            saved.register_hooks(*stack[-1])
    return saved


class SavedList:
    """Several saved tensors of one argument."""

    __slots__ = ("items",)

    def __init__(self, tensors: Any) -> None:
        self.items: list[SavedVariable | None] | None = [
            None if tensor is None else save(tensor) for tensor in tensors
        ]

    def unpack(self, node: Any = None) -> list[Any]:
        if self.items is None:
            raise RuntimeError(FREED)
        return [None if item is None else item.unpack(node) for item in self.items]

    def release(self) -> None:
        self.items = None


class saved_tensors_hooks:  # noqa: N801 - PyTorch's own name
    """`with saved_tensors_hooks(pack, unpack):` what is saved in the block is kept as pack(tensor)."""

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self._hooks = (pack_hook, unpack_hook)
        self._tokens: list[Any] = []

    def __enter__(self) -> "saved_tensors_hooks":
        self._tokens.append(_default_hooks.set((*_default_hooks.get(), self._hooks)))
        hook_blocks[0] += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        hook_blocks[0] -= 1
        _default_hooks.reset(self._tokens.pop())
