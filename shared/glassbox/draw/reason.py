"""Reason figures: the bits of a call, step by step, and the kernels that ran (ATen/core/dispatch/Dispatcher.h)."""

from __future__ import annotations

from ..records.dispatch import Hop
from ..records.key_family import family
from ..records.reason import WhyCall
from .key_set import COLOURS, PAD, key_rows, winner_words
from .svg import Svg, group, mono_width, num, path, rect, text

HOPS_SHOWN = 24
STEP, BAR, INDENT = 30.0, 22.0, 22.0


def reason_figure(call: WhyCall, title: str = "") -> Svg:
    """Why a call went to its kernel: its bits, the winner, and each kernel that ran, indented under its caller.

    The first hops are drawn and a line says how many more there are; the table has all of them.
    """
    y = PAD + 14
    parts = [text(PAD, y, call.op, "b", size=15)]
    width = mono_width(call.op, 15)
    for words in call.context:
        y += 18
        parts.append(text(PAD, y, words, "m s", size=12))
        width = max(width, mono_width(words, 12))
    bits = key_rows(call.key_sets, PAD, y + 12)
    parts.append(bits.svg)
    width = max(width, bits.width)
    y += 12 + bits.height + 28
    verdict = winner_words(call.key_sets)
    parts.append(text(PAD, y, verdict, "b", size=12.5))
    width = max(width, mono_width(verdict, 12.5))
    for words in call.differences():
        y += 19
        parts.append(text(PAD, y, f"but {words}", "bad", size=12))
        width = max(width, mono_width(f"but {words}", 12))
    y += 18
    drawn, tall, wide = _hops(call, PAD, y)
    return Svg(
        max(width, wide) + 2 * PAD,
        y + tall + PAD,
        title or f"why {call.op} goes to {call.winner}",
        _describe(call),
        "".join(parts) + drawn,
    )


def _describe(call: WhyCall) -> str:
    origins = " ".join(f"{each.step}: {each.key}, {each.because}." for each in call.origins)
    ran = ", then ".join(f"{hop.op} for {hop.key}" for hop in call.hops.hops[:HOPS_SHOWN])
    return f"{call.verdict}. {origins} {len(call.hops)} kernels ran{f': {ran}' if ran else ''}."


def _hops(call: WhyCall, x: float, y: float) -> tuple[str, float, float]:
    """The kernels that ran, with the height and width that they need; the winner's row alone where none was seen."""
    hops = list(call.hops)[:HOPS_SHOWN]
    if not hops:
        return _layers(call, x, y)
    labels = [f"{hop.op} @ {hop.key}" for hop in hops]
    ends = [INDENT * hop.depth + mono_width(label, 12) + 20 for hop, label in zip(hops, labels, strict=True)]
    notes = max(ends) + 16
    parts = [_line(hops, nr, x, y) for nr in range(1, len(hops))]
    width = 0.0
    for nr, (hop, label) in enumerate(zip(hops, labels, strict=True)):
        left, top = x + INDENT * hop.depth, y + nr * STEP
        box = rect(left, top, mono_width(label, 12) + 20, BAR, rx=5)
        words = f"{hop.kind}{'  ' + hop.place if hop.place else ''}{' (inferred)' if hop.inferred else ''}"
        tip = f"{hop.key}: key set {hop.key_set:#x}, {', '.join(hop.keys)}"
        parts.append(group(box + text(left + 10, top + 15, label, size=12), f"k {_colour(call, hop.key)}", tip))
        parts.append(text(x + notes, top + 15, words, "m", size=11))
        width = max(width, notes + mono_width(words, 11))
    tall = len(hops) * STEP
    if len(call.hops) > HOPS_SHOWN:
        left_out = f"{len(call.hops) - HOPS_SHOWN} more kernels"
        parts.append(text(x, y + tall + 12, left_out, "m", size=12))
        tall += 20
    return "".join(parts), tall, width


def _layers(call: WhyCall, x: float, y: float) -> tuple[str, float, float]:
    """The rows that a call would go through, where no kernel was seen."""
    parts: list[str] = []
    width = 0.0
    for nr, row in enumerate(call.layers):
        top = y + nr * STEP
        box = rect(x, top, mono_width(row.key, 12) + 20, BAR, rx=5) + text(x + 10, top + 15, row.key, size=12)
        parts.append(group(box, f"k {'bad' if row.kind == 'missing' else _colour(call, row.key)}"))
        words = f"{row.kind}  {row.place}" if row.place else f"{row.kind}: {row.meaning}"
        left = x + mono_width(row.key, 12) + 36
        parts.append(text(left, top + 15, words, "bad" if row.kind == "missing" else "m", size=11))
        width = max(width, left - x + mono_width(words, 11))
    return "".join(parts), len(call.layers) * STEP, width


def _colour(call: WhyCall, key: str) -> str:
    layout = call.key_sets.layout
    try:
        return COLOURS.get(family(layout.pair(key)[0]), "r5")
    except KeyError:
        return "out"


def _line(hops: list[Hop], nr: int, x: float, y: float) -> str:
    """An elbow from the kernel that a hop came from."""
    hop = hops[nr]
    above = next((k for k in reversed(range(nr)) if hops[k].depth < hop.depth), None)
    if above is None:
        return ""
    from_x = x + INDENT * hops[above].depth + 10
    from_y, to_y = y + above * STEP + BAR, y + nr * STEP + BAR / 2
    return path(f"M{num(from_x)} {num(from_y)}V{num(to_y)}H{num(x + INDENT * hop.depth)}", "rule")
