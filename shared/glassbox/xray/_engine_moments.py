"""Engine moments: how the engine stands after each node, of either framework (torch/csrc/autograd/engine.cpp).

The mini-framework shows its queue and counts; of PyTorch's engine hooks on the nodes see the order and the gradients,
and the queue and the counts follow from those and the graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..records import Graph, GraphNode
from ..records.engine_run import EngineFrame, NodeState

_ELEMENTS, _LENGTH = 6, 26


def as_text(tensor: Any) -> str:
    """A tensor's numbers, short; its shape where they are many."""
    if tensor is None:
        return ""
    if tensor.numel() <= _ELEMENTS:
        written = _written(tensor.tolist())
        if len(written) <= _LENGTH:
            return written
    return "x".join(map(str, tensor.shape)) + " numbers"


def _written(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


@dataclass
class Walk:
    """The graph of a run, and where the engine stands in it."""

    graph: Graph
    nodes: list[Any]
    place: dict[Any, int] = field(init=False)
    edges: list[tuple[int, int, int, int]] = field(init=False)
    state: list[str] = field(init=False)
    waits: list[int | None] = field(init=False)
    arrived: list[str] = field(init=False)
    freed: list[bool] = field(init=False)

    def __post_init__(self) -> None:
        count = len(self.graph)
        self.place = {node: nr for nr, node in enumerate(self.nodes)}
        self.edges = list(self.graph.edges())
        self.state = ["absent"] * count
        self.waits = [None] * count
        self.arrived = [""] * count
        self.freed = [False] * count

    def frame(self, phase: str, text: str, line: int = -1, queue: Sequence[int] = (), flows: Any = ()) -> EngineFrame:
        nodes = tuple(map(NodeState, self.state, self.waits, self.arrived, self.freed))
        return EngineFrame(phase, line, text, nodes, tuple(queue), tuple(flows))

    def label(self, nr: int) -> str:
        node = self.graph[nr]
        return f"{node.name} of {node.variable}" if node.variable else node.name

    def edges_of(self, nr: int) -> dict[int, int]:
        """Which of the node's gradients goes along which edge: {output: edge}."""
        return {edge[1]: place for place, edge in enumerate(self.edges) if edge[0] == nr}


@dataclass(frozen=True)
class Moment:
    """A node has run: what went along which edge, and how the engine stands after it."""

    node: int
    sent: dict[int, str]
    waits: dict[int, int]
    arrived: dict[int, str]
    queue: list[int]
    leaf_grad: str


@dataclass
class _Seen:
    """What hooks on the nodes saw: which one ran, and the gradients that it handed on."""

    order: list[int] = field(default_factory=list)
    sent: list[tuple[Any, ...]] = field(default_factory=list)

    def watch(self, walk: Walk) -> list[Any]:
        def hook_of(nr: int) -> Any:
            def hook(grad_inputs: Any, grad_outputs: Any) -> None:
                self.order.append(nr)
                self.sent.append(tuple(grad_inputs))

            return hook

        return [node.register_hook(hook_of(nr)) for nr, node in enumerate(walk.nodes)]


def of_mini(walk: Walk, result: Any) -> Iterator[Moment]:
    from ..mini.autograd.graph import steps

    seen = _Seen()
    handles = seen.watch(walk)
    for node, task in steps(result):
        nr = walk.place[node]
        edges = walk.edges_of(nr)
        sent = {edges[k]: as_text(grad) for k, grad in enumerate(seen.sent[-1]) if k in edges}
        targets = dict.fromkeys(walk.edges[edge][2] for edge in sent)
        yield Moment(
            nr,
            sent,
            {target: task.dependencies[walk.nodes[target]] for target in targets},
            {target: as_text(task.buffers.get(walk.nodes[target])) for target in targets},
            [walk.place[ready] for _, _, ready in sorted(task.ready, key=lambda each: each[:2])],
            _leaf_grad(node),
        )
    for handle in handles:
        handle.remove()


def of_torch(walk: Walk, result: Any) -> Iterator[Moment]:
    seen = _Seen()
    handles = seen.watch(walk)
    result.backward()
    for handle in handles:
        handle.remove()
    waits = [count or 0 for count in walk.waits]
    sums: dict[int, Any] = {}
    queue = [walk.graph.roots[0][0]]
    for nr, grads in zip(seen.order, seen.sent, strict=True):
        queue.remove(nr)
        edges = walk.edges_of(nr)
        sent = {edges[k]: grad for k, grad in enumerate(grads) if k in edges}
        for edge, grad in sent.items():
            target = walk.edges[edge][2]
            sums[target] = sums[target] + grad if target in sums else grad
            waits[target] -= 1
            if not waits[target]:
                queue.append(target)
        queue.sort(key=lambda each: (-_urgency(walk.graph[each]), seen.order.index(each)))
        targets = dict.fromkeys(walk.edges[edge][2] for edge in sent)
        yield Moment(
            nr,
            {edge: as_text(grad) for edge, grad in sent.items()},
            {target: waits[target] for target in targets},
            {target: as_text(sums[target]) for target in targets},
            list(queue),
            _leaf_grad(walk.nodes[nr]),
        )


def _urgency(node: GraphNode) -> float:
    return float("inf") if node.sequence_nr is None else node.sequence_nr


def _leaf_grad(node: Any) -> str:
    return as_text(node.variable.grad) if hasattr(node, "variable") else ""
