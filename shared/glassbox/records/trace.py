"""Trace: a timeline in the Chrome trace format, for Perfetto (PyTorch: kineto, export_chrome_trace)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .timeline import Timeline

_HOST = 0


def chrome_trace(timeline: Timeline) -> dict[str, Any]:
    """The timeline as a dict that json.dump turns into a trace file.

    The host is a process and each of its rows a thread of it, likewise every device and its streams; an arrow leads
    from each launch to what it launched. Times are microseconds. Waits are there as events of their own; recorded
    events are instants.
    """
    threads = _threads(timeline)
    events: list[dict[str, Any]] = []
    for process, name in {process: name for process, _, name in threads.values()}.items():
        events.append(_metadata("process_name", process, 0, {"name": name}))
        events.append(_metadata("process_sort_index", process, 0, {"sort_index": process}))
    for row, (process, thread, _) in threads.items():
        events.append(_metadata("thread_name", process, thread, {"name": row}))
        events.append(_metadata("thread_sort_index", process, thread, {"sort_index": thread}))
    arrows = {id(end) for pair in timeline.launches() for end in pair}
    for event in timeline.events:
        process, thread, _ = threads[event.row]
        place = {"pid": process, "tid": thread}
        if event.kind == "event":
            instant = {"ph": "i", "s": "t", "name": event.name, "cat": event.kind, "ts": event.start_us}
            events.append({**instant, **place})
            continue
        args = {"bytes": event.bytes, "flops": event.flops} if event.kind in ("kernel", "copy") else {}
        if event.correlation:
            args["correlation"] = event.correlation
        events.append(
            {
                "ph": "X",
                "name": event.name,
                "cat": event.kind,
                "ts": event.start_us,
                "dur": event.duration_us,
                **place,
                "args": args,
            }
        )
        if id(event) in arrows:
            arrow = {"name": "launch", "cat": "launch", "id": event.correlation, "ts": event.start_us, **place}
            end = {"ph": "s"} if event.kind == "launch" else {"ph": "f", "bp": "e"}
            events.append({**arrow, **end})
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _threads(timeline: Timeline) -> dict[str, tuple[int, int, str]]:
    """Row -> process, thread, and the process's name."""
    found: dict[str, tuple[int, int, str]] = {}
    processes: dict[str, int] = {}
    hosts = 0
    for row in timeline.row_names():
        head, _, number = row.rpartition("stream ")
        if row.startswith(("cpu", "runtime")) or not number.isdigit():
            found[row] = _HOST, hosts, "host"
            hosts += 1
        else:
            name = head.strip() or timeline.device
            found[row] = processes.setdefault(name, len(processes) + 1), int(number), name
    return found


def _metadata(name: str, process: int, thread: int, args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": process, "tid": thread, "args": args}
