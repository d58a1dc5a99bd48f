"""Key set explorer: switch things on and see bits, masks, winner and kernels change (c10/core/DispatchKeySet.h).

The Python side asks PyTorch for every state when the first explorer of a process is made; the browser side looks one up
and draws it, without the kernel.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import traitlets

from ..draw import reason_figure
from ..draw.key_set import COLOURS, winner_words
from ..draw.svg import esc
from ..records import Hop, KeyLayout, KeySets, WhyCall
from ..records.key_family import family
from ._base import GlassboxWidget, script, themed_css
from ._keyset_states import Choice, State, options, program, states


class KeySetExplorer(GlassboxWidget):
    """One operator call, and everything that can be switched on around it.

    Traits to read, set and observe, as `Choice` has them: `op`, `device`, `requires_grad`, `autocast`, `no_grad`,
    `inference`, `vmap`, `mode`. TraitError for a value that is not offered, TypeError for another name. `call` is the
    state on show as a record.

    Making the first one runs every state in a thread of its own, so that no block around it counts; that takes some
    seconds, and hooks all kernels of the process meanwhile.
    """

    _esm = script("keyset_explorer.js")
    _css = themed_css("keyset_explorer.css")

    data = traitlets.Dict().tag(sync=True)
    op = traitlets.Unicode("add").tag(sync=True)
    device = traitlets.Unicode("cpu").tag(sync=True)
    requires_grad = traitlets.Bool(True).tag(sync=True)
    autocast = traitlets.Bool(False).tag(sync=True)
    no_grad = traitlets.Bool(False).tag(sync=True)
    inference = traitlets.Unicode("off").tag(sync=True)
    vmap = traitlets.Bool(False).tag(sync=True)
    mode = traitlets.Bool(False).tag(sync=True)

    def __init__(self, **chosen: Any) -> None:
        for name in chosen:
            if name not in Choice._fields:
                switches = ", ".join(Choice._fields)
                raise TypeError(f"KeySetExplorer: there is no switch {name!r}; the switches are {switches}.")
        super().__init__(data=compact(), **chosen)

    @property
    def choice(self) -> Choice:
        """The state on show."""
        return Choice(*(getattr(self, name) for name in Choice._fields))

    @property
    def call(self) -> WhyCall:
        """What there is to see of it: key sets, reasons, hops."""
        return states()[self.choice].call

    def at(self, **chosen: Any) -> WhyCall:
        """What there is to see of another state, whatever is on show; what is not chosen is as in `Choice`.

        ValueError for a state that there is not, TypeError for an unknown field.
        """
        choice = Choice(**chosen)
        if choice not in states():
            raise ValueError(f"KeySetExplorer: there is no state {choice}.")
        return states()[choice].call

    @property
    def code(self) -> str:
        """The program of the state on show."""
        return "\n".join(filter(None, program(self.choice)))

    @traitlets.validate("op", "device", "inference")
    def _offered(self, proposal: dict[str, Any]) -> str:
        name, value = proposal["trait"].name, proposal["value"]
        if value not in options()[name]:
            offered = ", ".join(options()[name])
            raise traitlets.TraitError(f"KeySetExplorer: {name} {value!r} is not offered; choose one of {offered}.")
        return str(value)

    def static_html(self) -> str:
        call = self.call
        if not states()[self.choice].executed:
            call = replace(call, context=(*call.context, _NOT_EXECUTED))
        return f"<pre><code>{esc(self.code)}</code></pre>{reason_figure(call)._repr_html_()}"

    def __str__(self) -> str:
        call = self.call
        return f"KeySetExplorer: {call.op} goes to {call.winner}, hops {', '.join(hop.key for hop in call.hops)}"


_NOT_EXECUTED = "not executed: keys of fake tensors, kernels from the tables"


@cache
def compact() -> dict[str, Any]:
    """All states as plain data, the last option running fastest; what repeats stands once and is pointed at.

    rows      the bits that matter, highest first: [bit, name, colour, whether it is a backend's]
    options   field -> what it can be, in the order in which `states` runs through them
    states    [tensors, blocks, call, sets, onion, remark] each, as places in `texts`, `sets`, `onions` and `texts`
    sets      see `_sums`; why: for each of `rows` the reason, as a place in `texts`
    onions    [depth, place in `hops`] each; hops: [op, key, kind, colour, place, inferred]
    """
    seen = states()
    layout = next(iter(seen.values())).call.key_sets.layout
    used = 0
    for state in seen.values():
        for step in state.call.key_sets.steps:
            used |= step.bits if step.role in ("argument", "included") else 0
    bits = [bit for bit in reversed(range(layout.size)) if used >> bit & 1]
    texts, sets, onions, hops = _Pool(), _Pool(), _Pool(), _Pool()
    table = []
    for state in seen.values():
        onion = tuple((hop.depth, hops.place(_hop(hop))) for hop in state.call.hops)
        code = [texts.place(part) for part in program(state.choice)]
        why = tuple(texts.place(_because(state.call, bit)) for bit in bits)
        sums = sets.place((*_sums(state.call.key_sets), ("why", why)))
        table.append([*code, sums, onions.place(onion), texts.place(_remark(state))])
    return {
        "rows": [_row(layout, bit) for bit in bits],
        "size": layout.size,
        "options": {name: list(values) for name, values in options().items()},
        "states": table,
        "texts": texts.items,
        "sets": [dict(each) for each in sets.items],
        "onions": onions.items,
        "hops": hops.items,
    }


class _Pool:
    """Things in the order in which they first came."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._places: dict[Any, int] = {}

    def place(self, item: Any) -> int:
        if item not in self._places:
            self._places[item] = len(self.items)
            self.items.append(item)
        return self._places[item]


def _row(layout: KeyLayout, bit: int) -> list[Any]:
    name, backend = layout.bit_name(bit), bit < len(layout.backends)
    return [bit, name, COLOURS.get("backend" if backend else family(name), "r5"), backend]


def _hop(hop: Hop) -> tuple[Any, ...]:
    name = hop.op.removeprefix("aten.").removesuffix(".default")
    kind = family(hop.key)
    return name, hop.key, hop.kind, COLOURS.get("backends" if kind == "other" else kind, "out"), hop.place, hop.inferred


def _sums(sets: KeySets) -> tuple[tuple[str, Any], ...]:
    """The sum of a call's key set, as numbers of bits; `taken` is what the two masks really take away."""
    masks = ("excluded", "fallthrough")
    return (
        ("arguments", tuple((step.name, _set_bits(step.bits)) for step in sets.steps if step.role == "argument")),
        ("included", _set_bits(sets.of_role("included").bits)),
        *((mask, _set_bits(sets.of_role(mask).bits)) for mask in masks),
        ("taken", tuple(_set_bits(sets.taken(mask)) for mask in masks)),
        ("left", _set_bits(sets.effective.bits)),
        ("hex", f"{sets.effective.bits:#018x}"),
        ("lit", _set_bits(sets.layout.bits(sets.winner))),
        ("winner", sets.winner),
        ("words", _where(sets)),
    )


def _because(call: WhyCall, bit: int) -> str:
    """The reasons of one bit in a line: where it comes from; what takes it away."""
    sets, layout = call.key_sets, call.key_sets.layout
    name = layout.bit_name(bit)
    if bit < len(layout.backends):
        holders = [each for each in sets.arguments if sets.arguments[each].bits >> bit & 1]
        return f"the backend of {' and '.join(holders)}" if holders else ""
    found: list[str] = []
    for each in call.origins:
        if each.key == "-" or layout.pair(each.key)[0] != name:
            continue
        if each.step.startswith("-"):
            because = each.because.partition(" (")[0]
            found.append(f"taken away: {because.partition(': this operator')[0]}")
        elif each.because not in found:
            found.append(each.because)
    if not found and any(name in each.functionalities for each in sets.arguments.values()):
        found.append("its kind of tensor has it, here without a backend")
    return "; ".join(found)


def _remark(state: State) -> str:
    """What is to be said of the state besides."""
    said = [_NOT_EXECUTED] if not state.executed else []
    if state.choice.autocast and state.choice.device == "meta":
        said.append("there is no autocast for meta tensors: the CPU's is on")
    if state.choice.no_grad and state.choice.inference == "off":
        said.append("gradients are off, which changes no key")
    return "; ".join(said)


def _where(sets: KeySets) -> str:
    """The winner's bits in words, without its name."""
    words = winner_words(sets).removeprefix(f"{sets.winner} is highest")
    return words.removeprefix(": ") if words.startswith(":") else words.strip(" ()")


def _set_bits(bits: int) -> tuple[int, ...]:
    return tuple(bit for bit in range(bits.bit_length()) if bits >> bit & 1)
