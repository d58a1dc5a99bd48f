"""The autograd in one file against PyTorch and the whole mini; and a small network trained with it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassbox import mini
from glassbox.mini import small_autograd
from glassbox.mini.small_autograd import AccumulateGrad, Node, Tensor, count_dependencies, no_grad


def total(x: Any) -> Any:
    return x.sum()


PROGRAMS: dict[str, tuple[tuple[tuple[int, ...], ...], Callable[..., Any]]] = {
    "add": (((3, 4), (4,)), lambda a, b: a + b),
    "mul": (((3, 1), (1, 4)), lambda a, b: a * b),
    "sub": (((3, 4), ()), lambda a, b: a - b),
    "div": (((3, 4), (3, 1)), lambda a, b: a / (b * b + 1)),
    "numbers": (((3,),), lambda a: 2 - a * 3 + 1 / (a * a + 1)),
    "pow": (((3,),), lambda a: (a * a + 1) ** 3),
    "matmul": (((3, 4), (4, 2)), lambda a, b: a @ b),
    "exp": (((3,),), lambda a: a.exp()),
    "log": (((3,),), lambda a: (a * a + 1).log()),
    "tanh": (((3,),), lambda a: a.tanh()),
    "relu": (((3, 4),), lambda a: a.relu()),
    "log_softmax": (((3, 4),), lambda a: a.log_softmax(-1) if not isinstance(a, Tensor) else a.log_softmax()),
    "sum of an axis": (((3, 4),), lambda a: a.sum(1) * a.sum(0).sum(0)),
    "mean": (((3, 4),), lambda a: a.mean() + a.mean(0)),
    "transpose": (((3, 4),), lambda a: a.T @ a),
    "reshape": (((3, 4),), lambda a: a.reshape(2, 6) * 2),
    "index": (((3, 4),), lambda a: a[1:, 2] * a[0, 0] + a[-1, :2]),
    "diamond": (((3,),), lambda a: (a * a) * (a * a) + a),
    "one used twice": (((2, 2),), lambda a: a @ a + a),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_mini_and_pytorch(name: str) -> None:
    shapes, program = PROGRAMS[name]
    rng = np.random.default_rng(0)
    values = [rng.uniform(-1, 1, shape) for shape in shapes]
    small = [Tensor(each, requires_grad=True) for each in values]
    others = [
        [module.tensor(each.tolist(), dtype=module.float64, requires_grad=True) for each in values]
        for module in (mini, torch)
    ]
    result = program(*small)
    results = [program(*each) for each in others]
    seed = rng.uniform(-1, 1, result.shape)
    result.backward(seed)
    for module, each in zip((mini, torch), results, strict=True):
        np.testing.assert_allclose(result.data, np.array(each.tolist()), rtol=1e-12)
        each.backward(module.tensor(seed.tolist(), dtype=module.float64))
    for left, *rest in zip(small, *others, strict=True):
        for right in rest:
            np.testing.assert_allclose(left.grad, np.array(right.grad.tolist()), rtol=1e-10, atol=1e-12)


@given(st.lists(st.sampled_from(["add", "mul", "tanh", "relu", "exp", "neg", "sum", "matmul"]), min_size=1, max_size=8))
def test_random_programs(steps: list[str]) -> None:
    values = np.random.default_rng(len(steps)).uniform(-1, 1, (3, 3))

    def program(x: Any) -> Any:
        kept = [x, x * 0.5]
        for step in steps:
            a, b = kept[-1], kept[-2]
            if step == "add":
                kept.append(a + b)
            elif step == "mul":
                kept.append(a * b)
            elif step == "matmul":
                kept.append(a @ b * 0.3)
            elif step == "sum":
                kept.append(a - a.sum(0))
            elif step == "neg":
                kept.append(-a)
            elif step == "exp":
                kept.append((a * 0.1).exp())
            else:
                kept.append(getattr(a, step)())
        return kept[-1].sum() + kept[-2].sum()

    x, y = Tensor(values, requires_grad=True), torch.tensor(values, requires_grad=True)
    program(x).backward()
    program(y).backward()
    np.testing.assert_allclose(x.grad, y.grad.numpy(), rtol=1e-8, atol=1e-10)


def test_gradients_accumulate_until_dropped() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    total(x * 3).backward()
    total(x * 3).backward()
    assert x.grad is not None and x.grad.tolist() == [6, 6]
    x.grad = None
    total(x * 3).backward()
    assert x.grad.tolist() == [3, 3]


def test_leaves_share_no_memory_with_the_pass() -> None:
    x, y = Tensor([1.0], requires_grad=True), Tensor([1.0], requires_grad=True)
    total(x + y).backward()
    assert x.grad is not None and y.grad is not None
    x.grad += 1
    assert y.grad.tolist() == [1]


def test_the_engine_takes_the_newest_that_is_ready_and_leaves_first(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    x, w = Tensor([1.0], requires_grad=True), Tensor([2.0], requires_grad=True)
    early = x.exp()
    late = early.tanh() * w
    for node in count_dependencies(late.node):  # type: ignore[arg-type]
        node.edges = [
            (successor, lambda g, f=f, name=node.name: (seen.append(name), f(g))[1]) for successor, f in node.edges
        ]
    accumulate = AccumulateGrad.accumulate
    monkeypatch.setattr(
        AccumulateGrad, "accumulate", lambda node, grad: (seen.append("leaf"), accumulate(node, grad))[1]
    )
    late.backward()
    assert seen == ["mul", "mul", "leaf", "tanh", "exp", "leaf"]


def test_dependencies_are_edges() -> None:
    x = Tensor([1.0], requires_grad=True)
    y = x * x
    z = y * y + y
    assert z.node is not None
    waits = count_dependencies(z.node)
    # add has two edges, to y * y and to y; y * y has two to y; y two to the leaf.
    assert sorted((node.name, count) for node, count in waits.items()) == [
        ("AccumulateGrad", 2),
        ("add", 0),
        ("mul", 1),
        ("mul", 3),
    ]


def test_errors() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(ValueError, match="only a tensor of one element"):
        (x * 2).backward()
    with pytest.raises(ValueError, match="made of nothing that requires grad"):
        Tensor(1.0).backward()


def test_no_grad_and_detach() -> None:
    x = Tensor([1.0], requires_grad=True)
    with no_grad():
        y = x * 2
        with no_grad():
            pass
        z = x * 2
    assert y.node is None and z.node is None
    assert (x * 2).node is not None
    assert x.detach().node is None and not x.detach().requires_grad
    assert isinstance((x * 2).node, Node)


def test_long_chains() -> None:
    x = Tensor([1.0], requires_grad=True)
    y = x
    for _ in range(20_000):
        y = y + 1
    y.backward()
    assert x.grad is not None and x.grad.tolist() == [1]


def test_it_trains_a_network() -> None:
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 200)
    radius = np.where(np.arange(200) % 2 == 0, 1.0, 2.0)
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1) + rng.normal(0, 0.1, (200, 2))
    labels = np.arange(200) % 2
    w1 = Tensor(rng.normal(0, 1, (2, 16)), requires_grad=True)
    b1 = Tensor(np.zeros(16), requires_grad=True)
    w2 = Tensor(rng.normal(0, 0.5, (16, 2)), requires_grad=True)
    b2 = Tensor(np.zeros(2), requires_grad=True)
    parameters = (w1, b1, w2, b2)
    losses = []
    for _ in range(150):
        scores = ((Tensor(points) @ w1 + b1).relu() @ w2 + b2).log_softmax()
        loss = -scores[np.arange(200), labels].mean()
        losses.append(loss.item())
        for parameter in parameters:
            parameter.grad = None
        loss.backward()
        for parameter in parameters:
            assert parameter.grad is not None
            parameter.data -= 0.5 * parameter.grad
    guessed = scores.data.argmax(1)
    assert losses[-1] < 0.2 * losses[0]
    assert (guessed == labels).mean() > 0.97


def test_it_needs_nothing_of_the_framework() -> None:
    source = Path(small_autograd.__file__).read_text(encoding="utf-8")
    assert "from ." not in source and "import numpy as np" in source
    assert source.count("\n") < 280
