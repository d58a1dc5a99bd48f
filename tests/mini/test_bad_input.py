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
