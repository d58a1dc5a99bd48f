"""Anomaly mode: which forward op a bad gradient comes from (PyTorch: torch/csrc/autograd/anomaly_mode.h).

While it is on, each node keeps the Python stack of its forward op, and a gradient that turns NaN, or a step that
raises, is reported with it.
"""

import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any

# How many threads or blocks have the mode on: while there is none, a node costs no look-up.
enabled = [0]
# (on, look for NaN) of this thread.
_mode: ContextVar[tuple[bool, bool]] = ContextVar("anomaly_mode", default=(False, True))
_evaluated: ContextVar[Any] = ContextVar("evaluated_node", default=None)


def is_enabled() -> bool:
    """Whether this thread looks for anomalies."""
    return enabled[0] > 0 and _mode.get()[0]


def remember(node: Any) -> None:
    """Keep where the program is, as the place of the node's forward op, and which backward step it is part of."""
    if is_enabled():
        node.metadata["traceback_"] = traceback.format_stack()[:-2]
        node.metadata["parent_"] = _evaluated.get()


@contextmanager
def evaluating(node: Any) -> Iterator[None]:
    """While the engine runs a node: what it makes is its child, and what it raises is explained."""
    if not is_enabled():
        yield
        return
    token = _evaluated.set(node)
    try:
        yield
    except Exception:
        explain(node)
        raise
    finally:
        _evaluated.reset(token)


def explain(node: Any) -> None:
    """Warn where the forward op of a node that went wrong stood, and whose backward step that was part of."""
    place = node.metadata.get("traceback_")
    if place:
        text = f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{''.join(place)}"
    else:
        text = (
            f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during "
            f"forward pass for more information."
        )
    warnings.warn(text, UserWarning, stacklevel=2)
    parent = node.metadata.get("parent_")
    while parent is not None:
        place = "".join(parent.metadata.get("traceback_", ()))
        warnings.warn(
            f"Previous calculation was induced by {parent.name()}. Traceback of forward call that induced the previous "
            f"calculation:\n{place}",
            UserWarning,
            stacklevel=2,
        )
        parent = parent.metadata.get("parent_")


def check(node: Any, results: tuple[Any, ...]) -> None:
    """RuntimeError where a step returned NaN."""
    if not (is_enabled() and _mode.get()[1]):
        return
    for nr, grad in enumerate(results):
        if grad is not None and grad._dtype.is_floating_point and (grad.values() != grad.values()).any():
            explain(node)
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {nr}th output.")


def _switch(state: tuple[bool, bool]) -> tuple[bool, bool]:
    """Puts this thread in a state; returns the one before."""
    before = _mode.get()
    enabled[0] += int(state[0]) - int(before[0])
    _mode.set(state)
    return before


class set_detect_anomaly:  # noqa: N801 - PyTorch's own name
    """Turn anomaly mode on or off for this thread; as a `with` block, until its end."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = _switch((mode, check_nan))

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _switch(self._before)


class detect_anomaly:  # noqa: N801 - PyTorch's own name
    """`with detect_anomaly():` look for NaN gradients and say which forward op they come from. Slow."""

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = check_nan
        self._before: list[tuple[bool, bool]] = []

    def __enter__(self) -> None:
        self._before.append(_switch((True, self._check_nan)))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _switch(self._before.pop())


def is_anomaly_enabled() -> bool:
    return is_enabled()


def is_anomaly_check_nan_enabled() -> bool:
    return _mode.get()[1]
