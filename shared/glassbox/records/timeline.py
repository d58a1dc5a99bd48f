"""Timeline: what host and device did and when (PyTorch: torch/csrc/profiler, kineto)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .table import Rows, Table, folded_table
from .trace import chrome_trace
from .units import human_bytes, human_us

if TYPE_CHECKING:
    from ..draw import Svg

_ROW = re.compile(r"(?:(\w+:\d+) )?(cpu|runtime|stream)(?: (\d+))?")
_SHOWN = 500


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """One bar of a timeline.

    row            "cpu" for the host's thread, "cpu 1", ... for its other threads, "runtime" for the calls of the
                   device's runtime in that thread, "stream 0", "stream 1", ... for the device
    name           the op ("add.Tensor") or the call ("synchronize")
    start_us, end_us   from the timeline's own zero; equal for a moment such as a recorded event
    kind           host: op, node (of the backward graph), range (named by the program), launch, wait, malloc, work;
                   device: kernel, copy, wait, event
    bytes, flops   what a kernel or copy moved and computed; 0 for the rest, and where it is not known
    correlation    the same number on a launch and on what it launched; 0 where nothing was launched
    depth          how many bars of its row lie around it
    """

    row: str
    name: str
    start_us: float
    end_us: float
    kind: str
    bytes: int = 0
    flops: int = 0
    correlation: int = 0
    depth: int = 0

    @property
    def duration_us(self) -> float:
        return round(self.end_us - self.start_us, 6)


@dataclass(frozen=True, slots=True)
class Timeline(Table):
    """What host and device did, in the order in which it was asked for.

    dropped       counts the oldest events that were forgotten to bound the memory
    returned_us   when the program that was looked at had returned to the host; None where that is not known
    device        what the streams belong to: "sim", "cuda", ...; "" where nothing but the host was looked at
    """

    events: tuple[TimelineEvent, ...]
    dropped: int = 0
    returned_us: float | None = None
    device: str = "sim"

    def row_names(self) -> tuple[str, ...]:
        """The host's rows first, each thread's calls of the runtime below it, then the streams by number."""
        return tuple(sorted(dict.fromkeys(event.row for event in self.events), key=_row_order))

    def of_row(self, row: str) -> tuple[TimelineEvent, ...]:
        return tuple(event for event in self.events if event.row == row)

    def of_kind(self, *kinds: str) -> tuple[TimelineEvent, ...]:
        return tuple(event for event in self.events if event.kind in kinds)

    def end_us(self) -> float:
        """When the last of it ends, the program's return included; 0.0 for an empty timeline."""
        return max([event.end_us for event in self.events] + [self.returned_us or 0.0])

    def busy_us(self, row: str) -> float:
        """How long the row worked. Waiting is no work, nor is an op while its thread waits for the device."""
        bars = self.of_row(row)
        waits = [event for event in self.events if event.kind == "wait" and event.row in (row, _runtime_of(row))]
        return round(_covered(e for e in bars if e.kind != "wait") - _shared(bars, waits), 6)

    def launches(self) -> tuple[tuple[TimelineEvent, TimelineEvent], ...]:
        """Pairs of a launch and the first kernel or copy that it launched."""
        started: dict[int, TimelineEvent] = {}
        for event in self.events:
            if event.kind in ("kernel", "copy") and event.correlation:
                first = started.setdefault(event.correlation, event)
                started[event.correlation] = min(first, event, key=lambda e: e.start_us)
        hosts = (event for event in self.events if event.kind == "launch" and event.correlation in started)
        return tuple((host, started[host.correlation]) for host in hosts)

    def to_chrome_trace(self) -> dict[str, Any]:
        """The timeline in the Chrome trace format, for json.dump."""
        return chrome_trace(self)

    def save_trace(self, path: str | Path) -> Path:
        """Writes that as a .json file for Perfetto (ui.perfetto.dev) or chrome://tracing; returns its path."""
        path = Path(path)
        path.write_text(json.dumps(self.to_chrome_trace()), encoding="utf-8")
        return path

    def rows(self) -> Rows:
        nested = any(event.depth for event in self.events)
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
                **({"depth": event.depth} if nested else {}),
            }
            for event in self.events
        ]

    def caption(self) -> str:
        busy = ", ".join(f"{row} busy {_written(self.busy_us(row))}" for row in self.row_names())
        lost = f"; the oldest {self.dropped} events are gone" if self.dropped else ""
        early = "" if self.returned_us is None else f"; returned at {_written(self.returned_us)}"
        return f"{_written(self.end_us())} in all{': ' if busy else ''}{busy}{early}{lost}"

    def figure(self, **options: Any) -> Svg:
        """Lanes of bars over time; options are those of glassbox.draw.timeline_figure."""
        from ..draw import timeline_figure

        return timeline_figure(self, **options)

    def _repr_html_(self) -> str:
        rows = self.rows()
        return self.figure()._repr_html_() + folded_table(rows[:_SHOWN], self.caption(), len(rows) - _SHOWN)


def _written(us: float) -> str:
    return human_us(us) if us >= 10_000 else f"{us:,.3f}".rstrip("0").rstrip(".") + " us"


def _row_order(row: str) -> tuple[int, str, int, str]:
    found = _ROW.fullmatch(row)
    if found is None:
        return 2, "", 0, row
    device, kind, number = found.groups()
    return int(kind == "stream"), device or "", int(number or 0), kind


def _runtime_of(row: str) -> str:
    """The row in which a host thread's calls of the runtime are."""
    return row.replace("cpu", "runtime", 1) if row.startswith("cpu") else row


def _covered(events: Iterable[TimelineEvent]) -> float:
    """How much time at least one of the bars lies over."""
    return sum(end - start for start, end in _joined(events))


def _shared(events: Iterable[TimelineEvent], waits: Iterable[TimelineEvent]) -> float:
    """How much time lies both under a bar that is no wait and under a wait."""
    shared = 0.0
    away = _joined(waits)
    for start, end in _joined(event for event in events if event.kind != "wait"):
        shared += sum(max(0.0, min(end, to) - max(start, at)) for at, to in away)
    return shared


def _joined(events: Iterable[TimelineEvent]) -> list[tuple[float, float]]:
    joined: list[tuple[float, float]] = []
    for start, end in sorted((event.start_us, event.end_us) for event in events):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


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
