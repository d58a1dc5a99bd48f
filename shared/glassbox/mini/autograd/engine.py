"""The engine: runs the backward graph (PyTorch: torch/csrc/autograd/engine.cpp).

It counts how many gradients each node waits for, keeps the nodes that wait for none in a queue, newest first, and adds up
gradients where paths meet. A GraphTask is one backward pass; its `run` yields after every node, so a pass can be
watched step by step and a plain backward is the same code run to its end. Nothing here recurses: graphs may be long.
"""

import heapq
import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from ..c10.grad_mode import grad_enabled
from . import anomaly
from .node import Edge, Node


class GraphTask:
    """One backward pass.

    dependencies   node -> gradients that it still waits for
    buffers        node -> what has arrived: the gradient itself where the node takes one, else a list
    ready          heap of (-sequence_nr, arrival, node): the nodes that wait for nothing
    captures       (node, input_nr) -> places in `captured` that the gradient is asked for
    """

    def __init__(
        self,
        roots: Sequence[Edge],
        gradients: Sequence[Any],
        keep_graph: bool,
        create_graph: bool,
        inputs: Sequence[Edge] | None = None,
    ) -> None:
        self.keep_graph = keep_graph
        self.create_graph = create_graph
        self.buffers: dict[Node, Any] = {}
        self.ready: list[tuple[int, int, Node]] = []
        self.arrivals = itertools.count()
        self.captured: list[Any] = [None] * len(inputs or ())
        self.captures: dict[tuple[Node, int], list[int]] = {}
        self.needed: set[Node] | None = None
        self.dependencies = count_dependencies([node for node, _ in roots])
        if inputs is not None:
            for place, edge in enumerate(inputs):
                self.captures.setdefault(edge, []).append(place)
            self.needed = _leading_to({node for node, _ in inputs}, [node for node, _ in roots])
        self._capturing = {node for node, _ in self.captures}
        for (node, input_nr), gradient in zip(roots, gradients, strict=True):
            self._deliver(node, input_nr, gradient)
        for node in dict.fromkeys(node for node, _ in roots):
            if not self.dependencies.get(node):
                self._push(node)

    def run(self) -> Iterator[Node]:
        """Evaluates node after node and yields each when its gradients have been handed on."""
        ready, buffers, dependencies = self.ready, self.buffers, self.dependencies
        pop, push, arrivals = heapq.heappop, heapq.heappush, self.arrivals
        keep_graph, needed = self.keep_graph, self.needed
        while ready:
            node = pop(ready)[2]
            grads = buffers.pop(node, None)
            if node.hooks is not None:
                grads = _tensor_hooks(node, grads)
            if self._capturing and node in self._capturing:
                self._capture(node, grads)
            if needed is not None and node not in needed:
                yield node
                continue
            results = self._evaluate(node, grads)
            del grads
            if not keep_graph:
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
                        grad = validate(grad, metadata, node)
                    if successor.n_outputs == 1:
                        old = buffers.get(successor)
                        buffers[successor] = grad if old is None else old + grad
                        del old
                    else:
                        self._deliver(successor, input_nr, grad)
                left = dependencies[successor] - 1
                dependencies[successor] = left
                if left == 0 and (needed is None or successor in needed or successor in self._capturing):
                    push(ready, (-successor.sequence_nr, next(arrivals), successor))
            grad = results = None
            yield node

    def _evaluate(self, node: Node, grads: Any) -> tuple[Any, ...]:
        hooks = node.hooks
        if hooks is not None:
            grads = _before(node, grads)
        if node.n_outputs == 1:
            results: tuple[Any, ...] = node.apply(grads)
        else:
            results = node.apply(*(grads or (None,) * len(node.input_metadata)))
        if hooks is not None:
            results = _after(node, results, grads)
        if anomaly.enabled[0]:
            anomaly.check(node, results)
        return results

    def _push(self, node: Node) -> None:
        heapq.heappush(self.ready, (-node.sequence_nr, next(self.arrivals), node))

    def _deliver(self, node: Node, input_nr: int, grad: Any) -> None:
        if grad is None:
            return
        if node.n_outputs == 1:
            old = self.buffers.get(node)
            self.buffers[node] = grad if old is None else old + grad
            return
        buffer = self.buffers.setdefault(node, [None] * len(node.input_metadata))
        old = buffer[input_nr]
        buffer[input_nr] = grad if old is None else old + grad

    def _capture(self, node: Node, grads: Any) -> None:
        for (captured, input_nr), places in self.captures.items():
            if captured is node:
                found = grads if node.n_outputs == 1 or grads is None else grads[input_nr]
                for place in places:
                    self.captured[place] = found


