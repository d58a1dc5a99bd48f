"""Timeline: what host and device did and when (PyTorch: torch/csrc/profiler, kineto)."""

from __future__ import annotations

from dataclasses import dataclass

from .table import Rows, Table, human_bytes


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """One bar of a timeline.

    row            "cpu" for the host, "stream 0", "stream 1", ... for the device
    name           the op ("add.Tensor") or the call ("synchronize")
    start_us, end_us   from the timeline's own zero; equal for a moment such as a recorded event
    kind           host: launch, wait, malloc, work; device: kernel, copy, wait, event
    bytes, flops   what a kernel or copy moved and computed; 0 for the rest
    correlation    the same number on a launch and on what it launched; 0 where nothing was launched
    """

    row: str
    name: str
    start_us: float
    end_us: float
    kind: str
    bytes: int = 0
    flops: int = 0
    correlation: int = 0

    @property
    def duration_us(self) -> float:
        return round(self.end_us - self.start_us, 6)


@dataclass(frozen=True, slots=True)
class Timeline(Table):
    """What host and device did, in the order in which it was asked for.

    dropped counts the oldest events that were forgotten to bound the memory.
    """

    events: tuple[TimelineEvent, ...]
    dropped: int = 0

    def row_names(self) -> tuple[str, ...]:
        """The host's row first, then the streams by number."""
        found = dict.fromkeys(event.row for event in self.events)
        return tuple(sorted(found, key=lambda row: (row != "cpu", len(row), row)))

    def of_row(self, row: str) -> tuple[TimelineEvent, ...]:
        return tuple(event for event in self.events if event.row == row)

    def of_kind(self, *kinds: str) -> tuple[TimelineEvent, ...]:
        return tuple(event for event in self.events if event.kind in kinds)

    def end_us(self) -> float:
        """When the last of it ends; 0.0 for an empty timeline."""
        return max((event.end_us for event in self.events), default=0.0)

    def busy_us(self, row: str) -> float:
        """How long the row worked: launches, kernels, copies; waiting is no work."""
        return round(sum(e.duration_us for e in self.of_row(row) if e.kind != "wait"), 6)

    def rows(self) -> Rows:
        return [
            {
                "row": event.row,
                "name": event.name,
                "kind": event.kind,
                "start_us": event.start_us,
                "us": event.duration_us,
                "bytes": event.bytes,
                "flops": event.flops,
                "correlation": event.correlation,
            }
            for event in self.events
        ]

    def caption(self) -> str:
        busy = ", ".join(f"{row} busy {self.busy_us(row):g} us" for row in self.row_names())
        lost = f"; the oldest {self.dropped} events are gone" if self.dropped else ""
        return f"{self.end_us():g} us in all{': ' if busy else ''}{busy}{lost}"


@dataclass(frozen=True, slots=True)
class Race:
    """Two ops on two streams that touch the same memory, at least one writing, with nothing to order them.

    address    of the memory on the device; first, second: the ops, in the order of their launch
    reused     True where the memory of a freed tensor went to another tensor in between
    advice     what would put the two in order
    """

    address: int
    nbytes: int
    first: str
    first_stream: str
    first_access: str
    second: str
    second_stream: str
    second_access: str
    reused: bool
    advice: str
    correlations: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        memory = f"{human_bytes(self.nbytes)} at {self.address:#x}"
        if self.reused:
            memory += ", freed and given to another tensor in between"
        return (
            f"race on {memory}: {self.second} on {self.second_stream} {self.second_access} what {self.first} "
            f"on {self.first_stream} {self.first_access}, and nothing orders the two. {self.advice}"
        )
