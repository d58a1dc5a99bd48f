"""Overhead figure: the layers of one call, what is otherwise around it, and time over size (torch/utils/benchmark)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..records.overhead import Alternative, CostCurve, CostLayer, Overhead, Spread, describe_crossing, short
from ._axes import Scale, count_label, log_ticks, plain_number, polyline
from .svg import Svg, esc, group, mono_width, num, path, rect, text

PAD = 20.0
LEFT, LABEL, BARS, VALUE = 470.0, 192.0, 150.0, 118.0
GAP, RIGHT = 44.0, 460.0
ROW, BAR = 21.0, 13.0
CHART = 268.0

# Who does the work: the binding, the dispatcher, autograd, the kernel.
_HUES = {"1": "r4", "2": "r4", "3, 4": "r0", "4, 6": "r2", "5": "r2", "7": "r1", "8": "r1"}
_LINES = ("r2", "r0", "r3", "r1", "r4", "r5")


def overhead_figure(ledger: Overhead) -> Svg:
    """The ledger as a picture: layers as steps of a stair, alternatives and hops as bars, time over size on
    logarithmic axes with the quartiles as bands and the size marked at which the kernel outgrows the overhead.
    """
    x = PAD
    one = f"{ledger.base_size:,} element{'s' * (ledger.base_size != 1)}"
    left, y = _stair(ledger, x, PAD, f"{ledger.op}: one call over {one}")
    if ledger.alternatives:
        lower, y = _bars(_alternatives(ledger), x, y + 26, "the same call made otherwise")
        left += lower
    right, ry = _chart(ledger.curves, x + LEFT + GAP, PAD)
    if ledger.hops:
        hops = [(each.name, each.time, each.time.distinguishable, _tip(each), "r0") for each in ledger.hops]
        lower, ry = _bars(hops, x + LEFT + GAP, ry + 26, "one more hop takes")
        right += lower
    bottom = max(y, ry) + 24
    note = f"{ledger.machine}; medians of {ledger.rounds} rounds, whiskers: 95 % intervals"
    foot = text(PAD, bottom, note, "m", size=11)
    return Svg(
        PAD + LEFT + GAP + RIGHT + PAD,
        bottom + 16,
        f"What one call of {ledger.op} costs",
        _describe(ledger),
        left + right + foot,
        "".join(f"@FIG@ .l-{hue}{{fill:none;stroke:var(--gb-{hue}-line);stroke-width:2}}" for hue in _LINES)
        + "".join(f"@FIG@ .a-{hue}{{fill:var(--gb-{hue}-line);opacity:.22}}" for hue in _LINES)
        + "".join(f"@FIG@ .d-{hue}{{fill:var(--gb-{hue}-line)}}" for hue in _LINES)
        + "@FIG@ .whisker{fill:none;stroke:var(--gb-ink);stroke-width:1}"
        "@FIG@ .grid{fill:none;stroke:var(--gb-line);stroke-width:.75;opacity:.6}"
        "@FIG@ .mark{fill:none;stroke:var(--gb-lit);stroke-width:1.25;stroke-dasharray:3 3}"
        "@FIG@ .step{fill:none;stroke:var(--gb-line);stroke-width:1;stroke-dasharray:2 2}",
    )


def _stair(ledger: Overhead, x: float, y: float, title: str) -> tuple[str, float]:
    """Each layer begins where the one before it ends."""
    parts = [text(x, y + 14, title, "b", size=13)]
    ends = [0.0]
    for layer in ledger.layers:
        ends.append(ends[-1] + layer.time.median)
    low = min(0.0, *ends, *(start + layer.time.low for start, layer in zip(ends, ledger.layers, strict=False)))
    scale = Scale(low, max(*ends, ledger.whole.high), x + LABEL, x + LABEL + BARS)
    top = y + 30
    for nr, layer in enumerate(ledger.layers):
        known = layer.time.distinguishable
        hue = _HUES.get(layer.stations, "r0") if known else "out"
        row = _row(x, top, layer.name, layer.time, scale, ends[nr], hue, _value(layer.time, known))
        parts.append(group(row, "", _tip(layer)))
        at = scale(ends[nr + 1])
        parts.append(path(f"M{num(at)} {num(top + BAR + 3)}V{num(top + ROW + 2)}", "step"))
        top += ROW
    whole = _row(x, top, "whole call", ledger.whole, scale, 0.0, "hot", _value(ledger.whole, True), "b")
    parts.append(group(whole, "", f"whole call: {ledger.whole}"))
    return "".join(parts), top + ROW


def _bars(rows: Sequence[tuple[str, Spread, bool, str, str]], x: float, y: float, title: str) -> tuple[str, float]:
    """Bars from 0 on one scale: (name, time, told apart from nothing, what pointing says, hue)."""
    parts = [text(x, y + 8, title, "b", size=13)]
    times = [time for _, time, *_ in rows]
    scale = Scale(
        min(0.0, *(t.low for t in times), 0.0), max(*(t.high for t in times), 1e-6), x + LABEL, x + LABEL + BARS
    )
    top = y + 22
    for name, time, known, tip, hue in rows:
        row = _row(x, top, name, time, scale, 0.0, hue if known else "out", _value(time, known))
        parts.append(group(row, "", tip))
        top += ROW
    return "".join(parts), top


def _row(
    x: float, top: float, name: str, time: Spread, scale: Scale, start: float, hue: str, value: str, kind: str = ""
) -> str:
    a, b = scale(start), scale(start + time.median)
    bar = rect(min(a, b), top, max(abs(b - a), 1.0), BAR, rx=2)
    low, high = scale(start + time.low), scale(start + time.high)
    middle = top + BAR / 2
    whisker = path(
        f"M{num(low)} {num(middle)}H{num(high)}M{num(low)} {num(middle - 3)}v6M{num(high)} {num(middle - 3)}v6"
    )
    whisker = whisker.replace("<path", '<path class="whisker"')
    # The whole row answers to the pointer, not only its short bar.
    area = f'<rect x="{num(x)}" y="{num(top - 3)}" width="{num(LEFT - 10)}" height="{num(ROW)}" fill="transparent"/>'
    return (
        area
        + text(x, top + BAR - 2, _clip(name, LABEL - 10, 11.5), kind, size=11.5)
        + group(bar, f"k {hue}")
        + whisker
        + text(x + LABEL + BARS + VALUE, top + BAR - 2, value, kind or "", "end", 11.5)
    )


def _value(time: Spread, known: bool) -> str:
    return f"{short(time.median)} µs" if known else "not told from 0"


def _alternatives(ledger: Overhead) -> list[tuple[str, Spread, bool, str, str]]:
    plain = next((curve for curve in ledger.curves if curve.name == "plain"), None)
    rows: list[tuple[str, Spread, bool, str, str]] = []
    if plain is not None:
        rows.append(("plain", plain.points[0][1], True, f"plain: {plain.definition}", "hot"))
    for each in ledger.alternatives:
        hue = "r4" if each.name.startswith(("a ", "a.", "torch.ops", "out=", "in place")) else "r2"
        hue = "r3" if each.name in ("autocast", "TorchFunctionMode", "TorchDispatchMode", "op_log") else hue
        rows.append((each.name, each.time, True, _tip(each), hue))
    return rows


def _chart(curves: Sequence[CostCurve], x: float, y: float) -> tuple[str, float]:
    """Time over size; the legend below says where each curve crosses."""
    left, right = x + 46, x + RIGHT
    top, bottom = y + 34, y + 34 + CHART
    points = [point for curve in curves for point in curve.points]
    sizes = [max(1, size) for size, _ in points]
    lows, highs = [t.q1 for _, t in points], [t.q3 for _, t in points]
    across = Scale(min(sizes), max(*sizes, min(sizes) * 2), left, right - 8, log=True)
    up = Scale(max(min(lows) * 0.8, 1e-3), max(highs) * 1.25, bottom, top, log=True)
    parts = [text(x, y + 14, "time per call over size, µs", "b", size=13)]
    for tick in log_ticks(up.low, up.high, 8):
        parts.append(path(f"M{num(left)} {num(up(tick))}H{num(right)}", "grid"))
        parts.append(text(left - 7, up(tick) + 4, plain_number(tick), "m", "end", 11))
    for tick in log_ticks(across.low, across.high, 7):
        parts.append(path(f"M{num(across(tick))} {num(top)}V{num(bottom)}", "grid"))
        parts.append(text(across(tick), bottom + 16, count_label(tick), "m", "middle", 11))
    parts.append(text((left + right) / 2, bottom + 33, "elements", "m", "middle", 11))
    for nr, curve in enumerate(curves):
        parts.append(_curve(curve, _LINES[nr % len(_LINES)], across, up))
    for curve in curves[:2]:
        parts.append(_crossing(curve, across, up, top, bottom))
    ly = bottom + 56
    for nr, curve in enumerate(curves):
        hue = _LINES[nr % len(_LINES)]
        swatch = path(f"M{num(x)} {num(ly - 4)}h18", f"l-{hue}")
        said = _crosses(curve)
        line = text(x + 26, ly, curve.name, size=11.5) + text(x + 150, ly, said, "m", size=11)
        parts.append(group(swatch + line, "", f"{curve.name}: {curve.definition}; {describe_crossing(curve)}"))
        ly += 18
    return "".join(parts), ly - 6


def _curve(curve: CostCurve, hue: str, across: Scale, up: Scale) -> str:
    xs = [across(max(1, size)) for size, _ in curve.points]
    upper = [(x, up(t.q3)) for x, (_, t) in zip(xs, curve.points, strict=True)]
    lower = [(x, up(t.q1)) for x, (_, t) in zip(xs, curve.points, strict=True)]
    band = path(polyline([*upper, *reversed(lower)]) + "Z", f"a-{hue}")
    line = path(polyline([(x, up(t.median)) for x, (_, t) in zip(xs, curve.points, strict=True)]), f"l-{hue}")
    dots = "".join(
        f'<circle class="d-{hue}" cx="{num(x)}" cy="{num(up(t.median))}" r="2.6">'
        f"<title>{esc(f'{curve.name}, {size:,} elements: {t}')}</title></circle>"
        for x, (size, t) in zip(xs, curve.points, strict=True)
    )
    return band + line + dots


def _crossing(curve: CostCurve, across: Scale, up: Scale, top: float, bottom: float) -> str:
    at = curve.crossing
    if at is None:
        return ""
    x, y = across(at.median), up(2 * curve.points[0][1].median)
    low, high = across(at.low), across(min(at.high, across.high))
    marks = path(f"M{num(x)} {num(y)}V{num(bottom)}", "mark") + path(
        f"M{num(low)} {num(bottom)}H{num(high)}", "whisker"
    )
    dot = f'<circle class="mark" cx="{num(x)}" cy="{num(y)}" r="5" style="stroke-dasharray:none"/>'
    return group(marks + dot, "", f"{curve.name}: {describe_crossing(curve)}")


def _crosses(curve: CostCurve) -> str:
    at = curve.crossing
    if at is None:
        return "overhead is the larger part"
    high = count_label(at.high) if math.isfinite(at.high) else "more"
    return f"kernel outgrows at {count_label(at.median)} ({count_label(at.low)}-{high})"


def _tip(each: CostLayer | Alternative) -> str:
    return f"{each.name}: {each.verdict()}. {each.definition}"


def _clip(name: str, width: float, size: float) -> str:
    if mono_width(name, size) <= width:
        return name
    return name[: max(1, int(width / mono_width("m", size)) - 1)] + "…"


def _describe(ledger: Overhead) -> str:
    parts = [f"{each.name}: {each.verdict()}" for each in ledger.layers]
    parts += [f"whole call: {ledger.whole}"]
    parts += [f"{curve.name}: {describe_crossing(curve)}" for curve in ledger.curves]
    return ". ".join(parts) + "."
