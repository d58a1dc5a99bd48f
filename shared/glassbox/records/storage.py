"""StorageView: how one tensor sees one storage (c10/core/TensorImpl.h, c10/core/StorageImpl.h)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from .table import Rows, Table
from .units import human_bytes


@dataclass(frozen=True, slots=True)
class StorageView(Table):
    """How one tensor sees one storage: the metadata, without the tensor.

    shape, stride    one entry per dimension; strides count elements, not bytes
    offset           storage offset, in elements
    dtype, itemsize  "float32" without a prefix, and bytes per element
    device           "cpu", "cuda:0", ...
    storage          identity of the storage: equal for two views exactly when they share it; 0 = unknown
    nbytes           bytes of the whole storage
    data_ptr         address of the tensor's first element; 0 when there is none (empty, meta)
    version          how often the data were changed in place; None where it is not tracked
    base             True for a view of another tensor
    values           the storage's elements (not the tensor's) where they are few, else None

    ValueError if shape and stride differ in length or a size is negative.
    """

    name: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int = 0
    dtype: str = "float32"
    itemsize: int = 4
    device: str = "cpu"
    storage: int = 0
    nbytes: int = 0
    data_ptr: int = 0
    version: int | None = 0
    base: bool = False
    values: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        for field in ("shape", "stride"):
            object.__setattr__(self, field, tuple(int(n) for n in getattr(self, field)))
        if self.values is not None:
            object.__setattr__(self, "values", tuple(self.values))
        if len(self.shape) != len(self.stride):
            raise ValueError(
                f"StorageView {self.name!r}: shape {self.shape} has {len(self.shape)} dimensions, but stride "
                f"{self.stride} has {len(self.stride)}; give one stride per dimension."
            )
        if any(n < 0 for n in self.shape):
            raise ValueError(f"StorageView {self.name!r}: shape {self.shape} has a negative size; use 0 or more.")

    @classmethod
    def of_layout(
        cls,
        name: str,
        shape: Sequence[int],
        stride: Sequence[int],
        offset: int = 0,
        *,
        size: int | None = None,
        values: Sequence[Any] | None = None,
        storage: int = 0,
        dtype: str = "float32",
        itemsize: int = 4,
    ) -> StorageView:
        """A view from bare layout numbers, for figures about arithmetic alone.

        `size` is the storage's length in elements; without it, the length of `values`, or just long enough.
        """
        view = cls(name, tuple(shape), tuple(stride), int(offset), dtype=dtype, itemsize=itemsize)
        if size is None:
            size = len(values) if values is not None else max(0, view.span()[1])
        kept = tuple(values) if values is not None else None
        return cls(
            name,
            view.shape,
            view.stride,
            view.offset,
            dtype,
            itemsize,
            storage=storage,
            nbytes=size * itemsize,
            values=kept,
        )

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def numel(self) -> int:
        count = 1
        for n in self.shape:
            count *= n
        return count

    @property
    def size(self) -> int:
        """Whole elements (of this view's dtype) in the storage."""
        return self.nbytes // self.itemsize

    @property
    def tensor_nbytes(self) -> int:
        """Bytes that the elements would need on their own: numel * itemsize."""
        return self.numel * self.itemsize

    def indices(self) -> Iterator[tuple[int, ...]]:
        """All indices in row-major order."""
        return itertools.product(*(range(n) for n in self.shape))

    def cells(self) -> tuple[int, ...]:
        """The storage position, in elements, of every index in row-major order; repeats where cells
        overlap.
        """
        return tuple(self._locate(index) for index in self.indices())

    def address(self, index: Sequence[int]) -> int:
        """The storage position of one element; negative indices count from the end.

        IndexError for a wrong number of indices or one out of range.
        """
        index = tuple(index)
        if len(index) != self.ndim:
            raise IndexError(
                f"{self.name} has {self.ndim} dimensions, but the index {index} has {len(index)} entries; "
                f"give one per dimension."
            )
        for dim, (i, n) in enumerate(zip(index, self.shape, strict=True)):
            if not -n <= i < n:
                raise IndexError(f"index {i} is out of range for dimension {dim} of {self.name}, which has size {n}.")
        return self._locate(tuple(i % n for i, n in zip(index, self.shape, strict=True)))

    def formula(self, index: Sequence[int]) -> str:
        """The address of one element spelled out: "x[1,2] = storage[0 + 1*4 + 2*1] = storage[6]"."""
        position = self.address(index)
        at = [i % n for i, n in zip(index, self.shape, strict=True)]
        terms = [str(self.offset)] + [f"{i}*{s}" for i, s in zip(at, self.stride, strict=True)]
        inner = " + ".join(terms)
        label = f"{self.name}[{','.join(map(str, at))}]" if at else f"{self.name}[()]"
        return f"{label} = storage[{inner}]" + (f" = storage[{position}]" if at else "")

    def span(self) -> tuple[int, int]:
        """(lowest, highest + 1) storage position reached; (offset, offset) if the tensor is empty."""
        if self.numel == 0:
            return self.offset, self.offset
        reach = [(n - 1) * s for n, s in zip(self.shape, self.stride, strict=True)]
        return self.offset + sum(r for r in reach if r < 0), self.offset + sum(r for r in reach if r > 0) + 1

    def touches(self, position: int) -> bool:
        """Does any index land on this storage position? Without listing the cells, so it is quick on large
        views.
        """
        if self.numel == 0:
            return False
        dims = sorted(
            ((n, s) for n, s in zip(self.shape, self.stride, strict=True) if n > 1 and s != 0),
            key=lambda d: -abs(d[1]),
        )

        def reachable(rest: int, k: int) -> bool:
            if k == len(dims):
                return rest == 0
            n, s = dims[k]
            low = sum(min(0, (m - 1) * t) for m, t in dims[k + 1 :])
            high = sum(max(0, (m - 1) * t) for m, t in dims[k + 1 :])
            # only these steps leave a rest that the smaller strides can make up
            first, last = (rest - high, rest - low) if s > 0 else (rest - low, rest - high)
            steps = range(max(0, -(-first // s)), min(n - 1, last // s) + 1)
            return any(reachable(rest - i * s, k + 1) for i in steps)

        return reachable(position - self.offset, 0)

    def rows(self) -> Rows:
        return [{f.name: getattr(self, f.name) for f in fields(self) if f.name != "values"}]

    def caption(self) -> str:
        return str(self)

    def __str__(self) -> str:
        kind = "view" if self.base else "tensor"
        return (
            f"{self.name}: {kind}, shape {self.shape}, stride {self.stride}, offset {self.offset}, "
            f"{self.dtype}, {self.device}, over {human_bytes(self.nbytes)} of storage"
        )

    def _locate(self, index: tuple[int, ...]) -> int:
        return self.offset + sum(i * s for i, s in zip(index, self.stride, strict=True))
