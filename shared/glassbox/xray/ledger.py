"""The cost ledger of one operator call: what each layer of it takes on this machine (PyTorch: torch/utils/benchmark).

No layer can be timed alone from Python, so each is the difference of two calls, timed round by round side by side:
a call that does nothing, one that only parses a tensor, one that also goes through the dispatcher, the operator below
autograd, with an Autograd kernel that records nothing, with one that records, and so on.
"""

from __future__ import annotations

import functools
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from ..records import Alternative, CostCurve, CostLayer, Overhead, Spread
from ..records.overhead import FEWEST, crossing_of
from . import _measuring as measuring
from ._ledger_beside import add_alternatives, add_hops
from ._ledger_layers import add_curves, add_layers
from ._ledger_plan import PLAIN, Difference, Plan
from ._timed_calls import Make, TimedCall, tensors_in, timed_call
from ._torch_internals import version
from ._torch_internals.tracing import below_autograd

_GROWTH, _ENOUGH, _SLOWEST_US, _LARGEST = 4, 24, 20_000, 4**11
# A call that has not begun to grow by this size, such as a view, never will.
_FLAT = 4**8


def overhead(
    fn: Any = "add",
    *,
    make: Make | None = None,
    sizes: Sequence[int] | None = None,
    seconds: float = 4.0,
    rounds: int | None = None,
    threads: int = 1,
    device: str = "cpu",
    progress: bool = True,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> Overhead:
    """What one call costs, layer by layer and over sizes, with what else can be around it.

    fn         an operator ("add", "mm", torch.ops.aten.add.Tensor, torch.relu) or any function of tensors. It is called
               very often, so it should have no effect but its result.
    make       make(n) -> its arguments as a tuple, whose first tensor has about n elements. Without it: float32
               tensors of n elements, square matrices for mm and the like.
    sizes      element counts, the smallest of which is taken apart; without them powers of 4 from 1 on, until a call
               takes 24 times as long as the first
    seconds    about how long to measure; more of them give narrower intervals
    rounds     that many rounds instead, at least 6
    threads    of PyTorch's own pool while measuring; set back afterwards
    device     where the arguments of `fn` are made if there is no `make`; off the CPU a call's time ends when the
               device is done
    progress   say on stderr how far it is, in a terminal or notebook
    clock      nanoseconds; another one makes the result predictable

    Returns an Overhead record in microseconds. Its intervals say how sure the numbers of this run are; another process,
    with its memory laid out otherwise and the machine in another state, can lie outside of them. Random numbers, grad
    mode, thread count and garbage collection are afterwards as before. TypeError and ValueError where the call cannot
    be made out of `fn`; whatever `fn` raises.
    """
    _check(sizes, seconds, rounds, threads)
    call = timed_call(fn, make, device)
    with measuring.quiet(threads), measuring.progress(f"overhead of {call.name}", progress) as report:
        place = _place(call, min(sizes) if sizes is not None else 1, device)
        settle = None if place in ("cpu", "meta") else functools.partial(torch.accelerator.synchronize, place)
        chosen = sorted(set(sizes)) if sizes is not None else _growing(call, clock, settle)
        plan = build_plan(call, chosen, device, settle)
        times = measuring.measure(plan.samples, seconds, rounds, clock, report)
    machine = f"torch {version()}, Python {platform.python_version()}, {place}, " + (
        f"{threads} thread{'s' * (threads != 1)}"
    )
    return ledger_of(plan, times, machine)


def build_plan(call: TimedCall, sizes: Sequence[int], device: str, settle: Callable[[], None] | None) -> Plan:
    """What to time for a call over these sizes, the smallest of which is taken apart."""
    plan = Plan(call, tuple(sizes))
    sampled = functools.partial(measuring.calling, settle=settle)
    args = call.make(sizes[0])
    add_curves(plan, args, sampled)
    below = plan.add("below", sampled(call.function, args, within=below_autograd), "the call below autograd")
    add_layers(plan, args, below, sampled)
    add_alternatives(plan, args, device, sampled)
    add_hops(plan, args, below, device, sampled, settle)
    return plan


def ledger_of(plan: Plan, times: Mapping[str, Sequence[float]], machine: str) -> Overhead:
    """The record of a plan's times: microseconds per call for every sample, one for each round."""
    rounds = len(next(iter(times.values())))
    plain = f"{PLAIN} {plan.sizes[0]}"
    return Overhead(
        op=plan.call.name,
        machine=machine,
        rounds=rounds,
        base_size=plan.sizes[0],
        whole=Spread.of(times[plan.whole]),
        layers=tuple(_layer(each, times) for each in plan.layers),
        curves=tuple(_curve(mode, *about, times) for mode, about in plan.curves.items()),
        alternatives=tuple(
            Alternative(name, definition, Spread.of(times[sample]), _difference(((sample, 1), (plain, -1)), times))
            for name, definition, sample in plan.alternatives
        ),
        hops=tuple(_layer(each, times) for each in plan.hops),
        left_out=tuple(plan.left_out),
    )


def _layer(difference: Difference, times: Mapping[str, Sequence[float]]) -> CostLayer:
    return CostLayer(difference.name, difference.definition, _difference(difference.terms, times), difference.stations)


def _difference(terms: Sequence[tuple[str, int]], times: Mapping[str, Sequence[float]]) -> Spread:
    """Taken within each round, so that what slowed a whole round down is in no difference."""
    rounds = zip(*(times[name] for name, _ in terms), strict=True)
    signs = [sign for _, sign in terms]
    return Spread.of([sum(sign * each for sign, each in zip(signs, one, strict=True)) for one in rounds])


def _curve(
    mode: str, definition: str, points: Sequence[tuple[int, str]], times: Mapping[str, Sequence[float]]
) -> CostCurve:
    sizes = [size for size, _ in points]
    rounds = zip(*(times[name] for _, name in points), strict=True)
    crossing = Spread.of([crossing_of(sizes, one) for one in rounds])
    return CostCurve(
        mode,
        definition,
        tuple((size, Spread.of(times[name])) for size, name in points),
        crossing if crossing.median < float("inf") else None,
    )


def _growing(call: TimedCall, clock: measuring.Clock, settle: Callable[[], None] | None) -> list[int]:
    """Sizes from 1 on, until the kernel's work is much more than the overhead, or a call too slow to repeat."""
    sizes, first = [], 0.0
    size = 1
    while size <= _LARGEST:
        sizes.append(size)
        took = measuring.once(measuring.calling(call.function, call.make(size), settle=settle), clock)
        first = first or took
        if took > _ENOUGH * first or took > _SLOWEST_US or size >= _FLAT and took < 1.5 * first:
            break
        size *= _GROWTH
    return sizes


def _place(call: TimedCall, size: int, device: str) -> str:
    found = tensors_in(call.make(size))
    return str(found[0].device) if found else device


def _check(sizes: Sequence[int] | None, seconds: float, rounds: int | None, threads: int) -> None:
    if sizes is not None and (not sizes or any(not isinstance(n, int) or n < 1 for n in sizes)):
        raise ValueError(f"overhead: sizes are whole numbers of elements from 1 on, got {sizes!r}.")
    if not seconds > 0:
        raise ValueError(f"overhead: seconds is how long to measure, more than 0, got {seconds!r}.")
    if rounds is not None and rounds < FEWEST:
        raise ValueError(f"overhead: {rounds} rounds give no 95 % interval; use at least {FEWEST}.")
    if threads < 1:
        raise ValueError(f"overhead: threads is at least 1, got {threads!r}.")
