"""The engine: runs the backward graph (PyTorch: torch/csrc/autograd/engine.cpp).

It counts how many gradients each node waits for, keeps the nodes that wait for none in a queue, newest first, and
adds up gradients where paths meet. A GraphTask is one backward pass; its `run` yields after every node, so a pass
can be watched step by step and a plain backward is the same code run to its end. Nothing here recurses: graphs may
be long.
"""

import heapq
import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from ..c10 import geometry
from ..c10.grad_mode import grad_enabled
from ..c10.pieces import an_int, parts, piece
from . import anomaly
from .hooks import run_post_hooks, run_pre_hooks, run_tensor_hooks
from .node import Edge, Node


class GraphTask:
    """One backward pass.

    dependencies   node -> gradients that it still waits for
    buffers        node -> what has arrived: the gradient itself where the node takes one, else a list
    ready          heap of (-sequence_nr, arrival, node): the nodes that wait for nothing
    captures       node -> (input_nr, place in `captured`) of each gradient that is asked for there
    needed         where only some inputs are asked for: the nodes that must be evaluated for them; else None
    """

    def __init__(
        self,
        roots: Sequence[Edge],
        gradients: Sequence[Any],
        keep_graph: bool,
        create_graph: bool,
        inputs: Sequence[Edge] | None = None,
        accumulate: bool = False,
    ) -> None:
        """inputs: the only edges that gradients are wanted at; accumulate: to be added there rather than returned."""
        self.keep_graph = keep_graph
        self.create_graph = create_graph
        self.buffers: dict[Node, Any] = {}
        self.ready: list[tuple[int, int, Node]] = []
        self.arrivals = itertools.count()
        self.captured: list[Any] = []
        self.captures: dict[Node, list[tuple[int, int]]] = {}
        self.needed: set[Node] | None = None
        root_nodes = [node for node, _ in roots]
        self.dependencies = count_dependencies(root_nodes)
        if inputs is not None:
            self.captured = [None] * len(inputs)
            targets = {node for node, _ in inputs}
            self.needed = leading_to(targets, root_nodes)
            if accumulate:
                self.needed |= targets
            else:
                for place, edge in enumerate(inputs):
                    self.captures.setdefault(edge[0], []).append((edge[1], place))
        for (node, input_nr), gradient in zip(roots, gradients, strict=True):
            if gradient is not None:
                metadata = node.input_metadata[input_nr]
                if gradient._shape != metadata[0] or gradient._dtype is not metadata[1]:
                    gradient = validate(gradient, metadata, None, None)
                self._deliver(node, input_nr, gradient)
        for node in root_nodes if len(root_nodes) == 1 else dict.fromkeys(root_nodes):
            if not self.dependencies.get(node) and self._is_executed(node):
                heapq.heappush(self.ready, (-node.sequence_nr, next(self.arrivals), node))

    def run(self) -> Iterator[Node]:
        """Evaluates node after node and yields each when its gradients have been handed on."""
        ready, buffers, dependencies = self.ready, self.buffers, self.dependencies
        pop, push, arrivals = heapq.heappop, heapq.heappush, self.arrivals
        keep_graph, needed, watched = self.keep_graph, self.needed, anomaly.enabled
        while ready:
            node = pop(ready)[2]
            grads = buffers.pop(node, None)
            if needed is not None:
                if node in self.captures:
                    grads = self._capture(node, grads)
                if node not in needed:
                    yield node
                    continue
            if node.hooks is not None or watched[0]:
                results = self._evaluate_watched(node, grads)
            elif node.n_outputs == 1:
                results = node.apply(grads)
            else:
                results = node.apply(*(grads or (None,) * len(node.input_metadata)))
            del grads
            if node.saves and not keep_graph:
                node.release_variables()
            edges = node.next_edges
            if len(results) != len(edges):
                results = _fitted(node, results)
            for edge, grad in zip(edges, results):  # noqa: B905 - the lengths were compared
                if edge is None:
                    continue
                successor, input_nr = edge
                if grad is not None:
                    metadata = successor.input_metadata[input_nr]
                    if grad._shape != metadata[0] or grad._dtype is not metadata[1]:
                        grad = validate(grad, metadata, node, edge)
                    if successor.n_outputs == 1:
                        old = buffers.get(successor)
                        buffers[successor] = grad if old is None else old + grad
                        del old
                    else:
                        self._deliver(successor, input_nr, grad)
                left = dependencies[successor] - 1
                dependencies[successor] = left
                if left == 0 and (needed is None or self._is_executed(successor)):
                    push(ready, (-successor.sequence_nr, next(arrivals), successor))
            grad = results = None  # type: ignore[assignment]
            yield node

    def _is_executed(self, node: Node) -> bool:
        return self.needed is None or node in self.needed or node in self.captures

    def _evaluate_watched(self, node: Node, grads: Any) -> tuple[Any, ...]:
        """The node's results, with its hooks run and anomalies looked for."""
        hooks = node.hooks
        if hooks is not None:
            grads = run_pre_hooks(node, run_tensor_hooks(node, grads))
        with anomaly.evaluating(node):
            if node.n_outputs == 1:
                results = node.apply(grads)
            else:
                results = node.apply(*(grads or (None,) * len(node.input_metadata)))
        if len(results) != len(node.next_edges):
            results = _fitted(node, results)
        results = tuple(
            grad if edge is None or grad is None else validate(grad, edge[0].input_metadata[edge[1]], node, edge)
            for edge, grad in zip(node.next_edges, results, strict=True)
        )
        anomaly.check(node, results)
        if hooks is not None and hooks.post:
            results = run_post_hooks(node, results, grads)
        return results

    def _deliver(self, node: Node, input_nr: int, grad: Any) -> None:
        if node.n_outputs == 1:
            old = self.buffers.get(node)
            self.buffers[node] = grad if old is None else old + grad
            return
        buffer = self.buffers.setdefault(node, [None] * len(node.input_metadata))
        old = buffer[input_nr]
        buffer[input_nr] = grad if old is None else old + grad

    def _capture(self, node: Node, grads: Any) -> Any:
        """Keep what was asked for: after the tensor's hooks, unless those are still to run because the node is."""
        if node.hooks is not None and node not in (self.needed or ()):
            grads = run_tensor_hooks(node, grads)
        for input_nr, place in self.captures[node]:
            self.captured[place] = grads if node.n_outputs == 1 or grads is None else grads[input_nr]
        return grads


