"""Widgets: thin shells over `glassbox.draw`, with Python models that own the meaning (PyTorch has none)."""

from .autograd_stepper import AutogradStepper
from .predict import Predict, predict
from .stride_explorer import StrideExplorer

__all__ = ["AutogradStepper", "Predict", "StrideExplorer", "predict"]
