"""ForwardGraph: the operator calls of a program as a graph: who hands which tensor to whom (PyTorch: torch/fx/graph.py
draws such graphs from a trace; this one is made from a log of what ran).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .graph import SHOWN, Graph
from .ops import OpCall, OpLog, TensorMeta
from .table import Rows, Table, folded_table
from .units import human_bytes

if TYPE_CHECKING:
    from ..draw import Svg


# Calls that only ask a tensor what it is.
_QUERIES = ("prim.", "aten.sym_")


@dataclass(frozen=True, slots=True)
class ForwardTensor:
    """A tensor of the program, as it was when it first appeared.

    meta      its number in the log, shape, dtype, storage
    name      the variable or parameter that it is; "" if none is known
    kind      "argument", "parameter", "buffer"; "outside" for others that no call made; "" for a call's output
    made_by   the call that gave it; None for what was there before
    base      the tensor whose memory it shares as a view, the first that it was taken from; None for no view
    """

    meta: TensorMeta
    name: str = ""
    kind: str = ""
    made_by: int | None = None
    base: int | None = None

    @property
    def id(self) -> int:
        return self.meta.id

    def __str__(self) -> str:
        return f"{self.name or f'${self.id}'}: {self.meta.type()}"


@dataclass(frozen=True, slots=True)
class ForwardNode:
    """One operator call.

    id         its place in the graph
    numbers    the sequence numbers of the backward nodes that were made for it; empty where nothing was recorded
    backward   those nodes' ids in the graph's `backward`, where they are in it
    """

    id: int
    call: OpCall
    numbers: tuple[int, ...] = ()
    backward: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """ "add.Tensor"; "relu" where there is only the default overload."""
        return self.call.name.removeprefix("aten.").removesuffix(".default")


@dataclass(frozen=True, slots=True)
class ForwardEdge:
    """A tensor on its way into a call.

    source   the call that it comes from; None for a tensor that no call made
    kind     "value": the call reads it; "view": the call gives a view of it; "memory": the call sees, through another
             view of the same memory, what the source wrote
    """

    source: int | None
    target: int
    tensor: int
    kind: str = "value"


@dataclass(frozen=True, slots=True)
class ForwardGraph(Table):
    """The calls of a program in their order, its tensors by number, and what it gave.

    results    (tensor, name)
    backward   the backward graph of the results; None where they have none
    left_out   calls that a backward pass made in the meantime
    """

    nodes: tuple[ForwardNode, ...]
    tensors: tuple[ForwardTensor, ...] = ()
    results: tuple[tuple[int, str], ...] = ()
    backward: Graph | None = None
    left_out: int = 0

    @classmethod
    def of_log(
        cls,
        log: OpLog,
        names: Mapping[int, str] | None = None,
        kinds: Mapping[int, str] | None = None,
        numbers: Sequence[tuple[int, ...]] = (),
        results: Sequence[tuple[int, str]] = (),
        backward: Graph | None = None,
    ) -> ForwardGraph:
        """The graph of a log's forward calls.

        names, kinds   of tensors, by their number in the log
        numbers        call by call of the whole log, the sequence numbers of the backward nodes made for it
        """
        place = {node.sequence_nr: node.id for node in backward or () if node.sequence_nr is not None}
        nodes: list[ForwardNode] = []
        waiting: tuple[int, ...] = ()
        left_out = 0
        for nr, call in enumerate(log):
            own = waiting + (tuple(numbers[nr]) if nr < len(numbers) else ())
            if call.phase != "forward":
                left_out += 1
            elif call.name.startswith(_QUERIES):
                # Asked by a FakeTensor on the way to a call whose node is there already.
                waiting = own
            else:
                made = tuple(place[each] for each in own if each in place)
                nodes.append(ForwardNode(len(nodes), call, own, made))
                waiting = ()
        tensors = _apart(_tensors(nodes, names or {}, kinds or {}))
        return cls(tuple(nodes), tensors, tuple(results), backward, left_out)

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[ForwardNode]:
        return iter(self.nodes)

    def __getitem__(self, id: int) -> ForwardNode:  # noqa: A002
        return self.nodes[id]

    def tensor(self, id: int) -> ForwardTensor:  # noqa: A002
        """The tensor of that number in the log; KeyError if the program has none."""
        for each in self.tensors:
            if each.id == id:
                return each
        raise KeyError(f"no tensor of the graph is ${id}.")

    def edges(self) -> Iterator[ForwardEdge]:
        """Every tensor on its way into a call, call by call. A tensor that was written to in place comes from the call
        that wrote to it last.
        """
        maker: dict[int, int] = {}
        wrote: dict[int, int] = {}
        for node in self.nodes:
            call, met = node.call, set()
            for each in call.inputs:
                source = maker.get(each.id)
                views = each.id in call.aliases and not call.mutates
                yield ForwardEdge(source, node.id, each.id, "view" if views else "value")
                writer = wrote.get(each.storage) if each.storage else None
                if writer is not None and writer not in met and (source is None or writer > source):
                    met.add(writer)
                    yield ForwardEdge(writer, node.id, each.id, "memory")
            for each in call.outputs:
                maker[each.id] = node.id
            for id in call.mutates:  # noqa: A001
                maker[id] = node.id
                storage = next(each.storage for each in call.inputs if each.id == id)
                if storage:
                    wrote[storage] = node.id

    def made_by(self) -> dict[int, int]:
        """tensor -> the call that gave it, or wrote to it last."""
        found: dict[int, int] = {}
        for node in self.nodes:
            for id in [*(each.id for each in node.call.outputs), *node.call.mutates]:  # noqa: A001
                found[id] = node.id
        return found

    def rows(self) -> Rows:
        return self._rows(self.nodes)

    def _rows(self, nodes: Sequence[ForwardNode]) -> Rows:
        names = {each.id: each.name for each in self.tensors if each.name}
        in_modules = any(each.call.module for each in self.nodes)
        return [self._row(node, names, in_modules) for node in nodes]

    def _row(self, node: ForwardNode, names: Mapping[int, str], in_modules: bool) -> dict[str, Any]:
        call = node.call
        row: dict[str, Any] = {"#": node.id, "op": node.name}
        row["from"] = ", ".join(names.get(each.id, f"${each.id}") for each in call.inputs)
        row["gives"] = ", ".join(
            f"{names[each.id]} {each.type()}" if each.id in names else str(each) for each in call.outputs
        )
        row["effect"] = call.effect
        if in_modules:
            row["module"] = call.module
        if self.backward is not None:
            row["backward node"] = ", ".join(f"{self.backward[nr].name} {nr}" for nr in node.backward)
        return row

    def caption(self) -> str:
        given = sum(each.kind in ("parameter", "buffer") for each in self.tensors)
        effects = [node.call.effect for node in self.nodes]
        parts = [f"{len(self.nodes):,} operator call{'s' * (len(self.nodes) != 1)}"]
        for effect, one, many in (("view", "view", "views"), ("write", "write in place", "writes in place")):
            if count := effects.count(effect):
                parts.append(f"{count:,} {one if count == 1 else many}")
        if given:
            parts.append(f"{given:,} parameters and buffers")
        if self.backward is not None:
            parts.append(f"{human_bytes(self.backward.saved_bytes())} saved for backward")
        if self.left_out:
            parts.append(f"{self.left_out:,} calls of a backward pass left out")
        return ", ".join(parts)

    def figure(self, **options: Any) -> Svg:
        """The graph as a picture; options are those of glassbox.draw.forward_figure."""
        from ..draw import forward_figure

        return forward_figure(self, **options)

    def _repr_html_(self) -> str:
        rows = self._rows(self.nodes[:SHOWN])
        return self.figure()._repr_html_() + folded_table(rows, self.caption(), len(self.nodes) - SHOWN)


def _apart(tensors: Sequence[ForwardTensor]) -> tuple[ForwardTensor, ...]:
    """Tensors that one variable held in turn, such as x after x = x + 1, keep their numbers beside its name."""
    seen: set[str] = set()
    found = []
    for each in tensors:
        again = each.name in seen
        seen.add(each.name)
        found.append(replace(each, name=f"{each.name} ${each.id}") if again and each.name else each)
    return tuple(found)


def _tensors(
    nodes: Sequence[ForwardNode], names: Mapping[int, str], kinds: Mapping[int, str]
) -> tuple[ForwardTensor, ...]:
    found: dict[int, ForwardTensor] = {}
    for node in nodes:
        call = node.call
        for each in call.inputs:
            if each.id not in found:
                kind = kinds.get(each.id, "outside")
                found[each.id] = ForwardTensor(each, names.get(each.id, ""), kind)
        for each in call.outputs:
            if each.id not in found:
                base = next((i.id for i in call.inputs if i.storage and i.storage == each.storage), None)
                base = found[base].base if base is not None and found[base].base is not None else base
                found[each.id] = ForwardTensor(each, names.get(each.id, ""), "", node.id, base)
    return tuple(found.values())