def _captured(result: Any, args: tuple[Any, ...]) -> list[Any]:
    inputs = args[4] if len(args) > 4 else None
    count = len(inputs or ())
    return list(parts(result, f"a list of {count} gradient{'' if count == 1 else 's'}", count))


@piece(returns=_captured)
def execute(
    roots: Sequence[Edge],
    gradients: Sequence[Any],
    keep_graph: bool,
    create_graph: bool,
    inputs: Sequence[Edge] | None = None,
    accumulate: bool = False,
) -> list[Any]:
    """Runs a whole backward pass and returns the gradients at `inputs`, None where none arrived.

    With inputs only what leads to them runs. With `accumulate` their nodes run too, which adds to the leaves among
    them, and nothing is returned for them.
    """
    before = grad_enabled.get()
    grad_enabled.set(create_graph)
    try:
        task = GraphTask(roots, gradients, keep_graph, create_graph, inputs, accumulate)
        deque(task.run(), maxlen=0)
    finally:
        grad_enabled.set(before)
    return task.captured


def _counts(result: Any, args: tuple[Any, ...]) -> dict[Node, int]:
    if not isinstance(result, dict):
        raise ValueError("a dict of counts by node")
    return {node: an_int(count) for node, count in result.items()}


@piece(returns=_counts)
def count_dependencies(roots: Sequence[Node]) -> dict[Node, int]:
    """Node -> how many edges of the graph under `roots` lead to it."""
    dependencies: dict[Node, int] = {}
    seen = set(roots)
    stack = list(seen)
    while stack:
        for edge in stack.pop().next_edges:
            if edge is None:
                continue
            successor = edge[0]
            dependencies[successor] = dependencies.get(successor, 0) + 1
            if successor not in seen:
                seen.add(successor)
                stack.append(successor)
    return dependencies


def leading_to(targets: set[Node], roots: Sequence[Node]) -> set[Node]:
    """The nodes to evaluate so that gradients arrive at the targets; a target itself only if another follows."""
    # Every node after those that it leads to, a root that lies under another root included.
    order: list[Node] = []
    seen: set[Node] = set()
    for root in roots:
        if root in seen:
            continue
        seen.add(root)
        stack: list[tuple[Node, Iterator[Any]]] = [(root, iter(root.next_edges))]
        while stack:
            node, edges = stack[-1]
            for edge in edges:
                if edge is not None and edge[0] not in seen:
                    seen.add(edge[0])
                    stack.append((edge[0], iter(edge[0].next_edges)))
                    break
            else:
                order.append(node)
                stack.pop()
    needed: set[Node] = set()
    for node in order:
        if any(edge is not None and (edge[0] in targets or edge[0] in needed) for edge in node.next_edges):
            needed.add(node)
    return needed


def validate(grad: Any, metadata: Any, node: Node | None, edge: Edge | None) -> Any:
    """A gradient made to fit what it is the gradient of: broadcasting undone, the dtype restored.

    node, edge: where it comes from; None where the caller of the pass gave it. RuntimeError where the shapes cannot
    belong together.
    """
    if metadata is None:
        return grad
    shape, dtype, _ = metadata
    if grad._shape != shape:
        if geometry.expanded_dims(shape, grad._shape) is None:
            edges = () if node is None else node.next_edges
            # By identity: a tensor that is two inputs has two equal edges.
            index = next((nr for nr, each in enumerate(edges) if each is edge), 0)
            raise RuntimeError(
                f"Function {'backward' if node is None else node.name()} returned an invalid gradient at index "
                f"{index} - got {list(grad._shape)} but expected shape compatible with {list(shape)}"
            )
        grad = grad.sum_to_size(shape)
    return grad if grad._dtype is dtype else grad.to(dtype)


def _fitted(node: Node, results: Any) -> tuple[Any, ...]:
    expected = len(node.next_edges)
    if len(results) > expected and all(result is None for result in results[expected:]):
        return tuple(results[:expected])
    raise RuntimeError(
        f"Function {node.name()} returned an incorrect number of gradients (expected {expected}, got {len(results)})"
    )
