"""Graph: the backward graph and what it keeps (torch/csrc/autograd/function.h, saved_variable.h)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .table import Rows, Table, human_bytes


@dataclass(frozen=True, slots=True)
class SavedTensor:
    """A tensor that a node of the backward graph keeps for its step.

    name      by which the node knows it: "self", "result", "tensors[1]"
    storage   as in StorageView: equal for two exactly when they share memory, so bytes need not be counted twice
    version   of the tensor when it was saved
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    storage: int = 0
    version: int | None = None


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One node of a backward graph.

    id            its place in the graph that it is part of
    sequence_nr   the order of creation; None for AccumulateGrad, which goes before all others
    edges         where its gradients go: (id, input_nr), or None where none is wanted
    outputs       the shape of each forward output, which its input gradients have
    saved         what it keeps
    leaf          for AccumulateGrad the shape of the leaf; else None
    """

    id: int
    name: str
    sequence_nr: int | None
    edges: tuple[tuple[int, int] | None, ...]
    outputs: tuple[tuple[int, ...], ...] = ()
    saved: tuple[SavedTensor, ...] = ()
    leaf: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Graph(Table):
    """A backward graph: its nodes, each before those that it hands gradients to."""

    nodes: tuple[GraphNode, ...]

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[GraphNode]:
        return iter(self.nodes)

    def __getitem__(self, id: int) -> GraphNode:  # noqa: A002
        return self.nodes[id]

    def saved_bytes(self) -> int:
        """Bytes that the graph keeps alive, a storage that several nodes keep counted once, by its largest view."""
        largest: dict[Any, int] = {}
        for node in self.nodes:
            for nr, saved in enumerate(node.saved):
                key = saved.storage or (node.id, nr)
                largest[key] = max(largest.get(key, 0), saved.nbytes)
        return sum(largest.values())

    def rows(self) -> Rows:
        return [
            {
                "id": node.id,
                "node": node.name,
                "goes to": ", ".join("-" if edge is None else str(edge[0]) for edge in node.edges),
                "shape": ", ".join(map(str, map(list, node.outputs))),
                "saved": ", ".join(f"{each.name} {list(each.shape)}" for each in node.saved),
                "bytes": sum(each.nbytes for each in node.saved),
            }
            for node in self.nodes
        ]

    def caption(self) -> str:
        leaves = sum(node.leaf is not None for node in self.nodes)
        return f"{len(self.nodes)} nodes, {leaves} leaves, {human_bytes(self.saved_bytes())} saved for backward"


@dataclass(frozen=True, slots=True)
class SavedValues(Table):
    """What calls saved for backward: pairs of the node's name and the SavedTensor."""

    values: tuple[tuple[str, SavedTensor], ...]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[tuple[str, SavedTensor]]:
        return iter(self.values)

    def nbytes(self) -> int:
        """Bytes kept alive by them, memory that several share counted once, by its largest part."""
        largest: dict[int, int] = {}
        for nr, (_, saved) in enumerate(self.values):
            key = saved.storage or -1 - nr
            largest[key] = max(largest.get(key, 0), saved.nbytes)
        return sum(largest.values())

    def rows(self) -> Rows:
        return [
            {"node": node, "saved": saved.name, "shape": list(saved.shape), "dtype": saved.dtype, "bytes": saved.nbytes}
            for node, saved in self.values
        ]

    def caption(self) -> str:
        return f"{len(self.values)} tensor{'s' * (len(self.values) != 1)} saved, {human_bytes(self.nbytes())}"
