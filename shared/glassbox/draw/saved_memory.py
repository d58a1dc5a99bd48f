"""Saved memory figures: what modules keep for backward, and how it comes and goes (PyTorch: torch/cuda/_memory_viz).

`saved_memory_figure` shows a SavedMemory: bars by module or node, and the curve through forward and backward.
"""

from __future__ import annotations

from ..records import SavedMemory, human_bytes
from .svg import Svg, group, mono_width, num, path, rect, text

PAD = 18.0
BAR = 260.0
ROW = 24.0
SHOWN = 12
CURVE = 150.0
_LONGEST = 34
_ENOUGH = 4
_WIDE = 96
_LEAST = 620.0


def saved_memory_figure(saved: SavedMemory, title: str = "") -> Svg:
    """Bars of the activations that each module keeps, of each node where there are no modules; below them the curve."""
    by, lines = _lines(saved)
    most = max((size for _, size, _ in lines), default=0) or 1
    left = PAD + max([mono_width(name) for name, _, _ in lines] + [60]) + 14
    body = [text(PAD, PAD + 12, title or saved.program, "b", size=15)]
    y = PAD + 12
    sentences = [line for each in (saved.totals(), *saved.notes) for line in _wrapped(each)]
    for line in sentences:
        y += 18
        body.append(text(PAD, y, line, "m"))
    total = saved.nbytes() or 1
    right = left + BAR + 78
    y += 28
    if lines:
        body.append(text(PAD, y, f"activations kept, by {by}", "m", size=11))
        body.append(text(right, y, "bytes", "m", "end", 11))
        body.append(text(right + 64, y, "share", "m", "end", 11))
        body.append(text(right + 128, y, "values", "m", "end", 11))
        y += 10
    for name, size, count in lines:
        bar = group(rect(left, y + 4, max(size / most * BAR, 1.5), ROW - 8, rx=3), "k r2")
        body.append(text(left - 12, y + 16, name, "", "end"))
        words = f"{name}: {human_bytes(size)} in {count} values"
        body.append(group(rect(left, y + 4, BAR, ROW - 8, "panel", 3) + bar, "", words))
        body.append(text(right, y + 16, human_bytes(size), "", "end", 11))
        body.append(text(right + 64, y + 16, f"{size / total:.1%}", "", "end", 11))
        body.append(text(right + 128, y + 16, count, "", "end", 11))
        y += ROW
    width = max(right + 128, *(PAD + mono_width(each) for each in [*sentences, ""]), PAD + _LEAST)
    if len(saved.curve) > 1:
        y += 30
        body.append(_curve(saved, PAD, y, width - PAD))
        y += CURVE + 24
    return Svg(width + PAD, y + PAD, title or f"Saved for backward: {saved.program}", _describe(saved, by, lines),
               "".join(body))  # fmt: skip


def _lines(saved: SavedMemory) -> tuple[str, list[tuple[str, int, int]]]:
    """What the bars stand for, and name, bytes, values of each."""
    by, part = "node", saved.by_node()
    deepest = max((value.module.count(".") + 1 for value in saved.values if value.module), default=0)
    for depth in range(1, deepest + 1):
        by, part = "module", saved.by_module(depth)
        if len(part.lines) >= _ENOUGH:
            break
    found = []
    for row in part.rows():
        name = str(row[by]) or "(itself)"
        if row["activations"]:
            found.append((_clip(name), int(row["activations"]), int(row["values"])))
    if len(found) > SHOWN + 1:
        rest = found[SHOWN:]
        found = found[:SHOWN]
        found.append((f"{len(rest)} others", sum(size for _, size, _ in rest), sum(count for _, _, count in rest)))
    return by, found


def _curve(saved: SavedMemory, left: float, top: float, right: float) -> str:
    """The area under what is kept, the backward part in another colour, and the peak."""
    points = saved.curve
    peak = saved.peak() or 1
    turn = next((nr for nr, (phase, _) in enumerate(points) if phase == "backward"), len(points))

    def x(nr: float) -> float:
        return left + (right - left) * nr / len(points)

    def y(size: int) -> float:
        return top + CURVE * (1 - size / peak)

    body = []
    for phase, hue, first, last in (("forward", "r0", 0, turn), ("backward", "r3", turn, len(points))):
        if first == last:
            continue
        steps = [f"M{num(x(first))} {num(top + CURVE)}"]
        for nr in range(first, last):
            steps.append(f"V{num(y(points[nr][1]))}H{num(x(nr + 1))}")
        steps.append(f"V{num(top + CURVE)}Z")
        body.append(group(path("".join(steps), extra='style="fill:var(--f);stroke:var(--e)"'), hue))
        wide = x(last) - x(first)
        if wide > mono_width(phase, 11) + 8:
            body.append(text((x(first) + x(last)) / 2, top + CURVE + 16, phase, "m", "middle", 11))
    body.append(path(f"M{num(left)} {num(top)}H{num(right)}", "rule", 'stroke-dasharray="4 4"'))
    words = f"peak {human_bytes(saved.peak())}{f' in {saved.peak_at}' if saved.peak_at else ''}"
    longest = int((right - left) / mono_width("x", 11))
    body.append(text(left, top - 8, words if len(words) <= longest else words[: longest - 3] + "...", "", size=11))
    return "".join(body)


def _wrapped(sentence: str) -> list[str]:
    lines = [""]
    for word in sentence.split():
        if lines[-1] and len(lines[-1]) + len(word) >= _WIDE:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _clip(name: str) -> str:
    return name if len(name) <= _LONGEST else "..." + name[3 - _LONGEST :]


def _describe(saved: SavedMemory, by: str, lines: list[tuple[str, int, int]]) -> str:
    first = ", ".join(f"{name} ({human_bytes(size)})" for name, size, _ in lines[:3])
    return f"{saved.totals()} By {by}, the most is kept by {first or 'none'}."
