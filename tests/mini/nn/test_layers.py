"""Every layer: PyTorch's signature, repr and state; from the same seed the same numbers, forward and backward."""

import inspect
import pickle
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch

from glassbox import mini
from glassbox.mini import nn

from .twins import LIBRARIES, Programs, agree, close, of, same_grads, same_state

RNG = np.random.default_rng(7)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


PICTURES, SIGNALS, ROWS = floats(2, 4, 6, 7), floats(2, 4, 9), floats(5, 4)
CLASSES = RNG.integers(0, 4, 5)

# How a layer is made, and what it is given.
LAYERS: dict[str, tuple[Callable[[Any], Any], tuple[np.ndarray, ...]]] = {
    "Linear": (lambda n: n.Linear(4, 3), (ROWS,)),
    "Linear without bias": (lambda n: n.Linear(4, 3, bias=False), (ROWS,)),
    "Linear of a batch of rows": (lambda n: n.Linear(9, 3), (SIGNALS,)),
    "Linear of one row": (lambda n: n.Linear(4, 3), (ROWS[0],)),
    "Identity": (lambda n: n.Identity(4, any=1), (ROWS,)),
    "Conv1d": (lambda n: n.Conv1d(4, 6, 3, padding=1, stride=2), (SIGNALS,)),
    "Conv1d, same": (lambda n: n.Conv1d(4, 6, 4, padding="same", dilation=3), (SIGNALS,)),
    "Conv2d": (lambda n: n.Conv2d(4, 6, 3), (PICTURES,)),
    "Conv2d, everything": (
        lambda n: n.Conv2d(4, 6, (3, 2), (2, 1), (1, 0), (1, 2), 2, False),
        (PICTURES,),
    ),
    "Conv2d of one picture": (lambda n: n.Conv2d(4, 6, 3, padding=2), (PICTURES[0],)),
    "Conv2d, same": (lambda n: n.Conv2d(4, 2, (2, 3), padding="same"), (PICTURES,)),
    "Conv2d, valid": (lambda n: n.Conv2d(4, 2, 3, padding="valid"), (PICTURES,)),
    "BatchNorm1d": (lambda n: n.BatchNorm1d(4), (ROWS,)),
    "BatchNorm1d of signals": (lambda n: n.BatchNorm1d(4, momentum=0.3), (SIGNALS,)),
    "BatchNorm2d": (lambda n: n.BatchNorm2d(4), (PICTURES,)),
    "BatchNorm2d, plain mean": (lambda n: n.BatchNorm2d(4, eps=1e-3, momentum=None), (PICTURES,)),
    "BatchNorm2d, no weights": (lambda n: n.BatchNorm2d(4, affine=False), (PICTURES,)),
    "BatchNorm2d, no bias": (lambda n: n.BatchNorm2d(4, bias=False), (PICTURES,)),
    "BatchNorm2d, no statistics": (lambda n: n.BatchNorm2d(4, track_running_stats=False), (PICTURES,)),
    "LayerNorm": (lambda n: n.LayerNorm(7), (PICTURES,)),
    "LayerNorm over two": (lambda n: n.LayerNorm((6, 7), eps=1e-3, bias=False), (PICTURES,)),
    "LayerNorm, no weights": (lambda n: n.LayerNorm([7], elementwise_affine=False), (PICTURES,)),
    "MaxPool2d": (lambda n: n.MaxPool2d(3, 2, 1), (PICTURES,)),
    "MaxPool2d, everything": (
        lambda n: n.MaxPool2d((2, 3), (2, 1), (1, 0), (1, 2), return_indices=True, ceil_mode=True),
        (PICTURES,),
    ),
    "AvgPool2d": (lambda n: n.AvgPool2d(2), (PICTURES,)),
    "AvgPool2d, everything": (lambda n: n.AvgPool2d(3, 2, 1, True, False), (PICTURES,)),
    "AvgPool2d, divisor": (lambda n: n.AvgPool2d(3, 2, divisor_override=5), (PICTURES,)),
    "AdaptiveAvgPool2d(1)": (lambda n: n.AdaptiveAvgPool2d(1), (PICTURES,)),
    "AdaptiveAvgPool2d((4, None))": (lambda n: n.AdaptiveAvgPool2d((4, None)), (PICTURES,)),
    "Embedding": (lambda n: n.Embedding(4, 3), (CLASSES,)),
    "Embedding, padding": (lambda n: n.Embedding(4, 3, padding_idx=-2), (CLASSES,)),
    "Embedding, by frequency": (lambda n: n.Embedding(4, 3, scale_grad_by_freq=True), (CLASSES,)),
    "Embedding, max_norm": (lambda n: n.Embedding(4, 3, max_norm=0.5, norm_type=1.0), (CLASSES,)),
    "Flatten": (lambda n: n.Flatten(), (PICTURES,)),
    "Flatten, some": (lambda n: n.Flatten(0, 2), (PICTURES,)),
    "ReLU": (lambda n: n.ReLU(), (ROWS,)),
    "LeakyReLU": (lambda n: n.LeakyReLU(0.2), (ROWS,)),
    "GELU": (lambda n: n.GELU(), (ROWS,)),
    "GELU, tanh": (lambda n: n.GELU("tanh"), (ROWS,)),
    "SiLU": (lambda n: n.SiLU(), (ROWS,)),
    "Softplus": (lambda n: n.Softplus(2.0, 1.0), (ROWS,)),
    "Sigmoid": (lambda n: n.Sigmoid(), (ROWS,)),
    "Tanh": (lambda n: n.Tanh(), (ROWS,)),
    "Softmax": (lambda n: n.Softmax(dim=1), (ROWS,)),
    "LogSoftmax": (lambda n: n.LogSoftmax(dim=0), (ROWS,)),
    "Dropout": (lambda n: n.Dropout(), (ROWS,)),
    "Dropout(0.2)": (lambda n: n.Dropout(0.2), (PICTURES,)),
    "Dropout(1)": (lambda n: n.Dropout(1), (ROWS,)),
    "Dropout(0)": (lambda n: n.Dropout(0), (ROWS,)),
    "CrossEntropyLoss": (lambda n: n.CrossEntropyLoss(), (ROWS, CLASSES)),
    "CrossEntropyLoss, smooth": (
        lambda n: n.CrossEntropyLoss(ignore_index=2, reduction="none", label_smoothing=0.1),
        (ROWS, CLASSES),
    ),
    "NLLLoss": (lambda n: n.NLLLoss(reduction="sum"), (ROWS, CLASSES)),
    "MSELoss": (lambda n: n.MSELoss(), (ROWS, ROWS[::-1].copy())),
    "MSELoss, none": (lambda n: n.MSELoss(reduction="none"), (ROWS, ROWS[::-1].copy())),
    "Sequential": (lambda n: n.Sequential(n.Linear(4, 8), n.ReLU(), n.Linear(8, 2)), (ROWS,)),
    "Sequential of pictures": (
        lambda n: n.Sequential(n.Conv2d(4, 3, 3), n.BatchNorm2d(3), n.ReLU(inplace=True), n.Flatten()),
        (PICTURES,),
    ),
}


