"""Schedule: when a kernel starts and who waits for whom (PyTorch: the CUDA runtime's stream semantics).

Pure functions on whole numbers of nanoseconds. A stream is one number here: the time at which all that was
put into it so far is done. The host is one number too: its own time. Waiting moves such a number forward
and never back.
"""

from collections.abc import Iterable

from ..c10.pieces import an_int, ints, piece

# (start, end, share of the device) of work that was placed already.
Busy = Iterable[tuple[int, int, float]]
_ROUNDING = 1e-9


def _time(result: object, args: tuple[object, ...]) -> int:
    return an_int(result)


def _clock(result: object, args: tuple[tuple[int, ...], tuple[int, ...]]) -> tuple[int, ...]:
    return ints(result, max(len(args[0]), len(args[1])))


@piece(returns=_time)
def kernel_ready(stream_end: int, launched: int, gap: int) -> int:
    """When a kernel could start: launched, all before it in its stream done, and `gap` for fetching it."""
    return max(stream_end, launched) + gap


@piece(returns=_time)
def stream_after_wait(stream_end: int, event_time: int) -> int:
    """The stream's end after `stream.wait_event(event)`: later work of the stream cannot start before it."""
    return max(stream_end, event_time)


@piece(returns=_time)
def host_after_wait(now: int, awaited: int) -> int:
    """The host's time after a synchronize with something that is done at `awaited`."""
    return max(now, awaited)


@piece(returns=_time)
def event_time(stream_end: int, now: int) -> int:
    """When an event recorded now is done: at once in an idle stream, else with the stream's work so far."""
    return max(stream_end, now)


@piece(returns=_clock)
def join_clocks(mine: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    """Vector clock of one who knew `mine` and has learned `other`; entry i counts the work of stream i.

    The shorter clock knows nothing of the streams that it lacks.
    """
    if len(mine) < len(other):
        mine, other = other, mine
    longer = len(mine) - len(other)
    return tuple(map(max, mine, other + (0,) * longer))


def knows(clock: tuple[int, ...], stream: int, count: int) -> bool:
    """Whether whoever has this vector clock comes after the `count`-th work of `stream`."""
    return stream < len(clock) and clock[stream] >= count


def earliest_slot(busy: Busy, ready: int, duration: int, share: float) -> int:
    """The first time from `ready` on at which a share of the device stays free for `duration`.

    What was placed before is never moved, so the answer depends only on the order of launches.
    """
    live = [slot for slot in busy if slot[1] > ready]
    for start in sorted({ready, *(end for _, end, _ in live)}):
        end = start + max(duration, 1)
        beside = [slot for slot in live if slot[0] < end and slot[1] > start]
        moments = [start, *(begin for begin, _, _ in beside if begin > start)]
        if all(
            share + sum(part for begin, stop, part in beside if begin <= at < stop) <= 1 + _ROUNDING
            for at in moments
        ):
            return start
    raise AssertionError("after the last work there is always room")
