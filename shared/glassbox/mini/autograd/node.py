"""Node: one step of the backward graph (PyTorch: torch/csrc/autograd/function.h, edge.h, accumulate_grad.h).

A node's inputs are the gradients of its forward op's outputs, its outputs the gradients of that op's inputs. An edge is a
pair (node, input_nr): the node that a gradient goes to, and which of its inputs it is. The graph is made during the forward
pass, from the end back: each new node points at the nodes of its op's inputs.
"""

import itertools
import sys
import weakref
from collections.abc import Callable
from typing import Any

from ..c10 import geometry, layout
from ..c10.grad_mode import grad_enabled
from ..c10.tensor_impl import TensorImpl

Edge = tuple["Node", int]
# (shape, dtype, device) of a forward output: what its gradient must fit.
InputMetadata = tuple[tuple[int, ...], Any, Any]

# AccumulateGrad goes before anything else: a leaf's gradient is of no use to wait for.
LEAF_FIRST = sys.maxsize
next_sequence_nr = itertools.count().__next__


class Node:
    """One backward step.

    next_edges       one per differentiable input of the forward op; None where no gradient is wanted
    sequence_nr      the order of creation: the engine takes the newest that is ready
    input_metadata   one per forward output: the shape, dtype and device its gradient has
    hooks            None, or {"tensor_pre": {input_nr: [f]}, "pre": [f], "post": [f], "retain": {input_nr: weakref}}
    metadata         a dict for people, None until asked for (anomaly mode keeps the forward's place there)

    A class of nodes has apply(*gradients) -> a tuple with one gradient or None per next edge.
    """

    __slots__ = ("next_edges", "sequence_nr", "input_metadata", "hooks", "_metadata", "__weakref__")

    # Of the forward op; a node with one output is handed its gradient bare.
    n_outputs = 1

    # No __init__, which would cost as much as a small op: generated kernels set the slots, others call begin().
    next_edges: Any
    sequence_nr: int
    input_metadata: Any
    hooks: dict[str, Any] | None
    _metadata: dict[str, Any] | None

    def begin(self) -> None:
        """Set what every node has; the edges are for the caller to give."""
        self.sequence_nr = next_sequence_nr()
        self.input_metadata = ()
        self.hooks = None
        self._metadata = None

    def apply(self, *grads: Any) -> tuple[Any, ...]:
        raise NotImplementedError(f"{self.name()} has no apply")

    def release_variables(self) -> None:
        """Let go of what was saved for backward."""

    def name(self) -> str:
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple["Node | None", int], ...]:
        """The nodes that this one's gradients go to, as (node or None, input_nr)."""
        return tuple((None, 0) if edge is None else edge for edge in self.next_edges)

    @property
    def metadata(self) -> dict[str, Any]:
        if self._metadata is None:
            self._metadata = {}
        return self._metadata

    def _sequence_nr(self) -> int:
        return self.sequence_nr

    def register_hook(self, hook: Callable[..., Any]) -> "RemovableHandle":
        """hook(grad_inputs, grad_outputs) runs after this node and may return other grad_inputs."""
        return self._add_hook("post", hook)

    def register_prehook(self, hook: Callable[..., Any]) -> "RemovableHandle":
        """hook(grad_outputs) runs before this node and may return other grad_outputs."""
        return self._add_hook("pre", hook)

    def _add_hook(self, kind: str, hook: Callable[..., Any]) -> "RemovableHandle":
        if self.hooks is None:
            self.hooks = {}
        hooks = self.hooks.setdefault(kind, [])
        hooks.append(hook)
        return RemovableHandle(hooks, hook)

    def __call__(self, *grads: Any) -> Any:
        """Run this one step by hand."""
        result = self.apply(*grads)
        return result[0] if len(result) == 1 else result

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"


class RemovableHandle:
    """What registering a hook returns; `remove()` or the end of a `with` block takes the hook away."""

    def __init__(self, hooks: list[Any], hook: Any) -> None:
        self._hooks: list[Any] | None = hooks
        self._hook = hook

    def remove(self) -> None:
        if self._hooks is not None and self._hook in self._hooks:
            self._hooks.remove(self._hook)
        self._hooks = None

    def __enter__(self) -> "RemovableHandle":
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class AccumulateGrad(Node):
    """The end of the graph at a leaf: adds the gradient to the leaf's .grad."""

    __slots__ = ("variable",)

    variable: Any
    # Of the class, since they are the same for all: a leaf's node is made anew whenever no graph holds one.
    next_edges = ()
    sequence_nr = LEAF_FIRST

    @property
    def input_metadata(self) -> tuple[InputMetadata, ...]:  # type: ignore[override]
        variable = self.variable
        return ((variable._shape, variable._dtype, variable._device),)

    def apply(self, grad: Any) -> tuple[Any, ...]:  # type: ignore[override]
        variable = self.variable
        if grad is None:
            return ()
        old = variable._grad
        if old is not None:
            if grad_enabled.get():
                variable._grad = old + grad
            else:
                old.add_(grad)
        elif not grad_enabled.get() and _obeys_layout(grad, variable) and sys.getrefcount(grad) <= _OWN:
            # Nobody else holds it, so it need not be copied.
            variable._grad = grad.detach() if grad._requires_grad else grad
        else:
            variable._grad = _clone_obeying_layout(grad, variable)
        hooks = self.hooks
        if hooks is not None:
            for hook in list(hooks.get("after_accumulate", ())):
                hook(variable)
        return ()


