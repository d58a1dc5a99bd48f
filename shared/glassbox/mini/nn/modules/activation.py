"""Activations: layers without state (PyTorch: torch/nn/modules/activation.py)."""

from typing import Any

from .. import functional as F  # noqa: N812
from .module import Module


class ReLU(Module):
    """max(x, 0) element by element, in place if asked."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return F.relu(input, inplace=self.inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, input: Any) -> Any:
        return input.sigmoid()


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Any) -> Any:
        return input.tanh()


class Softmax(Module):
    """exp(x), scaled to add up to 1 along `dim`."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:
        return input.softmax(self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(Module):
    """The logarithm of Softmax, computed without leaving the logarithms."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:
        return input.log_softmax(self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"
