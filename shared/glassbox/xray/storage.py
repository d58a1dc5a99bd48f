"""Storage map: which tensors share a storage, and which of its bytes each sees (c10/core/StorageImpl.h)."""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any

from ..draw import Svg, tensor_over_storage, views_over_storage
from ..records import Rows, StorageView, Table, html_table, human_bytes
from ._coverage import Coverage
from ._looking import is_torch, require_tensor, view_of
from ._names import argument_names
from ._torch_internals import storage_use_count

# more tensors over one storage are listed, but neither compared with each other nor drawn
COMPARED = 20
DRAWN = 12


@dataclass(frozen=True, slots=True)
class StorageMap(Table):
    """Several tensors, grouped by the storage that they lie over; made by `storage_map`.

    `views` are in the order asked for. `groups()` gives them storage by storage, `shared_bytes(a, b)` what
    two of them (by name) both see, `rows()` one line per tensor, which says what it shares with the others
    where at most 20 lie over the storage. In a notebook the first 12 storages are drawn.
    """

    views: tuple[StorageView, ...]

    def __getitem__(self, name: str) -> StorageView:
        for view in self.views:
            if view.name == name:
                return view
        raise KeyError(f"no tensor is called {name!r}; the names are {', '.join(v.name for v in self.views)}.")

    def groups(self) -> list[tuple[StorageView, ...]]:
        """One tuple of views per storage, in order of first appearance."""
        found: dict[int, list[StorageView]] = {}
        for view in self.views:
            found.setdefault(view.storage, []).append(view)
        return [tuple(group) for group in found.values()]

    def same_storage(self, *names: str) -> bool:
        """True if all the named tensors (all of them without names) lie over one storage."""
        chosen = [self[n] for n in names] if names else list(self.views)
        return len({v.storage for v in chosen}) <= 1

    def shared_bytes(self, a: str, b: str) -> int:
        """How many bytes of storage the two tensors of these names both see; 0 if their storages differ."""
        return Coverage(self[a]).shared(Coverage(self[b]))

    def rows(self) -> Rows:
        labels = {group[0].storage: f"S{k}" for k, group in enumerate(self.groups())}
        shares = self._shares()
        result: Rows = []
        for view in self.views:
            low, high = (bound * view.itemsize for bound in view.span())
            result.append(
                {
                    "tensor": view.name,
                    "storage": labels[view.storage],
                    "shape": view.shape,
                    "stride": view.stride,
                    "offset": view.offset,
                    "dtype": view.dtype,
                    "device": view.device,
                    "first byte": low if view.numel else None,
                    "end": high if view.numel else None,
                    "sees": Coverage(view).seen(),
                    "storage bytes": view.nbytes,
                    "shares": shares[view.name],
                }
            )
        return result

    def shown(self) -> Rows:
        result: Rows = []
        for row in self.rows():
            span = "none" if row["first byte"] is None else f"{row['first byte']}..{row['end']}"
            sees = f"{human_bytes(row['sees'])} of {human_bytes(row['storage bytes'])}"
            plain = {key: row[key] for key in ("tensor", "storage", "shape", "stride", "offset", "dtype", "device")}
            result.append(plain | {"bytes": span, "sees": sees, "shares": row["shares"]})
        return result

    def _shares(self) -> dict[str, str]:
        """Per tensor, in words, what it shares with the others over its storage."""
        words: dict[str, str] = {}
        for group in self.groups():
            if len(group) > COMPARED:
                words |= {view.name: f"not compared with {len(group) - 1:,} others" for view in group}
                continue
            covers = [Coverage(view) for view in group]
            found: dict[str, list[str]] = {view.name: [] for view in group}
            for k, j in itertools.product(range(len(group)), repeat=2):
                if k < j and (n := covers[k].shared(covers[j])):
                    found[group[k].name].append(f"{human_bytes(n)} with {group[j].name}")
                    found[group[j].name].append(f"{human_bytes(n)} with {group[k].name}")
            words |= {name: ", ".join(parts) or "-" for name, parts in found.items()}
        return words

    def caption(self) -> str:
        tensors, storages = len(self.views), len(self.groups())
        counts = f"{tensors:,} tensor{'s' * (tensors != 1)} over {storages:,} storage{'s' * (storages != 1)}"
        if max(map(len, self.groups())) <= COMPARED:
            return counts
        return f"{counts}; more than {COMPARED} over one are not compared: ask shared_bytes(a, b)"

    def figures(self) -> list[Svg]:
        """One figure per storage, in the order of `groups()`; each has `save(path)`.

        Of many tensors over one storage the first 12 are drawn, and the figure's title says so.
        """
        return [_figure(group) for group in self.groups()]

    def _repr_html_(self) -> str:
        groups = self.groups()
        parts = [html_table(self.shown(), self.caption())]
        for k, group in enumerate(groups[:DRAWN]):
            if len(group) > DRAWN:
                parts.append(f"<p>Drawn: the first {DRAWN} of the {len(group):,} tensors over S{k}.</p>")
            parts.append(_figure(group)._repr_html_())
        if len(groups) > DRAWN:
            parts.append(f"<p>{len(groups) - DRAWN:,} more storages are not drawn.</p>")
        return "".join(parts)


def _figure(group: tuple[StorageView, ...]) -> Svg:
    if len(group) == 1:
        return tensor_over_storage(group[0])
    if len(group) <= DRAWN:
        return views_over_storage(group)
    title = f"the first {DRAWN} of {len(group):,} tensors over one storage"
    return views_over_storage(group[:DRAWN], title=title)


def storage_map(*tensors: Any, **named: Any) -> StorageMap:
    """Who shares what: the given torch or mini tensors, grouped by storage.

    Keyword arguments carry their names; positional ones are called what the caller wrote, or by their
    variable, or $0, $1, ... where neither is certain. TypeError for what is no strided tensor, ValueError
    without tensors or with a name given twice.
    """
    labels = argument_names(sys._getframe(1), tensors)
    pairs = [*zip(labels, tensors, strict=True), *named.items()]
    if not pairs:
        raise ValueError("storage_map: there is nothing to map; pass at least one tensor.")
    names = [n for n, _ in pairs]
    twice = next((n for n, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"storage_map: the name {twice!r} is used twice; give the tensors different names.")
    for name, tensor in pairs:
        require_tensor(tensor, f"storage_map, {name}")
    return StorageMap(tuple(view_of(tensor, name) for name, tensor in pairs))


def use_count(tensor: Any) -> int:
    """The storage's own reference count, as PyTorch keeps it (torch._C._storage_Use_Count; mini:
    Storage.use_count).

    It counts every tensor over the storage in Python or C++, and also the storage handle that is asked
    through: 2 for a lone tensor. `sys.getrefcount` of the handle says nothing about tensors.
    """
    require_tensor(tensor, "use_count")
    storage = tensor.untyped_storage()
    return storage_use_count(storage) if is_torch(tensor) else int(storage.use_count())
