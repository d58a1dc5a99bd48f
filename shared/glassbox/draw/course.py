"""Course map: the four branches behind `c = a + b` and how far the reader has come (PyTorch has no part for
it).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .svg import Svg, group, mono_width, num, path, rect, text


@dataclass(frozen=True)
class Branch:
    """One branch: its key in `progress`, what the map calls it, the notebook that teaches it, its leaves."""

    key: str
    title: str
    notebook: str
    leaves: tuple[str, ...]


BRANCHES = (
    Branch(
        "storage",
        "Tensor and Storage",
        "01",
        ("metadata + pointer", "shape, stride, offset", "view or contiguous", "storage reference count"),
    ),
    Branch(
        "dispatcher",
        "Dispatcher",
        "02",
        ("key set bitmap", "native_functions.yaml", "kernel registration"),
    ),
    Branch(
        "autograd",
        "Autograd",
        "03",
        ("requires_grad", "grad_fn nodes", "dynamic graph", "Autograd key"),
    ),
    Branch(
        "call_path",
        "Call path",
        "04",
        ("Python to C++", "ATen entry", "routing", "kernel"),
    ),
)

# the leaves on the left are longer, so the middle is not half the width
WIDTH, HEIGHT, MIDDLE = 974.0, 372.0, 520.0
NODE_W, NODE_H = 190.0, 60.0
LEAF_STEP = 34.0
LEAF_H = 26.0


def course_map(progress: Mapping[str, float] | None = None, title: str = "") -> Svg:
    """The map for the start page: `c = a + b` in the middle, two branches on either side, their leaves
    outside.

    progress   how much of a branch is done, 0 to 1, by key: storage, dispatcher, autograd, call_path; a
               branch that is not named counts as 0. Without it no bars are drawn.

    ValueError for an unknown key or a number outside 0 to 1.
    """
    if progress is not None:
        _check(progress)
    middle = MIDDLE
    centre_w, centre_h = 150.0, 64.0
    centre_y = HEIGHT / 2
    curves, nodes = [], []
    for k, branch in enumerate(BRANCHES):
        side = -1 if k < 2 else 1
        cy = centre_y + (-92 if k % 2 == 0 else 92)
        inner = middle + side * 105
        done = None if progress is None else float(progress.get(branch.key, 0.0))
        curves.append(_curve(middle + side * centre_w * 0.38, centre_y, inner, cy, f"trunk h{k}"))
        nodes.append(_branch(branch, k, inner, cy, side, done))
    hub = (
        rect(middle - centre_w / 2, centre_y - centre_h / 2, centre_w, centre_h, "hub", 18)
        + text(middle, centre_y + 1, "c = a + b", "b", "middle", 18)
        + text(middle, centre_y + 20, "what happens here?", "m s", "middle", 11.5)
    )
    rules = (
        "@FIG@ .trunk{fill:none;stroke-width:2.5}@FIG@ .twig{fill:none;stroke-width:1.25;opacity:.75}"
        "@FIG@ .hub{fill:var(--gb-panel);stroke:var(--gb-ink);stroke-width:1.75}"
        "@FIG@ .node>rect{stroke-width:1.75}@FIG@ .bar{fill:var(--gb-panel)}"
        + "".join(
            f"@FIG@ .h{k}{{stroke:var(--gb-r{k}-line)}}@FIG@ .f{k}{{fill:var(--gb-r{k}-line)}}"
            f"@FIG@ .n{k}{{fill:var(--gb-r{k});stroke:var(--gb-r{k}-line)}}"
            f"@FIG@ .l{k}{{fill:var(--gb-panel);stroke:var(--gb-r{k}-line)}}"
            for k in range(len(BRANCHES))
        )
        + "@FIG@ .branch{transition:opacity .15s}@FIG@:has(.branch:hover) .branch:not(:hover){opacity:.45}"
    )
    return Svg(
        WIDTH,
        HEIGHT,
        title or "Map of the course: what happens behind c = a + b",
        _in_words(progress),
        "".join(curves) + "".join(nodes) + hub,
        rules,
    )


def _branch(branch: Branch, k: int, inner: float, cy: float, side: int, done: float | None) -> str:
    """The node with its leaves; `inner` is the edge that faces the middle, `side` the way it grows."""
    left = inner if side > 0 else inner - NODE_W
    outer = inner + side * NODE_W
    parts = [rect(left, cy - NODE_H / 2, NODE_W, NODE_H, f"n{k}", 12)]
    parts.append(text(left + 16, cy - 3, branch.title, "b s", size=14.5))
    if done is None:
        parts.append(text(left + 16, cy + 17, f"notebook {branch.notebook}", "m s", size=12))
    else:
        label = f"{branch.notebook} · {done:.0%}"
        bar_x = left + 16 + mono_width("00 · 100%", 11) + 4
        bar_w = left + NODE_W - 16 - bar_x
        parts.append(text(left + 16, cy + 17, label, "m", size=11))
        parts.append(rect(bar_x, cy + 9.5, bar_w, 8, "bar", 4))
        if done:
            parts.append(rect(bar_x, cy + 9.5, max(8, bar_w * done), 8, f"f{k}", 4))
    first = cy - (len(branch.leaves) - 1) * LEAF_STEP / 2
    twigs = []
    for i, leaf in enumerate(branch.leaves):
        y = first + i * LEAF_STEP
        w = mono_width(leaf, 11.5) + 18
        start = outer + side * 24
        twigs.append(_curve(outer, cy, start, y, f"twig h{k}"))
        x = start if side > 0 else start - w
        parts.append(rect(x, y - LEAF_H / 2, w, LEAF_H, f"l{k}", LEAF_H / 2))
        parts.append(text(x + w / 2, y + 4, leaf, "", "middle", 11.5))
    return group("".join(twigs) + "".join(parts), "branch node")


def _curve(x1: float, y1: float, x2: float, y2: float, cls: str) -> str:
    bend = (x1 + x2) / 2
    return path(f"M{num(x1)} {num(y1)}C{num(bend)} {num(y1)} {num(bend)} {num(y2)} {num(x2)} {num(y2)}", cls)


def _check(progress: Mapping[str, float]) -> None:
    keys = [b.key for b in BRANCHES]
    for key, value in progress.items():
        if key not in keys:
            raise ValueError(f"course_map: there is no branch {key!r}; the branches are {', '.join(keys)}.")
        if not 0 <= value <= 1:
            raise ValueError(f"course_map: progress of {key} is {value}; give a fraction from 0 to 1.")


def _in_words(progress: Mapping[str, float] | None) -> str:
    lines = []
    for branch in BRANCHES:
        done = "" if progress is None else f", {progress.get(branch.key, 0.0):.0%} done"
        lines.append(f"{branch.title} (notebook {branch.notebook}{done}): {', '.join(branch.leaves)}.")
    return "Four branches grow from c = a + b. " + " ".join(lines)
