"""digits: an MLP learns to read handwritten digits, in a second (PyTorch: examples/mnist).

Run it: `python -m glassbox.mini.models.digits`, or with `sim` behind it on the simulated device. The 1797 pictures of
8 x 8 pixels are scikit-learn's; nothing is downloaded.
"""

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import from_numpy, manual_seed, no_grad, optim, randperm
from ..nn import Module
from ..nn import functional as F  # noqa: N812
from .mlp import MLP

TEST = 360


def load(device: str = "cpu") -> tuple[Any, Any, Any, Any]:
    """(x, y) to learn from and (x, y) to be tested with: float32[n, 64] between 0 and 1, int64[n]."""
    from sklearn.datasets import load_digits

    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    x = from_numpy((data.data[order] / 16).astype(np.float32)).to(device)
    y = from_numpy(data.target[order].astype(np.int64)).to(device)
    return x[TEST:], y[TEST:], x[:TEST], y[:TEST]


def train(
    model: Module, optimizer: optim.Optimizer, x: Any, y: Any, epochs: int = 10, batch: int = 64
) -> Iterator[float]:
    """Shows the model every example once per epoch, in a new order each time; yields the mean loss of each epoch."""
    model.train()
    for _ in range(epochs):
        order = randperm(len(y)).to(x.device)
        total = 0.0
        for start in range(0, len(y), batch):
            chosen = order[start : start + batch]
            loss = F.cross_entropy(model(x[chosen]), y[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(chosen)
        yield total / len(y)


def accuracy(model: Module, x: Any, y: Any) -> float:
    """The share of the examples that the model gets right."""
    model.eval()
    with no_grad():
        right = model(x).argmax(1) == y
    return right.sum().item() / len(y)


def main(device: str = "cpu") -> None:
    """Train and tell how it goes."""
    manual_seed(0)
    x, y, test_x, test_y = load(device)
    model = MLP(64, 128, 10).to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    print(f"{model}\nbefore: {accuracy(model, test_x, test_y):.1%} of {len(test_y)} test pictures read right")
    for epoch, loss in enumerate(train(model, optimizer, x, y), 1):
        print(f"epoch {epoch:2}  loss {loss:.4f}  right {accuracy(model, test_x, test_y):.1%}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