def run(lib: Any, layer: Any, inputs: tuple[np.ndarray, ...]) -> tuple[Any, Any]:
    """The layer's outputs with gradients played back, and its first input."""
    tensors = [of(lib, each) for each in inputs]
    if tensors[0].is_floating_point():
        tensors[0].requires_grad_()
    lib.manual_seed(3)
    result = layer(*tensors)
    outputs = result if isinstance(result, tuple) else (result,)
    if outputs[0].requires_grad:
        weights = np.random.default_rng(1).standard_normal(tuple(outputs[0].shape)).astype(np.float32)
        (outputs[0] * of(lib, weights)).sum().backward()
    return outputs, tensors[0]


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("name", LAYERS)
def test_from_the_same_seed_a_layer_is_the_same_and_does_the_same(name: str) -> None:
    make, inputs = LAYERS[name]
    mini.manual_seed(5)
    torch.manual_seed(5)
    ours, theirs = make(nn), make(torch.nn)
    assert repr(ours) == repr(theirs)
    state = {key: value.numpy() for key, value in ours.state_dict().items()}
    assert list(state) == list(theirs.state_dict())
    for key, value in theirs.state_dict().items():
        np.testing.assert_array_equal(state[key], value.numpy(), err_msg=key)
    for mode in (True, True, False):
        ours.train(mode)
        theirs.train(mode)
        left, x = run(mini, ours, inputs)
        right, t = run(torch, theirs, inputs)
        assert len(left) == len(right)
        for a, b in zip(left, right, strict=True):
            close(a, b)
            assert a.requires_grad == b.requires_grad
            assert tuple(a.stride()) == tuple(b.stride())
        close(x.grad, t.grad)
        same_grads(ours, theirs, atol=5e-6)
        same_state(ours, theirs)


