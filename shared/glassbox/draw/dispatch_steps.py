"""Dispatch steps: one call on its way down, picture by picture (aten/src/ATen/core/dispatch/Dispatcher.h).

Each step shows the keys as chips, highest priority first, and the kernels as boxes in each other: those that ran, the
one that runs now, and empty ones for those to come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..records import Hop, WhyCall
from ..records.key_family import family
from .key_set import COLOURS
from .svg import Svg, group, mono_width, num, rect, text

DRAWN = 24
WIDTH = 540.0
_PAD, _STEP, _ROW, _GAP, _CHIP = 12.0, 12.0, 24.0, 4.0, 22.0
# What the picture says of a key: its CSS class where it is not the family's colour, and the word under it.
_OTHER, _GONE = "other", "gone"


@dataclass(frozen=True, slots=True)
class DispatchStep:
    """One step of a call: a short label, a sentence or two, and the picture."""

    label: str
    says: str
    figure: Svg


@dataclass(frozen=True, slots=True)
class _Chips:
    """The keys at one step: those in the set, those that are masked (with the word for it), and the one that wins."""

    inside: frozenset[str]
    masked: dict[str, str]
    winner: str = ""


def dispatch_steps(call: WhyCall, name: str = "", depth: int | None = None) -> list[DispatchStep]:
    """The steps of a call that `xray.why` explained: arguments, the thread, fallthrough, each kernel, the way up.

    depth   how deep kernels may lie in others to be shown, 0 for the outermost alone; None: all

    Of more than 24 kernels the first 24 are steps; the last step says how many more there were.
    """
    hops = [hop for hop in call.hops if depth is None or hop.depth <= depth][:DRAWN]
    keys = _all_keys(call, hops)
    title = f"{name}: {call.op}" if name else call.op
    told = [*_before(call), *(_hop(call, hops, nr) for nr in range(len(hops))), _after(call, hops)]
    steps = []
    for nr, (label, says, chips) in enumerate(told):
        at = nr - len(told) + len(hops) + 1
        body, height = _picture(title, keys, chips, hops, at)
        steps.append(
            DispatchStep(label, says, Svg(WIDTH, height, f"{title}, step {nr + 1}: {label}", says, body, _RULES))
        )
    return steps


def _before(call: WhyCall) -> list[tuple[str, str, _Chips]]:
    layout, sets = call.key_sets.layout, {step.role: step.bits for step in call.key_sets.steps}
    union = layout.keys(sets["union"])
    arguments = [step.name for step in call.key_sets.steps if step.role == "argument"]
    if arguments:
        says = f"Each tensor brings its keys ({_listed(arguments)}). Together: {_listed(_downward(union))}."
    else:
        says = "No argument is a tensor, so none brings a key."
    told = [("arguments", says, _Chips(frozenset(union), {}))]

    bits = sets["union"] | sets.get("included", 0)
    added = [key for key in layout.keys(bits) if key not in union]
    left = layout.remove(bits, sets.get("excluded", 0))
    masked = {key: "excluded" for key in layout.keys(bits) if key not in layout.keys(left)}
    says = f"The thread adds {_listed(_downward(added)) or 'nothing'}"
    says += f" and takes {_listed(_downward(masked))} away." if masked else " and takes nothing away."
    told.append(("thread", says, _Chips(frozenset(layout.keys(left)), masked)))

    rest = call.key_sets.effective
    through = {key: "fallthrough" for key in layout.keys(left) if key not in rest.keys}
    if through:
        says = f"{_listed(_downward(through))}: this operator has a fallthrough there, so the bit is masked out. "
    else:
        says = "No key that is left is a fallthrough of this operator. "
    says += f"Left: {_listed(_downward(rest.keys))}." if rest.keys else "No key is left."
    told.append(("fallthrough", says, _Chips(frozenset(rest.keys), masked | through)))
    return told


def _hop(call: WhyCall, hops: Sequence[Hop], nr: int) -> tuple[str, str, _Chips]:
    hop = hops[nr]
    parent = next((other for other in reversed(hops[:nr]) if other.depth < hop.depth), None)
    if parent is None:
        says = f"{hop.key} is the highest key. "
    elif parent.op == hop.op:
        says = (
            f"Its kernel hands {_short(hop)} on: with {parent.key} out of the way, {hop.key} is the highest key left. "
        )
    else:
        says = f"The kernel of {_short(parent)} calls {_short(hop)}: a new call, with keys of its own; {hop.key} wins. "
    says += f"Its row of the table holds: {hop.kind}" + (f", from {hop.place}." if hop.place else ".")
    gone = {
        key: "out of the way" for key in (parent.keys if parent and parent.op == hop.op else ()) if key not in hop.keys
    }
    return f"{_short(hop)} @ {hop.key}", says, _Chips(frozenset(hop.keys), gone, hop.key)


def _after(call: WhyCall, hops: Sequence[Hop]) -> tuple[str, str, _Chips]:
    more = len(call.hops) - len(hops)
    ran = f"{len(call.hops)} kernel{'s' * (len(call.hops) != 1)} ran"
    says = f"Every kernel returns to the one that called it, the outermost last: {ran}."
    return (
        "the way up",
        says + (f" {more} of them, deeper down, are not drawn." if more else ""),
        _Chips(frozenset(), {}),
    )


def _picture(title: str, keys: Sequence[str], chips: _Chips, hops: Sequence[Hop], at: int) -> tuple[str, float]:
    """The body of a step's figure and its height. `at` is the hop that runs now: below 0 none yet, past the end all."""
    parts = [text(_PAD, _PAD + 11, title, "b", size=13)]
    x, y = _PAD, _PAD + 24
    for key in keys:
        width = mono_width(key, 11) + 16
        if x + width > WIDTH - _PAD and x > _PAD:
            x, y = _PAD, y + _CHIP + 18
        parts.append(_chip(key, chips, x, y, width))
        x += width + 6
    y += _CHIP + 24
    boxes: list[tuple[int, float, float, float, float]] = []
    nr = 0
    while nr < len(hops):
        y = _place(hops, nr, _PAD, y, WIDTH - 2 * _PAD, boxes) + _GAP
        nr = _end(hops, nr)
    parts += [_box(hops[nr], nr, at, *where) for nr, *where in sorted(boxes)]
    return "".join(parts), y - _GAP + _PAD