def execute(
    roots: Sequence[Edge],
    gradients: Sequence[Any],
    keep_graph: bool,
    create_graph: bool,
    inputs: Sequence[Edge] | None = None,
) -> list[Any]:
    """Runs a whole backward pass and returns the gradients at `inputs`, None where none arrived.

    With inputs only what leads to them runs, and nothing is added to a leaf.
    """
    token = grad_enabled.set(create_graph)
    try:
        task = GraphTask(roots, gradients, keep_graph, create_graph, inputs)
        deque(task.run(), maxlen=0)
    finally:
        grad_enabled.reset(token)
    return task.captured


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


def _leading_to(targets: set[Node], roots: Sequence[Node]) -> set[Node]:
    """The nodes that must be evaluated so that gradients arrive at the targets; a target itself only if another follows."""
    order: list[Node] = []
    seen = set(roots)
    stack: list[tuple[Node, Iterator[Any]]] = [(node, iter(node.next_edges)) for node in seen]
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


def validate(grad: Any, metadata: Any, node: Node) -> Any:
    """A gradient made to fit what it is the gradient of: broadcasting undone, the dtype restored.

    RuntimeError where the shapes cannot belong together.
    """
    shape, dtype, _ = metadata
    if grad._shape != shape:
        if not _is_expandable(shape, grad._shape):
            raise RuntimeError(
                f"Function {node.name()} returned an invalid gradient at index {_index(node, metadata)} - got "
                f"{list(grad._shape)} but expected shape compatible with {list(shape)}"
            )
        grad = grad.sum_to_size(shape)
    if grad._dtype is not dtype:
        grad = grad.to(dtype)
    return grad


def _index(node: Node, metadata: Any) -> int:
    return next(
        (i for i, edge in enumerate(node.next_edges) if edge and edge[0].input_metadata[edge[1]] is metadata), 0
    )


def _is_expandable(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    if len(shape) > len(target):
        return False
    return all(n in (1, m) for n, m in zip(reversed(shape), reversed(target), strict=False))


def _fitted(node: Node, results: Any) -> tuple[Any, ...]:
    expected = len(node.next_edges)
    if len(results) > expected and all(result is None for result in results[expected:]):
        return tuple(results[:expected])
    raise RuntimeError(
        f"{node.name()} returned an incorrect number of gradients (expected {expected}, got {len(results)})"
    )


def _tensor_hooks(node: Node, grads: Any) -> Any:
    """The hooks of the tensors that the node's inputs are the gradients of; retain_grad's last."""
    hooks = node.hooks or {}
    items = [grads] if node.n_outputs == 1 else list(grads or (None,) * len(node.input_metadata))
    for input_nr, each in hooks.get("tensor_pre", {}).items():
        for hook in list(each):
            if items[input_nr] is not None:
                changed = hook(items[input_nr])
                items[input_nr] = items[input_nr] if changed is None else changed
    for input_nr, weak in hooks.get("retain", {}).items():
        tensor = weak()
        if tensor is not None and items[input_nr] is not None:
            # A copy where it is the first: the gradient goes on through the graph and may be changed there.
            tensor._grad = items[input_nr].clone() if tensor._grad is None else tensor._grad + items[input_nr]
    return items[0] if node.n_outputs == 1 else items


def _before(node: Node, grads: Any) -> Any:
    for hook in list((node.hooks or {}).get("pre", ())):
        given = (grads,) if node.n_outputs == 1 else tuple(grads or ())
        changed = hook(given)
        if changed is not None:
            changed = changed if isinstance(changed, tuple) else (changed,)
            grads = changed[0] if node.n_outputs == 1 else list(changed)
    return grads


def _after(node: Node, results: tuple[Any, ...], grads: Any) -> tuple[Any, ...]:
    for hook in list((node.hooks or {}).get("post", ())):
        given = (grads,) if node.n_outputs == 1 else tuple(grads or ())
        changed = hook(results, given)
        if changed is not None:
            results = changed if isinstance(changed, tuple) else (changed,)
    return results
