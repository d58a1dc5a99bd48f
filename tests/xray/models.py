"""Small models of four kinds, each with a step forward and backward, on which instruments are compared."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "MLP": (lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)), (4, 6)),
    "convnet": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 2)
        ),
        (2, 1, 8, 8),
    ),
    "LSTM": (lambda: nn.LSTM(4, 5), (3, 2, 4)),
    "TransformerEncoder": (
        lambda: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.1), 2, enable_nested_tensor=False
        ),
        (2, 3, 8),
    ),
}


def step_of(name: str) -> tuple[nn.Module, Callable[[], list[torch.Tensor]]]:
    """A model, and a function that runs it forward and backward from the same start and gives output and gradients."""
    make, shape = MODELS[name]
    torch.manual_seed(0)
    model, x = make(), torch.rand(shape)
    parameters = list(model.parameters())

    def step() -> list[torch.Tensor]:
        torch.manual_seed(1)
        out: Any = model(x)
        out = out[0] if isinstance(out, tuple) else out
        return [out.detach(), *torch.autograd.grad(out.square().sum(), parameters)]

    return model, step
