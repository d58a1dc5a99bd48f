"""Storage map: which tensors share a storage, and which of its bytes each sees (c10/core/StorageImpl.h)."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from ..draw import Svg, tensor_over_storage, views_over_storage
from ..records import Rows, StorageView, Table, html_table, human_bytes
from ._looking import is_torch, require_tensor, view_of
from ._names import argument_names
from ._torch_internals import storage_use_count

_LISTED = 50_000


@dataclass(frozen=True, slots=True)
class StorageMap(Table):
    """Several tensors, grouped by the storage that they lie over; made by `storage_map`.

    `views` are in the order asked for. `groups()` gives them storage by storage, `shared_bytes(a, b)` what
    two of them (by name) both see, `rows()` one line per tensor. In a notebook each storage is drawn.
    """

    views: tuple[StorageView, ...]

    def __getitem__(self, name: str) -> StorageView:
        for view in self.views:
            if view.name == name:
                return view
        raise KeyError(
            f"no tensor is called {name!r}; the names are {', '.join(v.name for v in self.views)}."
        )

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
        return _shared(self[a], self[b])

    def rows(self) -> Rows:
        labels = {group[0].storage: f"S{k}" for k, group in enumerate(self.groups())}
        result: Rows = []
        for view in self.views:
            low, high = view.span()
            shares = {v.name: _shared(view, v) for v in self.views if v is not view}
            result.append(
                {
                    "tensor": view.name,
                    "storage": labels[view.storage],
                    "shape": view.shape,
                    "stride": view.stride,
                    "offset": view.offset,
                    "dtype": view.dtype,
                    "device": view.device,
                    "bytes": f"{low * view.itemsize}..{high * view.itemsize}" if view.numel else "none",
                    "sees": f"{human_bytes(_seen(view))} of {human_bytes(view.nbytes)}",
                    "shares": ", ".join(f"{human_bytes(n)} with {v}" for v, n in shares.items() if n) or "-",
                }
            )
        return result

    def caption(self) -> str:
        tensors, storages = len(self.views), len(self.groups())
        return f"{tensors} tensor{'s' * (tensors != 1)} over {storages} storage{'s' * (storages != 1)}"

    def figures(self) -> list[Svg]:
        """One figure per storage, in the order of `groups()`; each has `save(path)`."""
        return [
            tensor_over_storage(group[0]) if len(group) == 1 else views_over_storage(group)
            for group in self.groups()
        ]

    def _repr_html_(self) -> str:
        return html_table(self.rows(), self.caption()) + "".join(f._repr_html_() for f in self.figures())


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
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
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


def _byte_set(view: StorageView) -> frozenset[int]:
    size = view.itemsize
    return frozenset(p * size + k for p in set(view.cells()) for k in range(size))


def _is_interval(view: StorageView) -> bool:
    """No holes and no repeats: the elements fill their span."""
    low, high = view.span()
    dims = sorted((s, n) for n, s in zip(view.shape, view.stride, strict=True) if n > 1)
    expected = 1
    for stride, size in dims:
        if stride != expected:
            return False
        expected *= size
    return high - low == view.numel


def _seen(view: StorageView) -> int:
    """Distinct bytes that a view reads."""
    if view.numel == 0:
        return 0
    if _is_interval(view):
        return view.tensor_nbytes
    # without stride 0 only odd as_strided layouts overlap, and for those the cells are listed
    core = _without_repeats(view)
    return len(set(core.cells())) * core.itemsize if core.numel <= _LISTED else core.tensor_nbytes


def _shared(a: StorageView, b: StorageView) -> int:
    if a.storage != b.storage or not a.numel or not b.numel:
        return 0
    a, b = sorted((_without_repeats(a), _without_repeats(b)), key=lambda v: v.numel)
    if _is_interval(a) and _is_interval(b):
        low = max(a.span()[0] * a.itemsize, b.span()[0] * b.itemsize)
        high = min(a.span()[1] * a.itemsize, b.span()[1] * b.itemsize)
        return max(0, high - low)
    if a.numel <= _LISTED and b.numel <= _LISTED:
        return len(_byte_set(a) & _byte_set(b))
    if a.numel <= _LISTED:
        return sum(b.touches(byte // b.itemsize) for byte in _byte_set(a))
    return min(a.tensor_nbytes, b.tensor_nbytes)


def _without_repeats(view: StorageView) -> StorageView:
    """The same cells with every stride-0 dimension cut to one."""
    shape = tuple(1 if s == 0 and n else n for n, s in zip(view.shape, view.stride, strict=True))
    return StorageView.of_layout(
        view.name,
        shape,
        view.stride,
        view.offset,
        size=view.size,
        storage=view.storage,
        itemsize=view.itemsize,
    )
