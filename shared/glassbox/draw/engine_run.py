"""The backward graph at a moment of an engine run (torch/csrc/autograd/engine.cpp).

Leaves are above and the result is below, as the forward made them; an arrow shows where a gradient will go. What
changes from moment to moment are classes and a few texts, so a browser that has one picture can show them all:

    g.node[data-node="n<id>"]    class is-<state>; inside .waits and .grad hold text, .saved has the class gone if freed
    g.link[data-edge="<nr>"]     class is-absent or is-lit; inside .flow holds the gradient
"""

from __future__ import annotations

from collections.abc import Sequence

from ..records.engine_run import EngineFrame, EngineRun, NodeState
from . import scene as s
from .layered import Point, path_data
from .scene import Chip, Link, Part, Scene, places
from .svg import Svg, esc, num, rect, text

_CHIP_ROW, _LINE = 21.0, 15.0
_BELOW = 34.0
_FLOW = 10.5

RULES = (
    "@FIG@ .edge{fill:none;stroke:var(--gb-out-ink);stroke-width:1.4}@FIG@ .head{fill:var(--gb-out-ink)}"
    "@FIG@ .is-lit .edge{stroke:var(--gb-lit);stroke-width:2.6}@FIG@ .is-lit .head{fill:var(--gb-lit)}"
    "@FIG@ .flow{font-weight:600;paint-order:stroke;stroke:var(--gb-ground,var(--gb-panel));stroke-width:4}"
    "@FIG@ .link:not(.is-lit) .flow{display:none}@FIG@ .is-absent{visibility:hidden}"
    "@FIG@ .grad{font-weight:600}"
    "@FIG@ .node{--f:var(--gb-r0);--e:var(--gb-r0-line);--t:var(--gb-ink)}"
    "@FIG@ .node.leaf{--f:var(--gb-r1);--e:var(--gb-r1-line)}"
    "@FIG@ .node.is-ready{--e:var(--gb-lit);--w:2.75}"
    "@FIG@ .node.is-running{--f:var(--gb-hot);--e:var(--gb-hot-line);--t:var(--gb-hot-ink);--w:2.25}"
    "@FIG@ .node.is-done{--f:var(--gb-out);--e:var(--gb-out-line)}"
    "@FIG@ .saved>rect{fill:var(--gb-r3);stroke:var(--gb-r3-line)}@FIG@ .saved>text{fill:var(--gb-ink)}"
    "@FIG@ .saved.gone>rect{fill:none;stroke:var(--gb-out-ink);stroke-dasharray:3 2}"
    "@FIG@ .saved.gone>text{fill:var(--gb-muted);text-decoration:line-through}"
    "@FIG@ .node.is-running .saved.gone>text{fill:var(--gb-hot-ink)}"
    "@FIG@ .badge circle{fill:var(--gb-ink)}@FIG@ .badge text{fill:var(--gb-panel);font-weight:600}"
    "@FIG@ .badge.none{visibility:hidden}"
)


def engine_run_figure(run: EngineRun, at: int = -1) -> Svg:
    """The graph of a run at one of its frames; IndexError for a frame that it has not."""
    frame = run.frames[at]
    scene = _scene(run)
    found = places(scene)
    shift = 14.0 - min(y for _, y, _, _ in found.boxes.values())
    body = []
    edges = list(run.graph.edges())
    for nr, points in enumerate(found.links):
        upwards = [(x, y + shift) for x, y in reversed(points)]
        source = edges[nr][0]
        flow = dict(frame.flows).get(nr, "")
        absent = frame.nodes[source].state == "absent"
        body.append(_link(nr, upwards, flow, absent, _on_the_left(edges, found.links, nr)))
    for node, state in zip(run.graph, frame.nodes, strict=True):
        x, y, w, h = found.boxes[f"n{node.id}"]
        body.append(_node(run, node.id, state, (x, y + shift, w, h)))
    height = max(y + h for _, y, _, h in found.boxes.values()) + shift + _BELOW / 2
    return Svg(
        found.width, height, f"engine run of {'; '.join(run.program)}", described(run, frame), "".join(body), RULES
    )


def described(run: EngineRun, frame: EngineFrame) -> str:
    """The moment in words: what happens, then each node that is there."""
    said = [frame.text]
    for node, state in zip(run.graph, frame.nodes, strict=True):
        if state.state != "absent":
            waits = f", waits for {state.waits}" if state.waits else ""
            grad = f", gradient {state.grad}" if state.grad else ""
            said.append(f"{run.label(node.id)}: {state.state}{waits}{grad}.")
    return " ".join(said)


