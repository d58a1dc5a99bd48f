"""Dropout: elements zeroed at random while training (PyTorch: torch/nn/modules/dropout.py)."""

from typing import Any

from .. import functional as F  # noqa: N812
from .module import Module


class Dropout(Module):
    """p: the probability of an element to be zeroed; the others are scaled up to keep the mean."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input: Any) -> Any:
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"