# References to a gradient that only the engine holds while apply looks: the engine's two names, apply's argument, and the
# question itself.
_OWN = 4


def _obeys_layout(grad: TensorImpl, variable: TensorImpl) -> bool:
    if grad._stride == variable._stride:
        return layout.is_dense(variable._shape, variable._stride)
    if layout.is_dense(variable._shape, variable._stride):
        return False
    return geometry.is_contiguous(grad._shape, grad._stride)


def _clone_obeying_layout(grad: Any, variable: TensorImpl) -> Any:
    if layout.is_dense(variable._shape, variable._stride):
        fresh = grad.new_empty_strided(variable._shape, variable._stride)
        return fresh.copy_(grad) if not grad_enabled.get() else grad.clone()
    return grad.contiguous() if grad_enabled.get() else grad.clone().contiguous()


class NotImplementedNode(Node):
    """Stands where an op has no derivative, and says so when a gradient arrives."""

    __slots__ = ("op_name",)

    def __init__(self, op_name: str) -> None:
        self.begin()
        self.op_name = op_name

    def name(self) -> str:
        return "NotImplemented"

    def apply(self, *grads: Any) -> tuple[Any, ...]:
        raise RuntimeError(f"derivative for {self.op_name} is not implemented")


def gradient_edge(tensor: Any) -> Edge | None:
    """Where a gradient of this tensor goes: to its grad_fn, or for a leaf to its AccumulateGrad; None for neither."""
    if tensor is None:
        return None
    if tensor._base is not None:
        refresh_view(tensor)
    node = tensor._grad_fn
    if node is not None:
        return node, tensor._output_nr
    if not tensor._requires_grad:
        return None
    weak = tensor._grad_accumulator
    node = weak() if weak is not None else None
    if node is None:
        node = AccumulateGrad()
        node.variable = tensor
        node.hooks = node._metadata = None
        tensor._grad_accumulator = weakref.ref(node)
        if tensor._meta is not None:
            tensor._meta.attach(node)
    return node, 0


def accumulator(leaf: Any) -> AccumulateGrad:
    """The leaf's AccumulateGrad: one and the same while any graph holds it."""
    edge = gradient_edge(leaf)
    if edge is None or not isinstance(edge[0], AccumulateGrad):
        raise RuntimeError("only a leaf that requires grad has an AccumulateGrad")
    return edge[0]


def edges_of_list(tensors: Any) -> tuple[Edge | None, ...]:
    """One edge per tensor of a list."""
    return tuple([gradient_edge(tensor) for tensor in tensors])


def set_history(tensor: Any, node: Node) -> None:
    """The tensor is the (next) output of the node's forward op."""
    if not tensor._dtype.is_floating_point:
        return
    tensor._grad_fn = node
    tensor._requires_grad = True
    tensor._output_nr = len(node.input_metadata)
    node.input_metadata = (*node.input_metadata, (tensor._shape, tensor._dtype, tensor._device))


def set_histories(tensors: Any, node: Node) -> None:
    """Several outputs; those that cannot have a gradient still count."""
    metadata = []
    for nr, tensor in enumerate(tensors):
        if tensor is not None:
            metadata.append((tensor._shape, tensor._dtype, tensor._device))
            if tensor._dtype.is_floating_point:
                tensor._grad_fn = node
                tensor._requires_grad = True
                tensor._output_nr = nr
        else:
            metadata.append(None)
    node.input_metadata = tuple(metadata)


def requires_grad(tensor: Any) -> bool:
    """Whether a gradient flows to the tensor; a view also takes part where its base began to after it was made."""
    return tensor is not None and (
        tensor._requires_grad or tensor._base is not None and tensor._base._requires_grad
    )


def any_requires_grad(tensors: Any) -> bool:
    """The same of a list of tensors or None."""
    return any(requires_grad(tensor) for tensor in tensors)


def refresh_view(view: Any) -> None:
    """A view's grad_fn is out of date once its base was written to: it is then the base's, seen as strided."""
    if view._attr_version == (view._version_counter or (0,))[0] or not (
        view._base._requires_grad or view._grad_fn is not None
    ):
        return
    view._attr_version = view._version_counter[0]
    if not view._dtype.is_floating_point:
        return
    from .view import as_strided_node

    node = as_strided_node(view)
    view._grad_fn = None
    set_history(view, node)
