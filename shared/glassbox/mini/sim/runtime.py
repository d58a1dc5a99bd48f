"""Runtime: the device's clocks, queues, engines and record, behind one lock (PyTorch: the CUDA runtime).

Time is virtual. The host has one clock for all its threads; launching, waiting and asking move it. A
stream's clock says when its work so far is done. Whatever is asked for gets its place in time at once and
keeps it, so a program has one timeline. The results are there at once too: only their time is simulated,
and how far the host may know of it.
"""

import threading
from collections import deque
from collections.abc import Callable

from ...records import Timeline, TimelineEvent
from . import schedule
from .cost import CostModel, nanoseconds

Clock = tuple[int, ...]

# The oldest events are forgotten, so that a long training run does not fill the memory.
MAX_EVENTS = 100_000
_PRUNE_AT = 64


class StreamState:
    """One in-order queue: its number, when its work is done, and what it comes after (vector clock)."""

    __slots__ = ("index", "row", "end", "clock", "pending")

    def __init__(self, index: int) -> None:
        self.index = index
        self.row = f"stream {index}"
        self.end = 0
        self.clock: Clock = (0,) * (index + 1)
        self.pending: deque[int] = deque()


class Engine:
    """A part of the device that streams share: what fits in beside other work runs beside it."""

    __slots__ = ("slots", "busy_until")

    def __init__(self) -> None:
        self.slots: deque[tuple[int, int, float]] = deque()
        self.busy_until = 0

    def place(self, now: int, ready: int, duration: int, share: float) -> int:
        """When work that could start at `ready` does start."""
        slots = self.slots
        if len(slots) > _PRUNE_AT:
            # Nothing launched from now on can start before now.
            while slots and slots[0][1] <= now:
                slots.popleft()
        start = ready
        if ready < self.busy_until:
            start = schedule.earliest_slot(slots, ready, duration, share)
        slots.append((start, start + duration, share))
        self.busy_until = max(self.busy_until, start + duration)
        return start


class Device:
    """The simulated device and the host's view of it. Its methods expect that the caller holds `lock`."""

    def __init__(self) -> None:
        # Reentrant: what runs at the end of a tensor's life may come in the middle of anything.
        self.lock = threading.RLock()
        self.cost = CostModel()
        self.generation = 0
        self.at_reset: list[Callable[[], None]] = []
        self._start()

    def _start(self) -> None:
        self.now = 0
        self.streams = [StreamState(0)]
        self.engines = {"compute": Engine(), "to device": Engine(), "to host": Engine()}
        self.known: Clock = ()
        self.correlation = 0
        self.error: tuple[int, str] | None = None
        self.surfaced = False
        self.log: deque[tuple[str, str, int, int, str, int, int, int]] = deque(maxlen=MAX_EVENTS)
        self.logged = 0

    def reset(self) -> None:
        """Back to time 0 with an idle, sound device; streams are numbered anew as they are used again."""
        self.generation += 1
        self._start()
        for hook in self.at_reset:
            hook()

    def new_stream(self) -> StreamState:
        state = StreamState(len(self.streams))
        self.streams.append(state)
        return state

    # What was seen

    def note(
        self,
        row: str,
        name: str,
        start: int,
        end: int,
        kind: str,
        nbytes: int = 0,
        flops: int = 0,
        corr: int = 0,
    ) -> None:
        self.log.append((row, name, start, end, kind, nbytes, flops, corr))
        self.logged += 1

    def timeline(self) -> Timeline:
        events = tuple(
            TimelineEvent(row, name, start / 1000, end / 1000, kind, nbytes, flops, corr)
            for row, name, start, end, kind, nbytes, flops, corr in self.log
        )
        return Timeline(events, self.logged - len(events))

    # What the host does

    def host_work(self, name: str, us: float, kind: str, corr: int = 0) -> None:
        start = self.now
        self.now += nanoseconds(us)
        self.note("cpu", name, start, self.now, kind, corr=corr)

    def call(self) -> None:
        """The host's time for a call that launches nothing."""
        self.now += nanoseconds(self.cost.api_us)

    def wait_until(self, time: int, clock: Clock, name: str) -> None:
        """The host waits for `time` and knows of all that `clock` says; raises if the device has failed."""
        start = self.now
        self.call()
        self.now = schedule.host_after_wait(self.now, time)
        self.note("cpu", name, start, self.now, "wait")
        self.known = schedule.join_clocks(self.known, clock)
        self.surface()

    def reached(self, time: int, clock: Clock) -> bool:
        """Whether the host's time has come to `time`; if so it learns what a wait would have taught it."""
        if time > self.now:
            return False
        self.known = schedule.join_clocks(self.known, clock)
        self.surface()
        return True

    def wait_for_all(self, name: str) -> None:
        clock: Clock = ()
        for state in self.streams:
            clock = schedule.join_clocks(clock, state.clock)
        self.wait_until(max(state.end for state in self.streams), clock, name)

    # What the device does

    def enqueue(
        self,
        state: StreamState,
        name: str,
        kind: str,
        duration: int,
        *,
        engine: str = "compute",
        share: float = 1.0,
        nbytes: int = 0,
        flops: int = 0,
    ) -> int:
        """Launch work on a stream; returns its correlation number, and state.end is when it is done."""
        pending = state.pending
        while pending and pending[0] <= self.now:
            pending.popleft()
        if len(pending) >= self.cost.queue_depth:
            start, self.now = self.now, pending.popleft()
            self.note("cpu", "queue full", start, self.now, "wait")
        self.correlation += 1
        self.host_work(name, self.cost.launch_us, "launch", self.correlation)
        ready = schedule.kernel_ready(state.end, self.now, nanoseconds(self.cost.gap_us))
        start = self.engines[engine].place(self.now, ready, duration, share)
        state.end = start + duration
        pending.append(state.end)
        self.note(state.row, name, start, state.end, kind, nbytes, flops, self.correlation)
        self.tick(state)
        return self.correlation

    def tick(self, state: StreamState) -> None:
        """One more work of the stream, which comes after all that the host had waited for."""
        clock = schedule.join_clocks(state.clock, self.known)
        index = state.index
        state.clock = (*clock[:index], clock[index] + 1, *clock[index + 1 :])

    def stream_waits(self, state: StreamState, time: int, clock: Clock) -> None:
        """Later work of the stream starts after `time` and comes after all that `clock` says."""
        start = max(state.end, self.now)
        state.end = schedule.stream_after_wait(state.end, time)
        if state.end > start:
            self.note(state.row, "wait for event", start, state.end, "wait")
        state.clock = schedule.join_clocks(state.clock, clock)

    # What goes wrong on the device

    def fail(self, state: StreamState, op: str, problem: str) -> None:
        """The stream's last kernel has failed, and the host hears of it at a wait. The first one counts."""
        if self.error is None or state.end < self.error[0]:
            self.error = (
                state.end,
                f"sim error: device-side assert triggered by {op} on {state.row}: {problem}",
            )

    def surface(self) -> None:
        """Raise RuntimeError if the device has failed by the host's time, and from then on every time."""
        if self.error is not None and (self.surfaced or self.error[0] <= self.now):
            self.surfaced = True
            raise RuntimeError(
                f"{self.error[1]}\nKernels run after their launch has returned, so this call only brings "
                "the news. "
                "The device can do nothing more until sim.reset()."
            )

    def check_usable(self) -> None:
        """Raise the error again that a wait has brought up before."""
        if self.surfaced:
            self.surface()


device = Device()