@pytest.mark.parametrize("name", LAYERS)
def test_a_copied_and_a_pickled_layer_is_the_same_layer(name: str) -> None:
    make, inputs = LAYERS[name]
    layer = make(nn)
    for other in (deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert repr(other) == repr(layer)
        assert list(other.state_dict()) == list(layer.state_dict())
        assert all(isinstance(parameter, nn.Parameter) for parameter in other.parameters())
        for a, b in zip(layer.parameters(), other.parameters(), strict=True):
            assert a is not b
            assert a.data_ptr() != b.data_ptr()
        close(run(mini, other, inputs)[0][0], run(mini, layer, inputs)[0][0], 0, 0)


@pytest.mark.parametrize("name", sorted(set(nn.__all__) - {"functional", "init", "Module"}))
def test_a_class_takes_what_pytorchs_takes(name: str) -> None:
    ours, theirs = (list(inspect.signature(getattr(lib.nn, name)).parameters.values()) for lib in LIBRARIES)
    known = {each.name: each for each in theirs}
    for each in ours:
        assert each.name in known
        assert each.default == known[each.name].default, each.name
    positional = [each.name for each in ours if each.kind is each.POSITIONAL_OR_KEYWORD]
    expected = [each.name for each in theirs if each.kind is each.POSITIONAL_OR_KEYWORD]
    assert positional == expected[: len(positional)], "a place that means something else in PyTorch"


FUNCTIONS = sorted(
    name
    for name, value in vars(nn.functional).items()
    if inspect.isfunction(value) and value.__module__ == nn.functional.__name__ and name[0] != "_"
)


# Of these PyTorch's are built in, and max_pool2d's public face takes anything.
BUILT_IN = {"linear", "conv1d", "conv2d", "gelu", "softplus", "avg_pool2d", "max_pool2d"}


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - BUILT_IN))
def test_a_function_takes_what_pytorchs_takes(name: str) -> None:
    known = inspect.signature(getattr(torch.nn.functional, name)).parameters
    for each in inspect.signature(getattr(nn.functional, name)).parameters.values():
        assert each.name in known
        assert each.default == known[each.name].default, each.name


misuse = Programs()


@misuse
def wrong_width(lib: Any) -> Any:
    return lib.nn.Linear(3, 2)(lib.ones(4, 4))


@misuse
def wrong_dtype(lib: Any) -> Any:
    return lib.nn.Linear(3, 2)(lib.ones(4, 3, dtype=lib.float64))


@misuse
def no_such_device(lib: Any) -> Any:
    return lib.nn.Linear(3, 2, device="nowhere")


@misuse
def negative_size(lib: Any) -> Any:
    return lib.nn.Linear(-1, 2)


@misuse
def no_number(lib: Any) -> Any:
    return lib.nn.Linear("a", 2)


@misuse
def too_many_arguments(lib: Any) -> Any:
    return lib.nn.Linear(2, 2)(lib.ones(2), lib.ones(2))


@misuse
def in_channels_and_groups(lib: Any) -> Any:
    return lib.nn.Conv2d(3, 4, 3, groups=2)


@misuse
def out_channels_and_groups(lib: Any) -> Any:
    return lib.nn.Conv2d(4, 3, 3, groups=2)


@misuse
def no_groups(lib: Any) -> Any:
    return lib.nn.Conv2d(4, 4, 3, groups=0)


@misuse
def unknown_padding(lib: Any) -> Any:
    return lib.nn.Conv2d(4, 4, 3, padding="some")


@misuse
def same_with_stride(lib: Any) -> Any:
    return lib.nn.Conv2d(4, 4, 3, padding="same", stride=2)


@misuse
def unknown_padding_mode(lib: Any) -> Any:
    return lib.nn.Conv2d(4, 4, 3, padding_mode="some")


@misuse
def two_dimensional_picture(lib: Any) -> Any:
    return lib.nn.Conv2d(4, 4, 3)(lib.ones(4, 4))


@misuse
def kernel_larger_than_picture(lib: Any) -> Any:
    return lib.nn.Conv2d(4, 4, 9)(lib.ones(1, 4, 4, 4))


