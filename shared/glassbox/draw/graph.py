"""Backward graphs drawn: leaves, nodes with what they keep, and the results (torch/csrc/autograd/function.h).

The drawing flows as the forward pass did, from the leaves down to the loss; direction="backward" turns it round, and
the arrows then show where gradients go.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ..records import Graph, GraphNode, human_bytes
from ._folding import Run, folded
from ._node_words import (
    COLOURS,
    COMPACT,
    KEPT_LEGEND,
    TIP_LINES,
    cut,
    described,
    kept_chips,
    node_tip,
    output_type,
    output_types,
    within,
)
from .scene import Chip, Link, Part, Places, Scene, picture, places
from .svg import Svg

# So many nodes are drawn one by one; of more, no more than so many runs.
LIMIT, RUNS = 600, 150

_CLASSES = {"view": "r4", "write": "r5", "custom": "r2", "checkpoint": "r2", "leaf": "r1", "parameter": "r1"}
_LEGEND = {
    "r1": "leaf",
    "r0": "operator's node",
    "r4": "view",
    "r5": "write through a view",
    "r2": "autograd.Function",
    "out": "several nodes",
    "r3": "result",
}


def graph_figure(
    graph: Graph, *, direction: str = "forward", leaves: str = "auto", limit: int = LIMIT, title: str = ""
) -> Svg:
    """A backward graph as a figure.

    direction  "forward": from the leaves down to the results; "backward": from the results down, as gradients flow
    leaves     "nodes": each a box; "beside": a leaf with one use stands beside its user; "auto": by the graph's size
    limit      a larger graph is drawn in runs of nodes, by module or by the order of creation, and says so

    In the SVG a node's box or chip has the class n<id>, a box also data-node="n<id>". ValueError for other options.
    """
    return picture(graph_scene(graph, direction=direction, leaves=leaves, limit=limit, title=title))


def graph_layout(graph: Graph, *, direction: str = "forward", leaves: str = "nodes", limit: int = LIMIT) -> Places:
    """Where `graph_figure` puts boxes ("n<id>", "root<nr>", "run<nr>") and arrows, as data."""
    return places(graph_scene(graph, direction=direction, leaves=leaves, limit=limit))


def graph_scene(
    graph: Graph, *, direction: str = "forward", leaves: str = "auto", limit: int = LIMIT, title: str = ""
) -> Scene:
    """The boxes, chips and links of a backward graph."""
    if direction not in ("forward", "backward"):
        raise ValueError(f'graph_figure: direction {direction!r} is unknown; use "forward" or "backward".')
    if leaves not in ("auto", "nodes", "beside"):
        raise ValueError(f'graph_figure: leaves {leaves!r} is unknown; use "auto", "nodes" or "beside".')
    if limit < 1:
        raise ValueError(f"graph_figure: a limit of {limit} leaves nothing to draw; use 1 or more.")
    compact = len(graph) - len(graph.leaves()) >= COMPACT
    plan = _planned(graph, leaves == "beside" or (leaves == "auto" and compact), limit)
    parts = [_part(plan, run, nr, compact) for nr, run in enumerate(plan.runs)]
    roots = _root_parts(graph)
    links = _links(plan) + _root_links(plan, graph)
    caption = graph.caption()
    if any(len(run.nodes) > 1 for run in plan.runs):
        many = f"{len(plan.runs)} box{'es' * (len(plan.runs) != 1)}"
        caption += f". Too many to draw one by one: {many}, each for nodes made one after the other"
    name = ", ".join(name for _, _, name in graph.roots)
    return Scene(
        tuple(parts + roots),
        tuple(links),
        title or (f"backward graph of {name}" if name else "backward graph"),
        described(graph, caption),
        caption,
        _legend([*parts, *roots]),
        direction == "backward",
        compact,
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is drawn as what: the runs, which run a node is in, which leaves stand beside which node."""

    graph: Graph
    runs: list[Run]
    run_of: dict[int, int]
    beside: dict[int, list[GraphNode]]

    def key(self, node: int) -> str:
        run = self.runs[self.run_of[node]]
        return f"n{run.nodes[0]}" if len(run.nodes) == 1 else f"run{self.run_of[node]}"


def _planned(graph: Graph, beside: bool, limit: int) -> _Plan:
    uses: dict[int, list[int]] = defaultdict(list)
    for source, _, target, _ in graph.edges():
        uses[target].append(source)
    large = len(graph) > limit
    aside: dict[int, list[GraphNode]] = defaultdict(list)
    inner: list[int] = []
    module = {node.id: node.module for node in graph}
    for node in reversed(graph.nodes):
        if node.leaf is not None and (beside or large) and len(uses[node.id]) == 1:
            aside[uses[node.id][0]].append(node)
        elif node.leaf is None:
            inner.append(node.id)
    # A leaf with a box of its own is drawn as if it had been made just before its first use.
    put_aside = {leaf.id for leaves in aside.values() for leaf in leaves}
    kept = [node for node in graph.leaves() if node.id not in put_aside]
    first_use = defaultdict(list)
    for node in kept:
        first_use[max(uses[node.id], default=-1)].append(node.id)
    order: list[int] = list(first_use.get(-1, []))
    for nr in inner:
        order += [*first_use.get(nr, []), nr]
    number = {nr: place for place, nr in enumerate(order)}
    links = [(number[to], number[source]) for source, _, to, _ in graph.edges() if to in number and source in number]
    if large:
        found = folded([module[nr] for nr in order], links, min(limit, RUNS))
    else:
        found = [Run((place,), module[nr]) for place, nr in enumerate(order)]
    runs = [Run(tuple(order[place] for place in run.nodes), run.module) for run in found]
    run_of = {nr: place for place, run in enumerate(runs) for nr in run.nodes}
    return _Plan(graph, runs, run_of, aside)


