"""How a tensor prints (PyTorch: torch/_tensor_str.py)."""

import math
from typing import Any

import numpy as np

from .c10.dtype import bfloat16, bfloat16_to_float32, bool_, float32, int64
from .c10.dtype import dtype as DType  # noqa: N812

PRECISION = 4
THRESHOLD = 1000
EDGE_ITEMS = 3
LINE_WIDTH = 80


def tensor_str(self: Any) -> str:
    """`tensor(...)` with four digits, aligned columns, and the middle left out above 1000 elements.

    Where they are not what is usual, also its device, its dtype and its place in the graph.
    """
    prefix = "tensor("
    suffixes = []
    if self._device.type != "cpu":
        suffixes.append(f"device='{self._device}'")
    if 0 in self._shape:
        body = "[]"
        if len(self._shape) != 1:
            suffixes.append(f"size={tuple(self._shape)}")
        unmarked: tuple[DType, ...] = (float32,)
    else:
        values = (self if self._device.type == "cpu" else self.detach().cpu()).strided_array()
        summarize = values.size > THRESHOLD
        if summarize:
            values = _edges(values)
        if self._dtype is bfloat16:
            values = bfloat16_to_float32(values)
        left_out = [summarize and size > 2 * EDGE_ITEMS for size in self._shape]
        body = _block(values, _Formatter(values), len(prefix), left_out)
        unmarked = (float32, int64, bool_)
    if self._dtype not in unmarked:
        suffixes.append(f"dtype={self._dtype!r}")
    suffixes += _history(self)
    return _with_suffixes(prefix + body, suffixes, len(prefix)) + ")"


def _history(self: Any) -> list[str]:
    """Which op it is the result of, or that it is a leaf that requires grad."""
    try:
        node = self.grad_fn
    except RuntimeError:
        # A view that cannot be followed through a write to its base.
        return ["grad_fn=<Invalid>"]
    if node is not None:
        return [f"grad_fn=<{node.name()}>"]
    return ["requires_grad=True"] if self.requires_grad else []


class _Formatter:
    """The one format that all elements of a tensor share: integral, fixed or scientific, and the width."""

    def __init__(self, values: np.ndarray) -> None:
        self.floating = values.dtype.kind == "f"
        self.integral = self.scientific = False
        if self.floating:
            finite = [v for v in values.ravel().tolist() if math.isfinite(v) and v != 0]
            magnitudes = [abs(v) for v in finite]
            if finite:
                smallest, largest = min(magnitudes), max(magnitudes)
                self.integral = all(v == math.ceil(v) for v in finite)
                self.scientific = (
                    largest / smallest > 1000.0
                    or largest > 1.0e8
                    or (smallest < 1.0e-4 and not self.integral)
                )
            else:
                self.integral = True
            self.width = max((len(self._text(v)) for v in finite), default=1)
        else:
            self.width = max((len(str(v)) for v in values.ravel().tolist()), default=1)

    def _text(self, value: Any) -> str:
        if not self.floating:
            return str(value)
        if self.scientific:
            return f"{value:.{PRECISION}e}"
        if self.integral:
            return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"
        return f"{value:.{PRECISION}f}"

    def format(self, value: Any) -> str:
        return self._text(value).rjust(self.width)


def _edges(values: np.ndarray) -> np.ndarray:
    """The elements that are printed, and no others: an expanded tensor may have more than fit into memory."""
    ends = [
        [*range(EDGE_ITEMS), *range(size - EDGE_ITEMS, size)] if size > 2 * EDGE_ITEMS else range(size)
        for size in values.shape
    ]
    return values[np.ix_(*ends)]


def _block(values: np.ndarray, formatter: _Formatter, indent: int, left_out: list[bool]) -> str:
    """One dimension in brackets; `left_out` says per dimension whether "..." stands in its middle."""
    if values.ndim == 0:
        return formatter.format(values.item())
    if values.ndim == 1:
        return _row(values, formatter, indent, left_out[0])
    rows = [_block(part, formatter, indent + 1, left_out[1:]) for part in values]
    if left_out[0]:
        rows.insert(EDGE_ITEMS, "...")
    return "[" + ("," + "\n" * (values.ndim - 1) + " " * (indent + 1)).join(rows) + "]"


def _row(values: np.ndarray, formatter: _Formatter, indent: int, left_out: bool) -> str:
    per_line = max(1, (LINE_WIDTH - indent) // (formatter.width + 2))
    cells = [formatter.format(value) for value in values.tolist()]
    if left_out:
        cells.insert(EDGE_ITEMS, " ...")
    lines = [", ".join(cells[at : at + per_line]) for at in range(0, len(cells), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _with_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    room = LINE_WIDTH - (len(text) - text.rfind("\n") + 1)
    for suffix in suffixes:
        if len(suffix) + 2 > room:
            text += ",\n" + " " * indent + suffix
            room = LINE_WIDTH - indent - len(suffix)
        else:
            text += ", " + suffix
            room -= len(suffix) + 2
    return text