@misuse
def other_channels(lib: Any) -> Any:
    return lib.nn.Conv2d(4, 4, 3)(lib.ones(1, 3, 5, 5))


@misuse
def batch_norm_2d_of_rows(lib: Any) -> Any:
    return lib.nn.BatchNorm2d(3)(lib.ones(2, 3))


@misuse
def batch_norm_1d_of_pictures(lib: Any) -> Any:
    return lib.nn.BatchNorm1d(3)(lib.ones(2, 3, 4, 4))


@misuse
def batch_norm_of_one_number(lib: Any) -> Any:
    return lib.nn.BatchNorm2d(3)(lib.ones(1, 3, 1, 1))


@misuse
def batch_norm_of_one_number_in_evaluation(lib: Any) -> Any:
    return lib.nn.BatchNorm2d(3).eval()(lib.ones(1, 3, 1, 1))


@misuse
def batch_norm_of_other_channels(lib: Any) -> Any:
    return lib.nn.BatchNorm2d(3)(lib.ones(2, 4, 2, 2))


@misuse
def layer_norm_of_another_shape(lib: Any) -> Any:
    return lib.nn.LayerNorm(3)(lib.ones(2, 2))


@misuse
def dropout_more_than_all(lib: Any) -> Any:
    return lib.nn.Dropout(1.5)


@misuse
def dropout_less_than_nothing(lib: Any) -> Any:
    return lib.nn.functional.dropout(lib.ones(2), -0.5)


@misuse
def dropout_in_place(lib: Any) -> Any:
    x = lib.ones(20)
    y = lib.nn.Dropout(0.5, inplace=True)(x)
    return y is x, x, x._version


@misuse
def padding_outside_the_table(lib: Any) -> Any:
    return lib.nn.Embedding(3, 2, padding_idx=5)


@misuse
def padding_outside_the_table_as_a_function(lib: Any) -> Any:
    return lib.nn.functional.embedding(lib.tensor([1]), lib.ones(3, 2), padding_idx=-4)


@misuse
def row_outside_the_table(lib: Any) -> Any:
    return lib.nn.Embedding(3, 2)(lib.tensor([7]))


@misuse
def row_by_a_float(lib: Any) -> Any:
    return lib.nn.Embedding(3, 2)(lib.tensor([1.0]))


@misuse
def pooling_of_a_row(lib: Any) -> Any:
    return lib.nn.MaxPool2d(3)(lib.ones(2))


@misuse
def adaptive_pooling_of_a_row(lib: Any) -> Any:
    return lib.nn.AdaptiveAvgPool2d(2)(lib.ones(4))


@misuse
def adaptive_pooling_of_a_row_to_two(lib: Any) -> Any:
    return lib.nn.AdaptiveAvgPool2d((2, 2))(lib.ones(4))


@misuse
def adaptive_pooling_to_nothing(lib: Any) -> Any:
    return lib.nn.AdaptiveAvgPool2d(None)(lib.ones(2, 3, 3))


@misuse
def loss_of_one_example_with_two_classes(lib: Any) -> Any:
    return lib.nn.CrossEntropyLoss()(lib.ones(3), lib.tensor([0, 1]))


@misuse
def loss_of_another_picture(lib: Any) -> Any:
    return lib.nn.CrossEntropyLoss()(lib.ones(2, 3, 2), lib.zeros(2, 3, dtype=lib.int64))


@misuse
def loss_of_a_picture(lib: Any) -> Any:
    logits = lib.arange(24.0).reshape(2, 3, 4).sin()
    return lib.nn.CrossEntropyLoss()(logits, lib.tensor([[0, 1, 2, 0], [2, 2, 1, 0]]))


@misuse
def flatten_of_a_row(lib: Any) -> Any:
    return lib.nn.Flatten()(lib.ones(2))


@misuse
def softmax_without_a_dimension(lib: Any) -> Any:
    return lib.nn.Softmax()(lib.arange(6.0).reshape(2, 3))


@misuse
def log_softmax_without_a_dimension(lib: Any) -> Any:
    return lib.nn.LogSoftmax()(lib.arange(8.0).reshape(2, 2, 2))


@misuse
def unknown_reduction(lib: Any) -> Any:
    return lib.nn.CrossEntropyLoss(reduction="some")(lib.ones(2, 3), lib.tensor([0, 1]))


