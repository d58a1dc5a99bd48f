"""Lifetime: what tensors and storages there are after each line, and who holds them (c10/core/StorageImpl.h).

PyTorch keeps the counts and shows neither the holders nor the moments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .table import Rows, Table
from .units import human_bytes

if TYPE_CHECKING:
    from ..draw import Svg


@dataclass(frozen=True, slots=True)
class LiveTensor:
    """One tensor that is alive. Numbers count from 0 in the order of first appearance, over all moments.

    label     the name that it had first, "y" say; "base of y" for one that only a view holds; "" for one without
    names     the variables that hold it now
    storage   the number of the storage that it lies over
    base      the number of the tensor that it is a view of and holds as `_base`, else None
    holders   (node, what it is kept as), such as ("MulBackward0", "self"), for each node that keeps it
    """

    nr: int
    label: str
    names: tuple[str, ...]
    shape: tuple[int, ...]
    storage: int
    base: int | None = None
    holders: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class LiveStorage:
    """One storage: its bytes, the framework's own count of references, and the variables that hold a wrapper of it.

    use_count is 0 once the storage is freed; the reference by which the count was asked for is not in it.
    """

    nr: int
    nbytes: int
    use_count: int
    handles: tuple[str, ...] = ()

    @property
    def freed(self) -> bool:
        return self.use_count == 0


@dataclass(frozen=True, slots=True)
class Moment:
    """What there is after a line: the tensors alive, and every storage that there ever was."""

    code: str
    tensors: tuple[LiveTensor, ...]
    storages: tuple[LiveStorage, ...]

    def over(self, storage: int) -> list[LiveTensor]:
        """The tensors over a storage."""
        return [tensor for tensor in self.tensors if tensor.storage == storage]

    @property
    def nbytes(self) -> int:
        """Bytes of the storages that live."""
        return sum(storage.nbytes for storage in self.storages if not storage.freed)

    def says(self) -> str:
        """One sentence for each storage: who keeps it, or that it is freed."""
        return " ".join(self._of(storage) for storage in self.storages) or "No storage yet."

    def _of(self, storage: LiveStorage) -> str:
        name = f"Storage S{storage.nr} ({human_bytes(storage.nbytes)})"
        if storage.freed:
            return f"{name} is freed."
        keepers = [self._keeper(tensor) for tensor in self.over(storage.nr)]
        keepers += [f"the storage object {handle}" for handle in storage.handles]
        count = f"{storage.use_count} reference{'s' * (storage.use_count != 1)}"
        return f"{name} has {count}: {_listed(keepers)}." if keepers else f"{name} is held from elsewhere ({count})."

    def _keeper(self, tensor: LiveTensor) -> str:
        if tensor.names:
            return " = ".join(tensor.names)
        views = [other for other in self.tensors if other.base == tensor.nr]
        what = f"the tensor once named {tensor.label}" if tensor.label.isidentifier() else "a tensor without a name"
        by = [f"{_listed([v.label or 'a view' for v in views])} as _base"] if views else []
        by += [f"{node}" for node, _ in tensor.holders]
        return f"{what} (held by {_listed(list(dict.fromkeys(by)))})" if by else what


@dataclass(frozen=True, slots=True)
class Lifetime(Table):
    """A program line by line. Iterating, len() and [] give Moments; made by `xray.lifetime`."""

    framework: str
    moments: tuple[Moment, ...]

    def __len__(self) -> int:
        return len(self.moments)

    def __iter__(self) -> Iterator[Moment]:
        return iter(self.moments)

    def __getitem__(self, nr: int) -> Moment:
        return self.moments[nr]

    def rows(self) -> Rows:
        """One row per line: the bytes alive after it, and each storage's count of references."""
        return [
            {"line": moment.code, "alive": human_bytes(moment.nbytes)}
            | {f"S{storage.nr}": storage.use_count or "freed" for storage in moment.storages}
            for moment in self.moments
        ]

    def caption(self) -> str:
        return f"what {self.framework} keeps, line by line: references to each storage"

    def figure(self, nr: int = -1) -> Svg:
        """The picture of one moment, the last one without a number."""
        from ..draw.lifetime import lifetime_figure

        return lifetime_figure(self, nr)

    def _repr_html_(self) -> str:
        return self.figure()._repr_html_() + Table._repr_html_(self)


def _listed(words: list[str]) -> str:
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
