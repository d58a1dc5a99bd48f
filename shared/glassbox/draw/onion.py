"""Onion figure: the kernels of a program as layers around each other (aten/src/ATen/core/dispatch/Dispatcher.h)."""

from __future__ import annotations

from collections.abc import Sequence

from ..records import Hop, Onion
from ..records.dispatch import FIGURED
from ..records.key_family import family
from .key_set import COLOURS
from .svg import Svg, group, mono_width, rect, text

DRAWN = FIGURED

_PAD, _STEP, _ROW, _GAP, _BOTTOM = 16.0, 16.0, 24.0, 5.0, 6.0
_SIZE, _SMALL = 12.0, 10.0


def onion_figure(onion: Onion, title: str = "") -> Svg:
    """Each kernel is a layer around those that it called, coloured by the family of its key; the innermost ran last.

    Of more than 40 the first 40 are drawn, and the figure says how many there are. What ran in a backward pass stands
    under the node that it ran for.
    """
    hops = onion.hops[:DRAWN]
    legend = list(dict.fromkeys(_family(hop.key) for hop in hops))
    deepest = max((hop.depth for hop in hops), default=0)
    inner = max((_label_width(hop) + hop.depth * _STEP for hop in hops), default=200.0) + 18
    places = max((mono_width(_file(hop.place), _SMALL) for hop in hops), default=0.0)
    width = max(inner + places + 24 + deepest * 6, sum(mono_width(name, 11) + 34 for name in legend), 360)
    parts = [_legend(legend, _PAD, _PAD)]
    top = _PAD + 34
    if len(onion) > DRAWN:
        parts.append(text(_PAD, top + 4, f"the first {DRAWN} of {len(onion):,} hops", "m s", size=12))
        top += 20
    y = _layers(hops, _PAD, top, width, parts)
    if not hops:
        parts.append(text(_PAD, top + 12, "no kernel ran", "m s", size=12))
        y = top + 28
    return Svg(width + 2 * _PAD, y + _PAD, title or _title(onion), _in_words(onion, hops), "".join(parts))


def _layers(hops: Sequence[Hop], x: float, y: float, width: float, parts: list[str]) -> float:
    """Draw the boxes of all hops, each before those inside of it; where the last one ends."""
    node = ""
    nr = 0
    while nr < len(hops):
        end = _end(hops, nr)
        if hops[nr].node != node:
            node = hops[nr].node
            if node:
                parts.append(text(x, y + 13, f"{node}, in backward", "m", size=11))
                y += 20
        y = _layer(hops, nr, end, x, y, width, parts) + _GAP
        nr = end
    return y


def _layer(hops: Sequence[Hop], nr: int, end: int, x: float, y: float, width: float, parts: list[str]) -> float:
    place = len(parts)
    inner_y = y + _ROW
    child = nr + 1
    while child < end:
        stop = _end(hops, child)
        inner_y = _layer(hops, child, stop, x + _STEP, inner_y, width - _STEP - 6, parts) + _GAP
        child = stop
    bottom = inner_y + (_BOTTOM - _GAP if end > nr + 1 else 0)
    parts.insert(place, _box(hops[nr], x, y, width, bottom - y))
    return bottom


def _end(hops: Sequence[Hop], nr: int) -> int:
    """The first hop after those that hop nr led to."""
    end = nr + 1
    while end < len(hops) and hops[end].depth > hops[nr].depth:
        end += 1
    return end


def _box(hop: Hop, x: float, y: float, width: float, height: float) -> str:
    colour = _colour(_family(hop.key))
    name = _name(hop)
    at = x + 9
    dashed = 'stroke-dasharray="4 3"' if hop.inferred else ""
    content = rect(x, y, width, height, rx=6, extra=dashed)
    content += text(at, y + 16, name, "b", size=_SIZE)
    at += mono_width(name, _SIZE) + 10
    content += text(at, y + 16, hop.key, size=_SIZE)
    at += mono_width(hop.key, _SIZE) + 10
    content += text(at, y + 16, _kind(hop), "m", size=_SMALL)
    content += text(x + width - 9, y + 16, _file(hop.place), "m", "end", _SMALL)
    return group(content, f"k {colour}", f"{hop.op} @ {hop.key} [{hop.kind}], keys {', '.join(hop.keys)}; {hop.place}")


def _legend(families: Sequence[str], x: float, y: float) -> str:
    parts = []
    for name in families:
        parts.append(
            group(rect(x, y, 14, 14, rx=4), f"k {_colour(name)}") + text(x + 20, y + 11, name, "m s", size=11.5)
        )
        x += 34 + mono_width(name, 11)
    return "".join(parts)


def _family(key: str) -> str:
    """The family of a runtime key; what names no functionality names a backend."""
    found = family(key)
    return "backends" if found == "other" else found


def _colour(name: str) -> str:
    return COLOURS.get(name, "out")


def _name(hop: Hop) -> str:
    return hop.op.removeprefix("aten.").removesuffix(".default")


def _kind(hop: Hop) -> str:
    return f"{hop.kind}, not watched" if hop.inferred else hop.kind


def _file(place: str) -> str:
    """The file and line alone; all of it where it is no path."""
    return place.rpartition("/")[2] if len(place) > 24 else place


def _label_width(hop: Hop) -> float:
    return mono_width(_name(hop), _SIZE) + mono_width(hop.key, _SIZE) + mono_width(_kind(hop), _SMALL) + 38


def _title(onion: Onion) -> str:
    names = list(dict.fromkeys(_name(hop) for hop in onion if hop.depth == 0))
    shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    return f"the kernels that ran for {shown}" if names else "no kernel ran"


def _in_words(onion: Onion, hops: Sequence[Hop]) -> str:
    lines = [f"{'inside of it, ' if hop.depth else ''}{_name(hop)} for the key {hop.key}" for hop in hops]
    more = f" {len(onion) - len(hops)} more are not drawn." if len(onion) > len(hops) else ""
    return f"{onion.caption()}: {'; '.join(lines)}.{more}"
