"""The mini-framework beside PyTorch: small calls, a training step, a network, memory, long graphs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from benchmarks.measure import Timing, alternate, human, progress
from glassbox import mini
from glassbox.mini import models, nn, optim

# Case -> the ratio to PyTorch that is aimed at.
TARGETS = {
    "add, 4 elements": 1.2,
    "add, 4 elements, with grad": 1.15,
    "broadcast add (8, 1) + (1, 8)": 1.6,
    "x.t()": 2.0,
    "x[1:3]": 1.8,
    "sum(a * b), forward and backward": 0.55,
    "MLP step 64-128-10, batch 64, optim.SGD": 0.5,
    "MLP step 64-128-10, batch 64, written by hand": 0.75,
}
Way = Callable[[], object]


def small_calls(lib: Any) -> dict[str, Way]:
    """One call each, with operands of a few elements."""
    a, b = lib.rand(4), lib.rand(4)
    ga, gb = lib.rand(4).requires_grad_(), lib.rand(4).requires_grad_()
    column, row, x = lib.rand(8, 1), lib.rand(1, 8), lib.rand(8, 8)

    def forward_and_backward() -> None:
        ga.grad = gb.grad = None
        (ga * gb).sum().backward()

    return {
        "add, 4 elements": lambda: a + b,
        "add, 4 elements, with grad": lambda: ga + gb,
        "mul, 4 elements, with grad": lambda: ga * gb,
        "add a number": lambda: a + 2.0,
        "broadcast add (8, 1) + (1, 8)": lambda: column + row,
        "x + x.t()": lambda: x + x.t(),
        "x.t()": lambda: x.t(),
        "x[1:3]": lambda: x[1:3],
        "a.add_(b)": lambda: a.add_(b),
        "a.sum()": lambda: a.sum(),
        "sum(a * b), forward and backward": forward_and_backward,
    }


def mlp_steps(lib: Any, layers: Any, optimizers: Any) -> dict[str, Way]:
    """A training step of a small classifier, with an optimizer and with the update written out."""
    rng = np.random.default_rng(0)
    x = lib.from_numpy(rng.random((64, 64), np.float32))
    y = lib.from_numpy(rng.integers(0, 10, 64))
    loss = layers.CrossEntropyLoss()

    def net() -> Any:
        return layers.Sequential(layers.Linear(64, 128), layers.ReLU(), layers.Linear(128, 10))

    with_optimizer, by_hand = net(), net()
    optimizer = optimizers.SGD(with_optimizer.parameters(), lr=0.01)
    parameters = list(by_hand.parameters())

    def step() -> None:
        optimizer.zero_grad()
        loss(with_optimizer(x), y).backward()
        optimizer.step()

    def hand_step() -> None:
        for parameter in parameters:
            parameter.grad = None
        loss(by_hand(x), y).backward()
        with lib.no_grad():
            for parameter in parameters:
                parameter.sub_(parameter.grad, alpha=0.01)

    return {
        "MLP step 64-128-10, batch 64, optim.SGD": step,
        "MLP step 64-128-10, batch 64, written by hand": hand_step,
    }


def ratios(rounds: int) -> Iterator[dict[str, str]]:
    """One row per case: both times, their ratio by the least and by the median, and what is aimed at."""
    ours = small_calls(mini) | mlp_steps(mini, nn, optim)
    theirs = small_calls(torch) | mlp_steps(torch, torch.nn, torch.optim)
    for case in ours:
        progress(case)
        times = alternate({"mini": ours[case], "torch": theirs[case]}, rounds)
        yield row(case, times["mini"], times["torch"], TARGETS.get(case))


def row(case: str, ours: Timing, theirs: Timing, target: float | None) -> dict[str, str]:
    """A case as the table shows it."""
    return {
        "case": case,
        "mini": human(ours.least),
        "torch": human(theirs.least),
        "ratio of least": f"{ours.least / theirs.least:.2f}",
        "ratio of medians": f"{ours.median / theirs.median:.2f}",
        "aim": "" if target is None else f"{target:g}",
    }


def networks() -> Iterator[dict[str, str]]:
    """ResNet-18's forward at 224, evaluation, without gradients."""
    import torchvision

    theirs = torchvision.models.resnet18().eval()
    ours = models.resnet18().eval()
    ours.load_state_dict(theirs.state_dict())
    picture = np.random.default_rng(0).random((1, 3, 224, 224), np.float32)
    x, t = mini.from_numpy(picture), torch.from_numpy(picture)

    def run_mini() -> None:
        with mini.no_grad():
            ours(x)

    def run_torch() -> None:
        with torch.no_grad():
            theirs(t)

    progress("ResNet-18 forward")
    times = alternate({"mini": run_mini, "torch": run_torch}, rounds=5)
    yield row("ResNet-18 forward, 1x3x224x224", times["mini"], times["torch"], None)


