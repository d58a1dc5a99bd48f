"""The simulated accelerator: streams, events, memory and time of "sim" (PyTorch: torch/cuda/__init__.py).

Kernels compute at once on the host; time is virtual, so every program has one timeline, on any machine:
schedule.py says who starts when, runtime.py keeps the device's state, cost.py says how long work takes;
streams.py, allocator.py, memory.py, memory_stats.py and races.py hold what their names say, and launch.py
makes a kernel of the device out of one for the CPU, with what effects.py sees of it, where same_device.py
finds no tensor of another device.
"""

from typing import Any

from ...records import Race, Timeline, TimelineEvent
from .allocator import OutOfMemoryError
from .cost import CostModel
from .launch import host_work, install, launch, read_back, spin
from .memory import cost_model, record_stream, set_cost_model
from .memory_stats import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_summary,
    reset_peak_memory_stats,
)
from .races import RaceError, RaceWarning, race_check, races, set_race_check
from .runtime import device as _device
from .streams import Event, Stream, current_stream, default_stream, set_stream, stream, synchronize


def is_available() -> bool:
    """Always: the device needs nothing that a computer lacks."""
    return True


def device_count() -> int:
    """One device."""
    return 1


def current_device() -> int:
    """The number of the one device."""
    return 0


def now() -> float:
    """The host's time in microseconds since the last reset."""
    return _device.now / 1000


def timeline() -> Timeline:
    """What host and device did since the last reset, also what the device is yet to do by the host's time."""
    with _device.lock:
        return _device.timeline()


def chrome_trace() -> dict[str, Any]:
    """timeline() in the Chrome trace format; json.dump it to a file for chrome://tracing or Perfetto."""
    return timeline().to_chrome_trace()


def reset() -> None:
    """Time 0, an empty timeline, no races, a sound device, the cache emptied and all statistics begun anew.

    Live tensors keep elements and memory. Cost model and race check stay as set; streams are numbered anew
    as they are used, events from before count as done.
    """
    with _device.lock:
        _device.reset()


__all__ = [
    "CostModel",
    "Event",
    "OutOfMemoryError",
    "Race",
    "RaceError",
    "RaceWarning",
    "Stream",
    "Timeline",
    "TimelineEvent",
    "chrome_trace",
    "cost_model",
    "current_device",
    "current_stream",
    "default_stream",
    "device_count",
    "empty_cache",
    "host_work",
    "install",
    "is_available",
    "launch",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "now",
    "race_check",
    "races",
    "read_back",
    "record_stream",
    "reset",
    "reset_peak_memory_stats",
    "set_cost_model",
    "set_race_check",
    "set_stream",
    "spin",
    "stream",
    "synchronize",
    "timeline",
]
