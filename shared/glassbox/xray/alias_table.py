"""Alias table: which ops give a view, which copy, which give back the tensor itself; everything is measured.

PyTorch's own answer stands in the schemas of native_functions.yaml (`Tensor(a)`); here the ops are run.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..records import Rows, Table, human_bytes
from . import _torch_internals as internals
from ._looking import data_ptr, has_data, identity, in_short, is_torch, require_tensor, whole_storage

Op = tuple[str, Callable[[Any], Any]]

LARGEST_COPY = 100_000_000
# bytes per element of the widest dtype that an op converts to
_WIDEST = 8


@dataclass(frozen=True, slots=True)
class Alias(Table):
    """What one op gave, next to the tensor x that it was run on; the middle fields are None if it raised.

    itself           the result is x, the same Python object
    same_storage     both lie over one storage
    same_data_ptr    both start at the same address
    has_base         the result is a view of another tensor
    shares_version   an in-place change of x moved the result's version counter
    error            the exception's type name, or ""
    """

    expression: str
    itself: bool | None = None
    same_storage: bool | None = None
    same_data_ptr: bool | None = None
    shape: tuple[int, ...] | None = None
    stride: tuple[int, ...] | None = None
    offset: int | None = None
    has_base: bool | None = None
    shares_version: bool | None = None
    error: str = ""

    def rows(self) -> Rows:
        return [{name: getattr(self, name) for name in self.__dataclass_fields__}]


@dataclass(frozen=True, slots=True)
class AliasTable(Table):
    """The truth table that `aliases` measured; `table["x.T"]` finds a line."""

    about: str
    lines: tuple[Alias, ...]

    def __getitem__(self, expression: str) -> Alias:
        for line in self.lines:
            if line.expression == expression:
                return line
        raise KeyError(f"{expression!r} was not measured; the lines are {', '.join(a.expression for a in self.lines)}.")

    def rows(self) -> Rows:
        return [line.rows()[0] for line in self.lines]

    def caption(self) -> str:
        return self.about


def aliases(t: Any = None) -> AliasTable:
    """Runs the ops that may or may not copy on a copy of `t` and measures what each result shares with it.

    t   a torch or mini tensor with at least one dimension; the default is torch.arange(12.) as (3, 4). It is
        not touched: the ops run on a twin of the same layout over a storage of its own.

    TypeError for anything else and for a tensor that cannot be copied, ValueError for a 0-d tensor and for
    one that would need more than 100 MB per copy.
    """
    if t is None:
        import torch

        t = torch.arange(12.0).reshape(3, 4).clone()
    require_tensor(t, "aliases")
    if len(t.shape) == 0:
        raise ValueError("aliases: a 0-d tensor has no rows to slice; pass one with at least one dimension.")
    _refuse_large(t)
    try:
        lines = tuple(_measure(expression, op, _twin(t)) for expression, op in _ops(t))
    except (RuntimeError, NotImplementedError) as error:
        raise TypeError(
            f"aliases: this tensor cannot be copied ({in_short(error)}); pass a plain strided one."
        ) from None
    contiguous = "contiguous" if t.is_contiguous() else "not contiguous"
    return AliasTable(f"x: shape {tuple(t.shape)}, stride {tuple(t.stride())}, {t.dtype}, {contiguous}", lines)


def _refuse_large(t: Any) -> None:
    """ValueError before a copy of what only looks small in memory, such as zeros(1).expand(2**40)."""
    needed = max(int(t.untyped_storage().nbytes()), _WIDEST * math.prod(t.shape))
    if needed > LARGEST_COPY and has_data(t):
        raise ValueError(
            f"aliases: shape {tuple(t.shape)} would take {human_bytes(needed)} for each op that copies; pass "
            f"a smaller tensor of the same layout, which gives the same table."
        )


def _ops(t: Any) -> list[Op]:
    """The ops to try, as text and function, on x and on x transposed."""
    lib, other, bits = _partners(t)
    last = len(t.shape) - 1
    swapped, swap = ("x.T", lambda x: x.T) if last == 1 else (f"x.transpose(0, {last})", lambda x: x.transpose(0, last))
    wide = (2, *t.shape)
    ops: list[Op] = [
        ("x.view(-1)", lambda x: x.view(-1)),
        ("x.reshape(-1)", lambda x: x.reshape(-1)),
        (swapped, swap),
        ("x[1:]", lambda x: x[1:]),
        (f"x.expand{wide}", lambda x: x.expand(wide)),
        ("x.squeeze()", lambda x: x.squeeze()),
        ("x.contiguous()", lambda x: x.contiguous()),
        (f"{swapped}.view(-1)", lambda x: swap(x).view(-1)),
        (f"{swapped}.reshape(-1)", lambda x: swap(x).reshape(-1)),
        (f"{swapped}.contiguous()", lambda x: swap(x).contiguous()),
        ("x.clone()", lambda x: x.clone()),
        ("x.detach()", lambda x: x.detach()),
        ("x.data", lambda x: x.data),
        (f"x.to({t.dtype})", lambda x: x.to(x.dtype)),
        (f"x.to({lib}.{other})", lambda x: x.to(_dtype(t, other))),
    ]
    if bits:
        ops.append((f"x.view({lib}.{bits})", lambda x: x.view(_dtype(t, bits))))
    return ops


def _partners(t: Any) -> tuple[str, str, str]:
    """The framework's name, another dtype to convert to, and one of the same size to reinterpret as ("" in
    mini).
    """
    name = str(t.dtype).rsplit(".", 1)[-1]
    other = "float64" if name == "float32" else "float32"
    if not is_torch(t):
        return "mini", other, ""
    same_size = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}.get(t.element_size(), "")
    return "torch", other, "float64" if name == "int64" else "float32" if name == "int32" else same_size


def _dtype(t: Any, name: str) -> Any:
    return getattr(sys.modules["torch" if is_torch(t) else "glassbox.mini"], name)


def _twin(t: Any) -> Any:
    """The same layout and values over a storage of its own; no view of anything where the layout allows."""
    dense = t.is_contiguous() and t.untyped_storage().nbytes() == t.numel() * t.element_size()
    if dense:
        return t.detach().clone()
    return whole_storage(t).clone().as_strided(tuple(t.shape), tuple(t.stride()), t.storage_offset())


def _measure(expression: str, op: Callable[[Any], Any], x: Any) -> Alias:
    try:
        result = op(x)
    except Exception as error:
        return Alias(expression, error=type(error).__name__)
    before = internals.version_of(result)
    # of itself, since another tensor cannot be copied where several elements share a cell
    x.copy_(x)
    return Alias(
        expression,
        itself=result is x,
        same_storage=identity(result) == identity(x),
        same_data_ptr=data_ptr(result) == data_ptr(x) != 0,
        shape=tuple(result.shape),
        stride=tuple(result.stride()),
        offset=int(result.storage_offset()),
        has_base=internals.is_view(result),
        shares_version=internals.version_of(result) != before,
    )
