"""Hops: the kernels that ran for a call, key by key (aten/src/ATen/core/dispatch/Dispatcher.h)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .table import Rows, Table


@dataclass(frozen=True, slots=True)
class Hop:
    """One kernel that ran for one key on a call's way down.

    op        "aten.add.Tensor"
    key       the dispatch key whose row of the table it came from
    key_set   the call's keys at this point, as the 64-bit number, and by name from the lowest to the highest
    kind      why the row holds this kernel: "kernel", "autograd kernel", "math kernel", "backend fallback", ...
    place     where the kernel was registered
    depth     how many hops this one was reached through
    """

    op: str
    key: str
    key_set: int
    keys: tuple[str, ...]
    kind: str
    place: str = ""
    depth: int = 0

    def __str__(self) -> str:
        return f"{'  ' * self.depth}{self.op} @ {self.key} [{self.kind}]"


@dataclass(frozen=True, slots=True)
class Onion(Table):
    """The hops of a program, each before those that it led to. Iterating, len() and [] give Hops."""

    hops: tuple[Hop, ...]

    def __len__(self) -> int:
        return len(self.hops)

    def __iter__(self) -> Iterator[Hop]:
        return iter(self.hops)

    def __getitem__(self, nr: int) -> Hop:
        return self.hops[nr]

    def rows(self) -> Rows:
        return [
            {
                "hop": f"{'. ' * hop.depth}{hop.op}",
                "key": hop.key,
                "kernel": hop.kind,
                "keys": ", ".join(hop.keys),
                "place": hop.place,
            }
            for hop in self.hops
        ]

    def caption(self) -> str:
        return f"{len(self.hops)} hop{'s' * (len(self.hops) != 1)}"

    def __str__(self) -> str:
        return "\n".join(map(str, self.hops))
