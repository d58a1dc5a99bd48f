"""The same operator or program in mini and in PyTorch, with the same numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from glassbox import mini
from glassbox.mini.aten.core.dispatcher import dispatcher

DTYPES = {
    "float64": (mini.float64, torch.float64),
    "float32": (mini.float32, torch.float32),
    "bfloat16": (mini.bfloat16, torch.bfloat16),
    "int64": (mini.int64, torch.int64),
    "bool": (mini.bool, torch.bool),
}


@dataclass(frozen=True)
class T:
    """A tensor argument to be: shape, how its values are made, its dtype, whether it requires grad."""

    shape: tuple[int, ...]
    low: float = -2.0
    high: float = 2.0
    dtype: str = "float64"
    values: Any = None
    grad: bool = True
    transposed: bool = False

    def array(self, rng: np.random.Generator) -> np.ndarray:
        if self.values is not None:
            return np.asarray(self.values)
        if self.dtype == "int64":
            return rng.integers(int(self.low), int(self.high), self.shape)
        if self.dtype == "bool":
            return rng.random(self.shape) < 0.5
        return rng.uniform(self.low, self.high, self.shape)


def to_mini(values: np.ndarray, dtype: str, transposed: bool = False) -> Any:
    made = mini.tensor(values.tolist(), dtype=DTYPES[dtype][0]).reshape(values.shape)
    return made.t().clone(memory_format="contiguous_format").t() if transposed else made


def to_torch(values: np.ndarray, dtype: str, transposed: bool = False) -> torch.Tensor:
    made = torch.tensor(values.tolist(), dtype=DTYPES[dtype][1]).reshape(values.shape)
    return made.t().clone(memory_format=torch.contiguous_format).t() if transposed else made


def is_tensor(value: Any) -> bool:
    return isinstance(value, mini.Tensor | torch.Tensor)


def array(tensor: Any) -> np.ndarray:
    """The values of a tensor of either, as float64 where they are floating."""
    if isinstance(tensor, torch.Tensor):
        tensor = tensor.detach()
        return tensor.double().numpy(force=True) if tensor.is_floating_point() else tensor.numpy(force=True)
    values = tensor.detach().values()
    return values.astype(np.float64) if values.dtype.kind == "f" else values


def same(left: Any, right: Any, rtol: float = 1e-9, atol: float = 1e-11, where: str = "") -> None:
    """Both None, or equal in shape, dtype and values."""
    assert (left is None) == (right is None), f"{where}: {left} and {right}"
    if left is None:
        return
    assert tuple(left.shape) == tuple(right.shape), f"{where}: shapes {tuple(left.shape)} and {tuple(right.shape)}"
    assert str(left.dtype).split(".")[-1] == str(right.dtype).split(".")[-1], where
    np.testing.assert_allclose(array(left), array(right), rtol=rtol, atol=atol, err_msg=where)


def build(spec: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """An argument for mini and one for PyTorch."""
    if isinstance(spec, T):
        values = spec.array(rng)
        pair = (to_mini(values, spec.dtype, spec.transposed), to_torch(values, spec.dtype, spec.transposed))
        if spec.grad and spec.dtype not in ("int64", "bool"):
            pair = (pair[0].requires_grad_(), pair[1].requires_grad_())
        return pair
    if isinstance(spec, list) and any(isinstance(each, T) for each in spec):
        pairs = [build(each, rng) for each in spec]
        return [left for left, _ in pairs], [right for _, right in pairs]
    if isinstance(spec, str) and spec in DTYPES:
        return DTYPES[spec]
    return spec, spec


def flat(values: Any) -> list[Any]:
    """The tensors among arguments or results."""
    if is_tensor(values):
        return [values]
    if isinstance(values, list | tuple):
        return [each for value in values for each in flat(value)]
    return []


def mini_op(key: str) -> Callable[..., Any]:
    """An operator of mini by base.overload, called as PyTorch's op overloads are."""
    op = dispatcher.find_schema_or_throw(f"aten::{key}")

    def call(*args: Any) -> Any:
        from glassbox.mini.python_arg_parser import make_binder

        return op.call(*make_binder(op.schema)(args, {}))

    return call


def torch_op(key: str) -> Callable[..., Any]:
    base, _, overload = key.partition(".")
    return getattr(getattr(torch.ops.aten, base), overload or "default")


def outcome(program: Callable[[], Any]) -> tuple[str, Any]:
    """("value", result) or (name of the exception's type, text)."""
    try:
        return "value", program()
    except Exception as problem:  # noqa: BLE001 - whatever it raises is what is compared
        return type(problem).__name__, str(problem)


# Programs


def facts(value: Any) -> Any:
    """What can be compared of a program's result: tensors by their values, nodes by their names, the rest as it is."""
    if is_tensor(value):
        numbers = array(value).astype(np.float64).reshape(-1).tolist()
        dtype = str(value.dtype).rsplit(".", 1)[-1]
        return "tensor", dtype, tuple(value.shape), tuple(value.stride()), tuple(numbers)
    if hasattr(value, "next_functions"):
        return "node", name_of(value)
    if isinstance(value, dict):
        return {key: facts(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return tuple(facts(each) for each in value)
    return value


def name_of(node: Any) -> str | None:
    """A node's name; PyTorch gives those that are written by hand with their C++ namespace."""
    return None if node is None else node.name().removeprefix("torch::autograd::")


def alike(left: Any, right: Any) -> bool:
    """Equal, floats up to rounding."""
    if isinstance(left, float) and isinstance(right, float):
        return bool(np.isclose(left, right, rtol=1e-5, atol=1e-6, equal_nan=True))
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(alike, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(alike(left[key], right[key]) for key in left)
    return type(left) is type(right) and left == right


def raised(program: Callable[[], Any]) -> str:
    """The name of the type of what a program raises; "" where it runs through."""
    try:
        program()
    except Exception as problem:  # noqa: BLE001 - whatever it raises is what is compared
        return type(problem).__name__
    return ""


class Programs:
    """Programs over a module that is mini or torch, each of which must give the same facts in both."""

    def __init__(self) -> None:
        self.all: list[Callable[[Any], Any]] = []

    def __call__(self, program: Callable[[Any], Any]) -> Callable[[Any], Any]:
        self.all.append(program)
        return program

    def names(self) -> list[str]:
        return [program.__name__ for program in self.all]


def agree(program: Callable[[Any], Any]) -> None:
    """The program gives the same facts in mini and in PyTorch, and raises in neither."""
    ours = facts(program(mini))
    theirs = facts(program(torch))
    assert alike(ours, theirs), f"\nmini:  {ours}\ntorch: {theirs}"
    assert mini.is_grad_enabled()
    assert not mini.is_inference_mode_enabled()
