"""What a program that goes wrong is told: PyTorch's exception types, and messages that help."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

from glassbox import mini
from glassbox.mini import nn
from glassbox.mini.nn import functional

ERRORS = (TypeError, AttributeError, RuntimeError, ValueError)


def raised(call: Callable[[], Any]) -> Exception:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ERRORS) as found:
            call()
    return found.value


# name -> call of (the framework, its functional, a float tensor (2, 2), an index tensor)
NO_TENSOR: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "linear": lambda lib, f, x, i: f.linear(3, x),
    "linear weight": lambda lib, f, x, i: f.linear(x, None),
    "linear bias": lambda lib, f, x, i: f.linear(x, x, 3),
    "relu": lambda lib, f, x, i: f.relu(None),
    "dropout of a list": lambda lib, f, x, i: f.dropout([1.0]),
    "relu_": lambda lib, f, x, i: f.relu(3, True),
    "leaky_relu": lambda lib, f, x, i: f.leaky_relu(3),
    "gelu": lambda lib, f, x, i: f.gelu(3),
    "silu": lambda lib, f, x, i: f.silu("x"),
    "softplus": lambda lib, f, x, i: f.softplus(3),
    "batch_norm": lambda lib, f, x, i: f.batch_norm(3, x[0], x[0]),
    "layer_norm": lambda lib, f, x, i: f.layer_norm(3, (2,)),
    "max_pool2d": lambda lib, f, x, i: f.max_pool2d(3, 2),
    "avg_pool2d": lambda lib, f, x, i: f.avg_pool2d(3, 2),
    "pad": lambda lib, f, x, i: f.pad(3, (1, 1)),
    "dropout": lambda lib, f, x, i: f.dropout(3, training=False),
    "embedding": lambda lib, f, x, i: f.embedding(3, x),
    "embedding weight": lambda lib, f, x, i: f.embedding(i, 3, padding_idx=0),
    "cross_entropy": lambda lib, f, x, i: f.cross_entropy(3, i),
    "cross_entropy target": lambda lib, f, x, i: f.cross_entropy(x, 3),
    "cross_entropy weight": lambda lib, f, x, i: f.cross_entropy(x, i, 3),
    "nll_loss": lambda lib, f, x, i: f.nll_loss(3, i),
    "Linear": lambda lib, f, x, i: lib.nn.Linear(2, 2)(3),
    "Linear without weight": lambda lib, f, x, i: without_weight(lib)(x),
}
# PyTorch stumbles over a missing attribute here; both say that it is the type that is wrong.
STATED: dict[str, Callable[[], Any]] = {
    "sigmoid": lambda: functional.sigmoid(3),
    "tanh": lambda: functional.tanh(None),
    "softmax": lambda: functional.softmax(3, 0),
    "log_softmax": lambda: functional.log_softmax(3),
    "adaptive_avg_pool2d": lambda: functional.adaptive_avg_pool2d(3, (None, 2)),
    "batch_norm": lambda: functional.batch_norm(3, mini.ones(2), mini.ones(2), training=True),
    "mse_loss": lambda: functional.mse_loss(mini.ones(2), 3),
    "conv2d": lambda: functional.conv2d(3, mini.ones(1, 1, 1, 1)),
    "conv1d": lambda: functional.conv1d(mini.ones(1, 1, 1), None),
}


def without_weight(lib: Any) -> Any:
    layer = lib.nn.Linear(2, 2)
    layer.weight = None
    return layer


@pytest.mark.parametrize("name", NO_TENSOR)
def test_what_is_no_tensor_is_named_as_by_torch(name: str) -> None:
    call = NO_TENSOR[name]
    ours = raised(lambda: call(mini, functional, mini.ones(2, 2), mini.tensor([0, 1])))
    theirs = raised(lambda: call(torch, torch.nn.functional, torch.ones(2, 2), torch.tensor([0, 1])))
    assert (type(ours), str(ours)) == (type(theirs), str(theirs))


@pytest.mark.parametrize("name", STATED)
def test_what_is_no_tensor_is_a_type_error(name: str) -> None:
    problem = raised(STATED[name])
    assert type(problem) is TypeError
    assert name in str(problem) and "must be Tensor, not " in str(problem)


def test_layers_without_affine_parameters_still_work() -> None:
    x = mini.ones(2, 2)
    assert nn.LayerNorm(2, elementwise_affine=False)(x).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert functional.batch_norm(x, None, None, training=True).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert nn.Linear(2, 1, bias=False)(x).shape == (2, 1)


# Tensors of two devices. The stated truth: what PyTorch does with CUDA tensors in place of those on sim.

here, there = mini.ones(2, 2), mini.ones(2, 2).to("sim")
where_here, where_there = mini.tensor([[0, 1], [1, 0]]), mini.tensor([[0, 1], [1, 0]]).to("sim")
MIXED: dict[str, Callable[[], Any]] = {
    "mm": lambda: there.mm(here),
    "mm the other way": lambda: here.mm(there),
    "bmm": lambda: there[None].bmm(here[None]),
    "mv": lambda: there.mv(here[0]),
    "dot": lambda: there[0].dot(here[0]),
    "matmul": lambda: there @ here,
    "addmm": lambda: mini.addmm(here, there, there),
    "linear": lambda: nn.Linear(2, 2)(there),
    "conv2d": lambda: functional.conv2d(there[None, None], here[None, None]),
    "batch_norm": lambda: nn.BatchNorm1d(2)(there),
    "layer_norm": lambda: nn.LayerNorm(2)(there),
    "embedding": lambda: functional.embedding(where_here, there),
    "embedding of one": lambda: functional.embedding(mini.tensor(1), there),
    "cross_entropy": lambda: functional.cross_entropy(there, mini.tensor([0, 1])),
    "mse_loss": lambda: functional.mse_loss(there, here),
    "gather": lambda: there.gather(0, where_here),
    "scatter": lambda: there.scatter(0, where_there, here),
    "scatter_": lambda: there.clone().scatter_(0, where_here, there),
    "index_select": lambda: there.index_select(0, mini.tensor([1])),
    "index_add": lambda: there.index_add(0, mini.tensor([1]), there[:1]),
    "masked_fill": lambda: there.masked_fill(here > 0, 1),
    "masked_select": lambda: there.masked_select(here > 0),
    "index_put_": lambda: there.clone().index_put_((mini.tensor([0]),), here[:1]),
    "index_put_ into cpu": lambda: here.clone().index_put_((mini.tensor([0]),), there[:1]),
    "where": lambda: mini.where(there > 0, here, there),
    "add": lambda: there + here,
    "cat": lambda: mini.cat([there, here]),
    "equal": lambda: mini.equal(there, here),
}


@pytest.mark.parametrize("name", MIXED)
def test_tensors_of_two_devices_do_not_mix(name: str) -> None:
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        MIXED[name]()


def test_the_tensor_on_the_wrong_device_is_named() -> None:
    with pytest.raises(RuntimeError, match="got mat2 is on cpu, different from other tensors on sim"):
        there.mm(here)


def test_indices_on_sim_do_not_reach_into_a_tensor_on_the_cpu() -> None:
    with pytest.raises(RuntimeError, match="indices should be either on cpu or on the same device"):
        here[where_there]


def test_numbers_and_indices_may_lie_on_the_cpu() -> None:
    number = mini.tensor(2.0)
    assert (there * number).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert (number - there).device.type == "sim"
    assert there[mini.tensor([1])].tolist() == [[1.0, 1.0]]
    assert there[here > 0].tolist() == [1.0, 1.0, 1.0, 1.0]
    written = there.clone()
    written[mini.tensor([0])] = number
    assert written.tolist() == [[2.0, 2.0], [1.0, 1.0]]
    assert there.masked_fill(there > 0, number).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert mini.where(there > 0, there, number).device.type == "sim"
    assert here.clone().copy_(there).tolist() == there.clone().copy_(here).tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_a_gradient_lies_where_its_tensor_does() -> None:
    x = mini.ones(2, device="sim", requires_grad=True)
    with pytest.raises(RuntimeError, match="expected device sim but got cpu"):
        (x * 2).backward(mini.ones(2))
    with pytest.raises(RuntimeError, match="located on a different device"):
        x.grad = mini.ones(2)
    (x * 2).sum().backward(mini.tensor(3.0))
    assert x.grad.tolist() == [6.0, 6.0] and x.grad.device.type == "sim"
