"""Timing and tracing: guards and modes to time a call under, and what the profiler keeps to itself
(torch/csrc/autograd/init.cpp, torch/utils/_python_dispatch.py).
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from .access import missing, private


def below_autograd() -> AbstractContextManager[Any]:
    """A context in which calls skip the Autograd and ADInplaceOrView keys, as calls below an Autograd kernel do.

    Without the second, views that a kernel makes for itself would be tracked, and it would take longer than it does.
    """
    guard: AbstractContextManager[Any] = private("torch._C._AutoDispatchBelowADInplaceOrView")()
    return guard


def empty_dispatch_mode() -> AbstractContextManager[Any]:
    """A TorchDispatchMode that sees every operator and only makes the call."""
    base = private("torch.utils._python_dispatch.TorchDispatchMode")

    class EmptyMode(base):  # type: ignore[misc, valid-type]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    mode: AbstractContextManager[Any] = EmptyMode()
    return mode


def profiler_is_on() -> bool:
    """Whether a torch.profiler session is running; starting a second one would cancel it."""
    return bool(private("torch._C._autograd._profiler_enabled")())


def profiler_settings() -> Any:
    """Settings under which the profiler also says operators' overloads and the bytes of copies, as far as it can."""
    config = private("torch._C._profiler._ExperimentalConfig")
    for wanted in (
        {"capture_overload_names": True, "expose_kineto_event_metadata": True},
        {"capture_overload_names": True},
        {},
    ):
        try:
            return config(**wanted)
        except TypeError:
            continue
    raise missing("torch._C._profiler._ExperimentalConfig that can be made")


def required_arguments(op: Any) -> list[tuple[str, str]]:
    """Name and type of each argument of an OpOverload that has no default."""
    try:
        return [(each.name, str(each.type)) for each in op._schema.arguments if not each.has_default_value()]
    except AttributeError:
        raise missing("OpOverload._schema") from None
