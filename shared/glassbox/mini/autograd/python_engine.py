"""backward and grad: a backward pass asked for from Python (PyTorch: torch/autograd/__init__.py, python_engine.cpp)."""

import warnings
from typing import Any

from ..aten import ops as at
from . import engine
from .node import Edge, GradientEdge
from .variable import gradient_edge, requires_grad

_CYCLE = (
    "backward() with create_graph=True will create a reference cycle between the parameter and its gradient, which "
    "only the garbage collector frees. Use autograd.grad when creating the graph, or set the .grad fields of your "
    "parameters to None after use."
)
# Once in a process, as PyTorch.
_told_of_cycle: list[bool] = []


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Adds the gradients of `tensors` to the .grad of the leaves they were made of, or of `inputs` alone.

    grad_tensors: per tensor the gradient to begin with; None for a tensor of one element stands for 1.
    """
    tensors = _several(tensors)
    gradients = initial_gradients(tensors, grad_tensors)
    keep = create_graph if retain_graph is None else retain_graph
    roots = root_edges(tensors)
    if create_graph and not _told_of_cycle:
        _told_of_cycle.append(True)
        warnings.warn(_CYCLE, UserWarning, stacklevel=3)
    if inputs is None:
        engine.execute(roots, gradients, keep, create_graph)
        return
    wanted = _several(inputs)
    if not wanted:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    for tensor in wanted:
        if not isinstance(tensor, GradientEdge):
            tensor.retain_grad()
    engine.execute(roots, gradients, keep, create_graph, input_edges(wanted), True)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of `outputs` with respect to `inputs`, added to nothing.

    RuntimeError where an input has no part in the outputs, unless allow_unused (then None) or materialize_grads
    (zeros).
    """
    if allow_unused is False and materialize_grads:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    outputs, wanted = _several(outputs), _several(inputs)
    gradients = initial_gradients(outputs, grad_outputs)
    keep = create_graph if retain_graph is None else retain_graph
    if not wanted:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    roots, edges = root_edges(outputs), input_edges(wanted)
    found = engine.execute(roots, gradients, keep, create_graph, edges)
    if materialize_grads:
        return tuple(
            at.zeros_like(tensor, None, None, None).requires_grad_(create_graph) if gradient is None else gradient
            for tensor, gradient in zip(wanted, found, strict=True)
        )
    unused = [nr for nr, gradient in enumerate(found) if gradient is None]
    if unused and not allow_unused:
        raise RuntimeError(
            f"The differentiated Tensor at index {unused[0]} appears to not have been used in the graph. Set "
            f"allow_unused=True if this is the desired behavior."
        )
    return tuple(found)


def _several(tensors: Any) -> tuple[Any, ...]:
    if isinstance(tensors, tuple | list) and not isinstance(tensors, GradientEdge):
        return tuple(tensors)
    return (tensors,)


def _edge_of(tensor: Any) -> Edge | None:
    return tuple(tensor) if isinstance(tensor, GradientEdge) else gradient_edge(tensor)  # type: ignore[return-value]


def root_edges(tensors: tuple[Any, ...]) -> list[Edge]:
    """Where a pass begins; RuntimeError for a tensor without a graph."""
    roots = []
    for place, tensor in enumerate(tensors):
        edge = _edge_of(tensor)
        if edge is None:
            raise RuntimeError(f"element {place} of tensors does not require grad and does not have a grad_fn")
        roots.append(edge)
    return roots


def input_edges(tensors: tuple[Any, ...]) -> list[Edge]:
    """Where a pass ends; RuntimeError for a tensor that no gradient flows to."""
    edges = []
    for tensor in tensors:
        edge = _edge_of(tensor)
        if edge is None:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        edges.append(edge)
    return edges


def initial_gradients(tensors: tuple[Any, ...], given: Any) -> list[Any]:
    """The gradients that a pass begins with; RuntimeError where one is missing or of another shape."""
    several: tuple[Any, ...] = (None,) * len(tensors)
    if hasattr(given, "_key_set"):
        several = (given,)
    elif given is not None:
        several = tuple(given)
    if len(several) != len(tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(several)} gradients")
    found = []
    for place, (tensor, gradient) in enumerate(zip(tensors, several, strict=True)):
        is_edge = isinstance(tensor, GradientEdge)
        shape = tensor.node.input_metadata[tensor.output_nr][0] if is_edge else tensor._shape
        if gradient is None:
            if is_edge:
                raise RuntimeError("a gradient edge needs its gradient given")
            if requires_grad(tensor):
                if tensor.numel() != 1:
                    raise RuntimeError("grad can be implicitly created only for scalar outputs")
                gradient = at.ones_like(tensor, None, None, None)
        elif not hasattr(gradient, "_key_set"):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(gradient).__name__}")
        elif gradient._shape != shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{place}] has a shape of {list(gradient._shape)} and output[{place}] "
                f"has a shape of {list(shape)}."
            )
        elif not is_edge and gradient._device is not tensor._device:
            if gradient._shape:
                raise RuntimeError(
                    f"invalid gradient at index {place} - expected device {tensor._device} but got {gradient._device}"
                )
            gradient = gradient.to(tensor._device)
        found.append(gradient)
    return found
