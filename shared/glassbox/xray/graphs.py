"""Backward graphs: the nodes behind a tensor, what each keeps, and which variables they belong to
(torch/csrc/autograd/function.h; torch/autograd/graph.py).

The walk goes along next_functions without recursion and holds nodes only while it lasts. Where a node stands among
others follows from its sequence number alone, so the record is the same each time.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import FrameType
from typing import Any

from ..records import Graph, GraphNode
from . import _torch_internals as internals
from ._looking import is_tensor_type, is_torch
from ._names import argument_names
from ._torch_internals import graph as inside
from ._torch_internals.deep_graphs import make_freeable
from ._variables import Names, caller, names_in_scope


def grad_graph(*tensors: Any, names: Mapping[str, Any] | None = None, model: Any = None, **named: Any) -> Graph:
    """The backward graph of one or more tensors: every node that a backward pass from them would run.

    tensors, named   what to start from, torch or mini; called what the caller wrote or by their keyword
    names            names for other tensors, leaves or results: {"h": h}
    model            whose parameters are called by their paths; without one, models among the caller's variables that
                     own a leaf of the graph are found

    The record holds, node by node: name, sequence number, edges with input_nr, shapes of the forward outputs, every
    saved tensor by itself (with bytes, version, whose it is), views, writes through views, hooks on leaves and on
    variables, and the variables' names. It keeps nothing alive and changes nothing: no hook of saved_tensors_hooks is
    called, so what one has packed is described and not opened. Hooks registered on nodes themselves cannot be seen
    from Python.

    A node's module is that of the parameters that it works on; of a node without any it is the innermost module that
    holds both the last node before and the next one after it in the order of creation that have some.

    TypeError for what is no tensor, and for one that no gradient flows through, with the reason; ValueError without
    tensors.
    """
    frame = caller()
    pairs = [*zip(argument_names(frame, tensors), tensors, strict=True), *named.items()]
    if not pairs:
        raise ValueError("grad_graph: there is nothing to start from; pass a tensor such as the loss.")
    for name, tensor in pairs:
        _require_grad_fn(name, tensor)
    kinds = {is_torch(tensor) for _, tensor in pairs}
    if len(kinds) > 1:
        raise TypeError("grad_graph: torch and mini tensors have no graph in common; pass those of one framework.")
    given = [*pairs, *dict(names or {}).items()]
    return graph_of(pairs, given, model, frame)


def graph_of(pairs: Sequence[tuple[str, Any]], given: Iterable[tuple[str, Any]], model: Any, frame: FrameType) -> Graph:
    """grad_graph of named tensors that all have a graph behind them; names are looked for in the frame."""
    return (_of_torch if is_torch(pairs[0][1]) else _of_mini)(pairs, given, model, frame)


def _require_grad_fn(name: str, tensor: Any) -> None:
    if not is_tensor_type(type(tensor)):
        raise TypeError(f"grad_graph: {name} is a {type(tensor).__name__}, no tensor; pass a result such as the loss.")
    with inside.unobserved() if is_torch(tensor) else _Nothing():
        if not tensor.requires_grad:
            reason = _why_none(tensor)
        elif tensor.is_leaf:
            reason = "is a leaf, which a graph ends at and does not begin at; pass something computed from it"
        else:
            return
    raise TypeError(f"grad_graph: {name} {reason}.")


def _why_none(tensor: Any) -> str:
    if is_torch(tensor) and tensor.is_inference():
        return "was made under inference_mode, where no graph is recorded; compute it outside"
    if not (tensor.is_floating_point() or (is_torch(tensor) and tensor.is_complex())):
        return f"holds {str(tensor.dtype).rsplit('.', 1)[-1]}, through which no gradient flows; pass a floating one"
    return (
        "has requires_grad=False, so there is no graph behind it: nothing that it was computed from requires grad, or "
        "it was computed under no_grad, or detached; check those in this order"
    )


class _Nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


# PyTorch


def _of_torch(
    pairs: Sequence[tuple[str, Any]], given: Iterable[tuple[str, Any]], model: Any, frame: FrameType
) -> Graph:
    from ._saved import SavedReader, shape_of, values_of

    with inside.unobserved():
        roots = [(tensor.grad_fn, int(tensor.output_nr), name) for name, tensor in pairs]
        edges = _edges_from([node for node, _, _ in roots])
        order = _in_order(edges)
        make_freeable(order, edges)
        place = {node: nr for nr, node in enumerate(order)}
        variables = {nr: node.variable for node, nr in place.items() if not edges[node] and hasattr(node, "variable")}
        leaves = {id(tensor): nr for nr, tensor in variables.items()}
        names = names_in_scope(frame, given, model, lambda parameter: id(parameter) in leaves)
        reader = SavedReader(names, place, leaves)
        records = []
        for node, nr in place.items():
            leaf = variables.get(nr)
            metadata = inside.input_metadata(node)
            records.append(
                GraphNode(
                    id=nr,
                    name=_name(node),
                    sequence_nr=None if leaf is not None else internals.sequence_nr(node),
                    edges=tuple(None if to is None else (place[to], int(input_nr)) for to, input_nr in edges[node]),
                    outputs=tuple(shape for shape, _, _ in metadata),
                    saved=reader.of(node),
                    leaf=None if leaf is None else shape_of(leaf),
                    kind=_kind(node, leaf),
                    variables=names.of_outputs(node) if leaf is None else _named(names.of(leaf)),
                    module=(names.owner_of(leaf) or "") if leaf is not None else "",
                    dtypes=tuple(dtype for _, dtype, _ in metadata),
                    device=metadata[0][2] if metadata else "",
                    values=values_of(node),
                    notes=_notes(node, leaf, names),
                )
            )
    found = Graph(tuple(records), tuple((place[node], nr, name) for node, nr, name in roots))
    return placed_in_modules(found)


def _edges_from(roots: Iterable[Any]) -> dict[Any, tuple[tuple[Any, int], ...]]:
    """Every node that can be reached, with its next_functions."""
    found: dict[Any, tuple[tuple[Any, int], ...]] = {}
    stack = list(dict.fromkeys(roots))
    while stack:
        node = stack.pop()
        if node not in found:
            found[node] = node.next_functions
            stack += [to for to, _ in found[node] if to is not None and to not in found]
    return found


def _in_order(edges: Mapping[Any, tuple[tuple[Any, int], ...]]) -> list[Any]:
    """The nodes newest first and leaves last; each before those that it points at, whatever thread numbered them."""
    waiting = Counter(to for each in edges.values() for to, _ in each if to is not None)
    tie = {node: nr for nr, node in enumerate(edges)}

    def key(node: Any) -> tuple[bool, int, int, Any]:
        return not edges[node] and hasattr(node, "variable"), -internals.sequence_nr(node), tie[node], node

    ready = [key(node) for node in edges if not waiting[node]]
    heapq.heapify(ready)
    order = []
    while ready:
        node = heapq.heappop(ready)[-1]
        order.append(node)
        for to, _ in edges[node]:
            if to is not None:
                waiting[to] -= 1
                if not waiting[to]:
                    heapq.heappush(ready, key(to))
    return order


def _kind(node: Any, leaf: Any) -> str:
    import torch

    if leaf is not None:
        return "parameter" if isinstance(leaf, torch.nn.Parameter) else "leaf"
    name = _name(node)
    if name == "CopySlices":
        return "write"
    if isinstance(node, torch.autograd.function.FunctionCtx):
        return "checkpoint" if name.startswith("CheckpointFunction") else "custom"
    return "view" if inside.gives_view(name) else ""


def _name(node: Any) -> str:
    return str(node.name()).rpartition("::")[2]


def _named(name: str) -> tuple[tuple[int, str], ...]:
    return ((0, name),) if name else ()


def _notes(node: Any, leaf: Any, names: Names) -> tuple[str, ...]:
    notes = []
    if _name(node) == "CopySlices":
        inner = inside.wrapped_node(node)
        notes.append("a write through a view" + (f", by {_name(inner)}" if inner is not None else ""))
    for tensor in [leaf] if leaf is not None else names.held_outputs(node):
        notes += inside.hooks_on(tensor)
        if internals.is_view(tensor):
            base = names.of(internals.base_of(tensor))
            notes.append(f"a view{f' of {base}' if base else ''}")
    return tuple(notes)


# The mini-framework


def _of_mini(pairs: Sequence[tuple[str, Any]], given: Iterable[tuple[str, Any]], model: Any, frame: FrameType) -> Graph:
    from ..mini.autograd.graph import nodes, ordered_nodes

    order = ordered_nodes(*(tensor for _, tensor in pairs))
    place = {node: nr for nr, node in enumerate(order)}
    leaves = {id(node.variable) for node in order if hasattr(node, "variable")}
    names = names_in_scope(frame, given, model, lambda parameter: id(parameter) in leaves)
    found = nodes(*(tensor for _, tensor in pairs), names=names)
    roots = tuple((place[tensor.grad_fn], int(tensor.output_nr), name) for name, tensor in pairs)
    return placed_in_modules(replace(found, roots=roots))


# Modules

_CASTS = ("ToCopyBackward0", "CloneBackward0")


def placed_in_modules(graph: Graph) -> Graph:
    """The graph with a module for every node, from those that its leaves have."""
    module: dict[int, str | None] = {node.id: node.module or None for node in graph if node.leaf is not None}
    # A parameter's view or cast belongs where the parameter does; what works on either is that module's own work.
    only: set[int] = {nr for nr, path in module.items() if path is not None}
    for node in reversed(graph.nodes):
        if node.leaf is not None:
            continue
        targets = [edge[0] for edge in node.edges if edge is not None]
        owners = [path for path in (module[nr] for nr in targets if nr in only) if path is not None]
        module[node.id] = common(owners) if owners else None
        if owners and len(targets) == 1 and (node.kind == "view" or node.name in _CASTS):
            only.add(node.id)
    if not any(module.values()):
        return graph
    inner = sorted((n for n in graph if n.sequence_nr is not None), key=lambda n: n.sequence_nr or 0)
    before: list[str | None] = []
    for node in inner:
        before.append(module[node.id] or (before[-1] if before else None))
    after: str | None = None
    for node, last in zip(reversed(inner), reversed(before), strict=True):
        after = module[node.id] or after
        if not module[node.id]:
            module[node.id] = common([last, after]) if last and after else ""
    return replace(graph, nodes=tuple(replace(node, module=module[node.id] or "") for node in graph))


def common(paths: Sequence[str]) -> str:
    """The innermost module that holds all the modules of these paths."""
    parts = [path.split(".") for path in paths]
    shared = []
    for names in zip(*parts, strict=False):
        if len(set(names)) > 1:
            break
        shared.append(names[0])
    return ".".join(shared)
