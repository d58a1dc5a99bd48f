"""Kernel rows: the rows of dispatch tables that hold a kernel that can run here (aten/src/ATen/core/dispatch)."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch

from . import _torch_internals as internals
from ._torch_internals import kernels
from .dispatch_tables import parse_row

# What a key says of a tensor before it names the backend.
_BEFORE_BACKEND = ("", "Quantized", "Sparse", "SparseCsr", "NestedTensor", "Autograd", "Autocast")
# No tensor of these can be made with the stock wheel, and an Undefined row takes no kernel.
_UNREACHABLE = {"Undefined", "FPGA", "Vulkan", "Metal", "CustomRNGKeyId"}


@dataclass(slots=True)
class Row:
    """A row of an operator's dispatch table that holds a kernel.

    op         "aten::add.Tensor"; name as records write it: "aten.add.Tensor"
    unwatched  the operator's rows that were filled from Python for one key and are not hooked, by key, and
               falls_through the keys without a kernel: from these one can tell what a kernel hands on to
    """

    op: str
    key: str
    kind: str
    place: str
    unwatched: dict[str, Row] | None = None
    falls_through: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return dotted(self.op)

    def next_unwatched(self, bits: int) -> tuple[Row, int] | None:
        """The unwatched row that this kernel hands a call with these keys on to, and the keys that are left then.

        None where it hands on to another, or where it is not of a kind that always hands on.
        """
        if self.unwatched is None or not self.key.startswith(("Autograd", "ADInplaceOrView")):
            return None
        names = internals.key_names(bits)
        if self.key not in names:
            return None
        for key in reversed(names[: names.index(self.key)]):
            if key in self.falls_through:
                continue
            found = self.unwatched.get(key)
            return None if found is None else (found, _up_to(bits, names, key))
        return None


def _up_to(bits: int, names: tuple[str, ...], key: str) -> int:
    """The set less the keys above one of them."""
    for name in names[names.index(key) + 1 :]:
        own = kernels.key_bits(name)
        shared = 0
        for kept in names[: names.index(key) + 1]:
            shared |= kernels.key_bits(kept)
        bits &= ~(own & ~shared)
    return bits


def read_rows() -> Iterator[Row]:
    """Every row with a kernel whose key a tensor or a context of this process can have, but no unwatched one."""
    backends = kernels.backend_names()
    here = _backends_here()
    skipped = {before + each for before in _BEFORE_BACKEND for each in backends if each not in here} | _UNREACHABLE
    for op, text in kernels.tables():
        known = _read.get(op)
        if known is None or known[0] != text:
            known = _read[op] = text, _rows_of(op, text, skipped)
        yield from known[1]


def backends_without_rows(names: Iterable[str]) -> set[str]:
    """The backends that these keys name and whose rows are left out, as no device of theirs is here.

    A fake tensor (FakeTensorMode) brings the keys of the device that it claims, present or not.
    """
    missing = set(kernels.backend_names()) - _backends_here()
    named = set(names)
    return {each for each in missing if any(before + each in named for before in _BEFORE_BACKEND)}


# What was read of each operator's table. Rows only name kernels, so of the same text they are the same.
_read: dict[str, tuple[str, list[Row]]] = {}


def _rows_of(op: str, text: str, skipped: set[str]) -> list[Row]:
    rows: list[Row] = []
    through: list[str] = []
    unwatched: dict[str, Row] = {}
    for line in text.splitlines():
        key, _, told = line.partition(": ")
        if key in skipped:
            continue
        row = parse_row(told)
        if row is None or row.fallthrough or not row.kind:
            through.append(key)
        elif row.kind == "kernel" and ".py:" in row.place:
            unwatched[key] = Row(op, key, row.kind, row.place)
        else:
            rows.append(Row(op, key, row.kind, row.place))
    if unwatched:
        for each in rows:
            each.unwatched, each.falls_through = unwatched, frozenset(through)
    return rows


def _backends_here() -> set[str]:
    found = {"CPU", "Meta"}
    if torch.accelerator.is_available():
        device = torch.accelerator.current_accelerator()
        if device is not None:
            found.add(kernels.backend_key(device.type))
    if "torch_xla" in sys.modules:
        found.add("XLA")
    return found


def dotted(op: str) -> str:
    """ "aten::add.Tensor" as "aten.add.Tensor", "aten::sin" as "aten.sin.default"."""
    namespace, _, name = op.partition("::")
    return f"{namespace}.{name if '.' in name else name + '.default'}"