def _part(plan: _Plan, run: Run, nr: int, compact: bool) -> Part:
    if len(run.nodes) > 1:
        return _run_part(plan, run, nr)
    node = plan.graph[run.nodes[0]]
    if node.leaf is not None:
        return _leaf_part(node)
    into = [edge[0] for edge in node.edges if edge is not None]
    leaves = sorted(plan.beside.get(node.id, []), key=lambda leaf: into.index(leaf.id))
    names = {name for id, _, name in plan.graph.roots if id == node.id}  # noqa: A001
    held = [name for _, name in node.variables if name not in names]
    shape = output_types(node)
    lines = [f"{', '.join(dict.fromkeys(held))}: {shape}" if held and shape else shape or ", ".join(held)]
    if node.notes and not compact:
        lines += node.notes
    return Part(
        key=f"n{node.id}",
        title=node.name,
        cls=_CLASSES.get(node.kind, "r0"),
        lines=tuple(cut(line, 44) for line in lines if line),
        chips=kept_chips(node, compact),
        beside=tuple(_leaf_chip(leaf, node.module) for leaf in leaves),
        tip=node_tip(node),
        classes=f"n{node.id}",
        open=0 if compact else sum(edge is None for edge in node.edges),
        module=node.module,
    )


def _leaf_part(node: GraphNode) -> Part:
    name = node.variable or ("parameter" if node.kind == "parameter" else "leaf")
    lines = [output_types(node), *node.notes]
    return Part(
        key=f"n{node.id}",
        title=cut(name, 44),
        cls="r1",
        lines=tuple(cut(line, 44) for line in lines if line),
        tip=node_tip(node),
        classes=f"n{node.id}",
        module=node.module,
    )


def _leaf_chip(leaf: GraphNode, module: str) -> Chip:
    name = within(leaf.variable, module) or "leaf"
    if leaf.module:
        name = ".".join(name.split(".")[-2:])
    shape = list(leaf.leaf or ())
    return Chip(cut(f"{name} {shape}", 40), "r1", node_tip(leaf), f"n{leaf.id}")


def _run_part(plan: _Plan, run: Run, nr: int) -> Part:
    nodes = [plan.graph[each] for each in run.nodes]
    leaves = [leaf for each in run.nodes for leaf in plan.beside.get(each, [])]
    leaves += [node for node in nodes if node.leaf is not None]
    inner = [node for node in nodes if node.leaf is None]
    counts = Counter(node.name for node in inner).most_common()
    numbers = [node.sequence_nr for node in inner if node.sequence_nr is not None]
    title = run.module or (f"#{min(numbers):,} to #{max(numbers):,}" if numbers else f"{len(leaves):,} leaves")
    lines = [f"{len(inner):,} node{'s' * (len(inner) != 1)}"]
    if leaves:
        lines[0] += f", {len(leaves):,} lea{'f' if len(leaves) == 1 else 'ves'}"
    lines += [cut(f"{name} x {count:,}" if count > 1 else name, 40) for name, count in counts[:2]]
    kept = sum(node.nbytes for node in inner)
    chips = (Chip(human_bytes(kept), "hot", "kept for backward, what is kept twice counted twice"),) if kept else ()
    tip = "\n".join([title, *(f"{name} x {count:,}" for name, count in counts[:TIP_LINES])])
    return Part(f"run{nr}", cut(title, 44), "out", tuple(lines), chips, tip=tip, classes="run", module=run.module)


def _root_parts(graph: Graph) -> list[Part]:
    found = []
    for nr, (id, output_nr, name) in enumerate(graph.roots):  # noqa: A001
        kind = output_type(graph[id], output_nr)
        tip = f"{name}: {kind}, output {output_nr} of {graph[id].name}"
        found.append(Part(f"root{nr}", cut(name, 44), "r3", (kind,) if kind else (), tip=tip, classes="root"))
    return found


def _links(plan: _Plan) -> list[Link]:
    """Links between boxes; of several between two runs one, which says how many."""
    found: list[Link] = []
    merged: Counter[tuple[str, str]] = Counter()
    for source, nr, target, input_nr in plan.graph.edges():
        if target not in plan.run_of:
            continue
        ends = plan.key(target), plan.key(source)
        if ends[0] == ends[1]:
            continue
        if not (ends[0].startswith("n") and ends[1].startswith("n")):
            merged[ends] += 1
            continue
        user, maker = plan.graph[source], plan.graph[target]
        tip = f"gradient {nr} of {user.name} (node {source}) goes to {maker.name} (node {target}), input {input_nr}"
        found.append(Link(*ends, port=input_nr, tip=tip))
    for ends, count in merged.items():
        found.append(Link(*ends, tip=f"{count:,} edge{'s' * (count != 1)}"))
    return found


def _root_links(plan: _Plan, graph: Graph) -> list[Link]:
    return [
        Link(plan.key(id), f"root{nr}", port=output_nr, tip=f"output {output_nr} of {graph[id].name}")
        for nr, (id, output_nr, _) in enumerate(graph.roots)  # noqa: A001
    ]


def _legend(parts: Sequence[Part]) -> tuple[tuple[str, str], ...]:
    boxes = {part.cls for part in parts} | {chip.cls for part in parts for chip in part.beside}
    chips = {cls for part in parts for chip in part.chips for cls in chip.cls.split()}
    found = [(cls, label) for cls, label in _LEGEND.items() if cls in boxes]
    kept = [(f"{COLOURS.get(cls, cls)} {cls} chip", label) for cls, label in KEPT_LEGEND.items() if cls in chips]
    return tuple(found + kept)
