"""Flatten: a layer that only looks at its input in another shape (PyTorch: torch/nn/modules/flatten.py)."""

from typing import Any

from .module import Module


class Flatten(Module):
    """Dimensions start_dim..end_dim joined into one; the first one, the batch, is kept by default."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Any) -> Any:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"
