"""Dispatch stepper: one call through the dispatcher, key by key and kernel by kernel (Dispatcher.h in ATen/core).

What runs where was seen by `xray.why` on the reader's machine; nothing here knows the dispatcher's rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..draw.dispatch_steps import dispatch_steps
from ..records import Why, WhyCall
from ._frames import FramesWidget, Lane


class DispatchStepper(FramesWidget):
    """A call on its way down, step by step; with several frameworks side by side.

    programs   by the name of their lane: a function without arguments, which is explained here and now by `xray.why`
               (for PyTorch that takes two seconds), or what `xray.why` gave before
    call       which operator call of each program is shown, from 0
    depth      how deep kernels may lie in others to be shown, 0 for the outermost alone; None: all

    Traits: `step`, which may be read and set, and `steps`. `calls` has the records by lane.
    ValueError without a program, and for one that makes no such call or for a depth below 0; TypeError for a `call`
    or `depth` that is no whole number.
    """

    def __init__(self, call: int = 0, depth: int | None = None, **programs: Callable[[], Any] | Why | WhyCall) -> None:
        if not programs:
            raise ValueError("DispatchStepper: give at least one program, such as PyTorch=lambda: a + b.")
        if not isinstance(call, int):
            raise TypeError(f"DispatchStepper: call is the number of an operator call, 0 or more, got {call!r}.")
        if depth is not None and not isinstance(depth, int):
            raise TypeError(f"DispatchStepper: depth is a number, 0 or more, or None for all kernels, got {depth!r}.")
        if depth is not None and depth < 0:
            raise ValueError(f"DispatchStepper: depth is 0 or more, or None for all kernels, got {depth}.")
        self.calls = {name: _call(name, program, call) for name, program in programs.items()}
        ops = list(dict.fromkeys(each.op for each in self.calls.values()))
        super().__init__(
            [_lane(name, each, depth) for name, each in self.calls.items()], f"dispatch of {', '.join(ops)}"
        )


def _call(name: str, program: Callable[[], Any] | Why | WhyCall, nr: int) -> WhyCall:
    if isinstance(program, WhyCall):
        return program
    if not isinstance(program, Why):
        from ..xray import why

        program = why(program)
    if not 0 <= nr < len(program):
        raise ValueError(f"DispatchStepper: {name} made {len(program)} operator calls, so there is no call {nr}.")
    return program[nr]


def _lane(name: str, call: WhyCall, depth: int | None) -> Lane:
    steps = dispatch_steps(call, depth=depth)
    return Lane(name, tuple(s.label for s in steps), tuple(s.says for s in steps), tuple(s.figure for s in steps))
