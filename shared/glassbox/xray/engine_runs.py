"""Engine runs: a program forward, then its backward pass node by node (torch/csrc/autograd/engine.cpp).

Of the mini-framework the counts and the queue are those of its GraphTask, as `mini.autograd.graph.steps` shows them.
PyTorch shows neither to Python: there the order and the gradients are what hooks on its nodes saw, and the counts and
the queue are worked out from the graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

from ..records import Graph
from ..records.engine_run import EngineFrame, EngineRun, NodeState
from ._engine_moments import Moment, Walk, as_text, of_mini, of_torch
from .graphs import grad_graph


def engine_run(program: str, lib: Any, **leaves: Any) -> EngineRun:
    """Runs a program and the backward pass from its last result, and records each moment.

    program   lines `name = expression` over the leaves; the last one gives the result, made of one element
    lib       torch or glassbox.mini
    leaves    what each leaf holds: a number or nested lists; floating point, so each one requires a gradient

    ValueError for a program without lines, a line of another form, or a result that no gradient can begin at.
    TypeError for a program that is no text and for another lib; RuntimeError where a block around the call keeps the
    framework from recording a graph.
    """
    lines = _checked(program)
    _check_records(lib)
    scope: dict[str, Any] = {name: lib.tensor(_floats(v), requires_grad=True) for name, v in leaves.items()}
    leaf_names = tuple(scope)
    alive: list[set[Any]] = []
    for line in lines:
        exec(compile(line, "<program>", "exec"), {"lib": lib}, scope)
        alive.append(_reachable(value for value in scope.values() if isinstance(value, lib.Tensor)))
    last = lines[-1].partition("=")[0].strip()
    result = scope[last]
    if not isinstance(result, lib.Tensor):
        raise ValueError(
            f"engine_run: {last} is a {type(result).__name__}, not a tensor; make it of leaves, such as "
            'engine_run("z = a * 2", torch, a=1).'
        )
    if result.grad_fn is None or result.numel() != 1:
        raise ValueError(f"engine_run: {last} must be made of the leaves and have one element, to go backward from.")
    scope = {name: value for name, value in scope.items() if isinstance(value, lib.Tensor)}
    graph = grad_graph(names=scope, **{last: result})
    walk = Walk(graph, _nodes_of(graph, result.grad_fn))
    values = tuple(_value_of(graph, nr, scope) for nr in range(len(graph)))
    saved = tuple(_saved_by(graph, nr, node) for nr, node in enumerate(walk.nodes))
    used = [name for name in leaf_names if any(node.variable == name for node in graph.leaves())]
    frames = [*_forward(walk, used, lines, alive), *_backward(walk, result)]
    grads = tuple((name, as_text(scope[name].grad)) for name in leaf_names if scope[name].grad is not None)
    return EngineRun(tuple(lines), graph, values, saved, (*frames, _end(frames[-1], grads)), grads)


def _floats(value: Any) -> Any:
    return [_floats(each) for each in value] if isinstance(value, list | tuple) else float(value)


def _check_records(lib: Any) -> None:
    """That lib is one of the two, and that it records graphs here and now."""
    name = getattr(lib, "__name__", "")
    if not isinstance(lib, ModuleType) or name not in ("torch", "glassbox.mini"):
        raise TypeError(f"engine_run: lib is the module torch or glassbox.mini, got {lib!r}.")
    short = name.rpartition(".")[2]
    block = f"{short}.inference_mode()" if lib.is_inference_mode_enabled() else f"{short}.no_grad()"
    if lib.is_inference_mode_enabled() or not lib.is_grad_enabled():
        raise RuntimeError(f"engine_run: {block} is on here, so no graph is recorded; call it outside of that block.")


def _checked(program: str) -> list[str]:
    if not isinstance(program, str):
        raise TypeError(f"engine_run: the program is text with lines `name = expression`, got {program!r}.")
    lines = [line.strip() for line in program.strip().splitlines() if line.strip()]
    if not lines:
        raise ValueError("engine_run: the program has no lines.")
    for line in lines:
        if not line.partition("=")[0].strip().isidentifier() or line.partition("=")[2].startswith("="):
            raise ValueError(f"engine_run: {line!r} is not of the form `name = expression`.")
    return lines


def _reachable(tensors: Any) -> set[Any]:
    stack = [t.grad_fn for t in tensors if t.grad_fn is not None]
    found = set(stack)
    while stack:
        for node, _ in stack.pop().next_functions:
            if node is not None and node not in found:
                found.add(node)
                stack.append(node)
    return found


def _nodes_of(graph: Graph, root: Any) -> list[Any]:
    """The node objects in the order of the record, found by going along the same edges in both."""
    found: dict[int, Any] = {graph.roots[0][0]: root}
    stack = list(found)
    while stack:
        nr = stack.pop()
        for edge, (node, _) in zip(graph[nr].edges, found[nr].next_functions, strict=True):
            if edge is not None and edge[0] not in found:
                found[edge[0]] = node
                stack.append(edge[0])
    return [found[nr] for nr in range(len(graph))]


def _value_of(graph: Graph, nr: int, scope: dict[str, Any]) -> str:
    """What the variable behind a node holds; "" for a value that no variable has."""
    return as_text(scope.get(graph[nr].variable))


def _saved_by(graph: Graph, nr: int, node: Any) -> tuple[tuple[str, str, str], ...]:
    return tuple(
        (each.name, each.variable, as_text(getattr(node, f"_saved_{each.name}", None))) for each in graph[nr].saved
    )


# Forward


def _forward(
    walk: Walk, leaves: Sequence[str], lines: Sequence[str], alive: Sequence[set[Any]]
) -> Iterator[EngineFrame]:
    for node in walk.graph.leaves():
        walk.state[node.id] = "made"
    are = "are leaves: no operator made them, and they ask for gradients"
    if len(leaves) == 1:
        are = "is a leaf: no operator made it, and it asks for a gradient"
    yield walk.frame("forward", f"{_listed(leaves)} {are}.")
    for line, there in enumerate(alive):
        new = [nr for nr in range(len(walk.nodes)) if walk.nodes[nr] in there and walk.state[nr] == "absent"]
        for nr in new:
            walk.state[nr] = "made"
        kept = [name for nr in sorted(new, reverse=True) for name in _kept_words(walk, nr)]
        made = [walk.graph[nr].name for nr in sorted(new, reverse=True)]
        edges = sum(len(walk.edges_of(nr)) for nr in new)
        text = f"{_listed(made)} {'is' if len(made) == 1 else 'are'} made, with {'an edge' if edges == 1 else 'edges'} "
        text += "to where the gradients of the inputs will go. "
        text += f"Saved for backward: {_listed(kept)}." if kept else "No tensor is saved."
        if not made:
            text = "Nothing is recorded: no input asks for a gradient."
        yield walk.frame("forward", text, line)


def _kept_words(walk: Walk, nr: int) -> list[str]:
    own = walk.graph[nr].name
    return [each.variable or f"{each.name} of {own}" for each in walk.graph[nr].saved]


# Backward


def _backward(walk: Walk, result: Any) -> Iterator[EngineFrame]:
    counts = [sum(edge[2] == nr for edge in walk.edges) for nr in range(len(walk.nodes))]
    walk.waits = list(counts)
    walk.state = ["waiting" if count else "ready" for count in counts]
    root = walk.graph.roots[0][0]
    yield walk.frame(
        "count",
        "backward() first walks the graph once and counts, for each node, the edges that lead to "
        "it: so many gradients it will wait for.",
    )
    walk.arrived[root] = "1"
    yield walk.frame(
        "backward",
        f"The pass begins with the gradient 1 at {walk.label(root)}, which waits for nothing: it is ready.",
        queue=[root],
    )
    moments = of_torch if "torch" in type(result).__module__ else of_mini
    for moment in moments(walk, result):
        yield _step(walk, moment)


def _step(walk: Walk, moment: Moment) -> EngineFrame:
    nr = moment.node
    before = walk.state
    walk.state = ["done" if each == "running" else each for each in before]
    walk.state[nr], walk.waits[nr] = "running", None
    walk.freed[nr] = bool(walk.graph[nr].saved)
    added = []
    for edge in moment.sent:
        target = walk.edges[edge][2]
        if walk.arrived[target] and target not in added:
            added.append(target)
    for target, count in moment.waits.items():
        walk.waits[target] = count
    for target, grad in moment.arrived.items():
        walk.arrived[target] = grad
    joined = [each for each in moment.waits if each in moment.queue]
    for target in moment.queue:
        walk.state[target] = "ready"
    return walk.frame("backward", _told(walk, moment, joined, added), queue=moment.queue, flows=moment.sent.items())


def _told(walk: Walk, moment: Moment, joined: Sequence[int], added: Sequence[int]) -> str:
    nr = moment.node
    node = walk.graph[nr]
    if node.leaf is not None:
        return f"{walk.label(nr)} runs: {node.variable}.grad is {moment.leaf_grad} now."
    sent = [f"{grad} to {walk.label(walk.edges[edge][2])}" for edge, grad in moment.sent.items()]
    text = f"{walk.label(nr)} runs and hands {_listed(sent)}."
    for target in added:
        text += f" Two paths meet at {walk.label(target)}: the gradients are added up, {walk.arrived[target]}."
    waiting = dict.fromkeys(walk.edges[edge][2] for edge in moment.sent if walk.waits[walk.edges[edge][2]])
    for target in waiting:
        text += f" {walk.label(target)} still waits for {walk.waits[target]}."
    if joined:
        text += f" Ready now: {_listed(list(map(walk.label, joined)))}."
    if node.saved:
        text += " What it had saved is freed."
    return text


def _end(last: EngineFrame, grads: Sequence[tuple[str, str]]) -> EngineFrame:
    nodes = tuple(NodeState("done", None, node.grad, node.freed) for node in last.nodes)
    found = _listed([f"{name}.grad = {grad}" for name, grad in grads])
    text = f"The queue is empty: {found}. "
    if any(node.freed for node in nodes):
        text += "Once more would be refused: what was saved is gone, unless retain_graph=True had kept it."
    else:
        text += "Nothing was saved, so once more is possible: it would add to these."
    return EngineFrame("done", -1, text, nodes)


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else "".join(words)