def _scene(run: EngineRun) -> Scene:
    """Boxes that have room for all that will ever stand in them."""
    parts = []
    for node in run.graph:
        grads = [_grad_text(frame.nodes[node.id].grad) for frame in run.frames]
        lines = [line for line in (_value_line(run, node.id), max(grads, key=len)) if line]
        chips = tuple(Chip(words, "r3") for words in _saved_words(run, node.id))
        parts.append(Part(f"n{node.id}", _title(run, node.id), "r0", tuple(lines), chips))
    # As the forward went: from what made the input down to its user.
    links = [Link(f"n{target}", f"n{source}", port=nr) for source, nr, target, _ in run.graph.edges()]
    return Scene(tuple(parts), tuple(links), "", "")


def _title(run: EngineRun, nr: int) -> str:
    return run.graph[nr].name


def _value_line(run: EngineRun, nr: int) -> str:
    variable, value = run.graph[nr].variable, run.values[nr]
    return f"{variable} = {value}" if value else variable


def _grad_text(grad: str) -> str:
    return f"grad {grad}" if grad else ""


def _saved_words(run: EngineRun, nr: int) -> list[str]:
    found = []
    for name, variable, value in run.saved[nr]:
        whose = f"{name}: {variable}" if variable else name
        found.append(f"{whose} = {value}" if value else whose)
    return found


def _node(run: EngineRun, nr: int, state: NodeState, box: tuple[float, float, float, float]) -> str:
    x, y, w, h = box
    middle = x + w / 2
    value, words = _value_line(run, nr), _saved_words(run, nr)
    content = [rect(x, y, w, h, rx=7), text(middle, y + 20, _title(run, nr), "b", "middle", s.TITLE)]
    below = y + 20
    if value:
        below += _LINE
        content.append(text(middle, below, value, "value", "middle", s.SMALL))
    below += _LINE
    content.append(text(middle, below, _grad_text(state.grad), "grad", "middle", s.SMALL))
    chips = _chips(words, middle, y + h, state.freed)
    badge = "badge" if state.waits else "badge none"
    count = (
        f'<g class="{badge}"><title>waits for so many gradients</title><circle cx="{num(x + w - 3)}" '
        f'cy="{num(y + h - 3)}" r="9.5"/>'
        f"{text(x + w - 3, y + h + 1, state.waits or '', 'waits', 'middle', s.SMALL)}</g>"
    )
    leaf = " leaf" if run.graph[nr].leaf is not None else ""
    return f'<g class="k node{leaf} is-{state.state}" data-node="n{nr}">{"".join(content)}{chips}{count}</g>'


def _chips(words: Sequence[str], middle: float, bottom: float, freed: bool) -> str:
    """What the node saved, in one line or, where that is too wide, in as many as the scene has made room for."""
    part = Part("", "", "", (), tuple(Chip(each, "") for each in words))
    rows = s._chip_rows(part.chips)
    y = bottom - _CHIP_ROW * len(rows) - 4
    found = []
    for row in rows:
        total = sum(s._chip_width(chip) + s._CHIP_GAP for chip in row) - s._CHIP_GAP
        x = middle - total / 2
        for chip in row:
            width = s._chip_width(chip)
            inside = rect(x, y, width, 17, rx=4) + text(x + width / 2, y + 12.2, chip.text, "", "middle", s.CHIP)
            found.append(f'<g class="saved{" gone" if freed else ""}"><title>saved for backward</title>{inside}</g>')
            x += width + s._CHIP_GAP
        y += _CHIP_ROW
    return "".join(found)


def _on_the_left(edges: Sequence[tuple[int, int, int, int]], lines: Sequence[Sequence[Point]], nr: int) -> bool:
    """Whether a gradient is written on the left of its arrow: where another arrow of the same node is on the right."""
    return any(each[0] == edges[nr][0] and lines[k][-1][0] > lines[nr][-1][0] for k, each in enumerate(edges))


def _link(nr: int, points: Sequence[Point], flow: str, absent: bool, left: bool) -> str:
    x, y = points[-1]
    d = path_data([*points[:-1], (x, y + 5)], num)
    head = f'<path d="M{num(x)} {num(y)}l-3.9 7.5h7.8z" class="head"/>'
    # The arrow's longest stretch has most room beside it.
    one, two = max(zip(points, points[1:], strict=False), key=lambda ends: ends[0][1] - ends[1][1])
    middle = (one[0] + two[0]) / 2 + (-7 if left else 7)
    label = text(middle, (one[1] + two[1]) / 2 + 6, flow, "flow", "end" if left else "start", _FLOW)
    state = " is-absent" if absent else " is-lit" if flow else ""
    return f'<g class="link{state}" data-edge="{nr}"><path d="{esc(d)}" class="edge"/>{head}{label}</g>'
