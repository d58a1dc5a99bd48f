"""Forward graphs: the operator calls of a program as a graph, each with the backward nodes that were made for it
(PyTorch: torch/fx/experimental/proxy_tensor.py traces instead; torch/autograd/graph.py).

The link is the counter that numbers backward nodes: autograd makes a node before the call reaches a dispatch mode, so
the last number given out by then is the call's own; numbers given out after it, as by a write through a view, belong to
the call before. Between two calls nothing else makes nodes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import FrameType
from typing import Any

from ..records import ForwardGraph, Graph
from ._looking import is_tensor_type
from ._names import argument_names
from ._variables import Names, caller, names_in_scope
from ._which import over_mini, require_eager


def forward_graph(fn: Any, /, *args: Any, **kwargs: Any) -> ForwardGraph:
    """Runs fn(*args, **kwargs) once and gives its operator calls as a graph, in the order in which they ran.

    fn   a function or a module, of PyTorch or of the mini-framework

    Tensors have the names of the caller's variables, of fn's own variables at the time of a call, and of parameters,
    by their paths in fn or in the models among the caller's variables. An edge says whether a call reads a tensor,
    views it, or sees what was written to its memory through another view. Where gradients are recorded, each call is
    tied to the backward nodes made for it, and `backward` is the graph behind the results, as grad_graph gives it, its
    modules being those that really ran.

    What is seen is what a dispatch mode sees: see op_log. fn runs as it would without this, in the grad mode that is
    on; what it does to anything else, such as running statistics, stays done. Calls of a backward pass that fn makes
    are counted and left out. Whatever fn raises comes through.

    TypeError if fn cannot be called, ValueError for what torch.compile made.
    """
    if not callable(fn):
        raise TypeError(
            f"forward_graph: {type(fn).__name__} cannot be called; give a function or a module, then its arguments."
        )
    require_eager(fn, "forward_graph")
    frame = caller()
    labels = argument_names(frame, (fn, *args))[1:]
    given = [*_tensors_in(zip(labels, args, strict=True)), *_tensors_in(kwargs.items())]
    if over_mini(fn, args, kwargs):
        return _of_mini(fn, args, kwargs, given, frame)
    return _of_torch(fn, args, kwargs, given, frame)


def _tensors_in(pairs: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Tensors by name, those in lists, tuples and dicts too: "batch[0]"."""
    for name, value in pairs:
        if is_tensor_type(type(value)):
            yield name, value
        elif depth < 4 and isinstance(value, (list, tuple)):
            yield from _tensors_in([(f"{name}[{nr}]", each) for nr, each in enumerate(value)], depth + 1)
        elif depth < 4 and isinstance(value, Mapping):
            yield from _tensors_in([(f"{name}[{key!r}]", each) for key, each in value.items()], depth + 1)


class Gathered:
    """Names and kinds of tensors by their number in a log, the first name given staying."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.kinds: dict[int, str] = {}

    def add(self, number: int, name: str, kind: str = "") -> None:
        if name:
            self.names.setdefault(number, name)
        if kind:
            self.kinds.setdefault(number, kind)


def _of_torch(fn: Any, args: Any, kwargs: Any, given: Sequence[tuple[str, Any]], frame: FrameType) -> ForwardGraph:
    import torch

    from ._forward_log import NumberedLogger

    model = fn if isinstance(fn, torch.nn.Module) else getattr(fn, "__self__", None)
    model = model if isinstance(model, torch.nn.Module) else None
    scope = names_in_scope(frame, given, model)
    logger = NumberedLogger(model)
    found = Gathered()
    with logger:
        result = fn(*args, **kwargs)
        # Tensors have numbers only while the log is on.
        results = list(_tensors_in([("result", result)]))
        labelled = [(logger.number_of(tensor), name) for name, tensor in results]
        for name, tensor in given:
            # A variable says more than an expression, so such a name waits for what fn calls it.
            found.add(logger.number_of(tensor), name if name.isidentifier() else "", "argument")
        for name, tensor in scope.held(torch.Tensor):
            if scope.owner_of(tensor) is not None:
                kind = "parameter" if isinstance(tensor, torch.nn.Parameter) else "buffer"
                found.add(logger.number_of(tensor), name, kind)
        for number, name in logger.variables.items():
            found.add(number, name)
        for name, tensor in scope.held(torch.Tensor):
            found.add(logger.number_of(tensor), name)
        for name, tensor in given:
            found.add(logger.number_of(tensor), name.lstrip("$0123456789"))
    log = logger.ops
    with_grad = [(name, tensor) for name, tensor in results if tensor.grad_fn is not None]
    graph = None
    if with_grad:
        from .graphs import graph_of

        graph = graph_of(with_grad, given, model, frame)
        graph = in_modules(graph, [(numbers, call.module) for numbers, call in zip(logger.numbers, log, strict=True)])
    return ForwardGraph.of_log(log, found.names, found.kinds, logger.numbers, labelled, graph)


def in_modules(graph: Graph, ran: Sequence[tuple[Sequence[int], str]]) -> Graph:
    """The graph with the module of each node that was made for a call: pairs of sequence numbers and the module."""
    module = {number: path for numbers, path in ran for number in numbers}
    nodes = (
        node if node.sequence_nr is None else replace(node, module=module.get(node.sequence_nr, node.module))
        for node in graph
    )
    return replace(graph, nodes=tuple(nodes))


def _of_mini(fn: Any, args: Any, kwargs: Any, given: Sequence[tuple[str, Any]], frame: FrameType) -> ForwardGraph:
    mini = sys.modules["glassbox.mini"]
    model = fn if hasattr(fn, "named_modules") else None
    scope: Names = names_in_scope(frame, given, model)
    with mini.record() as recorder:
        result = fn(*args, **kwargs)
    log, found = recorder.ops, Gathered()
    for name, tensor in given:
        found.add(recorder.number_of(tensor), name if name.isidentifier() else "", "argument")
    for name, tensor in scope.held(mini.Tensor):
        owned = scope.owner_of(tensor) is not None
        found.add(recorder.number_of(tensor), name, "parameter" if owned else "")
    for name, tensor in given:
        found.add(recorder.number_of(tensor), name.lstrip("$0123456789"))
    results = list(_tensors_in([("result", result)]))
    labelled = [(recorder.number_of(tensor), name) for name, tensor in results]
    with_grad = [(name, tensor) for name, tensor in results if tensor.requires_grad and not tensor.is_leaf]
    graph = None
    if with_grad:
        from .graphs import graph_of

        graph = graph_of(with_grad, given, model, frame)
    return ForwardGraph.of_log(log, found.names, found.kinds, (), labelled, graph)
