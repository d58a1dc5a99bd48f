"""Stride explorer: move over a tensor and see which storage cell each index means (c10/core/TensorImpl.h).

The Python side owns the meaning: every op that is offered was run on the tensor, and every layout is tried
with `as_strided`. The browser side draws and spells addresses without asking the kernel.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import traitlets

from ..draw import tensor_over_storage
from ..draw.cells import cell_text
from ..records import StorageView
from ..xray import view_of
from ._base import GlassboxWidget, script, themed_css

CUSTOM = "as_strided"
MAX_DIMS, MAX_CELLS, MAX_SIZE = 3, 96, 12


class StrideExplorer(GlassboxWidget):
    """A tensor over its storage that the reader can change and walk through.

    t   a torch or mini tensor of at most 3 dimensions over at most 96 elements; the default holds 0 to 11 as
        (3, 4). It is looked at and never changed.

    Traits to read, set and observe: `op` (one of `ops`, or "as_strided" for a layout of the reader's own),
    `shape`, `stride`, `offset` (in elements) and `selected` (the index chosen by click or Enter, [] for
    none). `contiguous` and `overlapping` say what the framework says of the layout. A layout that leaves the
    storage raises TraitError with a sentence; `set_layout` changes all three at once.
    """

    _esm = script("stride_explorer.js")
    _css = themed_css("stride_explorer.css")

    name = traitlets.Unicode("x").tag(sync=True)
    dtype = traitlets.Unicode("").tag(sync=True)
    cells = traitlets.List(traitlets.Unicode()).tag(sync=True)
    ops = traitlets.List(traitlets.Dict()).tag(sync=True)
    limits = traitlets.Dict({"dims": MAX_DIMS, "size": MAX_SIZE, "cells": MAX_CELLS}).tag(sync=True)
    op = traitlets.Unicode("x").tag(sync=True)
    shape = traitlets.List(traitlets.Int()).tag(sync=True)
    stride = traitlets.List(traitlets.Int()).tag(sync=True)
    offset = traitlets.Int(0).tag(sync=True)
    selected = traitlets.List(traitlets.Int()).tag(sync=True)
    contiguous = traitlets.Bool(True).tag(sync=True)
    overlapping = traitlets.Bool(False).tag(sync=True)

    def __init__(self, t: Any = None, name: str = "x") -> None:
        tensor = _default() if t is None else t
        base = view_of(tensor, name, values=MAX_CELLS)
        _refuse_large(base)
        self._tensor = _restrideable(tensor, name)
        self._base_view = base
        ops = _measured(self._tensor, name, base)
        first = ops[0]
        super().__init__(
            name=name,
            dtype=base.dtype,
            cells=[cell_text(base, p) for p in range(base.size)],
            ops=ops,
            op=name,
            shape=first["shape"],
            stride=first["stride"],
            offset=first["offset"],
        )
        self._measure()

    @property
    def view(self) -> StorageView:
        """The layout on show as a record."""
        base = self._base_view
        label = self.op if self.op != CUSTOM else f"{self.name}.{CUSTOM}"
        return StorageView.of_layout(
            label,
            self.shape,
            self.stride,
            self.offset,
            size=base.size,
            values=base.values,
            storage=base.storage,
            dtype=base.dtype,
            itemsize=base.itemsize,
        )

    def set_layout(self, shape: Sequence[int], stride: Sequence[int], offset: int = 0) -> None:
        """Shows another layout over the same storage; TraitError with the reason if it would leave it."""
        with self.hold_trait_notifications():
            self.shape, self.stride, self.offset = list(shape), list(stride), offset

    @traitlets.validate("op")
    def _known_op(self, proposal: dict[str, Any]) -> str:
        names = [entry["label"] for entry in self.ops]
        if names and proposal["value"] not in (*names, CUSTOM):
            raise traitlets.TraitError(
                f"StrideExplorer: {proposal['value']!r} is not offered; choose one of {', '.join(names)}."
            )
        return proposal["value"]

    @traitlets.validate("shape", "stride", "offset")
    def _inside(self, proposal: dict[str, Any]) -> Any:
        layout = {"shape": self.shape, "stride": self.stride, "offset": self.offset}
        layout[proposal["trait"].name] = proposal["value"]
        if self.cells:
            reason = why_not(layout["shape"], layout["stride"], layout["offset"], len(self.cells))
            if reason:
                raise traitlets.TraitError(f"StrideExplorer: {reason}")
        return proposal["value"]

    @traitlets.validate("selected")
    def _an_index(self, proposal: dict[str, Any]) -> list[int]:
        index = proposal["value"]
        if index and not _is_index(index, self.shape):
            raise traitlets.TraitError(f"StrideExplorer: {index} is no index into shape {tuple(self.shape)}.")
        return index

    @traitlets.observe("op")
    def _follow_op(self, change: dict[str, Any]) -> None:
        for entry in self.ops:
            if entry["label"] == change["new"]:
                self.set_layout(entry["shape"], entry["stride"], entry["offset"])

    @traitlets.observe("shape", "stride", "offset")
    def _follow_layout(self, change: dict[str, Any]) -> None:
        layout = (self.shape, self.stride, self.offset)
        current = next((e for e in self.ops if e["label"] == self.op), None)
        if current is None or (current["shape"], current["stride"], current["offset"]) != layout:
            same = (e["label"] for e in self.ops if (e["shape"], e["stride"], e["offset"]) == layout)
            self.op = next(same, CUSTOM)
        if not _is_index(self.selected, self.shape):
            self.selected = []
        self._measure()

    def _measure(self) -> None:
        """What the framework itself says of the layout on show."""
        if hasattr(self, "_tensor"):
            seen = self._tensor.as_strided(tuple(self.shape), tuple(self.stride), self.offset)
            self.contiguous = bool(seen.is_contiguous())
            cells = self.view.cells()
            self.overlapping = len(set(cells)) < len(cells)

    def static_html(self) -> str:
        return tensor_over_storage(self.view, self.selected or None)._repr_html_()

    def __str__(self) -> str:
        state = f"shape {tuple(self.shape)}, stride {tuple(self.stride)}, offset {self.offset}"
        return f"StrideExplorer: {self.op}, {state}"


def why_not(shape: Sequence[int], stride: Sequence[int], offset: int, size: int) -> str:
    """Why a layout cannot be shown over a storage of `size` elements, in one sentence; "" if it can."""
    if len(shape) != len(stride):
        return (
            f"shape {tuple(shape)} needs {len(shape)} strides, but stride {tuple(stride)} has {len(stride)}."
        )
    if len(shape) > MAX_DIMS:
        return f"shape {tuple(shape)} has {len(shape)} dimensions; at most {MAX_DIMS} can be drawn."
    if any(n < 1 or n > MAX_SIZE for n in shape):
        return f"shape {tuple(shape)} has a size outside 1 to {MAX_SIZE}, which cannot be drawn."
    if prod(shape) > MAX_CELLS:
        return f"shape {tuple(shape)} has {prod(shape)} elements; at most {MAX_CELLS} can be drawn."
    if any(s < 0 for s in stride):
        return f"stride {tuple(stride)} is negative somewhere; PyTorch has no negative strides."
    if offset < 0:
        return f"offset {offset} lies before the storage; use 0 or more."
    last = offset + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
    if last >= size:
        return (
            f"shape {tuple(shape)} with stride {tuple(stride)} and offset {offset} would reach "
            f"storage[{last}], but the last element is storage[{size - 1}]."
        )
    return ""


def _is_index(index: Sequence[int], shape: Sequence[int]) -> bool:
    return len(index) == len(shape) and all(0 <= i < n for i, n in zip(index, shape, strict=True))


def _refuse_large(view: StorageView) -> None:
    if view.ndim > MAX_DIMS:
        raise ValueError(
            f"StrideExplorer: {view.name} has {view.ndim} dimensions; it shows at most {MAX_DIMS}."
        )
    if not 0 < view.size <= MAX_CELLS:
        raise ValueError(
            f"StrideExplorer: the storage of {view.name} has {view.size:,} elements; it shows 1 to "
            f"{MAX_CELLS}. Pass a small tensor of its own, such as t[:3, :4].clone()."
        )
    if view.numel > MAX_CELLS:
        raise ValueError(
            f"StrideExplorer: {view.name} has {view.numel:,} elements; it shows at most {MAX_CELLS}."
        )
    if any(n < 1 or n > MAX_SIZE for n in view.shape):
        raise ValueError(
            f"StrideExplorer: {view.name} has shape {view.shape}; it shows sizes from 1 to {MAX_SIZE}."
        )


def _restrideable(t: Any, name: str) -> Any:
    """The tensor outside of autograd; TypeError for a kind that as_strided does not know."""
    try:
        t.detach().as_strided(tuple(t.shape), tuple(t.stride()), t.storage_offset())
    except (RuntimeError, NotImplementedError) as error:
        reason = str(error).strip().splitlines()[0]
        raise TypeError(f"StrideExplorer: {name} cannot get other strides ({reason}).") from None
    return t.detach()


def _default() -> Any:
    """0 to 11 as (3, 4): PyTorch's where it is loaded anyway, else the mini-framework's."""
    if "torch" in sys.modules:
        lib = sys.modules["torch"]
    else:
        from .. import mini as lib
    return lib.arange(12, dtype=lib.float32).view(3, 4)


def _measured(t: Any, name: str, base: StorageView) -> list[dict[str, Any]]:
    """The ops on offer with the layout each one gave; what raises, copies or cannot be drawn is left out."""
    entries = []
    for label, op in _candidates(t, name):
        try:
            result = view_of(op(t), label, values=0)
        except (RuntimeError, IndexError, ValueError, TypeError, AttributeError):
            continue
        shares = result.storage == base.storage
        if shares and not why_not(result.shape, result.stride, result.offset, base.size):
            layout = {"shape": list(result.shape), "stride": list(result.stride), "offset": result.offset}
            entries.append({"label": label, **layout})
    return entries


def _candidates(t: Any, x: str) -> list[tuple[str, Callable[[Any], Any]]]:
    """Ops worth trying on a tensor of this many dimensions, as text and function."""
    n = t.numel()
    found: list[tuple[str, Callable[[Any], Any]]] = [(x, lambda t: t)]
    if len(t.shape) == 1:
        found += [
            (f"{x}[1:]", lambda t: t[1:]),
            (f"{x}[::2]", lambda t: t[::2]),
            (f"{x}[1::3]", lambda t: t[1::3]),
            (f"{x}.expand(3, {n})", lambda t: t.expand(3, n)),
            (f"{x}.unsqueeze(1)", lambda t: t.unsqueeze(1)),
            (f"{x}[0]", lambda t: t[0]),
        ]
    if len(t.shape) == 2:
        rows = t.shape[0]
        found += [
            (f"{x}.T", lambda t: t.T),
            (f"{x}[1:, :2]", lambda t: t[1:, :2]),
            (f"{x}[:, ::2]", lambda t: t[:, ::2]),
            (f"{x}[::2]", lambda t: t[::2]),
            (f"{x}[1]", lambda t: t[1]),
            (f"{x}[:, 1]", lambda t: t[:, 1]),
            (f"{x}[:1].expand({rows}, -1)", lambda t: t[:1].expand(rows, -1)),
            (f"{x}[:, :1].expand(-1, 3)", lambda t: t[:, :1].expand(-1, 3)),
            (f"{x}.unsqueeze(0)", lambda t: t.unsqueeze(0)),
        ]
    if len(t.shape) == 3:
        found += [
            (f"{x}.transpose(0, 1)", lambda t: t.transpose(0, 1)),
            (f"{x}.permute(2, 0, 1)", lambda t: t.permute(2, 0, 1)),
            (f"{x}[1]", lambda t: t[1]),
            (f"{x}[:, 1:]", lambda t: t[:, 1:]),
            (f"{x}[:, :, ::2]", lambda t: t[:, :, ::2]),
            (f"{x}[:, :, 0]", lambda t: t[:, :, 0]),
        ]
    for size in _factorings(n):
        if size != tuple(t.shape):
            found.append((f"{x}.view({', '.join(map(str, size))})", _viewing(size)))
    return found


def _viewing(size: tuple[int, ...]) -> Callable[[Any], Any]:
    return lambda t: t.view(size)


def _factorings(n: int) -> list[tuple[int, ...]]:
    """A few shapes with n elements: flat, two halves, two rows of pairs, in blocks."""
    shapes: list[tuple[int, ...]] = [(n,)]
    if n % 2 == 0 and n > 2:
        shapes.append((2, n // 2))
    if n % 4 == 0 and n > 4:
        shapes.append((2, 2, n // 4))
    if n % 6 == 0 and n > 6:
        shapes.append((2, 3, n // 6))
    return shapes
