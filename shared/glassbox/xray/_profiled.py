"""Profiled: a run under torch.profiler as rows of bars (torch/autograd/profiler_util.py, FunctionEvent).

An event of the host has its own id; a call of the device's runtime and the kernel or copy that it started carry one and
the same id, and both name the operator that they belong to as linked_correlation_id.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from ..records import Timeline, TimelineEvent
from ._torch_internals.tracing import profiler_is_on, profiler_settings

_MARK = "glassbox.xray.timeline"
_RUNTIME = ("cuda_runtime", "cuda_driver", "privateuse1_runtime", "privateuse1_driver", "xpu_runtime", "xpu_driver")
_NO_WORK = ("overhead", "gpu_user_annotation", "cpu_instant_event")
_LOG_LEVEL = "KINETO_LOG_LEVEL"


def profiled(run: Callable[[], Any]) -> Timeline:
    """The timeline of one call of run(), its zero where the call began.

    RuntimeError while the profiler is on already: a second session would end the first.
    """
    if profiler_is_on():
        raise RuntimeError("timeline: a torch.profiler session is running, and PyTorch has only one; leave it first.")
    activities = [ProfilerActivity.CPU]
    device = ""
    for name, activity in (("cuda", "CUDA"), ("xpu", "XPU")):
        if getattr(torch, name).is_available():
            activities.append(getattr(ProfilerActivity, activity))
            device = name
    with (
        _without_notes(bool(device)),
        profile(activities=activities, experimental_config=profiler_settings()) as session,
        record_function(_MARK),
    ):
        run()
    return timeline_of(session.events(), device)


def timeline_of(events: Iterable[Any], device: str = "cuda") -> Timeline:
    """FunctionEvents of a profiler session as a Timeline.

    events   what profile.events() gives. Where the mark of `profiled` is among them, its start is the zero, its thread
             is the row "cpu", and what the host did outside of it is left out; else all of them count.
    """
    everything = [event for event in events if _said(event, "activity_type") not in _NO_WORK]
    # A range of the program is shown where it was begun, on the host.
    everything = [event for event in everything if _on_host(event) or not event.is_user_annotation]
    mark = next((event for event in everything if event.name == _MARK and _on_host(event)), None)
    everything = [event for event in everything if event.name != _MARK]
    if mark is not None:
        begin, end = mark.time_range.start, mark.time_range.end
        everything = [
            event
            for event in everything
            if (begin <= event.time_range.start and event.time_range.end <= end)
            # The device may have been at work before, and goes on when the host has returned.
            or (not _on_host(event) and event.time_range.end > begin)
        ]
    if not everything:
        returned = None if mark is None else _us(mark.time_range.end - mark.time_range.start)
        return Timeline((), 0, returned, device)
    zero = mark.time_range.start if mark is not None else min(event.time_range.start for event in everything)
    hosts = [event for event in everything if _on_host(event)]
    started = {event.id for event in everything if not _on_host(event)}
    threads = _threads(hosts, mark)
    bars = [_bar(event, threads, started, zero) for event in everything]
    events_in_order = sorted(bars, key=lambda bar: (bar.start_us, -bar.end_us, bar.row != "cpu"))
    returned = None if mark is None else _us(mark.time_range.end - zero)
    return Timeline(tuple(_with_depths(events_in_order)), 0, returned, device)


def _bar(event: Any, threads: dict[Any, int], started: set[int], zero: float) -> TimelineEvent:
    start, end = _us(event.time_range.start - zero), _us(event.time_range.end - zero)
    if not _on_host(event):
        place = f"stream {event.device_resource_id}"
        row = place if not event.device_index else f"{event.device_type.name.lower()}:{event.device_index} {place}"
        nbytes = (getattr(event, "metadata", None) or {}).get("bytes", 0)
        return TimelineEvent(row, event.name, start, end, _device_kind(event), int(nbytes or 0), 0, event.id)
    number = threads.get(event.thread, 0)
    row = ("runtime" if _is_runtime(event) else "cpu") + (f" {number}" if number else "")
    kind = _runtime_kind(event, started) if _is_runtime(event) else _host_kind(event)
    correlation = event.id if kind == "launch" else 0
    return TimelineEvent(row, _name(event), start, end, kind, 0, 0, correlation)


def _host_kind(event: Any) -> str:
    if event.is_user_annotation:
        return "range"
    is_node = event.name.startswith("autograd::engine::") or _said(event, "scope") == 1
    return "node" if is_node else "op"


def _runtime_kind(event: Any, started: set[int]) -> str:
    name = event.name
    # A call that waits on the device's own queue, such as cudaStreamWaitEvent, does not hold up the host.
    if "Synchronize" in name or name in ("cudaMemcpy", "cuMemcpy"):
        return "wait"
    if event.id in started:
        return "launch"
    return "malloc" if "Malloc" in name or "Free" in name or "HostAlloc" in name else "work"


def _device_kind(event: Any) -> str:
    kind = _said(event, "activity_type")
    if kind == "gpu_memcpy" or event.name.startswith("Memcpy"):
        return "copy"
    return "wait" if kind == "cuda_sync" else "kernel"


def _name(event: Any) -> str:
    """ "add.Tensor", as the mini-framework's timeline says it; names of other kinds as they are."""
    name = str(event.name)
    if not name.startswith("aten::"):
        return name
    overload = _said(event, "overload_name")
    return name.removeprefix("aten::") + (f".{overload}" if overload else "")


