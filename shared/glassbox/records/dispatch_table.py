"""DispatchTable: whose kernel each key's row of an operator holds (aten/src/ATen/core/dispatch/OperatorEntry.h)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .table import Rows, Table, html_table

NAMED = 5

# What the last word of a row says: how its kernel came there.
KINDS: Mapping[str, str] = {
    "kernel": "registered to this very key",
    "autograd kernel": "registered to the alias key Autograd, which fills every autograd row that has nothing better",
    "math kernel": "registered to the alias key CompositeImplicitAutograd: it calls other operators, dispatched anew",
    "default backend kernel": "registered to an alias key that fills the rows of all backends without a kernel of "
    "their own: CompositeExplicitAutograd or CompositeExplicitAutogradNonFunctional",
    "nested kernel": "registered to the alias key CompositeImplicitAutogradNestedTensor",
    "batched kernel": "registered to the alias key FuncTorchBatchedDecomposition: vmap takes the operator apart",
    "backend fallback": "one kernel of this key for all operators that have none here",
    "ambiguous autogradother": "a composite kernel and one for a backend of AutogradOther exclude each other here",
    "missing": "nothing is registered: a call that comes here fails",
}


@dataclass(frozen=True, slots=True)
class DispatchRow:
    """One row of an operator's table.

    key            the runtime key
    kind           how the kernel came there: one of KINDS
    place          file and line of its registration, the build's own folders left out; "" where there is none
    fallthrough    whether it is no kernel but a hole that calls drop through: the key is taken out of every call's set
    registered_to  the key that it was registered to, an alias key maybe; "" for a backend fallback
    """

    key: str
    kind: str
    place: str = ""
    fallthrough: bool = False
    registered_to: str = ""

    @property
    def file(self) -> str:
        """The place without its line."""
        head, _, line = self.place.rpartition(":")
        return head if line.isdigit() else self.place

    @property
    def line(self) -> int | None:
        last = self.place.rpartition(":")[2]
        return int(last) if last.isdigit() else None

    @property
    def meaning(self) -> str:
        """The kind in words."""
        words = KINDS.get(self.kind, "of a kind that is not known here")
        if self.fallthrough:
            return f"fallthrough, {words}: the key is passed over"
        return words

    def __str__(self) -> str:
        kind = f"{self.kind}, fallthrough" if self.fallthrough else self.kind
        return f"{self.key}: {self.place or 'nothing'} [{kind}]"


@dataclass(frozen=True, slots=True)
class Registration:
    """One kernel that is registered for an operator.

    key      to which; alias: whether that stands for several keys
    active   False for one that a later registration to the same key covers
    """

    key: str
    alias: bool
    active: bool
    fallthrough: bool
    place: str
    signature: str = ""


@dataclass(frozen=True, slots=True)
class DispatchTable(Table):
    """An operator's dispatch table; made by `table`. Iterating gives its rows, highest priority first.

    table["AutogradCPU"] is one row, of kind "missing" where nothing is there. `rows()` takes those that hold the same
    kernel together.

    op              "aten.add.Tensor"
    entries         the rows that hold something
    registrations   what was registered, alias keys included, from which the rows follow
    known           every runtime key there is, highest priority first
    """

    op: str
    schema: str
    entries: tuple[DispatchRow, ...]
    registrations: tuple[Registration, ...]
    known: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[DispatchRow]:
        return iter(self.entries)

    def __getitem__(self, key: str) -> DispatchRow:
        for row in self.entries:
            if row.key == key:
                return row
        if key in self.known:
            return DispatchRow(key, "missing")
        raise KeyError(f"{key!r} is no runtime dispatch key; alias keys have no row, see table.registrations.")

    def __contains__(self, key: str) -> bool:
        return any(row.key == key for row in self.entries)

    def groups(self) -> list[tuple[DispatchRow, ...]]:
        """Rows that hold the same kernel together, in the order of their highest key."""
        found: dict[tuple[object, ...], list[DispatchRow]] = {}
        for row in self.entries:
            found.setdefault((row.kind, row.place, row.fallthrough), []).append(row)
        return [tuple(rows) for rows in found.values()]

    def registered(self, key: str) -> Registration | None:
        """The active registration to this very key, alias keys too; None where there is none."""
        return next((each for each in self.registrations if each.key == key and each.active), None)

    def rows(self) -> Rows:
        """One row for each runtime key, highest priority first."""
        return [{"key": row.key, **_what(row)} for row in self.entries]

    def shown(self) -> Rows:
        """Neighbours that hold the same in one row."""
        return [{"keys": _several([row.key for row in rows]), **_what(rows[0])} for rows in self.groups()]

    def caption(self) -> str:
        passed = sum(row.fallthrough for row in self.entries)
        return (
            f"{self.op}: {len(self.entries)} of {len(self.known)} rows hold something, {passed} of them a fallthrough; "
            f"{len(self.registrations)} registrations"
        )

    def __str__(self) -> str:
        return f"{self.schema}\n{Table.__str__(self)}" if self.schema else Table.__str__(self)

    def _repr_html_(self) -> str:
        registered: Rows = [
            {
                "registered to": each.key + (" (alias)" if each.alias else ""),
                "place": each.place,
                "counts": "yes" if each.active else "no, covered by a later one",
            }
            for each in self.registrations
        ]
        folded = f"<details><summary>what was registered</summary>{html_table(registered)}</details>"
        return html_table(self.shown(), self.caption()) + (folded if registered else "")


def _what(row: DispatchRow) -> dict[str, str]:
    return {
        "kernel": "fallthrough" if row.fallthrough else row.kind,
        "from": row.registered_to if row.registered_to != row.key else "",
        "place": row.place,
    }


def _several(keys: list[str]) -> str:
    """The keys of a group: all of a few, else the first ones and how many more."""
    if len(keys) <= NAMED + 1:
        return ", ".join(keys)
    return f"{', '.join(keys[:NAMED])} and {len(keys) - NAMED} more"
