"""ResNet-18: torchvision's weights load, outputs and gradients agree, and so does the list of operators that ran."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from torch.utils._python_dispatch import TorchDispatchMode

from glassbox import mini
from glassbox.mini import models

from .twins import array, close, of, same_grads, same_state

RNG = np.random.default_rng(0)
PICTURES = RNG.random((4, 3, 64, 64))
CLASSES = np.array([1, 2, 3, 4])

# What the course tells of the real one: 1 x 3 x 224 x 224 in evaluation without gradients.
PORTRAIT = {
    "aten.convolution.default": 20,
    "aten.native_batch_norm.default": 20,
    "aten.empty.memory_format": 20,
    "aten.relu_.default": 17,
    "aten.add_.Tensor": 8,
    "aten.max_pool2d_with_indices.default": 1,
    "aten.mean.dim": 1,
    "aten.view.default": 1,
    "aten.t.default": 1,
    "aten.addmm.default": 1,
}
# Without Autograd's keys nothing takes composites apart before a mode sees them.
WHOLE = {
    "aten.conv2d.default": 20,
    "aten.batch_norm.default": 20,
    "aten.relu_.default": 17,
    "aten.add_.Tensor": 8,
    "aten.max_pool2d.default": 1,
    "aten.adaptive_avg_pool2d.default": 1,
    "aten.flatten.using_ints": 1,
    "aten.linear.default": 1,
}
PORTRAITS = {
    "no_grad": PORTRAIT,
    # A saved output is detached from the node that saves it: relu_ saves its result.
    "enable_grad": PORTRAIT | {"aten.detach.default": 17},
    "inference_mode": WHOLE,
}


@pytest.fixture(scope="module")
def theirs() -> Any:
    """PyTorch's, with random weights."""
    torch.manual_seed(0)
    return torchvision.models.resnet18(num_classes=10)


def twins(theirs: Any, dtype: str) -> tuple[Any, Any]:
    ours, copy = models.resnet18(10), torchvision.models.resnet18(num_classes=10)
    ours.load_state_dict(theirs.state_dict())
    copy.load_state_dict(theirs.state_dict())
    return ours.to(getattr(mini, dtype)), copy.to(getattr(torch, dtype))


@contextmanager
def log(base: Any) -> Iterator[list[str]]:
    """The names of the calls that reach a dispatch mode of either library."""
    seen: list[str] = []

    class Log(base):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if not str(func).startswith("profiler."):  # PyTorch's optimizers tell its profiler
                seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Log():
        yield seen


def test_it_is_built_and_begins_as_torchvisions() -> None:
    mini.manual_seed(3)
    torch.manual_seed(3)
    ours, theirs = models.resnet18(), torchvision.models.resnet18()
    assert repr(ours) == repr(theirs)
    same_state(ours, theirs, 1e-6, 1e-7)
    assert [name for name, _ in ours.named_modules()] == [name for name, _ in theirs.named_modules()]
    assert ours.state_dict()._metadata == theirs.state_dict()._metadata


def test_evaluation_at_full_size_agrees() -> None:
    torch.manual_seed(1)
    theirs = torchvision.models.resnet18().eval()
    ours = models.resnet18().eval()
    ours.load_state_dict(theirs.state_dict())
    picture = RNG.standard_normal((1, 3, 224, 224)).astype(np.float32)
    with mini.no_grad(), torch.no_grad():
        left, right = ours(mini.from_numpy(picture)), theirs(torch.from_numpy(picture))
    assert float(np.abs(array(left) - array(right)).max()) < 1e-5
    assert int(left.argmax()) == int(right.argmax())


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-10), ("float32", 1e-4)])
def test_a_training_step_agrees(theirs: Any, dtype: str, tolerance: float) -> None:
    """Loss, gradients, running statistics, stepped weights, and the loss after the step.

    float32's rounding errors grow through 18 layers to about 1e-5 of a gradient's norm, in both.
    """
    ours, copy = twins(theirs, dtype)
    losses = []
    for lib, model in ((mini, ours), (torch, copy)):
        x, y = of(lib, PICTURES, dtype), of(lib, CLASSES)
        optimizer = lib.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
        losses.append([])
        for _ in range(2):
            loss = lib.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=tolerance)
    assert losses[0][1] < losses[0][0]
    for (name, a), b in zip(ours.named_parameters(), copy.parameters(), strict=True):
        scale = float(np.abs(array(b.grad)).max())
        close(a.grad, b.grad, tolerance, tolerance * scale, name)
        assert tuple(a.grad.stride()) == tuple(b.grad.stride())
    same_state(ours, copy, tolerance, tolerance)


def test_gradients_of_evaluation_agree(theirs: Any) -> None:
    ours, copy = twins(theirs, "float64")
    for lib, model in ((mini, ours), (torch, copy)):
        model.eval()
        x = of(lib, PICTURES[:1], grad=True)
        model(x).square().sum().backward()
        model.input_grad = x.grad
    close(ours.input_grad, copy.input_grad, 1e-9, 1e-12)
    same_grads(ours, copy, 1e-9, 1e-9)


