"""The same module or program in mini and in PyTorch, with the same numbers."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from glassbox import mini

LIBRARIES = (mini, torch)


def array(tensor: Any) -> np.ndarray:
    """The values of a tensor of either, as float64 where they are floating."""
    tensor = tensor.detach().cpu()
    if tensor.is_floating_point():
        tensor = tensor.double()
    return tensor.numpy()


def of(lib: Any, values: Any, dtype: str | None = None, grad: bool = False) -> Any:
    """A tensor of either library from an array; dtype by name."""
    made = lib.from_numpy(np.array(values))
    if dtype is not None:
        made = made.to(getattr(lib, dtype))
    return made.requires_grad_() if grad else made


def pair(values: Any, dtype: str | None = None, grad: bool = False) -> tuple[Any, Any]:
    return of(mini, values, dtype, grad), of(torch, values, dtype, grad)


def close(ours: Any, theirs: Any, rtol: float = 1e-5, atol: float = 1e-6, where: str = "") -> None:
    """Both None, or equal in shape, dtype and up to rounding in values."""
    assert (ours is None) == (theirs is None), where
    if ours is None:
        return
    assert tuple(ours.shape) == tuple(theirs.shape), where
    assert str(ours.dtype).split(".")[-1] == str(theirs.dtype).split(".")[-1], where
    np.testing.assert_allclose(array(ours), array(theirs), rtol=rtol, atol=atol, err_msg=where)


def same_state(ours: Any, theirs: Any, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Two modules have the same state: names, order, values."""
    left, right = ours.state_dict(), theirs.state_dict()
    assert list(left) == list(right)
    for name in left:
        close(left[name], right[name], rtol, atol, name)


def same_grads(ours: Any, theirs: Any, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    left, right = dict(ours.named_parameters()), dict(theirs.named_parameters())
    assert list(left) == list(right)
    for name in left:
        close(left[name].grad, right[name].grad, rtol, atol, name)


def facts(value: Any) -> Any:
    """What can be compared of a program's result: tensors by their values, the rest as it is."""
    if isinstance(value, mini.Tensor | torch.Tensor):
        where = str(value.dtype).rsplit(".", 1)[-1], value.requires_grad, tuple(value.stride())
        return "tensor", *where, array(value).tolist()
    if isinstance(value, dict):
        return {key: facts(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [facts(each) for each in value]
    if isinstance(value, mini.nn.Module | torch.nn.Module):
        return repr(value)
    return value


def outcome(program: Callable[[Any], Any], lib: Any) -> tuple[Any, ...]:
    """("value", facts, warnings) of a program, or the name of the exception's type."""
    lib.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = facts(program(lib))
        except Exception as problem:  # noqa: BLE001 - whatever it raises is what is compared
            return (type(problem).__name__,)
    return "value", result, [each.category.__name__ for each in caught]


def agree(program: Callable[[Any], Any]) -> None:
    """The program gives the same in both, or raises the same."""
    ours, theirs = outcome(program, mini), outcome(program, torch)
    assert alike(ours, theirs), f"mini: {ours}\ntorch: {theirs}"


def alike(left: Any, right: Any) -> bool:
    """Equal, floats up to rounding."""
    if isinstance(left, float) and isinstance(right, float):
        return bool(np.isclose(left, right, rtol=1e-5, atol=1e-6, equal_nan=True))
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(alike(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(alike(a, b) for a, b in zip(left, right, strict=True))
    return type(left) is type(right) and left == right


class Programs:
    """Collects programs by decoration, so that a test can run them one by one under their names."""

    def __init__(self) -> None:
        self.all: list[Callable[[Any], Any]] = []

    def __call__(self, program: Callable[[Any], Any]) -> Callable[[Any], Any]:
        self.all.append(program)
        return program

    def names(self) -> list[str]:
        return [each.__name__ for each in self.all]
