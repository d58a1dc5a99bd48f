"""Widgets: thin shells over `glassbox.draw` and Python models that own the semantics (PyTorch has none of
these).
"""

from .predict import Predict, predict

__all__ = ["Predict", "predict"]
