"""Axes: ticks at round numbers and a scale from values to pixels (PyTorch has no part that draws)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps [low, high] to pixels [start, end], evenly or, where `log` is set, by powers."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high = self._of(self.low), self._of(self.high)
        share = 0.0 if high == low else (self._of(value) - low) / (high - low)
        return self.start + share * (self.end - self.start)

    def value(self, pixel: float) -> float:
        """The value that lies at a pixel."""
        share = 0.0 if self.end == self.start else (pixel - self.start) / (self.end - self.start)
        low, high = self._of(self.low), self._of(self.high)
        at = low + share * (high - low)
        return math.exp(at) if self.log else at

    def _of(self, value: float) -> float:
        return math.log(max(value, 1e-12)) if self.log else value


def nice_ticks(low: float, high: float, most: int) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten inside [low, high], at most `most` of them."""
    if not high > low:
        return [low]
    step = 10 ** math.floor(math.log10((high - low) / max(1, most)))
    while True:
        for factor in (1, 2, 5):
            width = step * factor
            first, last = math.ceil(low / width - 1e-9), math.floor(high / width + 1e-9)
            if last - first + 1 <= max(1, most):
                return [round(nr * width, 12) for nr in range(first, last + 1)]
        step *= 10


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """1, 2 and 5 times powers of ten inside [low, high]; only the powers, or every so many, where that is too many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    fine = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
    found = [tick for tick in fine if low * 0.999 <= tick <= high * 1.001]
    if len(found) <= most:
        return found
    whole = [tick for tick in found if tick == 10.0 ** round(math.log10(tick))]
    return whole[:: max(1, -(-len(whole) // most))]


def time_unit(longest_us: float) -> tuple[float, str]:
    """How many microseconds the unit has in which an axis up to `longest_us` reads best, and its sign."""
    if longest_us >= 2e6:
        return 1e6, "s"
    if longest_us >= 2e3:
        return 1e3, "ms"
    return (1.0, "µs") if longest_us >= 0.2 else (1e-3, "ns")


def plain_number(value: float) -> str:
    """A tick's number without needless digits: "0.5", "20", "1,000"."""
    text = f"{value:,.6f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def count_label(n: float) -> str:
    """A count in four characters or so: "64", "4k", "1.5M"."""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if n >= size * 0.9995:
            return f"{n / size:.3g}{sign}"
    return f"{n:.3g}"


def polyline(points: Sequence[tuple[float, float]]) -> str:
    """The path through points."""
    return "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
