"""Overhead: what the layers of one operator call cost on this machine (PyTorch: torch/utils/benchmark).

A ledger of differences: no layer of a call can be timed alone, so each is the difference of two calls that were timed
side by side, and says which. Numbers are medians over rounds with an interval that assumes no distribution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .table import Rows, Table, folded_table

if TYPE_CHECKING:
    from ..draw import Svg

CONFIDENCE = 0.95
FEWEST = 6


@dataclass(frozen=True, slots=True)
class Spread:
    """A median over rounds and how sure it is. In microseconds where nothing else is said.

    low, high   95 % interval of the median, by rank: it holds whatever the distribution of the rounds
    q1, q3      quartiles of the rounds: how much a single round varies
    """

    median: float
    low: float
    high: float
    q1: float
    q3: float
    rounds: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of one value per round. ValueError for fewer than six, for which no interval reaches 95 %."""
        n = len(values)
        if n < FEWEST:
            raise ValueError(f"Spread: {n} rounds are too few for a 95 % interval; measure at least {FEWEST}.")
        ordered = sorted(values)
        rank = _rank(n)
        return cls(
            _quantile(ordered, 0.5), ordered[rank - 1], ordered[n - rank], _quantile(ordered, 0.25),
            _quantile(ordered, 0.75), n,
        )  # fmt: skip

    @property
    def distinguishable(self) -> bool:
        """False where 0 lies inside the interval."""
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        return f"{short(self.median)} us ({short(self.low)} to {short(self.high)})"


@dataclass(frozen=True, slots=True)
class CostLayer:
    """One part of a call, as a difference.

    definition   which calls were timed, and which is taken from which
    time         of the difference, round by round
    stations     of the call path, from Python's slot (1) to the device (8); "" where it has no place there
    """

    name: str
    definition: str
    time: Spread
    stations: str = ""

    def verdict(self) -> str:
        """ "0.27 us (0.26 to 0.28)", or that the difference cannot be told from none."""
        if self.time.distinguishable:
            return str(self.time)
        return f"not distinguishable from 0 ({short(self.time.low)} to {short(self.time.high)} us)"


@dataclass(frozen=True, slots=True)
class Alternative:
    """The same call made another way: its own time, and what it takes more than the plain call in the same round."""

    name: str
    definition: str
    time: Spread
    extra: Spread

    def verdict(self) -> str:
        if not self.extra.distinguishable:
            return f"{self.time}, not distinguishable from the plain call"
        sign = "+" if self.extra.median > 0 else "-"
        return f"{self.time}, {sign}{short(abs(self.extra.median))} us"


@dataclass(frozen=True, slots=True)
class CostCurve:
    """Time per call over size in one mode, such as "grad" or "inference_mode".

    points     (size, time) from the smallest size on
    crossing   the size at which the kernel's work equals the overhead, in elements: where a call takes twice as long
               as one of the smallest size; None where no measured size is large enough
    """

    name: str
    definition: str
    points: tuple[tuple[int, Spread], ...]
    crossing: Spread | None = None


