"""Races: unordered work of two streams on the same memory (PyTorch: torch/cuda/_sanitizer.py).

Every stream has a vector clock: how much of each stream's work it comes after. Recording an event copies
it, waiting for the event joins it, and what the host has waited for is known to everything launched later.
Earlier work comes before later work exactly if the later one's clock has counted it. Per memory the last
accesses are kept; an access that nothing orders after an earlier one is a race if one of the two writes and
they share a byte. The check looks at what the program ordered and not at times, so it also finds a race
that happened to go well.
"""

import warnings
from collections import deque
from typing import Any

import numpy as np

from ...records import Race
from ..c10.tensor_impl import TensorImpl
from . import schedule
from .footprint import footprint
from .runtime import Clock, StreamState, device

MODES = ("warn", "raise", "off")
MAX_RACES = 1000
# NumPy searches for a shared byte of two strided layouts up to this effort; what takes more counts as shared.
_EFFORT = 10_000

Layout = tuple[tuple[int, ...], tuple[int, ...], int]


class RaceWarning(UserWarning):
    """Two streams use the same memory unordered."""


class RaceError(RuntimeError):
    """What a race raises after sim.set_race_check("raise")."""


class Access:
    """One read or write: by which work of which stream, and which bytes, counted from the start of a memory.

    layout: (shape, stride in bytes, itemsize) from `low` on, or None where all bytes between low and high
    are meant.
    """

    __slots__ = ("stream", "count", "op", "write", "low", "high", "layout", "correlation", "dense")

    def __init__(
        self,
        stream: int,
        count: int,
        op: str,
        write: bool,
        low: int,
        high: int,
        bytes_of: Layout | None,
        correlation: int,
        dense: bool,
    ) -> None:
        self.stream = stream
        self.count = count
        self.op = op
        self.write = write
        self.low = low
        self.high = high
        self.layout = bytes_of
        self.correlation = correlation
        self.dense = dense

    def moved(self, by: int) -> "Access":
        """The same access with its bytes counted from elsewhere, now all between low and high."""
        low, high = self.low + by, self.high + by
        return Access(self.stream, self.count, self.op, self.write, low, high, None, self.correlation, True)


def of_tensor(tensor: TensorImpl, state: StreamState, op: str, write: bool, number: int) -> Access | None:
    """The access of the stream's latest work to a tensor; None for a tensor without elements."""
    covered = footprint(tensor)
    if not covered.numel:
        return None
    itemsize = tensor._dtype.itemsize
    low = tensor._offset * itemsize
    index = state.index
    where = (tensor._shape, covered.steps, itemsize)
    return Access(index, state.clock[index], op, write, low, low + covered.span, where, number, covered.dense)


def add(history: list[Access], new: Access, clock: Clock) -> list[Access]:
    """Put an access into the history of its memory; those that race with it come back.

    What the new access stands for from now on is dropped: whoever comes after it comes after the older one
    too.
    """
    racing, kept = [], []
    for old in history:
        ordered = old.stream == new.stream or schedule.knows(clock, old.stream, old.count)
        if not ordered and (old.write or new.write) and _share_a_byte(old, new):
            # Reported once; every later access would repeat it.
            racing.append(old)
        elif not ordered or not _stands_for(new, old):
            kept.append(old)
    kept.append(new)
    history[:] = kept
    return racing


def _stands_for(new: Access, old: Access) -> bool:
    if old.write and not new.write:
        # A later read beside the new one must still come after the old write.
        return False
    if new.dense:
        return new.low <= old.low and old.high <= new.high
    return (new.low, new.layout) == (old.low, old.layout)


def _share_a_byte(old: Access, new: Access) -> bool:
    if old.high <= new.low or new.high <= old.low:
        return False
    if old.dense and new.dense:
        return True
    start = min(old.low, new.low)
    memory = np.empty(max(old.high, new.high) - start, np.uint8)
    first, second = (_elements(memory, each, start) for each in (old, new))
    search: Any = np.shares_memory
    try:
        return bool(search(first, second, max_work=_EFFORT))
    except np.exceptions.TooHardError:
        return True


def _elements(memory: np.ndarray, access: Access, start: int) -> np.ndarray:
    if access.layout is None:
        return memory[access.low - start : access.high - start]
    shape, steps, itemsize = access.layout
    return np.ndarray(shape, f"V{itemsize}", memory, access.low - start, steps)


class RaceLog:
    """What was found, and what to do about it."""

    def __init__(self) -> None:
        self.mode = "warn"
        self.found: deque[Race] = deque(maxlen=MAX_RACES)

    def report(self, racing: list[Access], new: Access, address: int, nbytes: int, reused: bool) -> None:
        """Keep the races of one access, and warn or raise as was chosen."""
        for old in racing:
            race = Race(
                address,
                nbytes,
                old.op,
                f"stream {old.stream}",
                "writes" if old.write else "reads",
                new.op,
                f"stream {new.stream}",
                "writes" if new.write else "reads",
                reused,
                _advice(old, new, reused),
                (old.correlation, new.correlation),
            )
            self.found.append(race)
            if self.mode == "raise":
                raise RaceError(str(race))
            warnings.warn(str(race), RaceWarning, stacklevel=2)


def _advice(old: Access, new: Access, reused: bool) -> str:
    if reused:
        return (
            f"Keep the freed tensor until stream {old.stream} is done with it, or call "
            f"sim.record_stream(tensor, stream_{old.stream}) before the last name of it goes."
        )
    return (
        f"Before {new.op}: stream_{new.stream}.wait_stream(stream_{old.stream}), or "
        f"stream_{new.stream}.wait_event(event) with an event recorded in stream {old.stream} after "
        f"{old.op}, or sim.synchronize()."
    )


log = RaceLog()
device.at_reset.append(log.found.clear)


def set_race_check(mode: str) -> None:
    """What a race does: "warn" (RaceWarning, and a record in sim.races()), "raise" (RaceError), or "off"."""
    if mode not in MODES:
        raise ValueError(f"set_race_check() takes one of {', '.join(map(repr, MODES))}, got {mode!r}")
    log.mode = mode


def race_check() -> str:
    """The mode set last; "warn" at first."""
    return log.mode


def races() -> tuple[Race, ...]:
    """The races found since the last reset, oldest first; the latest thousand at most."""
    return tuple(log.found)
