"""Portrait figures: operators as bars of what they cost (PyTorch has no part that draws).

`portrait_figure` shows a Portrait: per operator its share of the time, or of the FLOPs, or of the calls.
"""

from __future__ import annotations

from typing import Any

from ..records import Portrait, human_bytes, human_flops, human_us
from ..records.portrait import short_name
from .svg import Svg, group, mono_width, rect, text

PAD = 18.0
BAR = 300.0
ROW = 24.0
SHOWN = 12
_GAP = 22.0
_LONGEST = 38
_WIDE = 112
_HUES = {"forward": "r0", "backward": "r3"}


def portrait_figure(portrait: Portrait, title: str = "") -> Svg:
    """One bar per operator, forward and backward in two colours, the 12 costliest by name and the rest together.

    The length is the operator's share of the time; where nothing was timed, of the FLOPs; without those, of the calls.
    """
    measure, word = _measure(portrait)
    lines = _lines(portrait, measure)
    total = sum(line["forward"] + line["backward"] for line in lines) or 1
    most = max((line["forward"] + line["backward"] for line in lines), default=0) or 1
    columns = _columns(lines, measure, total)
    left = PAD + max((mono_width(line["name"]) for line in lines), default=60) + 14
    body, y = _head(portrait, title, word)
    table_y = y
    rights, x = [], left + BAR
    for name, cells in columns:
        x += _GAP + max(mono_width(each, 11) for each in [name, *cells])
        rights.append((x, name, cells))
    for right, name, _ in rights:
        body.append(text(right, table_y, name, "m", "end", 11))
    y += 10
    for nr, line in enumerate(lines):
        bars, at = [], left
        for phase, hue in _HUES.items():
            width = line[phase] / most * BAR
            if width:
                width = max(width, 1.5)
                bars.append(group(rect(at, y + 4, width, ROW - 8, rx=3), f"k {hue}"))
                at += width
        words = f"{line['name']}: {', '.join(f'{name} {cells[nr]}' for name, cells in columns if cells[nr])}"
        body.append(text(left - 12, y + 16, line["name"], "", "end"))
        body.append(group(rect(left, y + 4, BAR, ROW - 8, "panel", 3) + "".join(bars), "", words))
        body += [text(right, y + 16, cells[nr], "", "end", 11) for right, _, cells in rights if cells[nr]]
        y += ROW
    width = max(x + PAD, *(mono_width(each, 12) + 2 * PAD for each in [*_sentences(portrait)]), 460)
    return Svg(width, y + PAD, title or f"Operator portrait: {portrait.title()}", _describe(portrait, lines, word),
               "".join(body))  # fmt: skip


def _head(portrait: Portrait, title: str, word: str) -> tuple[list[str], float]:
    y = PAD + 12
    body = [text(PAD, y, title or portrait.title(), "b", size=15)]
    for line in _sentences(portrait):
        y += 18
        body.append(text(PAD, y, line, "m"))
    y += 28
    x = PAD
    if len(portrait.phases()) > 1:
        for phase, hue in _HUES.items():
            body.append(group(rect(x, y - 10, 12, 12, rx=3), f"k {hue}"))
            body.append(text(x + 18, y, phase, size=11))
            x += 18 + mono_width(phase, 11) + 16
    body.append(text(x, y, f"bars: {word}", "m", size=11))
    return body, y + 24


def _sentences(portrait: Portrait) -> list[str]:
    found = []
    for sentence in (portrait.taken(), portrait.seen, portrait.totals(), *portrait.notes):
        line = ""
        for part in sentence.split():
            if line and len(line) + len(part) >= _WIDE:
                found.append(line)
                line = ""
            line = f"{line} {part}".strip()
        found.append(_clip(line, _WIDE + 8))
    return found


def _measure(portrait: Portrait) -> tuple[str, str]:
    if portrait.us() is not None:
        return "us", "share of the operators' time"
    if portrait.flops():
        return "flops", "share of the FLOPs"
    return "calls", "share of the calls"


def _lines(portrait: Portrait, measure: str) -> list[dict[str, Any]]:
    groups: dict[str, dict[str, Any]] = {}
    for part in portrait.parts:
        line = groups.setdefault(
            part.op,
            {"name": _clip(short_name(part.op), _LONGEST), "forward": 0, "backward": 0, "calls": 0, "flops": 0,
             "bytes": 0, "us": 0.0},
        )  # fmt: skip
        line[part.phase] += getattr(part, measure) or 0
        line["calls"] += part.calls
        line["flops"] += part.flops or 0
        line["bytes"] += part.nbytes
        line["us"] += part.us or 0
    lines = sorted(groups.values(), key=lambda line: (-(line["forward"] + line["backward"]), -line["calls"]))
    if len(lines) <= SHOWN + 1:
        return lines
    rest = {"name": f"{len(lines) - SHOWN} others"}
    for key in ("forward", "backward", "calls", "flops", "bytes", "us"):
        rest[key] = sum(line[key] for line in lines[SHOWN:])
    return [*lines[:SHOWN], rest]


def _columns(lines: list[dict[str, Any]], measure: str, total: float) -> list[tuple[str, list[str]]]:
    sums = [line["forward"] + line["backward"] for line in lines]
    shares = [f"{each / total:.1%}" if each else "" for each in sums]
    columns = [("share", shares), ("calls", [str(line["calls"]) for line in lines])]
    if measure == "us":
        columns.append(("time", [human_us(line["us"]) for line in lines]))
    columns.append(("FLOP", [human_flops(line["flops"]) if line["flops"] else "" for line in lines]))
    columns.append(("bytes", [human_bytes(line["bytes"]) if line["bytes"] else "" for line in lines]))
    return [(name, cells) for name, cells in columns if any(cells)]


def _clip(name: str, longest: int) -> str:
    return name if len(name) <= longest else name[: longest - 3] + "..."


def _describe(portrait: Portrait, lines: list[dict[str, Any]], word: str) -> str:
    first = ", ".join(f"{line['name']} ({line['calls']} calls)" for line in lines[:3])
    return f"{portrait.seen} Bars show the {word}; the longest are {first or 'none'}. {portrait.totals()}"
