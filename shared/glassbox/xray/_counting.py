"""Counting: each operator call below Autograd, with its module, phase, shapes, FLOPs and bytes
(torch/utils/_python_dispatch.py, torch/utils/flop_counter.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ..records import DTYPE_LETTERS
from . import _torch_internals as internals
from ._flops import has_formula, known_flops, tensors_in, traffic
from ._modules import ModuleTracker
from ._torch_internals import profiling
from ._torch_internals.modes import TorchDispatchMode

_QUERIES = profiling.metadata_queries()
_LOSS = "(loss)"


class OperatorCounter(TorchDispatchMode):
    """Writes down each operator call: phase, module, shapes, FLOPs, bytes."""

    supports_higher_order_operators = True

    def __init__(self, tracker: ModuleTracker) -> None:
        super().__init__()
        self.ops: list[Any] = []
        self.keys: list[tuple[str, str, str]] = []
        self.parts: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.device_counts: Counter[str] = Counter()
        self._tracker = tracker
        self._stage = "forward"
        self._loss = range(0)

    def mark(self, stage: str) -> None:
        now = internals.next_sequence_nr()
        if stage == "loss":
            self._loss = range(now, now)
        elif stage == "ready":
            self._loss = range(self._loss.start, now)
        self._stage = stage

    @property
    def devices(self) -> tuple[str, ...]:
        """Devices of the tensors that were computed with, the most frequent first."""
        return tuple(name for name, _ in self.device_counts.most_common())

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(op)
        if name in _QUERIES:
            return op(*args, **(kwargs or {}))
        kwargs = kwargs or {}
        node = internals.current_node()
        # What a run makes for backward to begin with is made outside of it.
        phase = "backward" if self._stage == "backward" else self._tracker.phase()
        key = name, phase, self._place(node)
        # Before the call, which may write to them.
        shapes = ", ".join(map(in_short, tensors_in((args, kwargs))))
        out, flops = _run_counting_flops(op, args, kwargs)
        part = self.parts.setdefault(key, {"calls": 0, "shapes": Counter(), "flops": None, "bytes": 0})
        part["calls"] += 1
        part["shapes"][shapes] += 1
        part["bytes"] += traffic(op, args, kwargs, out)
        if flops is not None:
            part["flops"] = (part["flops"] or 0) + flops
        self.device_counts.update(str(each.device) for each in tensors_in((args, kwargs, out)))
        self.ops.append(op)
        self.keys.append(key)
        return out

    def _place(self, node: Any) -> str:
        in_loss = self._stage != "forward" if node is None else internals.sequence_nr(node) in self._loss
        return self._tracker.path().replace("._orig_mod", "") or (_LOSS if in_loss else "")


class _FlopsInside(TorchDispatchMode):
    """Adds up the FLOPs of what a composite operator is made of."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.flops: int | None = None

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if str(op) in _QUERIES:
            return op(*args, **(kwargs or {}))
        out, flops = _run_counting_flops(op, args, kwargs or {})
        if flops is not None:
            self.flops = (self.flops or 0) + flops
        return out


def _run_counting_flops(op: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, int | None]:
    """What a call gives, and its FLOPs: by its formula, or by those of its parts where it is a composite."""
    decompose = profiling.composite(op)
    if decompose is not None and not has_formula(op):
        with _FlopsInside() as inside:
            return decompose(*args, **kwargs), inside.flops
    out = op(*args, **kwargs)
    return out, known_flops(op, args, kwargs, out)


def in_short(tensor: Any) -> str:
    """Dtype and shape: "f32[4, 8]"."""
    dtype = str(tensor.dtype).rsplit(".", 1)[-1]
    try:
        shape = f"[{', '.join(map(str, tensor.shape))}]"
    except RuntimeError:
        shape = "[nested]"
    return f"{DTYPE_LETTERS.get(dtype, dtype)}{shape}"
