"""Widgets: thin shells over `glassbox.draw`, with Python models that own the meaning (PyTorch has none)."""

from typing import TYPE_CHECKING, Any

from .autograd_stepper import AutogradStepper
from .call_path import CallPathExplorer
from .dispatch_stepper import DispatchStepper
from .lifetime import LifetimeStepper
from .ordering import Ordering
from .predict import Predict, predict
from .stride_explorer import StrideExplorer
from .timeline_player import TimelinePlayer

if TYPE_CHECKING:
    from .keyset_explorer import KeySetExplorer as KeySetExplorer

__all__ = [
    "AutogradStepper",
    "CallPathExplorer",
    "DispatchStepper",
    "KeySetExplorer",
    "LifetimeStepper",
    "Ordering",
    "Predict",
    "StrideExplorer",
    "TimelinePlayer",
    "predict",
]


def __getattr__(name: str) -> Any:
    # It asks torch, which nothing else here needs.
    if name == "KeySetExplorer":
        from .keyset_explorer import KeySetExplorer

        return KeySetExplorer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
