"""Timelines: what host and device did while a function ran, and when (torch/csrc/profiler, kineto).

Over PyTorch the times are those of torch.profiler, real ones that no two runs share; over the mini-framework those of
its simulated device's virtual clock, the same on every machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ..records import Timeline, TimelineEvent

_MINI = "glassbox.mini"


def timeline(fn: Callable[..., Any], *args: Any, warmup: int = 0, **kwargs: Any) -> Timeline:
    """What happened during fn(*args, **kwargs): the host's row and, where there is a device, the rows of its streams.

    fn       is called once; anything that it raises passes, and nothing is left switched on
    warmup   calls of fn before that, so that what only the first call does (loading kernels, filling caches) is not
             in the picture

    Over PyTorch: every operator as the profiler sees it, nested, with backward; off the CPU also the calls of the
    runtime and the kernels. The profiler takes time itself: about a microsecond for each bar on the host. Over mini
    tensors on "sim": launches, kernels and waits on the virtual clock. A function that takes no tensor is watched in
    both frameworks, as far as they are imported; what sim did counts first.

    Returns a Timeline, whose zero is the call of fn. RuntimeError while another profiler session is running.
    """
    mini = sys.modules.get(_MINI)
    for _ in range(warmup):
        fn(*args, **kwargs)
    given = (fn, *args, *kwargs.values())
    if _takes(mini, given):
        return _of_mini(mini, lambda: fn(*args, **kwargs))
    if mini is None or _takes(sys.modules.get("torch"), given):
        return _of_torch(lambda: fn(*args, **kwargs))
    if "torch" not in sys.modules:
        return _of_mini(mini, lambda: fn(*args, **kwargs))
    found: list[Timeline] = []
    real = _of_torch(lambda: found.append(_of_mini(mini, lambda: fn(*args, **kwargs))))
    return found[0] if found[0].events else real


def _takes(framework: Any, given: tuple[Any, ...]) -> bool:
    """Whether a tensor or module of the framework is among the values, or in a list there."""
    kinds = tuple(
        kind
        for kind in (
            getattr(framework, "Tensor", None),
            getattr(getattr(framework, "nn", None), "Module", None),
        )
        if isinstance(kind, type)
    )

    def found(value: Any) -> bool:
        if isinstance(value, list | tuple):
            return any(map(found, value))
        return isinstance(value, kinds)

    return bool(kinds) and any(map(found, given))


def _of_mini(mini: Any, run: Callable[[], Any]) -> Timeline:
    zero = mini.sim.now()
    with mini.record() as recorder:
        run()
        returned = mini.sim.now()
    line = recorder.launches
    # After a reset inside the program the clock began anew.
    zero = zero if returned >= zero else 0.0
    events = tuple(
        TimelineEvent(
            each.row,
            each.name,
            round(each.start_us - zero, 6),
            round(each.end_us - zero, 6),
            each.kind,
            each.bytes,
            each.flops,
            each.correlation,
        )
        for each in line.events
    )
    return Timeline(events, line.dropped, round(returned - zero, 6), line.device)


def _of_torch(run: Callable[[], Any]) -> Timeline:
    from ._profiled import profiled

    return profiled(run)
