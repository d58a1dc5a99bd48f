"""Forward graphs drawn: what goes in, the operator calls, what comes out (PyTorch: torch/fx/passes/graph_drawer.py,
which needs Graphviz).

A view hangs on what it views by a dashed line; a dotted line leads from a write to who sees it through another view.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ..records import ForwardGraph, ForwardNode, ForwardTensor, human_bytes
from ._folding import Run, folded
from ._node_words import COMPACT, TIP_LINES, cut, within
from .graph import LIMIT, RUNS
from .scene import Chip, Link, Part, Places, Scene, picture, places
from .svg import Svg

_CLASSES = {"view": "r4", "write": "r5", "copy": "r2"}
_LEGEND = {
    "r1": "tensor from outside",
    "r0": "operator call",
    "r4": "gives a view",
    "r5": "writes in place",
    "r2": "copies",
    "out": "several calls",
    "r3": "result, backward node",
}
_EFFECTS = {"view": "gives a view", "write": "writes in place", "copy": "copies"}
_READS = {"view": " is viewed", "memory": " was written to, seen through another view"}
_LINES = {"view": "alias", "memory": "memory"}


def forward_figure(graph: ForwardGraph, *, inputs: str = "auto", limit: int = LIMIT, title: str = "") -> Svg:
    """A forward graph as a figure. A view that nobody uses is a chip of the call whose output it views.

    inputs   "nodes": each tensor from outside is a box; "beside": one with one use stands beside its user; "auto": by
             the graph's size
    limit    a larger graph is drawn in runs of calls, by module or by their order, and says so

    In the SVG a call's box has the class c<id>, a backward node's chip n<id>. ValueError for other options.
    """
    return picture(forward_scene(graph, inputs=inputs, limit=limit, title=title))


def forward_layout(graph: ForwardGraph, *, inputs: str = "nodes", limit: int = LIMIT) -> Places:
    """Where `forward_figure` puts boxes ("c<id>", "t<tensor>", "result<nr>", "run<nr>") and arrows, as data."""
    return places(forward_scene(graph, inputs=inputs, limit=limit))


def forward_scene(graph: ForwardGraph, *, inputs: str = "auto", limit: int = LIMIT, title: str = "") -> Scene:
    """The boxes, chips and links of a forward graph."""
    if inputs not in ("auto", "nodes", "beside"):
        raise ValueError(f'forward_figure: inputs {inputs!r} is unknown; use "auto", "nodes" or "beside".')
    if limit < 1:
        raise ValueError(f"forward_figure: a limit of {limit} leaves nothing to draw; use 1 or more.")
    compact = len(graph) >= COMPACT
    plan = _planned(graph, inputs == "beside" or (inputs == "auto" and compact), limit)
    parts = [_tensor_part(plan.tensors[each], plan.module_of[each]) for each in plan.outside]
    parts += [_run_part(plan, run, nr) for nr, run in enumerate(plan.runs)]
    results, result_links = _results(plan)
    caption = graph.caption()
    if any(len(run.nodes) > 1 for run in plan.runs):
        many = f"{len(plan.runs)} box{'es' * (len(plan.runs) != 1)}"
        caption += f". Too many to draw one by one: {many}, each for calls made one after the other"
    return Scene(
        tuple(parts + results),
        tuple(_links(plan) + result_links),
        title or "forward graph",
        _described(graph, caption),
        caption,
        _legend([*parts, *results]),
        dense=compact,
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    graph: ForwardGraph
    tensors: dict[int, ForwardTensor]
    runs: list[Run]
    run_of: dict[int, int]
    # tensors from outside with a box of their own, and the module of the call that uses each first
    outside: list[int]
    module_of: dict[int, str]
    beside: dict[int, list[int]]
    names: dict[int, str]
    # call -> views of its outputs that nobody uses; they are chips of it
    unused: dict[int, list[int]]

    def key(self, node: int) -> str:
        run = self.runs[self.run_of[node]]
        return f"c{node}" if len(run.nodes) == 1 else f"run{self.run_of[node]}"

    def label(self, tensor: int, module: str = "") -> str:
        name = within(self.names.get(tensor, ""), module)
        return f"{name or f'${tensor}'}: {self.tensors[tensor].meta.type()}"


def _planned(graph: ForwardGraph, beside: bool, limit: int) -> _Plan:
    uses: dict[int, list[int]] = defaultdict(list)
    for edge in graph.edges():
        if edge.source is None:
            uses[edge.tensor].append(edge.target)
    unused = _unused_views(graph)
    large = len(graph) > limit
    outside, aside, module_of = [], defaultdict(list), {}
    for tensor, users in uses.items():
        module_of[tensor] = graph[users[0]].call.module
        if (beside or large) and len(users) == 1:
            aside[users[0]].append(tensor)
        else:
            outside.append(tensor)
    put_away = {nr for views in unused.values() for nr in views}
    order = [node.id for node in graph if node.id not in put_away]
    number = {nr: place for place, nr in enumerate(order)}
    modules = [graph[nr].call.module for nr in order]
    links = [(e.source, e.target) for e in graph.edges() if e.source is not None and e.target in number]
    alone = [Run((place,), module) for place, module in enumerate(modules)]
    found = folded(modules, [(number[a], number[b]) for a, b in links], min(limit, RUNS)) if large else alone
    runs = [Run(tuple(order[place] for place in run.nodes), run.module) for run in found]
    run_of = {nr: place for place, run in enumerate(runs) for nr in run.nodes}
    tensors = {each.id: each for each in graph.tensors}
    names = {each.id: each.name for each in graph.tensors if each.name}
    return _Plan(graph, tensors, runs, run_of, outside, module_of, aside, names, unused)


def _unused_views(graph: ForwardGraph) -> dict[int, list[int]]:
    """Per call the views of its outputs that lead nowhere, such as those by which autograd keeps a result."""
    used = {edge.source for edge in graph.edges()}
    maker = graph.made_by()
    used |= {maker.get(tensor) for tensor, _ in graph.results}
    found: dict[int, list[int]] = defaultdict(list)
    for edge in graph.edges():
        target = graph[edge.target]
        alone = len(target.call.inputs) == 1 and not target.backward and target.id not in used
        if edge.kind == "view" and edge.source is not None and alone:
            found[edge.source].append(target.id)
    return found


def _tensor_part(tensor: ForwardTensor, module: str) -> Part:
    name = tensor.name or f"${tensor.id}"
    tip = f"{tensor} {tensor.meta.device}, {human_bytes(tensor.meta.nbytes)}, {tensor.kind}"
    # A parameter stands in the frame of the module that uses it.
    held = module if tensor.kind in ("parameter", "buffer") else ""
    return Part(
        f"t{tensor.id}", cut(name, 44), "r1", (tensor.meta.type(),), tip=tip, classes=f"t{tensor.id}", module=held
    )


def _run_part(plan: _Plan, run: Run, nr: int) -> Part:
    if len(run.nodes) == 1:
        return _call_part(plan, plan.graph[run.nodes[0]])
    nodes = [plan.graph[each] for each in run.nodes]
    counts = Counter(node.name for node in nodes).most_common()
    title = run.module or f"calls {run.nodes[0]:,} to {run.nodes[-1]:,}"
    lines = [f"{len(nodes):,} calls", *(cut(f"{name} x {count:,}", 40) for name, count in counts[:2])]
    tip = "\n".join([title, *(f"{name} x {count:,}" for name, count in counts[:TIP_LINES])])
    return Part(f"run{nr}", cut(title, 44), "out", tuple(lines), tip=tip, classes="run", module=run.module)


def _call_part(plan: _Plan, node: ForwardNode) -> Part:
    call = node.call
    lines = [cut(plan.label(each.id, call.module), 44) for each in call.outputs[:2]]
    if len(call.outputs) > 2:
        lines.append(f"and {len(call.outputs) - 2} more")
    return Part(
        key=f"c{node.id}",
        title=cut(node.name, 44),
        cls=_CLASSES.get(call.effect, "r0"),
        lines=tuple(lines),
        chips=_backward_chips(plan.graph, node) + tuple(_view_chip(plan, nr) for nr in plan.unused.get(node.id, [])),
        beside=tuple(_beside_chip(plan.tensors[each], call.module) for each in plan.beside.get(node.id, [])),
        tip=_tip(plan, node),
        classes=f"c{node.id}",
        module=call.module,
    )


def _backward_chips(graph: ForwardGraph, node: ForwardNode) -> tuple[Chip, ...]:
    if graph.backward is None:
        return ()
    found = []
    for nr in node.backward:
        made = graph.backward[nr]
        kept = f" keeps {human_bytes(made.nbytes)}" if made.nbytes else ""
        tip = "\n".join([f"{made.name} (backward node {nr})", *map(str, made.saved[:TIP_LINES])])
        found.append(Chip(cut(made.name + kept, 48), "r3", tip, f"n{nr}"))
    return tuple(found)


def _view_chip(plan: _Plan, nr: int) -> Chip:
    node = plan.graph[nr]
    return Chip(cut(f"{node.name}, unused", 40), "r4", _tip(plan, node), f"c{nr}")


def _beside_chip(tensor: ForwardTensor, module: str) -> Chip:
    name = within(tensor.name, module) or f"${tensor.id}"
    if tensor.kind in ("parameter", "buffer"):
        name = ".".join(name.split(".")[-2:])
    return Chip(cut(f"{name} {list(tensor.meta.shape)}", 40), "r1", str(tensor), f"t{tensor.id}")


def _tip(plan: _Plan, node: ForwardNode) -> str:
    call = node.call
    lines = [str(call)]
    lines += [f"{label}: {value}" for label, value in (("module", call.module), ("line", call.place)) if value]
    if call.effect != "fresh":
        lines.append(
            {"view": "gives a view", "write": "writes in place", "copy": "copies"}.get(call.effect, call.effect)
        )
    for each in call.outputs:
        base = plan.tensors[each.id].base
        if base is not None and base != each.id:
            lines.append(f"{plan.label(each.id)} lies in the memory of {plan.label(base)}")
    if plan.graph.backward is not None:
        lines += [f"backward node: {plan.graph.backward[nr].name} {nr}" for nr in node.backward]
    return "\n".join(lines)


def _links(plan: _Plan) -> list[Link]:
    found: list[Link] = []
    merged: Counter[tuple[str, str]] = Counter()
    shown = set(plan.outside)
    # One port per tensor, so that one that is used often is one line that branches.
    ports: dict[int, int] = {}
    for edge in plan.graph.edges():
        if edge.target not in plan.run_of or (edge.source is None and edge.tensor not in shown):
            continue
        ends = f"t{edge.tensor}" if edge.source is None else plan.key(edge.source), plan.key(edge.target)
        if ends[0] == ends[1]:
            continue
        if any(end.startswith("run") for end in ends):
            merged[ends] += 1
            continue
        port = ports.setdefault(edge.tensor, len(ports)) if edge.source is not None else 0
        tip = plan.label(edge.tensor) + _READS.get(edge.kind, "")
        found.append(Link(*ends, port=port, cls=_LINES.get(edge.kind, ""), tip=tip))
    return found + [Link(*ends, tip=f"{count:,} tensor{'s' * (count != 1)}") for ends, count in merged.items()]


def _results(plan: _Plan) -> tuple[list[Part], list[Link]]:
    maker = plan.graph.made_by()
    parts, links = [], []
    for nr, (tensor, name) in enumerate(plan.graph.results):
        if tensor not in plan.tensors:
            continue
        kind = plan.tensors[tensor].meta.type()
        parts.append(Part(f"result{nr}", cut(name, 44), "r3", (kind,), tip=f"{name}: {kind}", classes="result"))
        source = plan.key(maker[tensor]) if tensor in maker else f"t{tensor}"
        if tensor in maker or tensor in plan.outside:
            links.append(Link(source, f"result{nr}", tip=plan.label(tensor)))
    return parts, links


def _legend(parts: Sequence[Part]) -> tuple[tuple[str, str], ...]:
    boxes = {part.cls for part in parts} | {chip.cls for part in parts for chip in (*part.beside, *part.chips)}
    return tuple((cls, label) for cls, label in _LEGEND.items() if cls in boxes)


def _described(graph: ForwardGraph, caption: str) -> str:
    if len(graph) > COMPACT:
        counts = Counter(node.name for node in graph).most_common(8)
        return f"{caption}. Most frequent: " + ", ".join(f"{name} {count:,} times" for name, count in counts) + "."
    return ". ".join([caption, *(str(node.call) for node in graph)])
