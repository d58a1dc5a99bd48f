"""Observation: what went into a module and came out of it, call by call (torch/nn/modules/module.py, hooks)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .ops import DTYPE_LETTERS
from .table import Rows, Table


@dataclass(frozen=True, slots=True)
class TensorStats:
    """The values of one tensor in a few numbers.

    name        "input", "input[1]", "output", "output['loss']"
    mean, std, min, max   of the finite values; of the magnitudes of complex ones. std is that of the values at hand,
                not an estimate (correction=0). None where there is no finite value, or no data
    nan, inf    how many of the values are NaN, and infinite; None where there is no data
    zeros       which part of the values is exactly zero: 0.0 to 1.0; None of an empty tensor, or where there is no data
    note        why there are no numbers, or what else is special
    """

    name: str
    shape: tuple[int | str, ...]
    dtype: str
    device: str = "cpu"
    mean: float | None = None
    std: float | None = None
    min: float | None = None
    max: float | None = None
    nan: int | None = None
    inf: int | None = None
    zeros: float | None = None
    note: str = ""

    @property
    def is_bad(self) -> bool:
        """Whether there is a NaN or an infinity among the values."""
        return bool(self.nan or self.inf)

    def type(self) -> str:
        """dtype and shape: "f32[4, 8]"."""
        return f"{DTYPE_LETTERS.get(self.dtype, self.dtype)}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class ModuleCall:
    """One call of a module.

    module    its path, or its class for the observed one itself
    nr        which call of this module it was, from 1
    inputs, outputs   the tensors among them, those within tuples, lists and dicts too
    others    what else came out, such as "None" or "int"
    raised    whether forward raised, so that nothing came out
    """

    module: str
    nr: int
    inputs: tuple[TensorStats, ...]
    outputs: tuple[TensorStats, ...]
    others: tuple[str, ...] = ()
    raised: bool = False


@dataclass(frozen=True, slots=True)
class Observation(Table):
    """The calls of a module, in the order in which they began. Iterating, len() and [] give ModuleCalls.

    module   what was observed
    result   what the program returned: the object itself, which this record alone among all holds
    note     why there may be no calls
    """

    module: str
    calls: tuple[ModuleCall, ...]
    result: Any = field(default=None, repr=False, compare=False)
    note: str = ""

    def __len__(self) -> int:
        return len(self.calls)

    def __iter__(self) -> Iterator[ModuleCall]:
        return iter(self.calls)

    def __getitem__(self, nr: int) -> ModuleCall:
        return self.calls[nr]

    def first_bad(self) -> tuple[ModuleCall, TensorStats] | None:
        """The first call, in the order in which they ended, that gave a NaN or an infinity though none went in."""
        found = None
        for call in self.calls:
            clean = not any(each.is_bad for each in call.inputs)
            bad = next((each for each in call.outputs if each.is_bad), None)
            # Of nested modules the innermost is listed last and is where it began.
            if clean and bad is not None and (found is None or call.module.startswith(f"{found[0].module}.")):
                found = call, bad
        return found

    def rows(self) -> Rows:
        several = len({call.module for call in self.calls}) > 1
        notes = any(each.note for call in self.calls for each in (*call.inputs, *call.outputs))
        rows: Rows = []
        for call in self.calls:
            for each in (*call.inputs, *call.outputs):
                row: dict[str, Any] = {"module": call.module} if several else {}
                row |= {"call": call.nr, "tensor": each.name, "type": each.type()}
                row |= {name: getattr(each, name) for name in ("mean", "std", "min", "max")}
                row |= {"NaN": each.nan, "Inf": each.inf, "zeros": each.zeros}
                if notes:
                    row["note"] = each.note
                rows.append(row)
            if call.others or call.raised or not call.outputs:
                what = "raised" if call.raised else ", ".join(call.others) or "no tensor"
                row = {"module": call.module} if several else {}
                rows.append(row | {"call": call.nr, "tensor": "output", "type": what})
        return rows

    def shown(self) -> Rows:
        short = dict.fromkeys(("mean", "std", "min", "max"), "{:.4g}") | {"zeros": "{:.1%}"}
        return [
            {
                key: short[key].format(value) if key in short and value is not None else value
                for key, value in row.items()
            }
            for row in self.rows()
        ]

    def caption(self) -> str:
        own = [call for call in self.calls if call.module == self.module]
        count = len(own) or len(self.calls)
        called = f"called {count} time{'s' * (count != 1)}" if count else "not called"
        text = f"{self.module} was {called}{f'; {self.note}' if self.note else ''}"
        if len(own) != len(self.calls) and own:
            text += f"; {len(self.calls) - len(own)} calls of modules inside of it"
        bad = self.first_bad()
        if bad is not None:
            call, stats = bad
            text += (
                f"; NaN or Inf first in {stats.name} of {call.module}, call {call.nr}: {stats.nan} NaN, {stats.inf} Inf"
            )
        return text
