"""Trace: a timeline in the Chrome trace format, for Perfetto (PyTorch: kineto, export_chrome_trace)."""

from typing import Any

from ...records import Timeline

_HOST, _DEVICE = 0, 1


def chrome_trace(timeline: Timeline) -> dict[str, Any]:
    """The timeline as a dict that json.dump turns into a trace file.

    Host and device are two processes, each stream a thread; an arrow leads from each launch to what it
    launched. Times are microseconds. Waits are there as events of their own; recorded events are instants.
    """
    threads = {row: _thread(row) for row in timeline.row_names()}
    events: list[dict[str, Any]] = []
    for process, name in ((_HOST, "host"), (_DEVICE, "sim")):
        events.append(_metadata("process_name", process, 0, {"name": name}))
        events.append(_metadata("process_sort_index", process, 0, {"sort_index": process}))
    for row, (process, thread) in threads.items():
        events.append(_metadata("thread_name", process, thread, {"name": row}))
        events.append(_metadata("thread_sort_index", process, thread, {"sort_index": thread}))
    launched = {event.correlation for event in timeline.events if event.kind in ("kernel", "copy")}
    for event in timeline.events:
        process, thread = threads[event.row]
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
        if event.correlation in launched:
            arrow = {
                "name": "launch",
                "cat": "launch",
                "id": event.correlation,
                "ts": event.start_us,
                **place,
            }
            end = {"ph": "s"} if event.kind == "launch" else {"ph": "f", "bp": "e"}
            events.append({**arrow, **end})
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _thread(row: str) -> tuple[int, int]:
    return (_HOST, 0) if row == "cpu" else (_DEVICE, int(row.removeprefix("stream ")))


def _metadata(name: str, process: int, thread: int, args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": process, "tid": thread, "args": args}
