"""Lab 3's functions, which know plain numbers, made into pieces of the mini-framework, which know tensors and nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...mini import tensor as new_tensor
from ...mini.autograd import anomaly, engine
from ...mini.c10.grad_mode import grad_enabled
from ...mini.c10.pieces import reference
from ..plain import freeze

Function = Callable[..., Any]
Pieces = dict[str, Function]


def _numbers(tensor: Any) -> Any:
    return freeze(tensor.tolist())


def _like(values: Any, grad: Any) -> Any:
    return new_tensor(values, dtype=grad.dtype, device=grad.device)


def from_unbroadcast(mine: Function) -> Pieces:
    """Works on shapes as it is."""
    return {"unbroadcast": mine}


def from_product_backward(mine: Function) -> Pieces:
    """Both gradients of mm and addmm, one at a time, as the framework asks for them."""

    def side(name: str, at: int) -> Function:
        own = reference(name)

        def backward(grad: Any, other: Any, shape: Any, stride: Any, alpha: Any) -> Any:
            # Plain numbers have no history, so a gradient that is to be differentiated again is not theirs.
            if grad_enabled.get() or 0 in shape:
                return own(grad, other, shape, stride, alpha)
            operands = [_numbers(other), _numbers(other)]
            operands[at] = None
            shapes: list[Any] = [None, None]
            shapes[at] = tuple(shape)
            found = _like(mine("mm", _numbers(grad), *operands, tuple(shapes))[at], grad)
            return found if alpha == 1 else found * alpha

        return backward

    return {"mm_mat1_backward": side("mm_mat1_backward", 0), "mm_mat2_backward": side("mm_mat2_backward", 1)}


def from_unary_backward(mine: Function) -> Pieces:
    """The gradient of a sum over one dimension of a matrix; other sums stay the framework's."""
    own = reference("sum_backward")

    def sum_backward(grad: Any, shape: Any, dims: Any, keepdim: bool) -> Any:
        if grad_enabled.get() or len(shape) != 2 or 0 in shape or not dims or len(dims) != 1:
            return own(grad, shape, dims, keepdim)
        return _like(mine("sum", _numbers(grad), (tuple(shape), dims[0] % 2, keepdim)), grad)

    return {"sum_backward": sum_backward}


def _reached(roots: Sequence[Any]) -> list[Any]:
    """Every node under the roots, each once."""
    nodes = list(dict.fromkeys(roots))
    known = set(nodes)
    for node in nodes:
        for edge in node.next_edges:
            if edge is not None and edge[0] not in known:
                known.add(edge[0])
                nodes.append(edge[0])
    return nodes


def from_count_dependencies(mine: Function) -> Pieces:
    """The same graph with nodes for numbers."""

    def count_dependencies(roots: Sequence[Any]) -> dict[Any, int]:
        nodes = _reached(roots)
        places = {node: place for place, node in enumerate(nodes)}
        edges = tuple(tuple(edge and places[edge[0]] for edge in node.next_edges) for node in nodes)
        counts = mine(tuple(places[root] for root in roots), edges)
        return {node: count for node, count in zip(nodes, counts, strict=True) if count}

    return {"count_dependencies": count_dependencies}


class Arrived:
    """What has arrived at a node: it can be added to more, and sent through one of the node's derivatives."""

    def __init__(self, grads: dict[int, Any]) -> None:
        self.grads = grads
        self.results: Any = None

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Arrived):
            return self
        both = dict(self.grads)
        for input_nr, grad in other.grads.items():
            both[input_nr] = both[input_nr] + grad if input_nr in both else grad
        return Arrived(both)

    __radd__ = __add__

    def __mul__(self, derivative: Any) -> Any:
        return derivative.of(self) if isinstance(derivative, Derivative) else NotImplemented

    __rmul__ = __mul__

    def at(self, node: Any) -> list[Any]:
        """The gradients as the node takes them."""
        count = 1 if node.n_outputs == 1 else len(node.input_metadata)
        return [self.grads.get(number) for number in range(count)]


class Derivative:
    """One edge of a node: times what has arrived there, it is what goes along the edge."""

    def __init__(self, node: Any, place: int, keep_graph: bool) -> None:
        self.node, self.place, self.keep_graph = node, place, keep_graph

    def of(self, arrived: Arrived) -> Arrived:
        """The node runs at the first of its edges; the others find its results."""
        node = self.node
        if arrived.results is None:
            arrived.results = node.apply(*arrived.at(node))
            if node.saves and not self.keep_graph:
                node.release_variables()
        grad, edge = arrived.results[self.place], node.next_edges[self.place]
        if grad is None:
            return Arrived({})
        successor, input_nr = edge
        return Arrived({input_nr: engine.validate(grad, successor.input_metadata[input_nr], node, edge)})


def from_run_backward(mine: Function) -> Pieces:
    """Whole passes: the learner's engine decides who runs when and adds up; a product lets a node do its work."""
    own = reference("execute")

    def execute(
        roots: Sequence[Any],
        gradients: Sequence[Any],
        keep_graph: bool,
        create_graph: bool,
        inputs: Any = None,
        accumulate: bool = False,
    ) -> list[Any]:
        nodes = _reached([node for node, _ in roots])
        if inputs is not None or anomaly.enabled[0] or any(node.hooks is not None for node in nodes):
            return own(roots, gradients, keep_graph, create_graph, inputs, accumulate)
        places = {node: place for place, node in enumerate(nodes)}
        edges = tuple(
            tuple(
                None if edge is None else (places[edge[0]], Derivative(node, nr, keep_graph))
                for nr, edge in enumerate(node.next_edges)
            )
            for node in nodes
        )
        numbers = tuple(node.sequence_nr if out else None for node, out in zip(nodes, edges, strict=True))
        starts = tuple(
            (places[node], Arrived({} if gradient is None else {nr: gradient}))
            for (node, nr), gradient in zip(roots, gradients, strict=True)
        )
        before = grad_enabled.get()
        grad_enabled.set(create_graph)
        try:
            order, grads = mine(edges, numbers, starts, (None,) * len(nodes))
            for place in order:
                if not edges[place] and grads[place] is not None:
                    nodes[place].apply(*grads[place].at(nodes[place]))
        finally:
            grad_enabled.set(before)
        return []

    return {"execute": execute}


PLUGS = {
    "unbroadcast": from_unbroadcast,
    "product_backward": from_product_backward,
    "unary_backward": from_unary_backward,
    "count_dependencies": from_count_dependencies,
    "run_backward": from_run_backward,
}
