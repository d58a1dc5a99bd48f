"""Lab 4: what waits for what on a device with streams (PyTorch: c10/cuda/CUDAStream.h, the CUDA runtime)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from ..model import Case, Draw, Property, Task

Step = tuple[Any, ...]
Program = tuple[Step, ...]


def _true_times(program: Sequence[Step], host: int, ends: Sequence[int], launch: int, call: int, gap: int) -> list[int]:
    """The times of a program, by the framework's own four pieces."""
    from ...mini.c10.pieces import reference

    kernel_ready, event_time = reference("kernel_ready"), reference("event_time")
    stream_after_wait, host_after_wait = reference("stream_after_wait"), reference("host_after_wait")
    done, marks = dict(enumerate(ends)), dict[int, int]()

    def after(step: Step) -> int:
        nonlocal host
        match step:
            case ("work", span):
                host += span
                return host
            case ("launch", queue, span):
                host += launch
                done[queue] = kernel_ready(done[queue], host, gap) + span
                return done[queue]
        host += call
        match step:
            case ("record", mark, queue):
                marks[mark] = event_time(done[queue], host)
                return marks[mark]
            case ("wait", queue, mark):
                if mark in marks:
                    done[queue] = stream_after_wait(done[queue], marks[mark])
                return done[queue]
            case ("synchronize stream", queue):
                host = host_after_wait(host, done[queue])
            case ("synchronize event", mark):
                host = host_after_wait(host, marks[mark])
            case _:
                host = host_after_wait(host, max(done.values()))
        return host

    return [after(step) for step in program]


class _Writer:
    """Writes a program step by step, so that no event is synchronized with before it is recorded."""

    def __init__(self, rng: random.Random, streams: int) -> None:
        self.rng, self.streams, self.steps = rng, streams, list[Step]()
        self.recorded: set[int] = set()

    def stream(self) -> int:
        return self.rng.randrange(self.streams)

    def launch(self, stream: int | None = None, most: int = 30) -> None:
        self.steps.append(("launch", self.stream() if stream is None else stream, self.rng.randint(1, most)))

    def work(self, most: int = 20) -> None:
        self.steps.append(("work", self.rng.randint(1, most)))

    def record(self, stream: int | None = None, event: int | None = None) -> int:
        event = self.rng.randrange(3) if event is None else event
        self.recorded.add(event)
        self.steps.append(("record", event, self.stream() if stream is None else stream))
        return event

    def wait(self, stream: int | None = None, event: int | None = None) -> None:
        event = self.rng.randrange(3) if event is None else event
        self.steps.append(("wait", self.stream() if stream is None else stream, event))

    def synchronize(self, what: str) -> None:
        if what == "event":
            event = self.rng.choice(sorted(self.recorded)) if self.recorded else self.record()
            self.steps.append(("synchronize event", event))
        else:
            self.steps.append((f"synchronize {what}", *([self.stream()] if what == "stream" else [])))


def _program(write: Callable[[_Writer], None], streams: tuple[int, int] = (1, 3), busy: bool = False) -> Draw:
    """Programs that `write` writes, on a host and streams at time 0, or with `busy` at any times."""

    def draw(rng: random.Random) -> Case:
        writer = _Writer(rng, rng.randint(*streams))
        write(writer)
        host = rng.randint(0, 40) if busy else 0
        ends = tuple(rng.randint(0, 80) if busy else 0 for _ in range(writer.streams))
        return tuple(writer.steps), host, ends, rng.randint(2, 6), rng.randint(1, 3), rng.randint(1, 3)

    return draw


def _launches(w: _Writer) -> None:
    for _ in range(w.rng.randint(3, 6)):
        w.launch(most=w.rng.choice((2, 30)))
        if w.rng.random() < 0.4:
            w.work()


def _one_waits_for_another(w: _Writer) -> None:
    """A kernel here, another there that must come after it; then both streams go on."""
    first, second = w.rng.sample(range(w.streams), 2)
    w.launch(second, most=5)
    w.launch(first)
    event = w.record(first)
    if w.rng.random() < 0.5:
        w.launch(first)
    w.wait(second, event)
    w.launch(second)
    w.launch(first)


def _an_old_mark(w: _Writer) -> None:
    """The event is long done when somebody waits for it."""
    first, second = w.rng.sample(range(w.streams), 2)
    w.launch(first, most=3)
    event = w.record(first)
    w.launch(second, most=40)
    w.launch(second)
    w.wait(second, event)
    w.launch(second)


