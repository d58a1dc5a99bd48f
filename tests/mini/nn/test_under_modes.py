"""Whole networks under autocast, vmap and other people's threads: as PyTorch runs them."""

import threading
import warnings
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from torch.utils._python_dispatch import TorchDispatchMode

from glassbox import mini
from glassbox.mini import models

from .twins import LIBRARIES, array, close, of, same_grads

RNG = np.random.default_rng(5)
ROWS, CLASSES = RNG.standard_normal((4, 8)).astype(np.float32), np.array([0, 1, 2, 0])
PICTURES = RNG.random((3, 3, 64, 64)).astype(np.float32)


def mlp(lib: Any) -> Any:
    lib.manual_seed(0)
    return lib.nn.Sequential(lib.nn.Linear(8, 16), lib.nn.ReLU(), lib.nn.Linear(16, 3))


def resnets() -> tuple[Any, Any]:
    torch.manual_seed(0)
    theirs = torchvision.models.resnet18(num_classes=10).eval()
    ours = models.resnet18(10).eval()
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def log_of(lib: Any, run: Any) -> list[str]:
    seen: list[str] = []
    base = TorchDispatchMode if lib is torch else mini.TorchDispatchMode

    class Log(base):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            dtype = str(getattr(result, "dtype", "")).rsplit(".", 1)[-1]
            seen.append(f"{func} {dtype}")
            return result

    with Log():
        run()
    return seen


def test_a_training_step_under_autocast() -> None:
    """Losses, gradients in float32, and the same casts at the same places."""
    nets, results, logs = [], [], []
    for lib in LIBRARIES:
        net, x, y = mlp(lib), of(lib, ROWS), of(lib, CLASSES)
        kept: dict[str, Any] = {}

        def step(lib: Any = lib, net: Any = net, x: Any = x, y: Any = y, kept: Any = kept) -> None:
            with lib.autocast("cpu", dtype=lib.bfloat16):
                kept["out"] = net(x)
                kept["loss"] = lib.nn.functional.cross_entropy(kept["out"], y)
            kept["loss"].backward()

        logs.append(log_of(lib, step))
        nets.append(net)
        results.append(kept)
    close(results[0]["out"], results[1]["out"], 1e-2, 1e-2)
    close(results[0]["loss"], results[1]["loss"], 1e-2, 1e-2)
    same_grads(*nets, 2e-2, 2e-3)
    assert logs[0] == logs[1]
    # The input, two weights and two biases; and the gradient that comes back from the loss, which is float32.
    assert sum("_to_copy" in line and "bfloat16" in line for line in logs[0]) == 6


def test_resnet_under_autocast() -> None:
    """Convolutions and the last layer in bfloat16; operator by operator as in PyTorch."""
    outputs, logs = [], []
    for lib, net in zip(LIBRARIES, resnets(), strict=True):
        x = of(lib, PICTURES)

        def run(lib: Any = lib, net: Any = net, x: Any = x) -> None:
            with lib.no_grad(), lib.autocast("cpu"):
                outputs.append(net(x))

        logs.append(log_of(lib, run))
    assert logs[0] == logs[1]
    assert sum("convolution" in line and "bfloat16" in line for line in logs[0]) == 20
    exact = resnets()[1](of(torch, PICTURES))
    error = [float(np.abs(array(each) - array(exact)).max()) for each in outputs]
    assert str(outputs[0].dtype).endswith("bfloat16")
    assert error[0] < max(2 * error[1], 1e-2)


def test_a_network_over_a_batch_by_vmap() -> None:
    for lib in LIBRARIES:
        net, x = mlp(lib), of(lib, ROWS)
        close(lib.vmap(net)(x), net(x), 1e-5, 1e-6)


def test_an_ensemble_by_vmap() -> None:
    """Many weights for one input: forward and the gradients of all weights."""
    weights = RNG.standard_normal((5, 3, 8)).astype(np.float32)
    found = []
    for lib in LIBRARIES:
        w, x = of(lib, weights, grad=True), of(lib, ROWS)
        outputs = lib.vmap(lambda each, lib=lib, x=x: lib.nn.functional.linear(x, each).relu().sum())(w)
        (outputs * outputs).sum().backward()
        found.append((outputs, w.grad))
    close(found[0][0], found[1][0])
    close(found[0][1], found[1][1], 1e-4, 1e-3)


def test_a_convolutional_network_by_vmap() -> None:
    pictures = RNG.random((4, 2, 8, 8)).astype(np.float32)
    outputs = []
    for lib in LIBRARIES:
        lib.manual_seed(1)
        n = lib.nn
        net = n.Sequential(n.Conv2d(2, 3, 3), n.ReLU(), n.MaxPool2d(2), n.Flatten(0), n.Linear(27, 2))
        x = of(lib, pictures)
        outputs.append(lib.vmap(net)(x))
        close(outputs[-1], lib.stack([net(each) for each in x]), 1e-5, 1e-6)
    close(*outputs)


def test_resnet_by_vmap() -> None:
    """Pictures one by one through a network that takes batches of one."""
    outputs = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # batch_norm has no batching rule here
        for lib, net in zip(LIBRARIES, resnets(), strict=True):
            x = of(lib, PICTURES[:2]).unsqueeze(1)
            with lib.no_grad():
                outputs.append(lib.vmap(net)(x))
    close(outputs[0], outputs[1], 1e-4, 1e-4)


@pytest.mark.parametrize("training", [True, False])
def test_statistics_cannot_be_kept_for_examples_one_by_one(training: bool) -> None:
    for lib in LIBRARIES:
        net = lib.nn.BatchNorm2d(3).train(training)
        x = of(lib, PICTURES[:2]).unsqueeze(1)
        if training:
            with pytest.raises(RuntimeError, match="running_mean"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                lib.vmap(net)(x)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                close(lib.vmap(net)(x), net(x.squeeze(1)).unsqueeze(1), 1e-5, 1e-6)


def test_two_threads_train_under_different_modes() -> None:
    """One in bfloat16 by autocast, one plainly: each as if it were alone."""

    def learn(cast: bool, steps: int = 20) -> list[float]:
        net = mlp_of[cast]
        optimizer = mini.optim.SGD(net.parameters(), lr=0.1)
        x, y = of(mini, ROWS), of(mini, CLASSES)
        losses = []
        for _ in range(steps):
            with mini.autocast("cpu", enabled=cast):
                loss = mini.nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    mlp_of = {cast: mlp(mini) for cast in (False, True)}
    alone = {cast: learn(cast) for cast in (False, True)}
    mlp_of = {cast: mlp(mini) for cast in (False, True)}
    together: dict[bool, list[float]] = {}
    threads = [
        threading.Thread(target=lambda cast=cast: together.update({cast: learn(cast)})) for cast in (False, True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone
    assert alone[True] != alone[False]
    assert alone[True][-1] < alone[True][0]
