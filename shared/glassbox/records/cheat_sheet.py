"""CheatSheet: all dispatch keys by family, in the order of their priority (c10/core/DispatchKey.h)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .table import Rows, Table


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """One line of the sheet.

    key      a functionality, whose bit decides its priority; or an alias key, or a backend
    family   one of glassbox.records.key_family.FAMILIES, "backend bits", "alias keys", or "other" for what is not known
    bit      its place in the 64 bits; None for an alias key
    keys     the runtime keys that it makes: itself, or one per backend
    does     in one sentence what a kernel for it does, or what the key stands for; "" for a key that is not known here
    known    False for a key that this sheet has no sentence for, such as a new one
    """

    key: str
    family: str
    bit: int | None
    keys: tuple[str, ...]
    does: str
    known: bool = True

    @property
    def per_backend(self) -> bool:
        return len(self.keys) > 1


@dataclass(frozen=True, slots=True)
class CheatSheet(Table):
    """All dispatch keys of one framework, highest priority first; made by `cheat_sheet`. Iterating gives KeyEntries.

    After the functionalities, whose order is the dispatcher's, come the backend bits, which have none but that the
    highest of several wins, and the alias keys, which no call ever has.
    """

    framework: str
    entries: tuple[KeyEntry, ...]

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[KeyEntry]:
        return iter(self.entries)

    def __getitem__(self, key: str) -> KeyEntry:
        for entry in self.entries:
            if entry.key == key or key in entry.keys:
                return entry
        raise KeyError(f"{self.framework} has no dispatch key {key!r}.")

    def priority(self) -> tuple[str, ...]:
        """The functionalities, highest priority first."""
        return tuple(e.key for e in self.entries if e.family not in ("backend bits", "alias keys"))

    def rows(self) -> Rows:
        return [
            {
                "family": entry.family,
                "key": entry.key,
                "bit": entry.bit,
                "runtime keys": ", ".join([*entry.keys[:2], f"... ({len(entry.keys)})"]) if entry.per_backend else "",
                "what it does": entry.does if entry.known else "not known here",
            }
            for entry in self.entries
        ]

    def caption(self) -> str:
        count = len(self.priority())
        return f"{self.framework}: {count} functionality bits, highest priority first; the backend bits; the alias keys"