@dataclass(frozen=True, slots=True)
class Overhead(Table):
    """The cost ledger of one operator or function on this machine.

    op           "add.Tensor", or the function's name
    machine      torch's version, device and number of threads, as a text
    base_size    elements of the smallest size, at which the layers were taken
    whole        the call in full at that size: with gradients where an argument can have any
    layers       from the Python call down to the kernel; they add up to `whole`, but for rounding by the medians
    curves       time over size, mode by mode
    alternatives the same call made otherwise or under something else, at base_size
    hops         what one more hop of a redispatch chain takes, at base_size
    left_out     what could not be measured, and why
    """

    op: str
    machine: str
    rounds: int
    base_size: int
    whole: Spread
    layers: tuple[CostLayer, ...]
    curves: tuple[CostCurve, ...]
    alternatives: tuple[Alternative, ...] = ()
    hops: tuple[CostLayer, ...] = ()
    left_out: tuple[str, ...] = ()

    def layer(self, name: str) -> CostLayer:
        """A layer or hop by name. KeyError, with the names there are, for another."""
        found = {each.name: each for each in (*self.hops, *self.layers)}
        if name not in found:
            raise KeyError(f"{self.op} has no layer {name!r}; its layers are {', '.join(found)}")
        return found[name]

    def curve(self, name: str) -> CostCurve:
        """A curve by its mode. KeyError, with the names there are, for another."""
        found = {each.name: each for each in self.curves}
        if name not in found:
            raise KeyError(f"{self.op} has no curve {name!r}; its curves are {', '.join(found)}")
        return found[name]

    def rows(self) -> Rows:
        layers = [_row("layer", each.name, each.time, each.verdict(), each.definition) for each in self.layers]
        whole = _row("layer", "whole call", self.whole, str(self.whole), f"over {_elements(self.base_size)}")
        curves = [
            _row(f"over {size:,}", curve.name, time, str(time), curve.definition)
            for size in dict.fromkeys(size for curve in self.curves for size, _ in curve.points)
            for curve in self.curves
            for at, time in curve.points
            if at == size
        ]
        others = [_row("instead", each.name, each.time, each.verdict(), each.definition) for each in self.alternatives]
        hops = [_row("hop", each.name, each.time, each.verdict(), each.definition) for each in self.hops]
        return [*layers, whole, *curves, *others, *hops]

    def caption(self) -> str:
        parts = [f"{self.op} over {_elements(self.base_size)}: {self.whole} in all"]
        parts += [f"with {curve.name} {describe_crossing(curve)}" for curve in self.curves[:2]]
        parts.append(f"{self.machine}; medians of {self.rounds} rounds with 95 % intervals")
        parts += [f"left out: {'; '.join(self.left_out)}"] if self.left_out else []
        return "; ".join(parts)

    def figure(self) -> Svg:
        """The layers as steps, what is otherwise around the call as bars, and time over size."""
        from ..draw import overhead_figure

        return overhead_figure(self)

    def _repr_html_(self) -> str:
        return self.figure()._repr_html_() + folded_table(self.rows(), self.caption())


def describe_crossing(curve: CostCurve) -> str:
    """Where the kernel's work outgrows the overhead, in words."""
    if curve.crossing is None:
        return f"the overhead is the larger part up to {_elements(curve.points[-1][0])}"
    at = curve.crossing
    high = f"{_rounded(at.high)}" if math.isfinite(at.high) else "more"
    return f"the kernel outgrows the overhead at {_rounded(at.median)} elements ({_rounded(at.low)} to {high})"


def crossing_of(sizes: Sequence[int], times: Sequence[float]) -> float:
    """The size at which a call takes twice as long as one of the first size; inf where none does.

    Between two sizes the time is taken for a straight line on logarithmic axes. A size 0 counts as 1 there.
    """
    limit = 2 * times[0]
    for nr in range(1, len(sizes)):
        if times[nr] >= limit:
            low, high = math.log(max(1, sizes[nr - 1])), math.log(max(1, sizes[nr]))
            before = math.log(max(times[nr - 1], 1e-9))
            share = (math.log(limit) - before) / (math.log(times[nr]) - before)
            return math.exp(low + share * (high - low))
    return math.inf


def short(us: float) -> str:
    """Microseconds to the three digits that a reader can use, never finer than a nanosecond: "0.27", "1.38", "119"."""
    size = abs(us)
    if size >= 99.95:
        return f"{us:,.0f}"
    text = f"{us:.1f}" if size >= 9.995 else f"{us:.2f}" if size >= 0.0995 else f"{us:.3f}"
    return text.lstrip("-") if float(text) == 0 else text


def _row(part: str, what: str, time: Spread, says: str, definition: str) -> dict[str, object]:
    return {
        "part": part, "what": what, "us": round(time.median, 4), "low": round(time.low, 4),
        "high": round(time.high, 4), "says": says, "definition": definition,
    }  # fmt: skip


def _elements(n: int) -> str:
    return f"{n:,} element{'s' * (n != 1)}"


def _rounded(size: float) -> str:
    digits = max(0, len(str(int(size))) - 2)
    return f"{round(size / 10**digits) * 10**digits:,}"


def _quantile(ordered: Sequence[float], share: float) -> float:
    at = share * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    # Two equal infinities have no difference.
    if at == low or ordered[low] == ordered[high]:
        return ordered[low]
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def _rank(n: int) -> int:
    """The largest r for which the r-th smallest and r-th largest of n values enclose the median with 95 %.

    A value lies below the median with probability 1/2, so the number that do is binomial.
    """
    outside, rank = 0, 0
    while rank < n // 2:
        outside += math.comb(n, rank)
        if 2 * outside > (1 - CONFIDENCE) * 2**n:
            break
        rank += 1
    return rank
