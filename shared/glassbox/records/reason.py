"""Why: why a call went to the kernel that it went to, argument by argument (aten/src/ATen/core/dispatch/)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .dispatch import Onion, not_hooked
from .dispatch_table import DispatchRow
from .key_set import KeySets
from .table import Rows, Table, html_table, text_table

if TYPE_CHECKING:
    from ..draw import Svg

DRAWN = 4


@dataclass(frozen=True, slots=True)
class KeyOrigin:
    """Where a key comes from, or what takes it away.

    step      "argument self", "arguments self, other", "+ included", "- excluded", "- fallthrough"
    key       the runtime key; for a mask the functionality
    because   in words
    """

    step: str
    key: str
    because: str


@dataclass(frozen=True, slots=True)
class WhyCall(Table):
    """One operator call and why it went where it went. `str` tells it step by step, `figure()` draws it.

    op          "aten.add.Tensor"
    key_sets    how its key set came about, reckoned from the arguments, the thread's sets and the operator's table
    origins     where each key comes from and what takes it away
    layers      the row of each key that is left, highest first: layers[0] is the winner's, which runs first
    seen        the key set that the dispatcher itself worked out, as the 64-bit number
    hops        the kernels that really ran, the first one at depth 0; empty where the call failed
    context     what else was at work, in words: "autocast is on for CPU", "vmap (level 1)"
    """

    op: str
    key_sets: KeySets
    origins: tuple[KeyOrigin, ...]
    layers: tuple[DispatchRow, ...]
    seen: int
    hops: Onion
    context: tuple[str, ...] = ()

    @property
    def winner(self) -> str:
        """The key that the call went to first."""
        return self.key_sets.winner

    @property
    def row(self) -> DispatchRow:
        """The winner's row of the table."""
        return self.layers[0]

    @property
    def agrees(self) -> bool:
        """Whether the reckoned key set is the dispatcher's own, and the first kernel that ran is the winner's."""
        if self.key_sets.effective.bits != self.seen:
            return False
        return not self.hops or (self.hops[0].key, self.hops[0].key_set) == (self.winner, self.seen)

    @property
    def verdict(self) -> str:
        """In one sentence: the key, the row of the table, and what that means."""
        place = f" ({self.row.place})" if self.row.place else ""
        return f"{self.op} goes to {self.winner}: {self.row.kind}{place}; {self.row.meaning}"

    def differences(self) -> tuple[str, ...]:
        """In words, where what was reckoned is not what was seen; empty where `agrees`."""
        found: list[str] = []
        mine = self.key_sets.effective.bits
        layout = self.key_sets.layout
        if mine != self.seen:
            keys = ", ".join(layout.keys(self.seen)) or "no keys"
            found.append(f"the dispatcher worked out {keys} ({self.seen:#x}), not {mine:#x}")
        if self.hops and (self.hops[0].key, self.hops[0].key_set) != (self.winner, self.seen):
            found.append(f"the first kernel that ran is that of {self.hops[0].key} with {self.hops[0].key_set:#x}")
        return tuple(found)

    def rows(self) -> Rows:
        """One row per key: the step, the key, and why it is there or goes."""
        found: Rows = [{"step": each.step, "key": each.key, "because": each.because} for each in self.origins]
        left = ", ".join(self.key_sets.effective.keys) or "nothing"
        found.append({"step": "= effective", "key": left, "because": "what the call's key set is"})
        found.append({"step": "highest", "key": self.winner, "because": _kernel(self.row)})
        if not self.hops:
            found += [{"step": "below it", "key": each.key, "because": _kernel(each)} for each in self.layers[1:]]
        for nr, hop in enumerate(self.hops):
            kernel = f"{hop.kind}{f' at {hop.place}' if hop.place else ''}"
            step = "first kernel" if nr == 0 else f"{'. ' * hop.depth}then"
            found.append({"step": step, "key": f"{hop.op} @ {hop.key}", "because": kernel})
        # The program's; this call may have none of their keys.
        keys = {key for hop in self.hops for key in hop.keys}
        absent = [backend for backend in self.hops.absent if backend in keys]
        return found + ([{"step": "not hooked", "key": "", "because": not_hooked(absent)}] if absent else [])

    def caption(self) -> str:
        context = f" ({'; '.join(self.context)})" if self.context else ""
        wrong = "".join(f"; but {words}" for words in self.differences())
        return f"{self.op} goes to {self.winner}{context}{wrong}"

    def figure(self) -> Svg:
        """The bits, step by step, and under them the kernels that ran."""
        from ..draw import reason_figure

        return reason_figure(self)

    def _repr_html_(self) -> str:
        return self.figure()._repr_html_() + html_table(self.rows(), self.caption())


def _kernel(row: DispatchRow) -> str:
    return f"{row.kind}{f' at {row.place}' if row.place else ''}: {row.meaning}"


@dataclass(frozen=True, slots=True)
class Why(Table):
    """Why each operator call of a program went to its kernel; made by `why`. Iterating, len() and [] give WhyCalls.

    error   what the program raised, where a call came to a row without a kernel: the last call is the one that failed
    """

    calls: tuple[WhyCall, ...]
    error: str = ""

    def __len__(self) -> int:
        return len(self.calls)

    def __iter__(self) -> Iterator[WhyCall]:
        return iter(self.calls)

    def __getitem__(self, nr: int) -> WhyCall:
        return self.calls[nr]

    @property
    def agrees(self) -> bool:
        """Whether for every call what was reckoned is what really ran."""
        return all(call.agrees for call in self.calls)

    def rows(self) -> Rows:
        """One row per call; a single call's own rows."""
        if len(self.calls) == 1:
            return self.calls[0].rows()
        return [
            {
                "#": nr,
                "op": call.op,
                "goes to": call.winner,
                "row": call.row.kind,
                "place": call.row.place,
                "hops": len(call.hops),
                "as reckoned": call.agrees,
            }
            for nr, call in enumerate(self.calls)
        ]

    def caption(self) -> str:
        if len(self.calls) == 1:
            head = self.calls[0].caption()
        else:
            head = f"{len(self.calls)} operator calls; why(...)[0] tells of the first"
        return f"{head}; it failed: {self.error}" if self.error else head

    def figure(self) -> Svg:
        """The picture of the first call."""
        return self.calls[0].figure()

    def figures(self) -> list[Svg]:
        """One picture per call."""
        return [call.figure() for call in self.calls]

    def __str__(self) -> str:
        return "\n".join((self.caption(), text_table(self.rows())))

    def _repr_html_(self) -> str:
        parts = [html_table(self.rows(), self.caption())] if len(self.calls) > 1 or self.error else []
        parts += [call._repr_html_() for call in self.calls[:DRAWN]]
        if len(self.calls) > DRAWN:
            parts.append(f"<p>The first {DRAWN} of {len(self.calls)} calls are drawn.</p>")
        return "".join(parts)
