"""How a tensor hangs on the graph: its edge and its history (PyTorch: torch/csrc/autograd/variable.h)."""

import weakref
from typing import Any

from .accumulate_grad import AccumulateGrad
from .node import Edge, Node


def gradient_edge(tensor: Any) -> Edge | None:
    """Where a gradient of this tensor goes: to its grad_fn, or for a leaf to its AccumulateGrad; None for neither."""
    if tensor is None:
        return None
    if tensor._base is not None and tensor._attr_version != tensor._version_counter[0]:
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
    """The tensor is the output of the node's forward op."""
    if not tensor._dtype.is_floating_point:
        return
    tensor._grad_fn = node
    tensor._requires_grad = True
    tensor._output_nr = 0
    node.input_metadata = ((tensor._shape, tensor._dtype, tensor._device),)


def set_histories(tensors: Any, node: Node) -> None:
    """Several outputs; those that cannot have a gradient still count. None: one that has none."""
    metadata: list[Any] = []
    for nr, tensor in enumerate(tensors):
        if tensor is None:
            metadata.append(None)
            continue
        metadata.append((tensor._shape, tensor._dtype, tensor._device))
        if tensor._dtype.is_floating_point:
            tensor._grad_fn = node
            tensor._requires_grad = True
            tensor._output_nr = nr
    node.input_metadata = tuple(metadata)


def requires_grad(tensor: Any) -> bool:
    """Whether a gradient flows to the tensor; a view also takes part where its base began to after it was made."""
    return tensor is not None and (tensor._requires_grad or tensor._base is not None and tensor._base._requires_grad)


def any_requires_grad(tensors: Any) -> bool:
    """The same of a list of tensors or None."""
    return any(requires_grad(tensor) for tensor in tensors)


def refresh_view(view: Any) -> None:
    """A view's grad_fn is out of date once its base was written to: it is then the base's, seen as strided.

    RuntimeError where the view is of a kind that cannot be followed through a write.
    """
    version = view._version_counter[0]
    if view._attr_version == version or not (view._base._requires_grad or view._grad_fn is not None):
        return
    from . import view as views

    views.handle_view_on_rebase(view, indirect=True)
    view._attr_version = version
    if view._dtype.is_floating_point:
        views.hang_on_base(view)
