"""Measuring two or more ways to do the same, round by round in one process, so that a disturbance meets all of them."""

from __future__ import annotations

import gc
import statistics
import sys
import time
import timeit
from collections.abc import Callable, Mapping
from dataclasses import dataclass

BLOCK_SECONDS = 0.004


@dataclass(frozen=True)
class Timing:
    """Seconds of one call: the least and the median over rounds."""

    least: float
    median: float


def alternate(ways: Mapping[str, Callable[[], object]], rounds: int = 25) -> dict[str, Timing]:
    """Times each way in blocks of some milliseconds, all of them in every round."""
    counts = {}
    for name, way in ways.items():
        way()
        once = min(timeit.repeat(way, number=1, repeat=5))
        counts[name] = max(1, int(BLOCK_SECONDS / max(once, 1e-9)))
    seen: dict[str, list[float]] = {name: [] for name in ways}
    collecting = gc.isenabled()
    gc.collect()
    # What is there by now stays: the collector need not look at it again and again.
    gc.freeze()
    for _ in range(rounds):
        for name, way in ways.items():
            seen[name].append(timeit.timeit(way, number=counts[name]) / counts[name])
    gc.unfreeze()
    if collecting:
        gc.enable()
    return {name: Timing(min(times), statistics.median(times)) for name, times in seen.items()}


def human(seconds: float) -> str:
    """1.23e-6 -> "1.23 us"."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.0f} ns"


def progress(text: str) -> None:
    """One line that the next one writes over, on a terminal."""
    if sys.stderr.isatty():
        print(f"\r{text:60}", end="", file=sys.stderr, flush=True)


def stopwatch(work: Callable[[], object]) -> float:
    """Seconds of one call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
