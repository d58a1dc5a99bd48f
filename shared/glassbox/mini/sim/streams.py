"""Streams and events: queues, and the marks that order them (PyTorch: c10/cuda/CUDAStream.h)."""

from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any

from . import schedule
from .runtime import Clock, StreamState, device


class Event:
    """A mark that is done when its stream comes to it. Recording again moves it; who waits already stays.

    An event that was never recorded counts as done.
    """

    __slots__ = ("_timing", "_mark", "_generation", "__weakref__")

    def __init__(self, enable_timing: bool = False) -> None:
        self._timing = enable_timing
        self._mark: tuple[int, Clock] = (0, ())
        self._generation = -1

    def _recorded(self) -> tuple[int, Clock] | None:
        # What was recorded before a reset is long done.
        return self._mark if self._generation == device.generation else None

    def record(self, stream: "Stream | None" = None) -> None:
        """Put the mark behind the work that is in the stream (default: the current one) now."""
        with device.lock:
            device.check_usable()
            device.call()
            state = (stream or current_stream())._enlist()
            time = schedule.event_time(state.end, device.now)
            device.tick(state)
            self._mark = (time, state.clock)
            self._generation = device.generation
            device.note(state.row, "event", time, time, "event")

    def wait(self, stream: "Stream | None" = None) -> None:
        """Later work of the stream (default: the current one) starts after the mark is reached."""
        (stream or current_stream()).wait_event(self)

    def query(self) -> bool:
        """Whether the mark is reached; asking takes the host a moment."""
        with device.lock:
            device.check_usable()
            device.call()
            done = self._recorded()
            return done is None or device.reached(*done)

    def synchronize(self) -> None:
        """Wait until the mark is reached; RuntimeError if the device has failed by then."""
        with device.lock:
            device.check_usable()
            done = self._recorded()
            if done is not None:
                device.wait_until(*done, "synchronize event")

    def elapsed_time(self, end_event: "Event") -> float:
        """Milliseconds from this mark to the other.

        Raises RuntimeError unless both were made with enable_timing=True, are recorded, and are done.
        """
        with device.lock:
            first, last = self._recorded(), end_event._recorded()
            if not (self._timing and end_event._timing):
                raise RuntimeError("both events must be created with enable_timing=True to tell a time")
            if first is None or last is None:
                raise RuntimeError("both events must be recorded before elapsed_time()")
            device.check_usable()
            if max(first[0], last[0]) > device.now:
                raise RuntimeError("device not ready: synchronize the events before asking for their times")
            return (last[0] - first[0]) / 1e6

    def __repr__(self) -> str:
        done = self._recorded()
        return f"<sim.Event {'not recorded' if done is None else f'at {done[0] / 1000:g} us'}>"


class Stream:
    """A queue: what is launched into it runs in that order. Two streams know nothing of each other.

    It may be used again after sim.reset(), then idle and numbered in the order of use.
    """

    __slots__ = ("_state", "_generation", "__weakref__")

    def __init__(self) -> None:
        self._generation = -1
        self._enlist()

    def _enlist(self) -> StreamState:
        if self._generation != device.generation:
            with device.lock:
                self._state = device.new_stream()
                self._generation = device.generation
        return self._state

    @property
    def stream_id(self) -> int:
        return self._enlist().index

    def wait_event(self, event: Event) -> None:
        """Later work of this stream starts after the event's mark is reached; the host goes on."""
        with device.lock:
            device.check_usable()
            device.call()
            done = event._recorded()
            if done is not None:
                device.stream_waits(self._enlist(), *done)

    def wait_stream(self, stream: "Stream") -> None:
        """Later work of this stream starts after all that is in the other one now; the host goes on."""
        self.wait_event(stream.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event (a new one if none is given) behind the work that is in this stream now."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def query(self) -> bool:
        """Whether all work of the stream is done; asking takes the host a moment."""
        with device.lock:
            device.check_usable()
            device.call()
            state = self._enlist()
            return device.reached(state.end, state.clock)

    def synchronize(self) -> None:
        """Wait until all work of the stream is done; RuntimeError if the device has failed by then."""
        with device.lock:
            device.check_usable()
            state = self._enlist()
            device.wait_until(state.end, state.clock, f"synchronize {state.row}")

    def __repr__(self) -> str:
        return f"<sim.Stream {self.stream_id}>"


class _DefaultStream(Stream):
    __slots__ = ()

    def _enlist(self) -> StreamState:
        return device.streams[0]


_default = _DefaultStream()
_current: ContextVar[Stream] = ContextVar("sim_stream", default=_default)


def default_stream() -> Stream:
    """Stream 0, for everything that asks for no other. Unlike CUDA's own it orders no other stream."""
    return _default


def current_stream() -> Stream:
    """The stream into which this thread launches."""
    return _current.get()


def set_stream(stream: Stream) -> None:
    """Make it this thread's current stream for good."""
    _current.set(_a_stream(stream, "set_stream"))


class stream:  # noqa: N801 - PyTorch's own name
    """`with sim.stream(s):` this thread launches into s; None changes nothing."""

    __slots__ = ("_stream", "_token")

    def __init__(self, stream: Stream | None) -> None:
        self._stream = None if stream is None else _a_stream(stream, "stream")
        self._token: list[Token[Stream] | None] = []

    def __enter__(self) -> None:
        self._token.append(None if self._stream is None else _current.set(self._stream))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        token = self._token.pop()
        if token is not None:
            _current.reset(token)


def current_state() -> StreamState:
    """The queue behind the thread's current stream."""
    return _current.get()._enlist()


def synchronize() -> None:
    """Wait until all streams are done; RuntimeError if the device has failed by then."""
    with device.lock:
        device.check_usable()
        device.wait_for_all("synchronize")


def _a_stream(given: Any, where: str) -> Stream:
    if not isinstance(given, Stream):
        raise TypeError(f"{where}() takes a sim.Stream, got {type(given).__name__}")
    return given