@misuse
def loss_of_an_unknown_class(lib: Any) -> Any:
    return lib.nn.CrossEntropyLoss()(lib.ones(2, 3), lib.tensor([0, 3]))


@misuse
def loss_of_another_batch(lib: Any) -> Any:
    return lib.nn.CrossEntropyLoss()(lib.ones(2, 3), lib.tensor([0, 1, 2]))


@misuse
def loss_with_weights(lib: Any) -> Any:
    loss = lib.nn.CrossEntropyLoss(lib.tensor([1.0, 2.0, 3.0]))
    return loss(lib.arange(6.0).reshape(2, 3), lib.tensor([0, 2])), list(loss.state_dict()), loss


@misuse
def loss_of_probabilities(lib: Any) -> Any:
    return lib.nn.CrossEntropyLoss()(lib.arange(6.0).reshape(2, 3), lib.full((2, 3), 1 / 3))


@misuse
def mse_that_broadcasts(lib: Any) -> Any:
    a, b = lib.ones(3, 1, requires_grad=True), lib.arange(3.0).requires_grad_()
    lib.nn.MSELoss()(a, b).backward()
    return a.grad, b.grad


@misuse
def mse_that_cannot(lib: Any) -> Any:
    return lib.nn.MSELoss()(lib.ones(2), lib.ones(3))


@misuse
def padding(lib: Any) -> Any:
    x = lib.arange(6.0).reshape(2, 3)
    return lib.nn.functional.pad(x, (1, 2)), lib.nn.functional.pad(x, [0, -1, 2, 0], value=7.0)


@misuse
def in_place_activations(lib: Any) -> Any:
    made = []
    for layer in (lib.nn.ReLU(True), lib.nn.LeakyReLU(inplace=True), lib.nn.SiLU(inplace=True)):
        x = lib.arange(-2.0, 3.0)
        made += [layer(x) is x, x, layer]
    return made


@pytest.mark.parametrize("program", misuse.all, ids=misuse.names())
def test_a_program_ends_alike_in_both(program: Callable[[Any], Any]) -> None:
    agree(program)


def test_a_padding_mode_that_is_missing_says_so() -> None:
    with pytest.raises(NotImplementedError, match="zeros.*reflect"):
        nn.Conv2d(1, 1, 1, padding_mode="reflect")
    with pytest.raises(NotImplementedError, match="reflect"):
        nn.functional.pad(mini.ones(2), (1, 1), mode="reflect")


inits = Programs()
for _name, _arguments in {
    "uniform_": ((), (-2.0, 3.0)),
    "normal_": ((), (1.0, 0.5)),
    "constant_": ((0.25,),),
    "ones_": ((),),
    "zeros_": ((),),
    "eye_": ((),),
    "xavier_uniform_": ((), (2.0,)),
    "xavier_normal_": ((), (2.0,)),
    "kaiming_uniform_": ((), (0.3, "fan_out", "relu"), (0, "FAN_IN", "tanh"), (0, "some"), (0, "fan_in", "x")),
    "kaiming_normal_": ((), (0.3, "fan_out", "leaky_relu"), (0, "fan_in", "selu")),
}.items():
    for _given in _arguments:
        for _shape in ((5, 4), (3, 2, 2, 2), (4,), (0, 3)):

            def program(lib: Any, name: Any = _name, given: Any = _given, shape: Any = _shape) -> Any:
                x = lib.empty(shape, requires_grad=True)
                made = getattr(lib.nn.init, name)(x, *given)
                return made is x, x, x._version, x.grad_fn is None

            program.__name__ = f"{_name}{_given} of {_shape}"
            inits(program)


@pytest.mark.parametrize("program", inits.all, ids=inits.names())
def test_parameters_begin_alike(program: Callable[[Any], Any]) -> None:
    agree(program)


@pytest.mark.parametrize("name", ["linear", "conv1d", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu"])
def test_gains(name: str) -> None:
    assert nn.init.calculate_gain(name) == torch.nn.init.calculate_gain(name)
    assert nn.init.calculate_gain(name, 0.3) == torch.nn.init.calculate_gain(name, 0.3)


@pytest.mark.parametrize("given", [("x",), ("leaky_relu", "a"), ("leaky_relu", True)])
def test_gains_that_are_none(given: tuple[Any, ...]) -> None:
    for lib in LIBRARIES:
        with pytest.raises(ValueError):
            lib.nn.init.calculate_gain(*given)
