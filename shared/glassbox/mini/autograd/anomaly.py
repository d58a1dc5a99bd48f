"""Anomaly mode: which forward op a bad gradient comes from (PyTorch: torch/csrc/autograd/anomaly_mode.h).

While it is on, each node keeps the Python stack of its forward op, and a gradient that turns NaN, or a step that raises,
is reported with it.
"""

import traceback
import warnings
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any

# How many blocks are open in the process, and whether this thread is in one.
enabled = [0]
_mode: ContextVar[tuple[bool, bool]] = ContextVar("anomaly_mode", default=(False, True))


def is_enabled() -> bool:
    """Whether this thread looks for anomalies."""
    return enabled[0] > 0 and _mode.get()[0]


def remember(node: Any) -> None:
    """Keep where the program is, as the place of the node's forward op."""
    if is_enabled():
        node.metadata["traceback_"] = "".join(traceback.format_stack()[:-2])


def explain(node: Any) -> None:
    """Warn where the forward op of a node that went wrong stood."""
    place = node.metadata.get("traceback_")
    if place:
        text = f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{place}"
    else:
        text = f"Error detected in {node.name()}. No forward pass information available: enable anomaly mode before it."
    warnings.warn(text, UserWarning, stacklevel=3)


def check(node: Any, results: tuple[Any, ...]) -> None:
    """RuntimeError where a step returned NaN."""
    if not is_enabled() or not _mode.get()[1]:
        return
    for nr, grad in enumerate(results):
        if grad is not None and grad._dtype.is_floating_point and (grad.values() != grad.values()).any():
            explain(node)
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {nr}th output.")


class detect_anomaly:  # noqa: N801 - PyTorch's own name
    """`with detect_anomaly():` look for NaN gradients and say which forward op they come from. Slow."""

    def __init__(self, check_nan: bool = True, *, mode: bool = True) -> None:
        self._state = (mode, check_nan)
        self._tokens: list[Token[tuple[bool, bool]]] = []

    def __enter__(self) -> None:
        self._tokens.append(_mode.set(self._state))
        enabled[0] += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        enabled[0] -= 1
        _mode.reset(self._tokens.pop())


class set_detect_anomaly:  # noqa: N801 - PyTorch's own name
    """Turn anomaly mode on or off for this thread; as a `with` block, until its end."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = (_mode.get(), enabled[0])
        enabled[0] += int(mode) - int(_mode.get()[0])
        _mode.set((mode, check_nan))

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        mode, enabled[0] = self._before
        _mode.set(mode)