def _on_host(event: Any) -> bool:
    return bool(event.device_type == torch.autograd.DeviceType.CPU)


def _is_runtime(event: Any) -> bool:
    kind = _said(event, "activity_type")
    if kind:
        return kind in _RUNTIME
    return str(event.name).startswith(("cuda", "hip")) and "::" not in event.name


def _threads(hosts: Sequence[Any], mark: Any) -> dict[Any, int]:
    """Thread -> its number: 0 for the one that made the call, then in the order of their first event."""
    order = [] if mark is None else [mark.thread]
    # Calls of the runtime that belong to no operator carry the system's number of their thread, not the profiler's.
    of_system = {_said(event, "device_resource_id"): event.thread for event in hosts if not _is_runtime(event)}
    if mark is not None:
        of_system[_said(mark, "device_resource_id")] = mark.thread
    numbers: dict[Any, int] = {}
    for event in sorted(hosts, key=lambda each: each.time_range.start):
        order.append(of_system.get(event.thread, event.thread))
    for thread in dict.fromkeys(order):
        numbers[thread] = len(numbers)
    for system, thread in of_system.items():
        numbers.setdefault(system, numbers.get(thread, 0))
    return numbers


def _with_depths(bars: Sequence[TimelineEvent]) -> Iterator[TimelineEvent]:
    """Each bar with the number of bars of its row that lie around it; bars come by start, the longer one first."""
    around: dict[str, list[float]] = {}
    for bar in bars:
        ends = around.setdefault(bar.row, [])
        while ends and ends[-1] <= bar.start_us:
            ends.pop()
        yield TimelineEvent(
            bar.row, bar.name, bar.start_us, bar.end_us, bar.kind, bar.bytes, bar.flops, bar.correlation, len(ends)
        )
        ends.append(bar.end_us)


@contextmanager
def _without_notes(has_device: bool) -> Iterator[None]:
    """Where there is no device kineto would print that it found none, each time; its other notes are kept."""
    before = os.environ.get(_LOG_LEVEL)
    if has_device or before is not None:
        yield
        return
    os.environ[_LOG_LEVEL] = "99"
    try:
        yield
    finally:
        os.environ.pop(_LOG_LEVEL, None)


def _said(event: Any, field: str) -> Any:
    """A field that some versions of torch lack."""
    return getattr(event, field, None)


def _us(time: float) -> float:
    return round(float(time), 3)