@pytest.mark.parametrize("grad", PORTRAITS)
def test_the_portrait_is_the_real_ones(theirs: Any, grad: str) -> None:
    """The same operators in the same order as on PyTorch right now, as many as the course tells."""
    ours, copy = (model.eval() for model in twins(theirs, "float32"))
    x, t = of(mini, PICTURES[:1], "float32"), of(torch, PICTURES[:1], "float32")
    with getattr(mini, grad)(), log(mini.TorchDispatchMode) as left:
        ours(x)
    with getattr(torch, grad)(), log(TorchDispatchMode) as right:
        copy(t)
    assert left == right
    assert Counter(left) == PORTRAITS[grad]


@pytest.mark.parametrize("grad", PORTRAITS)
def test_the_recorder_sees_the_same(theirs: Any, grad: str) -> None:
    ours, _ = twins(theirs, "float32")
    ours.eval()
    x = of(mini, PICTURES[:1], "float32")
    with getattr(mini, grad)(), mini.record() as recorder:
        ours(x)
    assert Counter(call.name for call in recorder.ops.calls) == PORTRAITS[grad]


def test_the_portrait_of_a_training_step_is_the_real_ones(theirs: Any) -> None:
    """Forward, backward, step and zero_grad, twice: gradients begin in the first and add up in the second."""
    logs = []
    ours, copy = twins(theirs, "float32")
    for lib, model, base in ((mini, ours, mini.TorchDispatchMode), (torch, copy, TorchDispatchMode)):
        x, y = of(lib, PICTURES, "float32"), of(lib, CLASSES)
        optimizer = lib.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        parts: list[list[str]] = []
        for _ in range(2):
            with log(base) as forward:
                loss = lib.nn.functional.cross_entropy(model(x), y)
            with log(base) as backward:
                loss.backward()
            with log(base) as step:
                optimizer.step()
            with log(base) as zero:
                optimizer.zero_grad(set_to_none=False)
            parts += [forward, backward, step, zero]
        logs.append(parts)
    for left, right in zip(*logs, strict=True):
        # The mean's gradient is divided by a Scalar there and by the same number as a tensor here.
        assert left == [name.replace("div.Scalar", "div.Tensor") for name in right]
    assert [len(part) for part in logs[0]] == [130, 160, 186, 62, 130, 160, 186, 62]


def test_a_forward_hook_sees_one_layer(theirs: Any) -> None:
    seen: list[Any] = []
    for model, lib in zip(twins(theirs, "float32"), (mini, torch), strict=True):
        model.eval()
        handle = model.layer2[0].conv1.register_forward_hook(
            lambda module, args, output: seen.append((tuple(args[0].shape), tuple(output.shape)))
        )
        model(of(lib, PICTURES[:1], "float32"))
        handle.remove()
        model(of(lib, PICTURES[:1], "float32"))
    assert seen == [((1, 64, 16, 16), (1, 128, 8, 8))] * 2


def test_it_runs_on_the_simulated_device_with_the_same_numbers(theirs: Any) -> None:
    ours, _ = twins(theirs, "float32")
    x, y = of(mini, PICTURES, "float32"), of(mini, CLASSES)
    results = []
    for device in ("cpu", "sim"):
        model = models.resnet18(10)
        model.load_state_dict(ours.state_dict())
        model.to(device)
        loss = mini.nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        loss.backward()
        assert loss.device.type == device
        results.append([loss.item(), *(p.grad.cpu().numpy() for p in model.parameters())])
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.fixture(params=["conv1.weight", "layer3.0.bn2.running_var", "fc.bias"])
def broken(request: Any) -> str:
    return request.param


def test_a_wrong_weight_would_be_noticed(theirs: Any, broken: str) -> None:
    """The comparison can fail: one changed entry moves the output by more than is allowed above."""
    ours, copy = (model.eval() for model in twins(theirs, "float32"))
    ours.state_dict()[broken][:1] += 0.05
    x, t = of(mini, PICTURES[:1], "float32"), of(torch, PICTURES[:1], "float32")
    with mini.no_grad(), torch.no_grad():
        assert float(np.abs(array(ours(x)) - array(copy(t))).max()) > 1e-5


def test_an_mlp_is_a_sequential_of_linears() -> None:
    mini.manual_seed(0)
    ours = models.MLP(4, 8, 3)
    torch.manual_seed(0)
    layers: list[Callable[..., Any]] = [torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)]
    theirs = torch.nn.Sequential(*layers)
    assert repr(ours.layers) == repr(theirs)
    same_state(ours.layers, theirs, 0, 0)
    x = RNG.random((5, 4)).astype(np.float32)
    close(ours(mini.from_numpy(x)), theirs(torch.from_numpy(x)))
    with pytest.raises(ValueError, match="at least two sizes"):
        models.MLP(4)
