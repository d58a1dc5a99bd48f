"""Leaks: small live tensors that keep large storages alive (a storage lives while anything refers to it).

PyTorch frees a storage when the use count in c10/core/StorageImpl.h falls to zero, however little of it is
still seen.
"""

from __future__ import annotations

import gc
import math
from dataclasses import dataclass
from typing import Any

from ..records import Rows, Table, human_bytes
from ._looking import has_data, identity, is_tensor_type, metadata
from ._places import Scope, is_held, places, running_scopes
from ._torch_internals import base_of

_SEARCHED = 20


@dataclass(frozen=True, slots=True)
class Leak(Table):
    """One tensor over a storage of which the live tensors together see little.

    tensor_bytes, storage_bytes   what it needs, and what it keeps alive
    where                         names that lead to it, best effort: variables, attributes, containers
    fix                           what to write instead
    """

    where: tuple[str, ...]
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str
    device: str
    tensor_bytes: int
    storage_bytes: int
    storage: int
    fix: str

    @property
    def ratio(self) -> float:
        """Storage bytes per byte of the tensor."""
        return self.storage_bytes / max(1, self.tensor_bytes)

    def rows(self) -> Rows:
        return [
            {
                "where": ", ".join(self.where[:2]) or "not found from Python",
                "shape": self.shape,
                "dtype": self.dtype,
                "needs": self.tensor_bytes,
                "keeps alive": self.storage_bytes,
                "ratio": self.ratio,
                "fix": self.fix,
            }
        ]

    def shown(self) -> Rows:
        sizes = {"needs": human_bytes(self.tensor_bytes), "keeps alive": human_bytes(self.storage_bytes)}
        return [self.rows()[0] | sizes | {"ratio": f"{self.ratio:,.0f}x"}]


@dataclass(frozen=True, slots=True)
class LeakReport(Table):
    """What `leaks` found, largest waste first. Behaves as a sequence of `Leak`."""

    found: tuple[Leak, ...]

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Any:
        return iter(self.found)

    def __getitem__(self, k: int) -> Leak:
        return self.found[k]

    def rows(self) -> Rows:
        return [leak.rows()[0] for leak in self.found]

    def shown(self) -> Rows:
        return [leak.shown()[0] for leak in self.found]

    def wasted(self) -> int:
        """Bytes that no live Python tensor sees; each storage counts once."""
        storages: dict[int, int] = {}
        for leak in self.found:
            storages.setdefault(leak.storage, leak.storage_bytes)
            storages[leak.storage] -= leak.tensor_bytes
        return sum(max(0, n) for n in storages.values())

    def caption(self) -> str:
        if not self.found:
            return "no small tensor keeps a large storage alive"
        count = len(self.found)
        tensors = "1 tensor keeps" if count == 1 else f"{count} tensors keep"
        return f"{tensors} {human_bytes(self.wasted())} alive that nobody sees"


def leaks(min_ratio: float = 4.0, min_bytes: int = 100_000) -> LeakReport:
    """Live tensors (torch and mini) over storages that are much larger than all that is seen of them.

    min_ratio   report a storage at least this many times larger than its live tensors together
    min_bytes   and with at least this many bytes that none of them sees

    Tensors are found through Python's garbage collector. One that lives only as the `_base` of a view does
    not count as seeing anything; what only C++ holds (autograd's saved values) is not looked at. Places are
    searched for in variables of running functions, in modules, attributes and containers. TypeError for what
    is no number, ValueError for a ratio below 1 and for numbers that are not finite or negative.
    """
    for name, value in (("min_ratio", min_ratio), ("min_bytes", min_bytes)):
        _require_number(name, value)
    if min_ratio < 1:
        raise ValueError(
            f"leaks: min_ratio is {min_ratio}, but a storage is never smaller than its view; use 1 or more."
        )
    groups = _live_by_storage()
    with running_scopes() as scopes:
        suspects: list[tuple[int, int, Any]] = []
        ignore: list[Any] = [groups, suspects]
        for storage, tensors in groups.items():
            total = int(tensors[0].untyped_storage().nbytes())
            if total < min_bytes:
                continue
            held = _held(tensors, scopes, groups)
            ignore += [tensors, held]
            seen = min(total, sum({_layout(t): _bytes(t) for t in held}.values()))
            if held and total - seen >= min_bytes and total >= min_ratio * max(1, seen):
                suspects += [(total, storage, t) for t in held]
        suspects.sort(key=lambda s: _bytes(s[2]) - s[0])
        ignore += suspects
        found = []
        for k, (total, storage, tensor) in enumerate(suspects):
            where = places(tensor, scopes, ignore) if k < _SEARCHED else ()
            found.append(_leak(tensor, storage, total, where))
    return LeakReport(tuple(found))


def _require_number(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"leaks: {name} is a {type(value).__name__}; give a number such as 4.")
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"leaks: {name} is {value}; give a finite number that is not negative.")


def _live_by_storage() -> dict[int, list[Any]]:
    kinds: dict[type, bool] = {}
    groups: dict[int, list[Any]] = {}
    for obj in gc.get_objects():
        kind = type(obj)
        if kind not in kinds:
            kinds[kind] = is_tensor_type(kind)
        if kinds[kind] and _looked_at(obj):
            groups.setdefault(identity(obj), []).append(obj)
    return groups


def _held(tensors: list[Any], scopes: list[Scope], groups: dict[int, list[Any]]) -> list[Any]:
    """Without the tensors that nothing in Python refers to: PyTorch keeps their objects for their views'
    sake.
    """
    bases = {id(base) for base in map(base_of, tensors) if base is not None}
    ignore = {id(groups), id(tensors)}
    return [t for t in tensors if id(t) not in bases or is_held(t, scopes, ignore)]


def _looked_at(tensor: Any) -> bool:
    """Whether the tensor has bytes to lose; those without a storage or a shape say so in many ways."""
    try:
        return metadata(tensor)[-1] > 0 and has_data(tensor)
    except Exception:
        return False


def _layout(t: Any) -> tuple[Any, ...]:
    return (tuple(t.shape), tuple(t.stride()), t.storage_offset(), str(t.dtype))


def _bytes(t: Any) -> int:
    """Bytes of storage that the tensor sees: a dimension of stride 0 repeats and needs no more."""
    count = 1
    for n, s in zip(t.shape, t.stride(), strict=True):
        count *= 1 if s == 0 and n else n
    return int(count * t.element_size())


def _leak(t: Any, storage: int, total: int, where: tuple[str, ...]) -> Leak:
    return Leak(
        where,
        tuple(t.shape),
        tuple(t.stride()),
        str(t.dtype).rsplit(".", 1)[-1],
        str(t.device),
        _bytes(t),
        total,
        storage,
        _fix(where),
    )


def _fix(where: tuple[str, ...]) -> str:
    if not where:
        return ".clone() where it is made"
    # a notebook keeps every output; only forgetting them frees it
    return "%reset -f out" if where[0].startswith("Out[") else f"{where[0].split(' ')[0]}.clone()"
