"""Words for backward nodes: chips for what one keeps, lines about it (torch/csrc/autograd/saved_variable.h)."""

from __future__ import annotations

from collections import Counter

from ..records import DTYPE_LETTERS, Graph, GraphNode, SavedTensor, human_bytes
from .scene import Chip

# From so many on, leaves stand beside what uses them, and what is kept is dots and a sum.
COMPACT = 26
TIP_LINES = 24

KEPT_LEGEND = {
    "hot": "keeps a result or input",
    "kept-leaf": "keeps a leaf",
    "kept-other": "keeps a constant",
    "kept-packed": "packed by a hook",
    "gone": "freed",
    "bad": "changed since",
}
# A chip's colours: those of boxes, told apart by what they mean.
COLOURS = {"kept-leaf": "r1", "kept-other": "out", "kept-packed": "r2", "gone": "out gone"}


def kept_chips(node: GraphNode, compact: bool) -> tuple[Chip, ...]:
    if not node.saved:
        return ()
    if compact and len(node.saved) > 1:
        dots = [Chip("", _colours(saved), str(saved)) for saved in node.saved[:12]]
        more = f"+{len(node.saved) - 12} " if len(node.saved) > 12 else ""
        total = more + human_bytes(node.nbytes)
        return (*dots, Chip(total, "plain", "\n".join(map(str, node.saved[:TIP_LINES]))))
    shown = node.saved if len(node.saved) <= 6 else node.saved[:5]
    chips = [Chip(_chip_text(saved), _colours(saved), str(saved)) for saved in shown]
    if len(node.saved) > len(shown):
        rest = node.saved[len(shown) :]
        chips.append(Chip(f"{len(rest)} more", "plain", "\n".join(map(str, rest[:TIP_LINES]))))
    return tuple(chips)


def _chip_text(saved: SavedTensor) -> str:
    after = {"freed": "freed", "packed": "packed"}.get(saved.state) or human_bytes(saved.nbytes)
    return cut(f"{saved.name} {after}{', changed' if saved.state == 'changed' else ''}", 34)


def _meaning(saved: SavedTensor) -> str:
    """What a saved tensor's colours say."""
    state = {"freed": "gone", "packed": "kept-packed", "changed": "bad"}.get(saved.state)
    if state:
        return state
    return {"leaf": "kept-leaf", "parameter": "kept-leaf", "constant": "kept-other"}.get(saved.kind, "hot")


def _colours(saved: SavedTensor) -> str:
    meaning = _meaning(saved)
    return f"{COLOURS.get(meaning, meaning)} {meaning}"


def output_types(node: GraphNode) -> str:
    """The types of a node's forward outputs: "f32[3, 4]", "4 x f32[]"."""
    types = [output_type(node, nr) for nr in range(len(node.outputs))]
    if len(types) > 1 and len(set(types)) == 1:
        return f"{len(types)} x {types[0]}"
    if len(types) > 2:
        return f"{types[0]} and {len(types) - 1} more"
    return ", ".join(types)


def output_type(node: GraphNode, nr: int) -> str:
    if nr >= len(node.outputs):
        return ""
    dtype = node.dtypes[nr] if nr < len(node.dtypes) else ""
    return f"{DTYPE_LETTERS.get(dtype, dtype)}{list(node.outputs[nr])}"


def node_tip(node: GraphNode) -> str:
    """All that is known of a node, line by line."""
    number = "" if node.sequence_nr is None else f", number {node.sequence_nr}"
    lines = [f"{node.name} (node {node.id}{number})"]
    lines += [f"{label}: {value}" for label, value in (("module", node.module), ("variable", node.variable)) if value]
    if node.outputs:
        lines.append(f"{'leaf' if node.leaf is not None else 'output'}: {output_types(node)} {node.device}".rstrip())
    lines += [f"keeps {saved}" for saved in node.saved[:TIP_LINES]]
    if len(node.saved) > TIP_LINES:
        lines.append(f"keeps {len(node.saved) - TIP_LINES} tensors more")
    lines += [f"keeps {name} = {value}" for name, value in node.values[:TIP_LINES]]
    lines += [f"gradient {nr}: none is wanted" for nr, edge in enumerate(node.edges) if edge is None]
    return "\n".join([*lines, *node.notes])


def described(graph: Graph, caption: str) -> str:
    """The text alternative: the whole graph where it is small, what is most in it where it is not."""
    if len(graph) > COMPACT:
        counts = Counter(node.name for node in graph if node.leaf is None).most_common(8)
        return f"{caption}. Most frequent: " + ", ".join(f"{name} {count:,} times" for name, count in counts) + "."
    said = []
    for node in graph:
        label = f"{node.name}{f' of {node.variable}' if node.variable else ''}"
        targets = ", ".join(f"{graph[edge[0]].name} {edge[0]}" for edge in node.edges if edge is not None)
        kept = f" keeping {', '.join(each.name for each in node.saved)}" if node.saved else ""
        said.append(f"{node.id} is {label}{kept}{f', leading to {targets}' if targets else ''}")
    return f"{caption}. {'; '.join(said)}." if said else caption


def within(name: str, module: str) -> str:
    """A name as it is said in a module whose path it begins with."""
    return name.removeprefix(f"{module}.") if module else name


def cut(line: str, count: int) -> str:
    return line if len(line) <= count else f"{line[: count - 1]}…"
