"""The capstone: an MLP learns to read digits, with the same numbers on either device and on other people's pieces."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

from glassbox import mini
from glassbox.mini import models, optim
from glassbox.mini.c10 import layout
from glassbox.mini.models import digits

from .naive_pieces import counted
from .twins import array


def learn(device: str = "cpu", epochs: int = 10, seed: int = 0) -> tuple[list[float], float, list[np.ndarray]]:
    """Losses by epoch, test accuracy, final weights."""
    mini.manual_seed(seed)
    x, y, test_x, test_y = digits.load(device)
    model = models.MLP(64, 128, 10).to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = list(digits.train(model, optimizer, x, y, epochs))
    assert all(p.device.type == device for p in model.parameters())
    return losses, digits.accuracy(model, test_x, test_y), [array(p).copy() for p in model.parameters()]


@pytest.fixture(scope="module")
def learnt() -> Any:
    return learn()


def same(left: Any, right: Any) -> None:
    assert left[:2] == right[:2]
    for a, b in zip(left[2], right[2], strict=True):
        np.testing.assert_array_equal(a, b)


def test_it_learns(learnt: Any) -> None:
    losses, right, _ = learnt
    assert right > 0.95
    assert losses[-1] < losses[0] / 10


def test_before_it_learns_it_knows_nothing() -> None:
    mini.manual_seed(0)
    _, _, x, y = digits.load()
    assert digits.accuracy(models.MLP(64, 128, 10), x, y) < 0.3


@pytest.mark.parametrize("seed", [1, 2])
def test_it_learns_from_other_beginnings(seed: int, learnt: Any) -> None:
    losses, right, _ = learn(seed=seed)
    assert right > 0.95
    assert losses != learnt[0]


def test_adam_learns_it_too() -> None:
    mini.manual_seed(0)
    x, y, test_x, test_y = digits.load()
    model = models.MLP(64, 128, 10)
    list(digits.train(model, optim.Adam(model.parameters(), lr=0.005), x, y))
    assert digits.accuracy(model, test_x, test_y) > 0.95


def test_pytorch_learns_the_same_from_the_same_seed() -> None:
    """The same beginning, the same order of examples, the same losses for three epochs."""
    ours = learn(epochs=3)
    torch.manual_seed(0)
    x, y, test_x, test_y = (torch.from_numpy(each.numpy()) for each in digits.load())
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(3):
        order = torch.randperm(len(y))
        total = 0.0
        for start in range(0, len(y), 64):
            chosen = order[start : start + 64]
            loss = torch.nn.functional.cross_entropy(model(x[chosen]), y[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(chosen)
        losses.append(total / len(y))
    assert ours[0] == pytest.approx(losses, rel=1e-3)
    right = (model(test_x).argmax(1) == test_y).float().mean().item()
    assert ours[1] == pytest.approx(right, abs=0.01)
    for a, b in zip(ours[2], model.parameters(), strict=True):
        np.testing.assert_allclose(a, array(b), rtol=1e-2, atol=1e-3)


def test_the_simulated_device_learns_the_same(learnt: Any) -> None:
    same(learn("sim"), learnt)


def by_hand(steps: int = 30) -> tuple[list[float], list[Any]]:
    """The same net written out, with views of every kind on the way and a penalty on large weights."""
    mini.manual_seed(0)
    x, y, test_x, _ = digits.load()
    pictures = x.reshape(-1, 8, 8)
    first, second = (mini.randn(8, 8, 32) * 0.1).requires_grad_(), (mini.randn(10, 32) * 0.1).requires_grad_()
    bias = mini.zeros(1, 32, requires_grad=True)
    losses = []
    for step in range(steps):
        turned = pictures[step::steps].permute(0, 2, 1)
        hidden = (turned.reshape(-1, 64) @ first.view(64, 32) + bias.expand(len(turned), 32)).relu()
        logs = (hidden @ second.T).log_softmax(1)
        loss = -logs.gather(1, y[step::steps].unsqueeze(1)).mean()
        loss = loss + 1e-3 * (first.square().sum() + second.square().sum())
        for parameter in (first, second, bias):
            parameter.grad = None
        loss.backward()
        with mini.no_grad():
            for parameter in (first, second, bias):
                parameter -= 0.5 * parameter.grad
        losses.append(loss.item())
    return losses, [array(first).copy(), array(second).copy(), array(bias).copy()]


def test_it_learns_the_same_on_pieces_that_somebody_else_wrote() -> None:
    """Every piece of the layout replaced by one that shares nothing with the original."""
    pieces, calls = counted()
    assert set(pieces) == {name for name in mini.pieces() if hasattr(layout, name)}
    expected, expected_by_hand = learn(epochs=2), by_hand()
    assert expected_by_hand[0][-1] < expected_by_hand[0][0] / 2
    with mini.using(**pieces):
        found, found_by_hand = learn(epochs=2), by_hand()
    same(found, expected)
    assert found_by_hand[0] == expected_by_hand[0]
    for a, b in zip(found_by_hand[1], expected_by_hand[1], strict=True):
        np.testing.assert_array_equal(a, b)
    # address answers questions about single elements, which nothing in here asks.
    assert set(pieces) - set(calls) <= {"address"}


def test_a_wrong_piece_is_noticed() -> None:
    """The comparison above can fail: with two strides exchanged it learns something else."""

    def wrong(shape: Any, stride: Any, dims: Any) -> Any:
        kept = [stride[d] for d in dims]
        if len(dims) == 3:
            kept[1:] = reversed(kept[1:])
        return tuple(shape[d] for d in dims), tuple(kept)

    expected = by_hand(5)
    with mini.using(permute=wrong):
        found = by_hand(5)
    assert found[0][0] != expected[0][0]


def test_the_script_tells_how_it_goes() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "glassbox.mini.models.digits"], capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "MLP("
    assert [line.split()[1] for line in lines if line.startswith("epoch")] == [str(n) for n in range(1, 11)]
    assert float(lines[-1].split()[-1].rstrip("%")) > 95
