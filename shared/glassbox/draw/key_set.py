"""Key set figures: 64 bits as cells, one row per step of a call's sum (c10/core/DispatchKeySet.h)."""

from __future__ import annotations

from collections.abc import Sequence

from ..records.key_family import family
from ..records.key_set import KeyLayout, KeySets, KeyStep, label
from .cells import Block
from .svg import Svg, esc, group, mono_width, num, rect, text

CELL, PITCH, LINE, PAD = 12.0, 14.0, 23.0, 16.0
# The gap between the functionality bits, which are ordered, and the backend bits, which are not.
APART = 16.0
NAME = 11.0
ARGUMENTS_SHOWN = 6
COLOURS = {
    "functorch": "r4",
    "Python wrappers": "r2",
    "Python": "r2",
    "Python dispatcher": "r2",
    "autocast": "r3",
    "autograd": "r0",
    "views and in-place": "r1",
    "backend select": "r4",
    "backends": "r5",
    "backend": "r5",
}


def key_set_figure(sets: KeySets, title: str = "") -> Svg:
    """The steps that make a key set, as rows over the bits, highest priority left; the key that wins is lit.

    Bits that some step sets are named above their column. Of many arguments the first are drawn, and a line says so.
    """
    block = key_rows(sets, PAD, PAD)
    height = PAD + block.height + 26
    body = block.svg + text(PAD, height, winner_words(sets), "b", size=12.5)
    winner = sets.winner
    name = sets.op or sets.steps[0].name
    return Svg(
        max(PAD + block.width, PAD + mono_width(winner_words(sets), 12.5)) + PAD,
        height + PAD,
        title or f"key set of {name}",
        f"{name}: {'the call goes to' if sets.op else 'highest is'} {winner}. "
        + " ".join(f"{label(step)}: {row['keys']}." for step, row in zip(sets.steps, sets.rows(), strict=True)),
        body,
    )


def winner_words(sets: KeySets) -> str:
    """ "AutogradCPU is highest: AutogradFunctionality (bit 36) with CPU (bit 0)" """
    layout, key = sets.layout, sets.winner
    if key == "Undefined":
        return "no key is left: Undefined has a row too" if sets.op else "no keys"
    functionality, backend = layout.pair(key)
    place = len(layout.backends) + layout.functionalities.index(functionality)
    if not backend:
        return f"{key} is highest (bit {place})"
    return f"{key} is highest: {functionality} (bit {place}) with {backend} (bit {layout.backends.index(backend)})"


def key_rows(sets: KeySets, x: float, y: float) -> Block:
    """The rows alone, their top left corner at (x, y), for a figure that shows more."""
    steps = _shown(sets)
    layout = sets.layout
    named = _named_bits(sets)
    labels = [label(step) if step is not None else _left_out(sets) for step in steps]
    left = x + max(mono_width(each, 12) for each in labels) + 14
    width = _column(layout, 0) + CELL
    tall = max((mono_width(layout.bit_name(bit), NAME) for bit in named), default=0.0)
    top = y + tall + 10
    parts = [_upright(left + _column(layout, bit) + 10, top - 6, layout.bit_name(bit)) for bit in named]
    for row, (step, words) in enumerate(zip(steps, labels, strict=True)):
        row_y = top + row * LINE
        strong = "b" if step is not None and step.role in ("effective", "union") else ""
        parts.append(text(x, row_y + 10.5, words, strong if step is not None else "m", size=12))
        if step is not None:
            parts += [_cell(sets, step, bit, left + _column(layout, bit), row_y) for bit in range(layout.size)]
    bottom = top + len(steps) * LINE
    for bit in named:
        parts.append(_upright_number(left + _column(layout, bit) + CELL / 2, bottom + 2, bit, named))
    parts.append(text(left, bottom + 21, "functionality bits, highest priority left", "m s", size=11))
    backends = text(left + width, bottom + 21, "backend bits", "m s", "end", size=11)
    return Block("".join(parts) + backends, left + width - x, bottom + 25 - y)


def _shown(sets: KeySets) -> list[KeyStep | None]:
    """The steps to draw; None stands for the arguments that are left out."""
    arguments = [step for step in sets.steps if step.role == "argument"]
    others = [step for step in sets.steps if step.role != "argument"]
    if len(arguments) <= ARGUMENTS_SHOWN:
        return [*arguments, *others]
    return [*arguments[: ARGUMENTS_SHOWN - 1], None, *others]


def _left_out(sets: KeySets) -> str:
    count = sum(step.role == "argument" for step in sets.steps) - (ARGUMENTS_SHOWN - 1)
    return f"{count} more arguments"


def _named_bits(sets: KeySets) -> list[int]:
    """The bits that an argument or the included set sets: masks alone name none."""
    seen = 0
    for step in sets.steps:
        if step.role not in ("excluded", "fallthrough"):
            seen |= step.bits
    return [bit for bit in range(sets.layout.size) if seen >> bit & 1]


def _column(layout: KeyLayout, bit: int) -> float:
    """Where a bit's column begins: bit 0 is the last one."""
    from_right = layout.size - 1 - bit
    return from_right * PITCH + (APART if bit < len(layout.backends) else 0)


def _cell(sets: KeySets, step: KeyStep, bit: int, x: float, y: float) -> str:
    layout = sets.layout
    name = layout.bit_name(bit)
    is_backend = bit < len(layout.backends)
    on = bool(step.bits >> bit & 1)
    words = f"{label(step)}: {name}, bit {bit}"
    if not on:
        return group(rect(x, y, CELL, CELL, rx=2.5, extra='style="--w:.6"'), "k out")
    colour = COLOURS.get("backend" if is_backend else family(name), "r5")
    mark = ""
    if step.role in ("excluded", "fallthrough"):
        takes = sets.taken(step.role) >> bit & 1
        if not takes:
            return group(rect(x, y, CELL, CELL, rx=2.5) + _stroke(x, y, "m"), "k out", words + ", which is not there")
        colour, mark = "bad", _stroke(x, y, "")
    elif step.role in ("effective", "set") and sets.layout.bits(sets.winner) >> bit & 1:
        colour = "hot"
    return group(rect(x, y, CELL, CELL, rx=2.5) + mark, f"k {colour}", words)


def _stroke(x: float, y: float, cls: str) -> str:
    """A minus sign in a cell: this mask takes the bit away."""
    return text(x + CELL / 2, y + 9.6, "−", cls, "middle", 11)


def _upright(x: float, y: float, words: str) -> str:
    """A name that stands above its column and reads upwards."""
    return (
        f'<text class="up" transform="translate({num(x)} {num(y)}) rotate(-90)" font-size="{num(NAME)}">'
        f"{esc(words)}</text>"
    )


def _upright_number(x: float, y: float, bit: int, named: Sequence[int]) -> str:
    """The bit's number below its column."""
    return text(x, y + 4, bit, "m", "middle", 9)
