"""Lab 4, extension: a plan for two streams without a race (PyTorch: torch/cuda/streams.py, CUDA's memory model).

There are many right plans, so a plan is verified: by what comes after what, and by when it is done. How to find
one stands nowhere here; the cases are cut out of timetables that are drawn first.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from ..model import Case, Draw, Property, Task

Kernel = tuple[int, tuple[str, ...], tuple[str, ...]]
"""(duration, buffers that it reads, buffers that it writes)."""
Slot = tuple[int, int]
"""(start, end) in a timetable."""

NAMES = "abcdefghijklmnopqrstuvwxyz"


def _asked(kernels: Sequence[Kernel], limit: int) -> str:
    return f"any plan without a race that is done by {limit}"


def _conflict(first: Kernel, second: Kernel) -> str:
    """The buffer for which the order of two kernels matters; "" where there is none."""
    both = {*first[2]} & {*second[1], *second[2]} | {*first[1]} & {*second[2]}
    return min(both, default="")


def _wrong_with(case: Case, plan: Any) -> str:
    """What is wrong with a plan; "" for one without a race that is done in time."""
    kernels, limit = case
    if not isinstance(plan, tuple):
        return "a plan is a list of steps"
    streams = [_Stream(), _Stream()]
    events: dict[Any, _Stream] = {}
    before: dict[int, frozenset[int]] = {}
    for step in plan:
        problem = _take(step, kernels, streams, events, before)
        if problem:
            return problem
    for number in range(len(kernels)):
        if number not in before:
            return f"kernel {number} is never launched"
    for second, known in before.items():
        for first in range(second):
            buffer = _conflict(kernels[first], kernels[second])
            if buffer and first not in known:
                return f"a race: nothing makes kernel {second} wait for kernel {first}, which also uses {buffer!r}"
    end = max(stream.end for stream in streams)
    return f"this plan is done by {end}, not by {limit}" if end > limit else ""


class _Stream:
    """When a stream is done with what it has, and which kernels are behind it then."""

    def __init__(self, end: int = 0, known: frozenset[int] = frozenset()) -> None:
        self.end, self.known = end, known


def _take(
    step: Any,
    kernels: Sequence[Kernel],
    streams: Sequence[_Stream],
    events: dict[Any, _Stream],
    before: dict[int, frozenset[int]],
) -> str:
    """Takes one step of a plan; returns what is wrong with it, or ""."""
    if not isinstance(step, tuple) or len(step) != 3 or step[0] not in ("launch", "record", "wait"):
        return f"{step!r} is no step: they are launch, record and wait"
    what, first, second = step
    number = second if what == "record" else first
    if type(number) is not int or not 0 <= number < 2:
        return f"{step!r} names no stream: they are 0 and 1"
    stream = streams[number]
    if what == "record":
        events[first] = _Stream(stream.end, stream.known)
    elif what == "wait":
        # CUDA's rule: an event that is not recorded yet counts as done.
        event = events.get(second, _Stream())
        stream.end, stream.known = max(stream.end, event.end), stream.known | event.known
    else:
        if type(second) is not int or not 0 <= second < len(kernels):
            return f"{step!r} names no kernel"
        if second in before:
            return f"kernel {second} is launched twice"
        before[second] = stream.known
        stream.end, stream.known = stream.end + kernels[second][0], stream.known | {second}
    return ""


def _cut(rng: random.Random, total: int, parts: int) -> list[int]:
    """`parts` durations that add up to `total`."""
    at = sorted(rng.sample(range(1, total), parts - 1))
    return [end - start for start, end in zip([0, *at], [*at, total], strict=True)]


def _rows(rng: random.Random, total: int, first: int, second: int, idle: int) -> list[tuple[Slot, int]]:
    """A timetable in the order of its starts, each with its row; the second row idles for `idle` in all."""
    slots = []
    for row, (parts, busy) in enumerate(((first, total), (second, total - idle))):
        start = 0
        pause = rng.randrange(parts) if busy < total else parts
        for at, duration in enumerate(_cut(rng, busy, parts)):
            start += idle if at == pause else 0
            slots.append(((start, start + duration), row))
            start += duration
    rng.shuffle(slots)
    return sorted(slots, key=lambda slot: slot[0][0])


def _kernels(rng: random.Random, slots: Sequence[Slot], again: float, reads: int = 2) -> tuple[Kernel, ...]:
    """Kernels that may run at these times: each uses only buffers that are free of others' work by then.

    `again`: how probable it is that a kernel writes into a buffer that was used before.
    """
    written = dict.fromkeys(NAMES[:2], 0)
    used = dict(written)
    kernels = []
    for start, end in slots:
        ready = [name for name, time in written.items() if time <= start]
        # Results that were only just written make the most of the order.
        ready.sort(key=lambda name: (-written[name], rng.random()))
        read = ready[: rng.randint(1, reads)]
        free = [name for name, time in used.items() if time <= start and (time or rng.random() < 0.3)]
        new = NAMES[len(used)]
        write = rng.choice(free) if free and rng.random() < again else new
        for name in read:
            used[name] = max(used[name], end)
        used[write] = written[write] = end
        kernels.append((end - start, tuple(sorted(read)), (write,)))
    return tuple(kernels)


def _told(rng: random.Random, rows: Sequence[int], kernels: Sequence[Kernel]) -> list[Kernel]:
    """The kernels in another order that means the same: a program tells one row's story for a while, then the
    other's. Pairs that have an order keep it.
    """
    left = list(range(len(kernels)))
    told: list[int] = []
    while left:
        ready = [
            number
            for number in left
            if not any(
                earlier < number and (rows[earlier] == rows[number] or _conflict(kernels[earlier], kernels[number]))
                for earlier in left
            )
        ]
        going_on = [number for number in ready if told and rows[number] == rows[told[-1]]]
        chosen = rng.choice(going_on if going_on and rng.random() < 0.8 else ready)
        left.remove(chosen)
        told.append(chosen)
    return [kernels[number] for number in told]


def _renamed(rng: random.Random, kernels: Sequence[Kernel]) -> tuple[Kernel, ...]:
    names = dict(zip(NAMES, rng.sample(NAMES, len(NAMES)), strict=True))

    def again(part: Sequence[str]) -> tuple[str, ...]:
        return tuple(sorted(names[name] for name in part))

    return tuple((duration, again(read), again(written)) for duration, read, written in kernels)


def _timetable(least: int, most: int, again: float = 0.0, idle: float = 0.0, reads: int = 2) -> Draw:
    """Cases of `least` to `most` kernels for which there is a plan as good as the timetable that was drawn."""

    def draw(rng: random.Random) -> Case:
        count = rng.randint(least, most)
        first = rng.randint(max(1, count // 2 - 1), count // 2)
        total = rng.randint(6 * count, 12 * count)
        table = _rows(rng, total, first, count - first, round(total * idle * rng.random()))
        slots, rows = zip(*table, strict=True)
        kernels = _kernels(rng, slots, again, reads)
        return _renamed(rng, _told(rng, rows, kernels)), total

    return draw


def _chain(rng: random.Random) -> Case:
    """Each kernel needs the one before: two streams are no faster than one."""
    count = rng.randint(3, 6)
    slots, start = [], 0
    for _ in range(count):
        slots.append((start, start := start + rng.randint(2, 20)))
    kernels = tuple((end - begin, (NAMES[at],), (NAMES[at + 1],)) for at, (begin, end) in enumerate(slots))
    return _renamed(rng, kernels), start


def _diamond(rng: random.Random) -> Case:
    """One kernel, two that need it, one that needs both."""
    head, left, right, tail = (rng.randint(2, 20) for _ in range(4))
    kernels = ((head, ("a",), ("b",)), (left, ("b",), ("c",)), (right, ("b",), ("d",)), (tail, ("c", "d"), ("e",)))
    return _renamed(rng, kernels), head + max(left, right) + tail


def _overwritten(rng: random.Random) -> Case:
    """A buffer is read here and then written there: a slow reader must be waited for."""
    slow, quick = rng.randint(9, 20), rng.randint(2, 8)
    last, more = rng.randint(2, 8), rng.randint(2, 8)
    kernels = (
        (slow, ("a",), ("b",)),
        (quick, ("c",), ("d",)),
        (last, ("d",), ("a",)),
        (more, ("c",), ("e",)),
    )
    return _renamed(rng, kernels), max(slow + last, quick + more)


def _written_twice(rng: random.Random) -> Case:
    """Two kernels write one buffer, neither reads it: the second must win."""
    slow, quick = rng.randint(9, 20), rng.randint(2, 8)
    again, more = rng.randint(2, 8), rng.randint(1, 8)
    kernels = (
        (slow, ("a",), ("b",)),
        (quick, ("c",), ("d",)),
        (again, ("d",), ("b",)),
        (more, ("c",), ("e",)),
    )
    return _renamed(rng, kernels), max(slow + again, quick + more)


two_streams = Task(
    id="lab4.two_streams",
    title="Two streams, no race",
    function="two_streams",
    points=14,
    minutes=45,
    difficulty=4,
    oracle=_asked,
    verify=_wrong_with,
    seconds=6.0,
    properties=(
        Property(
            "results that another kernel reads",
            weight=2,
            corners=(_diamond, _timetable(4, 5, idle=0.4), _timetable(6, 7, idle=0.4)),
            draws=(_timetable(4, 6, idle=0.4), _diamond, _timetable(5, 7, idle=0.2)),
            why="what a kernel reads must have been written: on another stream nothing sees to that by itself",
            slip="record an event after the writer, and let the reader's stream wait for it before the launch",
        ),
        Property(
            "buffers that are used again",
            weight=2,
            corners=(_overwritten, _written_twice, _timetable(6, 7, again=0.9, idle=0.3)),
            draws=(_timetable(5, 7, again=0.9, idle=0.3), _overwritten, _written_twice),
            why="a caching allocator hands memory out again; who still reads the old values must be done",
            slip="three kinds of pairs have an order: write then read, read then write, write then write",
        ),
        Property(
            "both streams busy to the end",
            weight=2,
            corners=(_timetable(4, 5), _timetable(7, 8), _timetable(7, 8, reads=1)),
            draws=(_timetable(5, 7), _timetable(6, 8), _timetable(6, 8, reads=1)),
            why="a plan that is merely right may be no faster than one stream",
            slip="taking whichever stream is free first is not always the best; trying all ways is",
        ),
        Property(
            "chains, where one stream does as well, and others",
            weight=1,
            corners=(_chain, _chain, _diamond),
            draws=(_timetable(4, 6), _chain, _timetable(5, 7, idle=0.3)),
            why="streams help where work is independent, and only there",
            slip="nothing is won by spreading a chain over two streams, and nothing lost if it waits rightly",
        ),
    ),
    hints=(
        "Take the stream of each kernel as given first: which waits does a plan need then?",
        "The simplest right plan records an event after every launch, and before a launch waits for the event of "
        "every earlier kernel that shares a buffer one of the two writes.",
        "Launching in the order given is good enough, so only the streams are open: at most 2 ** 8 ways. "
        "Work out for each when it would be done, and keep the best.",
    ),
    read="notebook 04, 8. Station 8: who waits for whom",
)
