"""backward and grad: a backward pass asked for from Python (PyTorch: torch/autograd/__init__.py)."""

from typing import Any

from . import engine
from .node import Edge, gradient_edge, requires_grad


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
    gradients = _gradients(tensors, grad_tensors, create_graph)
    keep = create_graph if retain_graph is None else retain_graph
    roots = _roots(tensors)
    if inputs is None:
        engine.execute(roots, gradients, keep, create_graph)
        return
    wanted = _several(inputs)
    if not wanted:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    edges = _input_edges(wanted)
    found = engine.execute(roots, gradients, keep, create_graph, edges)
    for tensor, gradient in zip(wanted, found, strict=True):
        if gradient is not None:
            tensor._grad = gradient if tensor._grad is None else tensor._grad + gradient


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

    RuntimeError where an input has no part in the outputs, unless allow_unused (then None) or materialize_grads (zeros).
    """
    if allow_unused is False and materialize_grads:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: False.")
    outputs, wanted = _several(outputs), _several(inputs)
    gradients = _gradients(outputs, grad_outputs, create_graph)
    keep = create_graph if retain_graph is None else retain_graph
    edges = _input_edges(wanted)
    found = engine.execute(_roots(outputs), gradients, keep, create_graph, edges)
    if materialize_grads:
        found = [
            tensor.new_zeros(tensor._shape) if gradient is None else gradient
            for tensor, gradient in zip(wanted, found, strict=True)
        ]
    elif not allow_unused and any(gradient is None for gradient in found):
        raise RuntimeError(
            "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this "
            "is the desired behavior."
        )
    return tuple(found)


def _several(tensors: Any) -> tuple[Any, ...]:
    return tuple(tensors) if isinstance(tensors, tuple | list) else (tensors,)


def _roots(tensors: tuple[Any, ...]) -> list[Edge]:
    roots = []
    for place, tensor in enumerate(tensors):
        edge = gradient_edge(tensor)
        if edge is None:
            raise RuntimeError(f"element {place} of tensors does not require grad and does not have a grad_fn")
        roots.append(edge)
    return roots


def _input_edges(tensors: tuple[Any, ...]) -> list[Edge]:
    edges = []
    for tensor in tensors:
        edge = gradient_edge(tensor) if requires_grad(tensor) else None
        if edge is None:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        edges.append(edge)
    return edges


def _gradients(tensors: tuple[Any, ...], given: Any, create_graph: bool) -> list[Any]:
    several: tuple[Any, ...] = (None,) * len(tensors) if given is None else _several(given)
    if len(several) != len(tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(several)} gradients")
    found = []
    for tensor, gradient in zip(tensors, several, strict=True):
        if gradient is None:
            if requires_grad(tensor):
                if tensor.numel() != 1:
                    raise RuntimeError("grad can be implicitly created only for scalar outputs")
                gradient = _ones(tensor)
        elif gradient._shape != tensor._shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output has a shape of {list(gradient._shape)} and output has a shape of "
                f"{list(tensor._shape)}."
            )
        elif gradient._requires_grad and not create_graph:
            gradient = gradient.detach()
        found.append(gradient)
    return found


def _ones(tensor: Any) -> Any:
    from ..aten import ops as at

    return at.ones_like(tensor, None, None, None)
