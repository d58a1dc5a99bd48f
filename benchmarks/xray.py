"""What the instruments cost beside PyTorch's own: a log of operators, per small call and for a network."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.utils._debug_mode import DebugMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.measure import alternate, human, progress
from glassbox import xray

CALLS = 200
# Case -> (what it is compared with, the ratio that is aimed at).
TARGETS = {
    "add, 4 elements": (("FlopCounterMode", 1.0), ("DebugMode", 0.5)),
    "add, 4 elements, with grad": (("FlopCounterMode", 1.0), ("DebugMode", 0.5)),
    "ResNet-18 forward, 1x3x224x224": (("bare", 1.1),),
}


class Empty(TorchDispatchMode):
    """The least that a mode costs."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


MODES: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "bare": contextlib.nullcontext,
    "an empty mode": Empty,
    "op_log": xray.op_log,
    "op_log(places=True)": lambda: xray.op_log(places=True),
    "FlopCounterMode": lambda: FlopCounterMode(display=False),
    "DebugMode": DebugMode,
}


def log_costs(rounds: int) -> Iterator[dict[str, str]]:
    """One row per case and mode: the time, its ratio to op_log's, and what is aimed at."""
    a, b = torch.rand(4), torch.rand(4)
    ga, gb = torch.rand(4, requires_grad=True), torch.rand(4, requires_grad=True)
    yield from _compared("add, 4 elements", _each(lambda: a + b), CALLS, rounds)
    yield from _compared("add, 4 elements, with grad", _each(lambda: ga + gb), CALLS, rounds)
    try:
        import torchvision
    except ImportError:
        return
    net, picture = torchvision.models.resnet18().eval(), torch.rand(1, 3, 224, 224)

    def forward() -> None:
        with torch.no_grad():
            net(picture)

    yield from _compared("ResNet-18 forward, 1x3x224x224", forward, 1, min(rounds, 10))


def _each(call: Callable[[], object]) -> Callable[[], None]:
    def many() -> None:
        for _ in range(CALLS):
            call()

    return many


def _compared(case: str, work: Callable[[], None], calls: int, rounds: int) -> Iterator[dict[str, str]]:
    progress(case)

    def under(mode: Callable[[], AbstractContextManager[Any]]) -> Callable[[], None]:
        def run() -> None:
            with mode():
                work()

        return run

    times = alternate({name: under(mode) for name, mode in MODES.items()}, rounds)
    aims = dict(TARGETS[case])
    ours = times["op_log"]
    for name, timing in times.items():
        yield {
            "case": case,
            "under": name,
            "a call": human(timing.least / calls),
            "op_log / this, of least": f"{ours.least / timing.least:.2f}",
            "of medians": f"{ours.median / timing.median:.2f}",
            "aim": f"{aims[name]:g}" if name in aims else "",
        }
