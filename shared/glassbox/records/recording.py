"""Recording: all that one look at a program gave (PyTorch: torch/profiler)."""

from __future__ import annotations

from dataclasses import dataclass

from .dispatch import Onion
from .graph import SavedValues
from .ops import OpLog
from .table import Rows, Table
from .timeline import Timeline


@dataclass(frozen=True, slots=True)
class Recording(Table):
    """What a program did: its operator calls, their hops, what was saved for backward, and the simulated
    device's work.
    """

    ops: OpLog
    hops: Onion
    saved: SavedValues
    launches: Timeline

    def rows(self) -> Rows:
        return self.ops.rows()

    def caption(self) -> str:
        parts = [self.ops.caption(), self.hops.caption(), self.saved.caption()]
        kernels = len(self.launches.of_kind("kernel", "copy"))
        return "; ".join([*parts, f"{kernels} launches"] if kernels else parts)

    def __str__(self) -> str:
        return "\n".join(part for part in (self.caption(), str(self.ops)) if part)
