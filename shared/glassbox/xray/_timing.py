"""Timing: how long operators and whole runs take on this machine (torch/profiler; torch.Event on accelerators)."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from ..records import RunTime
from ._torch_internals import profiling
from ._torch_internals.modes import TorchDispatchMode

# Runs until this much time has gone, within these bounds.
_SECONDS = 2.0
_FEWEST, _MOST = 3, 20

_QUERIES = profiling.metadata_queries()


class OperatorTimer(TorchDispatchMode):
    """Times each operator call below Autograd, and does nothing else in between.

    On a CPU the time of a call is that from before to after it, the way from Python to the kernel and back included
    (about a microsecond). On an accelerator events of the device's own stand around each call, and `seconds()` waits.
    """

    supports_higher_order_operators = True

    def __init__(self, device: str) -> None:
        super().__init__()
        self.ops: list[Any] = []
        self._device = device
        self._marks: list[tuple[Any, Any]] = []

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if str(op) in _QUERIES:
            return op(*args, **(kwargs or {}))
        kwargs = kwargs or {}
        if self._device == "cpu":
            began = time.perf_counter()
            out = op(*args, **kwargs)
            self._marks.append((began, time.perf_counter()))
        else:
            first, last = (torch.Event(device=self._device, enable_timing=True) for _ in range(2))
            first.record()
            out = op(*args, **kwargs)
            last.record()
            self._marks.append((first, last))
        self.ops.append(op)
        return out

    def seconds(self) -> list[float]:
        """One number per call of `ops`."""
        if self._device == "cpu":
            return [last - first for first, last in self._marks]
        wait(self._device)
        return [first.elapsed_time(last) / 1e3 for first, last in self._marks]


def wait(device: str) -> None:
    """Until the device has done what it was asked for; a CPU has when it returns."""
    if device not in ("cpu", "meta"):
        torch.accelerator.synchronize()


def stopwatch(device: str, work: Callable[[], Any]) -> tuple[Any, float]:
    """What work() gives and its seconds, the device's part included."""
    wait(device)
    began = time.perf_counter()
    result = work()
    wait(device)
    return result, time.perf_counter() - began


def repeats_for(seconds: float) -> int:
    """How many runs of that length make a good median in a bearable time."""
    return max(_FEWEST, min(_MOST, int(_SECONDS / max(seconds, 1e-9))))


def spread(seconds: Sequence[float]) -> RunTime:
    """Median and quartiles, in microseconds."""
    if len(seconds) == 1:
        return RunTime(*[seconds[0] * 1e6] * 3)
    low, median, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return RunTime(median * 1e6, low * 1e6, high * 1e6)


@contextmanager
def no_collection() -> Iterator[None]:
    """Python's garbage collector off, so that it does not fall into one operator's time."""
    on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()
