"""Programs that are written once and run in PyTorch and in mini, and what a mode sees of them."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode as RealMode

from glassbox import mini

MODES = {torch: RealMode, mini: mini.TorchDispatchMode}
# Options that mini's schemas leave out, and the device that PyTorch's binding fills in.
LEFT_OUT = ("layout", "pin_memory", "device", "memory_format")
LETTERS = {"float32": "f32", "float64": "f64", "bfloat16": "bf16", "int64": "i64", "bool": "b8"}


def written(t: Any, value: Any) -> str:
    """A value as the log writes it."""
    if isinstance(value, t.Tensor):
        name = str(value.dtype).rpartition(".")[2]
        return f"{LETTERS.get(name, name)}{list(value.shape)}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({', '.join(written(t, each) for each in value)})"
    if isinstance(value, t.dtype):
        return str(value).rpartition(".")[2]
    return repr(value)


def logging_mode(t: Any, log: list[str]) -> Any:
    """A mode of t that writes down each call and goes on."""

    class Logging(MODES[t]):  # type: ignore[misc]
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            kwargs = kwargs or {}
            result = func(*args, **kwargs)
            given = [written(t, each) for each in args]
            given += [f"{name}={written(t, each)}" for name, each in kwargs.items() if name not in LEFT_OUT]
            log.append(f"{written(t, result)} = {func}({', '.join(given)})")
            return result

    return Logging()


def log_of(t: Any, program: Callable[[Any], Any]) -> list[str]:
    """The calls that a mode sees of program(t), less what only PyTorch does.

    torch.tensor marks what it made by lift_fresh. In C++ a tensor times a number goes to mul.Scalar, a
    number's type is the double it is computed in.
    """
    log: list[str] = []
    with logging_mode(t, log):
        program(t)
    lines = [line for line in log if "aten.lift_fresh" not in line]
    for name in ("mul", "div"):
        lines = [line.replace(f"aten.{name}.Scalar(", f"aten.{name}.Tensor(") for line in lines]
    return [re.sub(r"\b(\d+)\.0\b", r"\1", line) for line in lines]


def numbers(value: Any) -> Any:
    """Tensors as lists, so results of both can be compared."""
    if hasattr(value, "tolist"):
        return value.detach().float().tolist() if "bfloat16" in str(value.dtype) else value.detach().tolist()
    if isinstance(value, list | tuple):
        return [numbers(each) for each in value]
    return {key: numbers(each) for key, each in value.items()} if isinstance(value, dict) else value


def approx(value: Any) -> Any:
    """What numbers() gave, to be compared with what rounding may change."""
    if isinstance(value, list):
        return [approx(each) for each in value]
    return pytest.approx(value, rel=1e-5, abs=1e-6, nan_ok=True) if isinstance(value, float) else value
