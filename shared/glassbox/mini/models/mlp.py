"""MLP: layers of Linear with ReLU between, the smallest network worth training."""

from itertools import pairwise
from typing import Any

from ..nn import Linear, Module, ReLU, Sequential


class MLP(Module):
    """`MLP(64, 128, 10)`: from 64 numbers over 128 to 10."""

    def __init__(self, *sizes: int) -> None:
        super().__init__()
        if len(sizes) < 2:
            raise ValueError(f"an MLP needs at least two sizes, from and to, got {list(sizes)}")
        layers: list[Module] = []
        for before, after in pairwise(sizes):
            layers += [Linear(before, after), ReLU()]
        self.layers = Sequential(*layers[:-1])

    def forward(self, input: Any) -> Any:
        return self.layers(input)
