"""Portraits of PyTorch's models: the runs that count and those that read the clock, and what comes of them
(PyTorch: torch/profiler).
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..records import Portrait, PortraitPart
from ..records.portrait import short_name
from . import _looking
from ._counting import OperatorCounter, in_short
from ._flops import tensors_in
from ._modules import ModuleTracker
from ._runs import Program, Progress, autocast_of, mode_of, name_of, progress
from ._timing import OperatorTimer, no_collection, repeats_for, spread, stopwatch, wait
from ._torch_internals import profiling, version
from ._untouched import Untouched

# Operators of such names hold matrix products.
_HIDES_PRODUCTS = re.compile(r"rnn|lstm|gru|attention|transformer|convolution|conv\dd|linear|matmul|\bmm\b|einsum")


def portrait_of_torch(
    model: Any,
    inputs: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    loss: Callable[[Any], Any] | None,
    backward: bool | None,
    repeats: int | None,
) -> Portrait:
    """As xray.profile says."""
    notes: list[str] = []
    target = profiling.uncompiled(model)
    if target is not model or (isinstance(target, torch.nn.Module) and profiling.is_compiled(target)):
        notes.append(
            "It is compiled; shown is its eager run, since a compiled one runs kernels of its own that no mode sees."
        )
    program = Program("profile", target, inputs, kwargs, loss, backward)
    with progress("profile") as say, program.untouched() as kept:
        if repeats == 0:
            counted, rounds = _count(program, kept), None
        else:
            say("a first run to warm up")
            output, seconds = stopwatch("cpu", lambda: program.run(kept))
            has_data = all(map(_looking.has_data, tensors_in((program.args, dict(program.kwargs), output))))
            del output
            say("counting")
            counted, rounds = _count(program, kept), None
            if not has_data or "meta" in counted.devices:
                notes.append("Fake and meta tensors have no data, so nothing was timed.")
            else:
                rounds = _time(program, kept, counted, repeats or repeats_for(seconds), say)
                if rounds is None:
                    notes.append("The calls differ from run to run, so nothing was timed.")
        written = kept.written_parameters()
    unknown = sorted({short_name(key[0]) for key, part in counted.parts.items() if _HIDES_PRODUCTS.search(key[0])
                      and part["flops"] is None})  # fmt: skip
    if unknown:
        notes.append(f"PyTorch has no FLOP formula for {', '.join(unknown)}; what it computes is not in the FLOPs.")
    notes += written
    return _portrait(program, counted, rounds, notes)


def _count(program: Program, kept: Untouched) -> OperatorCounter:
    with ModuleTracker(program.module) as tracker:
        counter = OperatorCounter(tracker)
        program.run(kept, counter.mark, counter)
    return counter


class _Rounds:
    """What the timed runs gave: seconds of the bare forward and backward, and of each operator call, run by run."""

    def __init__(self) -> None:
        self.forward: list[float] = []
        self.backward: list[float] = []
        self.calls: list[list[float]] = []


def _time(program: Program, kept: Untouched, counted: OperatorCounter, repeats: int, say: Progress) -> _Rounds | None:
    """Bare and timed runs in turn, so that a disturbance meets both; None where the calls are not those counted."""
    device = next((name.partition(":")[0] for name in counted.devices if name != "cpu"), "cpu")
    rounds = _Rounds()
    with no_collection():
        for nr in range(repeats):
            say(f"timing, {nr + 1} of {repeats}")
            times: dict[str, float] = {}

            def mark(stage: str, times: dict[str, float] = times) -> None:
                wait(device)
                times[stage] = time.perf_counter()

            program.run(kept, mark)
            rounds.forward.append(times["ready"] - times["forward"])
            if "backward" in times:
                rounds.backward.append(times["end"] - times["backward"])
            timer = OperatorTimer(device)
            program.run(kept, inside=timer)
            if timer.ops != counted.ops:
                return None
            rounds.calls.append(timer.seconds())
    return rounds


def _portrait(program: Program, counted: OperatorCounter, rounds: _Rounds | None, notes: list[str]) -> Portrait:
    us = _microseconds(counted, rounds)
    parts = tuple(
        PortraitPart(
            *key, found["calls"], tuple(found["shapes"].most_common()), found["flops"], found["bytes"], us.get(key)
        )
        for key, found in counted.parts.items()
    )
    given = [("", each) for each in program.args] + [(f"{name}=", each) for name, each in program.kwargs.items()]
    return Portrait(
        name_of(program.target),
        mode_of(program.module, counted.devices),
        tuple(f"{name}{in_short(each)}" for name, value in given for each in tensors_in(value)),
        counted.devices,
        torch.get_num_threads(),
        version(),
        _seen(counted.devices),
        parts,
        len(rounds.forward) if rounds else 0,
        spread(rounds.forward) if rounds else None,
        spread(rounds.backward) if rounds and rounds.backward else None,
        tuple(notes),
    )


def _microseconds(counted: OperatorCounter, rounds: _Rounds | None) -> dict[tuple[str, str, str], float]:
    """Per part the median over the runs of what its calls took together."""
    if rounds is None:
        return {}
    sums: dict[tuple[str, str, str], list[float]] = {key: [0.0] * len(rounds.calls) for key in counted.parts}
    for run, seconds in enumerate(rounds.calls):
        for key, each in zip(counted.keys, seconds, strict=True):
            sums[key][run] += each * 1e6
    return {key: statistics.median(each) for key, each in sums.items()}


def _seen(devices: tuple[str, ...]) -> str:
    """One sentence: under which mode the portrait was taken, and what that lets one see."""
    autocast = autocast_of(devices)
    casts = f"; {autocast} was on, whose casts are the _to_copy rows" if autocast else ""
    if torch.is_inference_mode_enabled():
        return (
            "Taken under inference_mode: no Autograd keys take composite operators apart, so these are seen "
            f"whole (conv2d, not convolution){casts}."
        )
    what = "with grad on: the Autograd keys"
    if not torch.is_grad_enabled():
        what = "under no_grad, which leaves the Autograd keys in place: they"
    return f"Taken {what} take composite operators apart, so their parts are seen (convolution, not conv2d){casts}."
