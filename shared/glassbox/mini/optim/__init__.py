"""optim: how parameters follow their gradients (PyTorch: torch/optim)."""

from .adam import Adam
from .optimizer import Optimizer
from .sgd import SGD

__all__ = ["Adam", "Optimizer", "SGD"]
