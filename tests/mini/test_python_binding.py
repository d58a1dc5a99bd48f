"""Between Python and the operators: keywords, numbers, NumPy beside tensors, devices by name. The oracle is torch."""

import functools
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from glassbox import mini
from glassbox.mini import sim

ANSWERS = (TypeError, RuntimeError, ValueError)


def outcome(call: Callable[[], Any]) -> Any:
    """Kind, dtype and elements of what a call gives, or the type of what it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return described(call())
    except ANSWERS as problem:
        return type(problem)


def values(tensor: Any) -> Any:
    return np.array(tensor.detach().tolist())


def described(found: Any) -> Any:
    if isinstance(found, tuple):
        return [described(each) for each in found]
    if isinstance(found, mini.Tensor | torch.Tensor):
        dtype = str(found.dtype).rpartition(".")[2]
        return "tensor", dtype, tuple(found.shape), found.requires_grad, repr(np.round(values(found), 4).tolist())
    return type(found).__name__, found


# NumPy beside tensors

ARRAYS = {"two": np.array([1.0, 3.0]), "0-d": np.array(2.0), "ints": np.array([1, 2]), "bools": np.array([True, False])}
SCALARS = {"float64": np.float64(3), "float32": np.float32(1), "int64": np.int64(2)}
OPERATORS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "eq", "ne", "lt", "ge"]
TENSORS: dict[str, Callable[[Any], Any]] = {
    "floats": lambda lib: lib.tensor([1.0, 2.0]),
    "ints": lambda lib: lib.tensor([1, 2]),
    "with grad": lambda lib: lib.tensor([1.0, 2.0], requires_grad=True),
}


@pytest.mark.parametrize("tensor", TENSORS)
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_with_arrays_and_numpy_scalars(name: str, tensor: str) -> None:
    function, make = getattr(operator, name), TENSORS[tensor]
    answers: dict[Any, Any] = {}
    for kind, other in (ARRAYS | SCALARS).items():
        for lib in (mini, torch):
            answers[lib, kind] = [
                outcome(functools.partial(function, make(lib), other)),
                outcome(functools.partial(function, other, make(lib))),
            ]
        assert answers[mini, kind] == answers[torch, kind], kind


def test_in_place_operators_and_ufuncs_with_arrays() -> None:
    def steps(lib: Any) -> list[Any]:
        t = lib.tensor([1.0, 2.0])
        before = t
        t += np.ones(2)
        return [described(t), t is before, described(np.sin(before)), described(np.add(before, np.ones(2, np.float32)))]

    assert steps(mini) == steps(torch)


# What tensor() makes of lists

LISTS: dict[str, Callable[[Any], Any]] = {
    "float64": lambda lib: [np.float64(1.1)],
    "float64 and int": lambda lib: [1, np.float64(1.1)],
    "float32 and float": lambda lib: [np.float32(1), 2.5],
    "int32": lambda lib: [np.int32(2)],
    "int8 and float": lambda lib: [np.int8(1), 2.5],
    "int8 and uint8": lambda lib: [np.int8(1), np.uint8(3)],
    "bool and int8": lambda lib: [True, np.int8(3)],
    "bool": lambda lib: [np.bool_(True)],
    "arrays": lambda lib: [np.arange(2.0), np.arange(2.0)],
    "array and list": lambda lib: [np.arange(2), [1.5, 2]],
    "empty array": lambda lib: [np.zeros(0)],
    "empty lists": lambda lib: [[], []],
    "tensor": lambda lib: [lib.tensor(1.0, dtype=lib.float64)],
    "tensor and float": lambda lib: [1.5, lib.tensor(2.0, dtype=lib.float64)],
    "bfloat16 and float": lambda lib: [1.5, lib.tensor(2.0, dtype=lib.bfloat16)],
    "bfloat16 and int32": lambda lib: [lib.tensor(1.0, dtype=lib.bfloat16), lib.tensor(1, dtype=lib.int32)],
    "int and int16": lambda lib: [1, lib.tensor(2, dtype=lib.int16)],
    "tensors of one": lambda lib: [lib.tensor([1.0]), lib.tensor([2.0])],
    "tensors of two": lambda lib: [lib.tensor([1.0, 3.0]), lib.tensor([2.0, 3.0])],
    "python": lambda lib: [[1, 2.0], [True, 4]],
}


@pytest.mark.parametrize("name", LISTS)
def test_the_dtype_of_a_list(name: str) -> None:
    assert outcome(lambda: mini.tensor(LISTS[name](mini))) == outcome(lambda: torch.tensor(LISTS[name](torch)))


# Keywords and numbers in functions

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda lib, t: lib.sum(input=t),
    "sum dim": lambda lib, t: lib.sum(input=t, dim=0),
    "softmax": lambda lib, t: lib.softmax(input=t, dim=0),
    "matmul": lambda lib, t: lib.matmul(input=t, other=t),
    "mm": lambda lib, t: lib.mm(input=t[None], mat2=t[:, None]),
    "mul": lambda lib, t: lib.mul(input=t, other=2),
    "clamp": lambda lib, t: lib.clamp(input=t, min=1.5),
    "zeros_like": lambda lib, t: lib.zeros_like(input=t),
    "relu": lambda lib, t: lib.relu(input=t),
    "permute": lambda lib, t: lib.permute(input=t[None], dims=(1, 0)),
    "reshape": lambda lib, t: lib.reshape(input=t, shape=(2, 1)),
    "max": lambda lib, t: lib.max(input=t, dim=0)[1],
    "exp out": lambda lib, t: lib.exp(input=t, out=lib.empty(2)),
    "where": lambda lib, t: lib.where(condition=t > 1, input=t, other=0.0),
    "where of one": lambda lib, t: lib.where(t > 1),
    "where of one 0-d": lambda lib, t: lib.where(lib.tensor(True)),
    "where by name": lambda lib, t: lib.where(condition=t[None] > 1),
    "where of two": lambda lib, t: lib.where(t > 1, t),
    "number mul": lambda lib, t: lib.mul(2, t),
    "number add": lambda lib, t: lib.add(2, t, alpha=3),
    "number sub": lambda lib, t: lib.sub(2, t),
    "number div": lambda lib, t: lib.div(2, t),
    "number div floor": lambda lib, t: lib.div(3, t, rounding_mode="floor"),
    "number true_divide": lambda lib, t: lib.true_divide(2, t),
    "number floor_divide": lambda lib, t: lib.floor_divide(3, t),
    "number multiply": lambda lib, t: lib.multiply(2, t),
    "number subtract": lambda lib, t: lib.subtract(2.5, t),
    "numbers alone": lambda lib, t: lib.mul(2, 3),
    "number relu": lambda lib, t: lib.relu(2),
    "number maximum": lambda lib, t: lib.maximum(2, t),
    "nothing": lambda lib, t: lib.relu(),
    "unknown": lambda lib, t: lib.mm(t, foo=3),
    "twice": lambda lib, t: lib.relu(t, input=t),
    "method with input": lambda lib, t: t.add(input=t),
}


@pytest.mark.parametrize("name", CALLS)
def test_functions_take_arguments_as_torch_does(name: str) -> None:
    call = CALLS[name]
    ours = outcome(lambda: call(mini, mini.tensor([1.0, 2.0])))
    assert ours == outcome(lambda: call(torch, torch.tensor([1.0, 2.0])))


@pytest.mark.parametrize("name", ["number relu", "number maximum", "nothing", "unknown", "twice"])
def test_errors_are_in_the_words_of_the_function(name: str) -> None:
    with pytest.raises(TypeError) as found:
        CALLS[name](mini, mini.tensor([1.0, 2.0]))
    text = str(found.value)
    assert text.startswith(("relu()", "maximum()", "mm()")) and "stub" not in text and "self" not in text


# Devices


def test_a_device_by_number() -> None:
    a, b = mini.ones(2, device="sim:0"), mini.ones(2, device="sim")
    assert (a + b).tolist() == [2.0, 2.0] and a.device == b.device
    assert mini.tensor([1.0], device="sim:0").device == mini.ones(1).to("sim:0").device == b.device
    assert mini.nn.Linear(2, 1, device="sim:0")(b).device == b.device
    assert str(mini.zeros(2, device="cpu:0").device) == str(torch.zeros(2, device="cpu:0").device)
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        mini.zeros(2, device="sim:7")
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        b.to("sim:7")
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        mini.tensor([1], device="sim:1")


def test_more_than_the_device_holds() -> None:
    with pytest.raises(sim.OutOfMemoryError, match="sim out of memory"):
        mini.zeros(2**40, device="sim")
    assert mini.zeros(2, device="sim").tolist() == [0.0, 0.0]


def test_record_stream_is_a_method() -> None:
    side, x = sim.Stream(), mini.ones(2, device="sim")
    assert x.record_stream(side) is None
    with pytest.raises(RuntimeError, match="on sim"):
        mini.ones(2).record_stream(side)
    with pytest.raises(TypeError, match=r"sim\.Stream"):
        x.record_stream(3)
