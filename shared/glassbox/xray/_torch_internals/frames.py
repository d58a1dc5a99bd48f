"""Frames: the C++ and Python functions that are running (torch/csrc/profiler/combined_traceback.cpp)."""

from __future__ import annotations

import sys
from typing import Any

from .access import private
from .schemas import promise_of
from .storages import is_fake, storage_identity, unusual_kind


def cpp_frames_work() -> bool:
    """Whether PyTorch can unwind C++ stacks here: so far on Linux alone."""
    return sys.platform == "linux"


def capture(cpp: bool) -> Any:
    """The stack of this thread, without names; what `symbolized` takes."""
    return private("torch._C._profiler.gather_traceback")(python=True, script=False, cpp=cpp)


def symbolized(captured: Any) -> list[tuple[str, int, str]]:
    """(file, line, function) of each frame of a captured stack, outermost first; file "??" or "" where none is known.

    Reading symbols takes a second or more the first time in a process.
    """
    frames = private("torch._C._profiler.symbolize_tracebacks")([captured])[0]
    return [(str(each["filename"]), int(each["line"]), str(each["name"])) for each in reversed(frames)]


def capturing_mode(wanted: Any, plain: Any, node: Any, cpp: bool) -> Any:
    """A TorchDispatchMode that captures the stack at the first operator for which `wanted(op)` holds, and goes on.

    Every call is told to `node`: begins(op, tensors) and ends(op, tensors), with None for the tensors of all but the
    captured one.

    Afterwards `captured` is that stack or None, `op` the operator as an OpOverload, `keys` the keys of its tensors as
    numbers, `args` what `plain` made of its positional arguments, `device` the first tensor's of its result ("" without
    one), `has_data` whether there is anything to compute, `is_view` whether the result is a view of an argument, and
    `seen` all operators by name in order.
    """
    base = private("torch.utils._python_dispatch.TorchDispatchMode")
    key_set = private("torch._C._dispatch_keys")

    class CapturingMode(base):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            super().__init__()
            self.captured: Any = None
            self.op: Any = None
            self.keys: list[int] = []
            self.args: list[Any] = []
            self.device = ""
            self.has_data = True
            self.is_view = False
            self.seen: list[str] = []

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.seen.append(str(func))
            chosen = self.captured is None and wanted(func)
            if chosen:
                self.captured, self.op = capture(cpp), func
                self.args = [plain(each) for each in args]
            given = _tensors([args, kwargs or {}]) if chosen else None
            node.begins(func, given)
            result = func(*args, **(kwargs or {}))
            if given is None:
                node.ends(func, None)
                return result
            results = _tensors(result)
            self.keys = [int(key_set(each).raw_repr()) for each in [*given, *results]]
            if results:
                self.device = str(results[0].device)
                self.has_data = self.device != "meta" and not is_fake(results[0])
                self.is_view = promise_of(func).views and _share(results, given)
            # An operator that returns nothing writes into its arguments.
            node.ends(func, results or given)
            return result

    return CapturingMode()


def _share(results: list[Any], given: list[Any]) -> bool:
    """Whether all results lie in storages of the arguments."""
    if any(unusual_kind(each) for each in [*results, *given]):
        return False
    storages = {storage_identity(each.untyped_storage()) for each in given}
    return all(storage_identity(each.untyped_storage()) in storages for each in results)


def _tensors(value: Any) -> list[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [each for part in value for each in _tensors(part)] if isinstance(value, list | tuple) else []
