"""Moments: a timeline told step by step, what host and device do at each turn (PyTorch has no twin)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..records.timeline import Timeline, TimelineEvent

_DOING = {"launch": "launches", "wait": "waits:", "malloc": "gets memory:", "work": "works:"}


@dataclass(frozen=True, slots=True)
class Moment:
    """A time at which something begins or ends, and what is going on from then on."""

    at_us: float
    text: str


def moments(timeline: Timeline) -> tuple[Moment, ...]:
    """Every time at which a bar begins or ends, in order, each told in one sentence; one at 0 at least."""
    times = {0.0, timeline.end_us()}
    times.update(us for event in timeline.events for us in (event.start_us, event.end_us) if us >= 0)
    if timeline.returned_us is not None:
        times.add(timeline.returned_us)
    return tuple(Moment(at, _told(timeline, at)) for at in sorted(times))


def _told(timeline: Timeline, at: float) -> str:
    hosts = [event for event in timeline.events if event.row.startswith("cpu")]
    devices = [event for event in timeline.events if not event.row.startswith(("cpu", "runtime"))]
    said = [f"{at:,.4g} µs: {_host(timeline, hosts, at)}"]
    rows = dict.fromkeys(event.row for event in devices)
    said += [f"{row} {_device(event for event in devices if event.row == row and _on(event, at))}" for row in rows]
    waiting = sum(launch.end_us <= at < work.start_us for launch, work in timeline.launches())
    if waiting:
        said.append(f"{waiting} launched and not begun")
    return "; ".join(said) + "."


def _host(timeline: Timeline, hosts: Iterable[TimelineEvent], at: float) -> str:
    now = [event for event in hosts if _on(event, at)]
    if now:
        event = max(now, key=lambda each: each.depth)
        return f"the host {_DOING.get(event.kind, 'runs')} {event.name}"
    returned = timeline.returned_us
    return "the host has returned and is free" if returned is not None and at >= returned else "the host is free"


def _device(now: Iterable[TimelineEvent]) -> str:
    found = [f"waits: {event.name}" if event.kind == "wait" else f"runs {event.name}" for event in now]
    return ", ".join(found) if found else "is idle"


def _on(event: TimelineEvent, at: float) -> bool:
    return event.start_us <= at < event.end_us
