"""Hops: the kernels that ran for a call, key by key (aten/src/ATen/core/dispatch/Dispatcher.h)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .table import Rows, Table, folded_table, html_table

if TYPE_CHECKING:
    from ..draw import Svg

# A notebook shows so many as a figure, and so many in a table.
FIGURED, LISTED = 40, 300


@dataclass(frozen=True, slots=True)
class Hop:
    """One kernel that ran for one key on a call's way down.

    op        "aten.add.Tensor"
    key       the dispatch key whose row of the table it came from
    key_set   the call's keys at this point, as the 64-bit number, and by name from the lowest to the highest
    kind      why the row holds this kernel: "kernel", "autograd kernel", "math kernel", "backend fallback", ...
    place     where the kernel was registered
    depth     how many hops this one was reached through
    node      in a backward pass, the node of the graph that was being evaluated: "MulBackward0"; else ""
    inferred  True where the kernel could not be watched and is known from the key set that was handed on
    """

    op: str
    key: str
    key_set: int
    keys: tuple[str, ...]
    kind: str
    place: str = ""
    depth: int = 0
    node: str = ""
    inferred: bool = False

    @property
    def phase(self) -> str:
        return "backward" if self.node else "forward"

    def __str__(self) -> str:
        sure = " (not watched: inferred)" if self.inferred else ""
        return f"{'  ' * self.depth}{self.op} @ {self.key} [{self.kind}]{sure}"


def not_hooked(backends: Sequence[str]) -> str:
    """That kernels of these backends could not be seen, as a sentence without its end."""
    return f"no {' or '.join(backends)} device is here, so kernels of its keys (Autograd's too) were not hooked"


@dataclass(frozen=True, slots=True)
class Onion(Table):
    """The hops of a program, each before those that it led to. Iterating, len() and [] give Hops.

    note    what the reader should know of how they were seen
    absent  backends whose kernels could not be seen, as no device of theirs is here
    """

    hops: tuple[Hop, ...]
    note: str = ""
    absent: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.hops)

    def __iter__(self) -> Iterator[Hop]:
        return iter(self.hops)

    def __getitem__(self, nr: int) -> Hop:
        return self.hops[nr]

    def calls(self) -> list[Onion]:
        """One Onion for each call that no kernel made: the program's own, and those of the backward engine."""
        starts = [nr for nr, hop in enumerate(self.hops) if hop.depth == 0 or nr == 0]
        return [
            Onion(self.hops[start:end], self.note, self.absent)
            for start, end in zip(starts, [*starts[1:], len(self.hops)], strict=True)
        ]

    def counts(self) -> dict[str, int]:
        """How many hops each key had, the most frequent first."""
        found: dict[str, int] = {}
        for hop in self.hops:
            found[hop.key] = found.get(hop.key, 0) + 1
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))

    def rows(self) -> Rows:
        backward = any(hop.node for hop in self.hops)
        return [
            {
                "hop": f"{'. ' * hop.depth}{hop.op}",
                "key": hop.key,
                "kernel": hop.kind + (" (inferred)" if hop.inferred else ""),
                "keys": ", ".join(hop.keys),
                "place": hop.place,
            }
            | ({"backward of": hop.node} if backward else {})
            for hop in self.hops
        ]

    def caption(self) -> str:
        return f"{len(self.hops)} hop{'s' * (len(self.hops) != 1)}"

    def figure(self) -> Svg:
        """The kernels as layers around each other, the first 40 of them."""
        from ..draw import onion_figure

        return onion_figure(self)

    def _repr_html_(self) -> str:
        parts = [self.figure()._repr_html_()] if len(self) <= FIGURED else []
        rows, left = self.rows()[:LISTED], len(self) - LISTED
        more = f", of which the first {LISTED} are listed; rows() gives all" if left > 0 else ""
        note = f"; {self.note}" if self.note else ""
        table = folded_table if parts else html_table
        return "".join([*parts, table(rows, self.caption() + more + note)])

    def text(self) -> str:
        """One line per hop, indented under the one that led to it; those of a backward pass under their node."""
        lines = []
        node = ""
        for hop in self.hops:
            if hop.node != node and hop.node and hop.depth == 0:
                lines.append(f"{hop.node}, in backward:")
            node = hop.node if hop.depth == 0 else node
            lines.append(f"  {hop}" if hop.node else str(hop))
        return "\n".join(lines)

    def __str__(self) -> str:
        return "\n".join(part for part in (self.text(), self.note) if part)
