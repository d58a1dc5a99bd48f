"""Graph: the backward graph and what it keeps (torch/csrc/autograd/function.h, saved_variable.h)."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .table import Rows, Table, folded_table
from .units import human_bytes

if TYPE_CHECKING:
    from ..draw import Svg

# A longer table is for rows() and to_markdown(); a notebook shows its beginning.
SHOWN = 60


@dataclass(frozen=True, slots=True)
class SavedTensor:
    """A tensor that a node of the backward graph keeps for its step.

    name      by which the node knows it: "self", "result", "tensors[1]"
    storage   as in StorageView: equal for two exactly when they share memory, so bytes need not be counted twice
    version   of the tensor when it was saved
    kind      whose it is: "result" (of this very node), "inner" (another node's output), "leaf", "parameter",
              "constant" (no gradient flows to it), "attribute" (set on ctx, not by save_for_backward); "" if not known
    variable  the variable or parameter that it is, where that is known
    origin    (id, output_nr) of the node whose output it is, where that is in the graph
    view      whether it is a view of another tensor
    state     "kept"; "freed" by a backward pass; "changed" in place since, so that its node will refuse to run;
              "packed" by a hook of saved_tensors_hooks, which is not called to look inside
    now       the tensor's version now
    packed    what the hook gave, in words; nbytes are then of the tensors right in it
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    storage: int = 0
    version: int | None = None
    kind: str = ""
    variable: str = ""
    origin: tuple[int, int] | None = None
    view: bool = False
    state: str = "kept"
    now: int | None = None
    packed: str = ""

    def __str__(self) -> str:
        if self.state == "freed":
            return f"{self.name}: freed"
        if self.state == "packed":
            return f"{self.name}: packed by a hook as {self.packed}, {human_bytes(self.nbytes)} in it"
        whose = {"result": "this node's result", "inner": "another node's output"}.get(self.kind, self.kind)
        words = [f"{self.dtype}{list(self.shape)}", human_bytes(self.nbytes), whose, self.variable]
        if self.view:
            words.append("a view")
        if self.version:
            words.append(f"version {self.version}")
        if self.state == "changed":
            words.append(f"changed in place since, now version {self.now}")
        return f"{self.name}: {', '.join(word for word in words if word)}"


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One node of a backward graph.

    id            its place in the graph that it is part of
    sequence_nr   the order of creation; None for AccumulateGrad, which goes before all others
    edges         where its gradients go: (id, input_nr), or None where none is wanted
    outputs       the shape of each forward output, which its input gradients have
    saved         what it keeps
    leaf          for AccumulateGrad the shape of the leaf; else None
    kind          "leaf" or "parameter" for AccumulateGrad; "view" where the operator's schema gives a view; "write" for
                  CopySlices, a write through a view; "custom" for an autograd.Function, "checkpoint" for that one
    variables     names of the tensors that are its outputs: (output_nr, name)
    module        the innermost module that is known to hold it, "layer1.0.conv1"
    dtypes        of the outputs; device: of the first
    values        what it keeps besides tensors, as text: ("alpha", "1")
    notes         what else there is to say: hooks, whose view the variable is
    """

    id: int
    name: str
    sequence_nr: int | None
    edges: tuple[tuple[int, int] | None, ...]
    outputs: tuple[tuple[int, ...], ...] = ()
    saved: tuple[SavedTensor, ...] = ()
    leaf: tuple[int, ...] | None = None
    kind: str = ""
    variables: tuple[tuple[int, str], ...] = ()
    module: str = ""
    dtypes: tuple[str, ...] = ()
    device: str = ""
    values: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def variable(self) -> str:
        """The names of its outputs, "" if none is known."""
        return ", ".join(dict.fromkeys(name for _, name in self.variables))

    @property
    def nbytes(self) -> int:
        """Bytes of what it keeps, what it keeps twice counted twice."""
        return sum(each.nbytes for each in self.saved)

    def __str__(self) -> str:
        return f"{self.name} {self.variable}".rstrip()


@dataclass(frozen=True, slots=True)
class Graph(Table):
    """A backward graph: its nodes, each before those that it hands gradients to; newest first, leaves last.

    roots   the tensors that it was asked for: (id, output_nr, name)
    """

    nodes: tuple[GraphNode, ...]
    roots: tuple[tuple[int, int, str], ...] = ()

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[GraphNode]:
        return iter(self.nodes)

    def __getitem__(self, id: int) -> GraphNode:  # noqa: A002
        return self.nodes[id]

    def named(self, name: str) -> GraphNode:
        """The node whose output or leaf is the variable of that name; KeyError if there is none."""
        for node in self.nodes:
            if any(each == name for _, each in node.variables):
                return node
        known = ", ".join(dict.fromkeys(each for node in self.nodes for _, each in node.variables)) or "none"
        raise KeyError(f"no tensor of the graph is called {name!r}; the names are {known}.")

    def leaves(self) -> list[GraphNode]:
        """The AccumulateGrad nodes."""
        return [node for node in self.nodes if node.leaf is not None]

    def edges(self) -> Iterator[tuple[int, int, int, int]]:
        """Every way that a gradient goes: (from id, which of its outputs, to id, input_nr)."""
        for node in self.nodes:
            for nr, edge in enumerate(node.edges):
                if edge is not None:
                    yield node.id, nr, edge[0], edge[1]

    def engine_order(self) -> tuple[int, ...]:
        """The ids in the order in which the engine runs them on one device: of those that wait for no more gradients
        the one with the largest sequence number, so the newest, and an AccumulateGrad before any other. Which of
        several AccumulateGrads goes first is up to the C++ library that PyTorch was built with; here, by their ids.
        """
        waiting = [0] * len(self.nodes)
        for _, _, target, _ in self.edges():
            waiting[target] += 1
        starts = [nr for nr, _, _ in self.roots] or [node.id for node in self.nodes if not waiting[node.id]]
        ready = [self._urgency(nr) for nr in dict.fromkeys(starts) if not waiting[nr]]
        heapq.heapify(ready)
        order = []
        while ready:
            nr = heapq.heappop(ready)[-1]
            order.append(nr)
            for edge in self.nodes[nr].edges:
                if edge is None:
                    continue
                waiting[edge[0]] -= 1
                if not waiting[edge[0]]:
                    heapq.heappush(ready, self._urgency(edge[0]))
        return tuple(order)

    def _urgency(self, nr: int) -> tuple[float, int]:
        number = self.nodes[nr].sequence_nr
        return (float("-inf") if number is None else -number), nr

    def saved_bytes(self) -> int:
        """Bytes that the graph keeps alive, a storage that several nodes keep counted once, by its largest view."""
        largest: dict[Any, int] = {}
        for node in self.nodes:
            for nr, saved in enumerate(node.saved):
                key = saved.storage or (node.id, nr)
                largest[key] = max(largest.get(key, 0), saved.nbytes)
        return sum(largest.values())

    def saved_tensors(self) -> Iterator[tuple[GraphNode, SavedTensor]]:
        """Everything that is kept, with the node that keeps it."""
        for node in self.nodes:
            for saved in node.saved:
                yield node, saved

    def rows(self) -> Rows:
        return self._rows(self.nodes)

    def _rows(self, nodes: Sequence[GraphNode]) -> Rows:
        with_variables, with_modules, with_notes = (
            any(getattr(node, column) for node in self.nodes) for column in ("variable", "module", "notes")
        )
        return [self._row(node, with_variables, with_modules, with_notes) for node in nodes]

    def _row(self, node: GraphNode, with_variables: bool, with_modules: bool, with_notes: bool) -> dict[str, Any]:
        row: dict[str, Any] = {"id": node.id, "node": node.name}
        if with_variables:
            row["variable"] = node.variable
        if with_modules:
            row["module"] = node.module
        row["number"] = node.sequence_nr
        row["goes to"] = ", ".join("-" if edge is None else _edge(edge) for edge in node.edges)
        row["shape"] = ", ".join(map(str, map(list, node.outputs)))
        row["saved"] = ", ".join(f"{each.name} {_what(each)}" for each in node.saved)
        row["bytes"] = node.nbytes
        if with_notes:
            row["notes"] = "; ".join(node.notes)
        return row

    def caption(self) -> str:
        leaves = len(self.leaves())
        parts = [
            f"{len(self.nodes):,} node{'s' * (len(self.nodes) != 1)}",
            f"{leaves:,} lea{'f' if leaves == 1 else 'ves'}",
            f"{human_bytes(self.saved_bytes())} saved for backward",
        ]
        for state, words in (
            ("freed", "freed by a backward pass"),
            ("packed", "packed by hooks"),
            ("changed", "changed in place since they were saved, so backward will fail"),
        ):
            count = sum(saved.state == state for _, saved in self.saved_tensors())
            if count:
                parts.append(f"{count:,} saved tensor{'s' * (count != 1)} {words}")
        return ", ".join(parts)

    def figure(self, **options: Any) -> Svg:
        """The graph as a picture; options are those of glassbox.draw.graph_figure."""
        from ..draw import graph_figure

        return graph_figure(self, **options)

    def _repr_html_(self) -> str:
        rows = self._rows(self.nodes[:SHOWN])
        return self.figure()._repr_html_() + folded_table(rows, self.caption(), len(self.nodes) - SHOWN)


def _edge(edge: tuple[int, int]) -> str:
    return f"{edge[0]}" if edge[1] == 0 else f"{edge[0]}.{edge[1]}"


def _what(saved: SavedTensor) -> str:
    return str(list(saved.shape)) if saved.state == "kept" else saved.state


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
