"""Measuring: many calls timed side by side, round by round (PyTorch: torch/utils/benchmark/utils/timer.py).

Every round times every call once, in an order drawn anew, so that whatever disturbs the machine meets all of them, and
a difference within a round is free of what changed between rounds.
"""

from __future__ import annotations

import functools
import gc
import itertools
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import torch

from ._looking import on_a_terminal

Clock = Callable[[], int]
# Makes so many calls and says how many nanoseconds they took.
Sample = Callable[[int, Clock], int]
Report = Callable[[float], None]

# Long enough that reading the clock does not count, short enough that an interruption spoils few samples.
SAMPLE_NS = 150_000
FEWEST_ROUNDS = 11
MOST_ROUNDS = 2001


def calling(
    function: Any,
    args: Sequence[Any],
    expression: str = "",
    within: Callable[[], AbstractContextManager[Any]] = nullcontext,
    settle: Callable[[], None] | None = None,
) -> Sample:
    """A Sample of function(*args), made inside `within()`; entering and leaving are not timed.

    expression   other Python than the plain call, over f (the function) and a0, a1, ...: "a0 + a1"
    settle       waits for a device; called before each of the clock's readings
    """
    loop = _loop(expression or f"f({', '.join(_names(len(args)))})", len(args))
    wait = settle or _nothing

    def sample(calls: int, clock: Clock) -> int:
        with within():
            # What ran before has left caches cold, which a few calls make up for.
            loop(itertools.repeat(None, min(5, calls // 16)), clock, wait, function, *args)
            return loop(itertools.repeat(None, calls), clock, wait, function, *args)

    return sample


def in_vmap(function: Any, args: Sequence[Any], levels: int, settle: Callable[[], None] | None = None) -> Sample:
    """A Sample of function(*args) made inside `levels` nested torch.vmap over one sample each."""
    batched = [_leading_ones(arg, levels) for arg in args]

    def sample(calls: int, clock: Clock) -> int:
        taken: list[int] = []

        def body(*inner: Any) -> Any:
            taken.append(calling(function, inner, settle=settle)(calls, clock))
            return next(each for each in inner if isinstance(each, torch.Tensor))

        mapped: Any = body
        for _ in range(levels):
            dims = tuple(0 if isinstance(arg, torch.Tensor) else None for arg in args)
            mapped = torch.vmap(mapped, in_dims=dims)
        mapped(*batched)
        return taken[-1]

    return sample


def measure(
    samples: Mapping[str, Sample],
    seconds: float,
    rounds: int | None = None,
    clock: Clock = time.perf_counter_ns,
    report: Report = lambda share: None,
) -> dict[str, list[float]]:
    """Microseconds per call of every sample, one number a round.

    rounds   how many; without it as many as fit into `seconds`, but at least 11
    report   is called now and then with the share that is done
    """
    calls = {name: _calls_per_sample(sample, clock) for name, sample in samples.items()}
    # An order of our own: the program's random numbers stay as they are.
    order, shuffle = list(samples), random.Random(0).shuffle
    taken: dict[str, list[float]] = {name: [] for name in samples}
    start = clock()
    wanted = rounds if rounds is not None else MOST_ROUNDS
    for nr in range(wanted):
        shuffle(order)
        for name in order:
            taken[name].append(samples[name](calls[name], clock) / calls[name] / 1000)
        spent = (clock() - start) / 1e9
        if rounds is None and nr + 1 >= FEWEST_ROUNDS and spent >= seconds:
            break
        report(min(1.0, max((nr + 1) / wanted, 0.0 if rounds is not None else spent / seconds)))
    return taken


def once(sample: Sample, clock: Clock = time.perf_counter_ns) -> float:
    """Roughly how many microseconds a call takes: the best of three short samples."""
    calls = _calls_per_sample(sample, clock, SAMPLE_NS // 5)
    return min(sample(calls, clock) for _ in range(3)) / calls / 1000


@contextmanager
def quiet(threads: int) -> Iterator[None]:
    """`threads` threads, no garbage collection, no outer no_grad or inference_mode; afterwards all is as it was.

    The random numbers that are drawn inside do not count outside.
    """
    before, collecting = torch.get_num_threads(), gc.isenabled()
    devices = [torch.accelerator.current_device_index()] if torch.accelerator.is_available() else []
    with ExitStack() as stack:
        stack.enter_context(torch.random.fork_rng(devices=devices, device_type=_accelerator()))
        # This switches gradients on as well.
        stack.enter_context(torch.inference_mode(False))
        stack.callback(torch.set_num_threads, before)
        torch.set_num_threads(threads)
        gc.collect()
        if collecting:
            stack.callback(gc.enable)
            gc.disable()
        yield


@contextmanager
def progress(what: str, wanted: bool) -> Iterator[Report]:
    """A line on stderr that says how far the work is, where somebody looks: a terminal or a notebook."""
    stream, state = sys.stderr, [time.monotonic(), 0]
    shown = wanted and stream is not None and ("ipykernel" in sys.modules or on_a_terminal(stream))

    def report(share: float) -> None:
        if shown and time.monotonic() - state[0] > 0.25:
            state[0] = time.monotonic()
            line = f"{what}: {share:.0%}"
            state[1] = len(line)
            stream.write(f"\r{line}")
            stream.flush()

    try:
        yield report
    finally:
        if state[1]:
            stream.write("\r" + " " * int(state[1]) + "\r")
            stream.flush()


def _accelerator() -> str:
    device = torch.accelerator.current_accelerator()
    return "cuda" if device is None else device.type


def _calls_per_sample(sample: Sample, clock: Clock, wanted_ns: int = SAMPLE_NS) -> int:
    """How many calls fill a sample; finding out warms the call up too."""
    calls = 1
    sample(1, clock)
    while True:
        # An interruption makes a call look slow; then too few of them would share what a sample costs to begin.
        taken = min(sample(calls, clock) for _ in range(3))
        if taken * 4 >= wanted_ns or calls >= 1 << 20:
            return max(1, min(1 << 20, round(calls * wanted_ns / max(1, taken))))
        calls *= 4


@functools.cache
def _loop(expression: str, count: int) -> Any:
    # A loop with the arguments spelled out, as in a program: f(*args) would take a way of its own.
    names = "".join(f", {name}" for name in _names(count))
    source = (
        f"def loop(times, clock, wait, f{names}):\n"
        f"    wait()\n"
        f"    start = clock()\n"
        f"    for _ in times:\n"
        f"        {expression}\n"
        f"    wait()\n"
        f"    return clock() - start\n"
    )
    scope: dict[str, Any] = {}
    exec(source, scope)
    return scope["loop"]


def _names(count: int) -> list[str]:
    return [f"a{nr}" for nr in range(count)]


def _nothing() -> None:
    pass


def _leading_ones(arg: Any, levels: int) -> Any:
    # A copy: a tensor that a view holds on to is passed on a little faster, since its Python object need not be told.
    return arg.detach().clone().reshape(*(1,) * levels, *arg.shape) if isinstance(arg, torch.Tensor) else arg