def _recorded_again(w: _Writer) -> None:
    """An event moves on; who waited already has the old mark."""
    first, second = w.rng.sample(range(w.streams), 2)
    w.launch(first)
    event = w.record(first)
    w.wait(second, event)
    w.launch(first)
    w.record(first, event)
    w.launch(second)
    w.wait(second, event)
    w.launch(second)


def _never_recorded(w: _Writer) -> None:
    w.launch()
    w.wait(event=w.rng.choice((5, 6)))
    w.launch()
    event = w.record()
    w.wait(event=event)
    w.launch()


def _idle_mark(w: _Writer) -> None:
    """An event in a stream that has nothing to do."""
    first, second = w.rng.sample(range(w.streams), 2)
    w.work()
    event = w.record(first)
    w.work()
    w.wait(second, event)
    w.launch(second)


def _synchronizing(what: str) -> Callable[[_Writer], None]:
    def write(w: _Writer) -> None:
        if what == "device":
            # The last stream is the last to be done.
            w.steps.append(("launch", w.streams - 1, w.rng.randint(120, 160)))
        w.launch(most=40)
        w.record()
        for _ in range(w.rng.randint(1, 3)):
            w.launch()
        w.synchronize(what)
        w.launch()
        w.synchronize(w.rng.choice(("stream", "event", "device")))

    return write


def _late(w: _Writer) -> None:
    """What is waited for has long been done."""
    w.launch(most=4)
    w.record()
    w.work(60)
    w.work(60)
    w.synchronize(w.rng.choice(("stream", "event", "device")))
    w.launch()


def _anything(w: _Writer) -> None:
    for _ in range(w.rng.randint(6, 10)):
        kind = w.rng.choice(("launch", "launch", "launch", "work", "record", "wait", "wait", "synchronize"))
        if kind == "synchronize":
            w.synchronize(w.rng.choice(("stream", "event", "device")))
        else:
            getattr(w, kind)()


_SEVERAL = (2, 3)

run_streams = Task(
    id="lab4.run_streams",
    title="Who waits for whom",
    function="run_streams",
    points=9,
    minutes=25,
    difficulty=3,
    oracle=_true_times,
    properties=(
        Property(
            "launches: the host runs ahead",
            weight=2,
            corners=(_program(_launches, (1, 1)), _program(_launches, _SEVERAL)),
            draws=(_program(_launches), _program(_launches, busy=True)),
            why="a launch costs the host a moment; the kernel runs when its stream gets to it",
            slip="a kernel starts after its launch and after all that is in its stream, whichever is later",
        ),
        Property(
            "events: one stream waits for another",
            weight=3,
            corners=(
                _program(_one_waits_for_another, _SEVERAL),
                _program(_an_old_mark, _SEVERAL),
                _program(_recorded_again, _SEVERAL),
                _program(_never_recorded),
                _program(_idle_mark, _SEVERAL),
            ),
            draws=(
                _program(_one_waits_for_another, _SEVERAL, busy=True),
                _program(_recorded_again, _SEVERAL, busy=True),
                _program(_an_old_mark, _SEVERAL, busy=True),
                _program(_never_recorded, busy=True),
            ),
            why="an event is a mark behind the work of a stream; another stream can wait for it, the host goes on",
            slip="a wait is for what the event marked when it was recorded, not for what came into the stream later",
        ),
        Property(
            "synchronizing: the host waits",
            weight=2,
            corners=(
                *(_program(_synchronizing(what), _SEVERAL) for what in ("stream", "event", "device")),
                _program(_late),
            ),
            draws=(
                *(_program(_synchronizing(what), busy=True) for what in ("stream", "event", "device")),
                _program(_late, busy=True),
            ),
            why="until it synchronizes, the host knows nothing of how far the device is: a clock read before is wrong",
            slip="waiting never turns time back: what is done already costs the call alone",
        ),
        Property(
            "all of it together",
            weight=2,
            corners=(_program(_anything, (3, 3)), _program(_anything, _SEVERAL, busy=True)),
            draws=(_program(_anything, _SEVERAL, busy=True), _program(_anything)),
            why="a training step is such a program, some thousand lines long",
            slip="each stream has a time of its own, the host has another; a step moves only those that it names",
        ),
    ),
    hints=(
        "Keep one number for the host, one for each stream (when all its work so far is done) and one for each event.",
        "Every waiting is a max of two of these numbers. Which two, and which of them moves?",
        "launch: host += launch, then the stream is done at max(stream, host) + gap + duration. "
        "record: the event is at max(stream, host). wait: the stream moves to max(stream, event).",
    ),
    read="notebook 04, 8. Station 8: who waits for whom",
)
