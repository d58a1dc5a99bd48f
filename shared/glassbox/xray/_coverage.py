"""Coverage: which bytes of its storage a view sees, and which two views both see (c10/core/TensorImpl.h).

PyTorch answers only whether memory may overlap (ATen/MemoryOverlap.cpp); here the bytes are counted.
"""

from __future__ import annotations

from functools import cached_property

from ..records import StorageView

_LISTED = 50_000


class Coverage:
    """One view's part of its storage. Cells are listed at most once, and only where sums do not tell."""

    def __init__(self, view: StorageView) -> None:
        self.view = _without_repeats(view)

    def seen(self) -> int:
        """Distinct bytes that the view reads."""
        view = self.view
        if self._lists_no_cell_twice or view.numel > _LISTED:
            return view.tensor_nbytes
        return len(self._cells) * view.itemsize

    def shared(self, other: Coverage) -> int:
        """Bytes that both views read; 0 over different storages.

        Where one is listed cell by cell and the other is large, the large one is asked for each cell; of two
        large ones with gaps the answer is an upper bound.
        """
        a, b = sorted((self, other), key=lambda c: c.view.numel)
        if a.view.storage != b.view.storage or not a.view.numel:
            return 0
        if a._is_interval and b._is_interval:
            (a_low, a_high), (b_low, b_high) = a._span, b._span
            return max(0, min(a_high, b_high) - max(a_low, b_low))
        if b.view.numel <= _LISTED:
            if a.view.itemsize == b.view.itemsize:
                return len(a._cells & b._cells) * a.view.itemsize
            return len(a._bytes & b._bytes)
        if a.view.numel <= _LISTED:
            return sum(b.view.touches(byte // b.view.itemsize) for byte in a._bytes)
        return min(a.view.tensor_nbytes, b.view.tensor_nbytes)

    @cached_property
    def _cells(self) -> frozenset[int]:
        return frozenset(self.view.cells())

    @property
    def _bytes(self) -> frozenset[int]:
        size = self.view.itemsize
        return frozenset(cell * size + k for cell in self._cells for k in range(size))

    @property
    def _span(self) -> tuple[int, int]:
        low, high = self.view.span()
        return low * self.view.itemsize, high * self.view.itemsize

    @cached_property
    def _steps(self) -> list[tuple[int, int]]:
        """(stride, size) of the dimensions that move, shortest step first."""
        return sorted((abs(s), n) for n, s in zip(self.view.shape, self.view.stride, strict=True) if n > 1)

    @cached_property
    def _is_interval(self) -> bool:
        """No holes and no repeats: the elements fill their span."""
        expected = 1
        for stride, size in self._steps:
            if stride != expected:
                return False
            expected *= size
        return True

    @cached_property
    def _lists_no_cell_twice(self) -> bool:
        """True where each step is longer than all shorter walks together: everywhere but after as_strided."""
        reach = 0
        for stride, size in self._steps:
            if stride <= reach:
                return False
            reach += (size - 1) * stride
        return True


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