_LONG = """
import os, resource, time
import {lib} as lib
n = 100_000
def used():
    try:
        with open("/proc/self/statm") as now:
            return int(now.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux: the most there ever was
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
x = lib.ones(4, requires_grad=True)
y = x + 1
before = used()
if {views}:
    began = time.perf_counter(); held = [x[i % 4] for i in range(n)]; made = time.perf_counter() - began
    spent = 0.0
else:
    began = time.perf_counter(); held = x
    for _ in range(n): held = held + y
    made = time.perf_counter() - began
    began = time.perf_counter(); held.sum().backward(); spent = time.perf_counter() - began
grown = used() - before
began = time.perf_counter(); del held; dropped = time.perf_counter() - began
print(made / n * 1e6, spent / n * 1e6, dropped / n * 1e6, grown / n)
"""


def long_graphs() -> Iterator[dict[str, str]]:
    """100,000 adds in a row and 100,000 live views, each in a process of its own; per node or view."""
    for views, case in ((False, "100,000 adds"), (True, "100,000 views")):
        for lib in ("glassbox.mini", "torch"):
            progress(f"{case}, {lib}")
            code = _LONG.format(lib=lib, views=views)
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
            made, spent, dropped, grown = (float(part) for part in done.stdout.split())
            yield {
                "case": case,
                "framework": lib.rpartition(".")[2],
                "forward": f"{made:.2f} us",
                "backward": "" if views else f"{spent:.2f} us",
                "drop": f"{dropped:.2f} us",
                "memory": f"{grown:.0f} B",
            }


def training_memory() -> Iterator[dict[str, str]]:
    """Bytes that a training step keeps for its backward pass, by the saved tensors."""
    for lib, layers in ((mini, nn), (torch, torch.nn)):
        net = layers.Sequential(layers.Linear(64, 128), layers.ReLU(), layers.Linear(128, 10))
        x = lib.rand(64, 64)
        y = lib.zeros(64, dtype=lib.int64)
        parameters = {parameter.data_ptr() for parameter in net.parameters()}
        kept: dict[int, int] = {}

        def pack(tensor: Any, kept: dict[int, int] = kept, own: set[int] = parameters) -> Any:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in own:
                kept[storage.data_ptr()] = storage.nbytes()
            return tensor

        with lib.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            loss = layers.CrossEntropyLoss()(net(x), y)
        loss.backward()
        yield {"framework": lib.__name__.rpartition(".")[2], "saved for backward": f"{sum(kept.values()):,} B"}



def hips_autograd() -> Iterator[dict[str, str]]:
    """HIPS autograd on the same step, where it is installed: `pip install autograd`."""
    try:
        import autograd.numpy as anp
        from autograd import grad
    except ImportError:
        return
    rng = np.random.default_rng(0)
    x, y = rng.random((64, 64), np.float32), np.eye(10, dtype=np.float32)[rng.integers(0, 10, 64)]
    shapes = [(64, 128), (128,), (128, 10), (10,)]
    weights = [rng.standard_normal(shape).astype(np.float32) * 0.1 for shape in shapes]

    def loss(weights: list[np.ndarray]) -> Any:
        hidden = anp.maximum(anp.dot(x, weights[0]) + weights[1], 0)
        logits = anp.dot(hidden, weights[2]) + weights[3]
        top = anp.max(logits, axis=1, keepdims=True)
        logs = logits - top - anp.log(anp.sum(anp.exp(logits - top), axis=1, keepdims=True))
        return -anp.mean(anp.sum(logs * y, axis=1))

    gradient = grad(loss)

    def step() -> None:
        for weight, change in zip(weights, gradient(weights), strict=True):
            weight -= 0.01 * change

    progress("HIPS autograd")
    ours = mlp_steps(mini, nn, optim)["MLP step 64-128-10, batch 64, written by hand"]
    times = alternate({"mini": ours, "HIPS autograd": step})
    yield {
        "case": "MLP step, written by hand",
        "mini": human(times["mini"].least),
        "HIPS autograd": human(times["HIPS autograd"].least),
        "HIPS / mini": f"{times['HIPS autograd'].least / times['mini'].least:.1f}",
    }


__all__ = ["hips_autograd", "long_graphs", "networks", "ratios", "training_memory"]