def _place(
    hops: Sequence[Hop], nr: int, x: float, y: float, width: float, boxes: list[tuple[int, float, float, float, float]]
) -> float:
    """Where the box of hop nr and those inside of it lie: (nr, x, y, width, height) each; returns its bottom."""
    inner, child, end = y + _ROW, nr + 1, _end(hops, nr)
    while child < end:
        inner = _place(hops, child, x + _STEP, inner, width - _STEP - 6, boxes) + _GAP
        child = _end(hops, child)
    bottom = inner + (3 if end > nr + 1 else 0)
    boxes.append((nr, x, y, width, bottom - y))
    return bottom


def _box(hop: Hop, nr: int, at: int, x: float, y: float, width: float, height: float) -> str:
    if nr > at:
        return group(rect(x, y, width, height, rx=6), "k waits")
    lit = " lit" if nr == at else ""
    size = 12.0
    name = f"{_short(hop)} @ {hop.key}"
    content = rect(x, y, width, height, rx=6) + text(x + 9, y + 16.5, name, "b", size=size)
    used = mono_width(name, size) + 20
    if used + mono_width(hop.kind, 10) + 10 < width:
        content += text(x + width - 9, y + 16, hop.kind, "m", "end", 10)
    return group(content, f"k {_colour(hop.key)}{lit}", f"{hop.op} @ {hop.key} [{hop.kind}] {hop.place}")


def _chip(key: str, chips: _Chips, x: float, y: float, width: float) -> str:
    inside, word = key in chips.inside, chips.masked.get(key, "")
    kind = _colour(key) if inside else _GONE if word else "waits"
    word = "highest" if key == chips.winner else word
    content = rect(x, y, width, _CHIP, rx=11) + text(x + width / 2, y + 15, key, "" if inside else "m", "middle", 11)
    if not inside and key in chips.masked:
        content += f'<path class="strike" d="M{num(x + 7)} {num(y + 11)}H{num(x + width - 7)}"/>'
    below = text(x + width / 2, y + _CHIP + 11, word, "m s", "middle", 10) if word else ""
    return group(content, f"k {kind}{' lit' if key == chips.winner else ''}") + below


def _all_keys(call: WhyCall, hops: Sequence[Hop]) -> list[str]:
    """Every key that plays a part, highest priority first."""
    layout = call.key_sets.layout
    masks = [step.bits for step in call.key_sets.steps if step.role in ("union", "included")]
    bits = 0
    for each in [*masks, *(layout.bits(*hop.keys) for hop in hops)]:
        bits |= each
    found = {key for hop in hops for key in hop.keys} | set(layout.keys(masks[0] | masks[-1]))
    return [key for key in reversed(layout.keys(bits)) if key in found]


def _downward(keys: Sequence[str] | dict[str, str]) -> list[str]:
    return list(reversed(list(keys)))


def _end(hops: Sequence[Hop], nr: int) -> int:
    end = nr + 1
    while end < len(hops) and hops[end].depth > hops[nr].depth:
        end += 1
    return end


def _short(hop: Hop) -> str:
    return hop.op.removeprefix("aten.").removesuffix(".default")


def _colour(key: str) -> str:
    found = family(key)
    return COLOURS.get("backends" if found == "other" else found, _OTHER)


def _listed(words: Sequence[str]) -> str:
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


_RULES = (
    "@FIG@ .other{--f:var(--gb-panel);--e:var(--gb-muted);--t:var(--gb-ink)}"
    "@FIG@ .waits>rect{fill:none;stroke:var(--gb-line);stroke-dasharray:4 3}"
    "@FIG@ .gone>rect{fill:none;stroke:var(--gb-muted);stroke-dasharray:4 3}"
    "@FIG@ .strike{stroke:var(--gb-muted);stroke-width:1.5}"
    "@FIG@ .waits>text,@FIG@ .gone>text{fill:var(--gb-muted)}"
)
