"""Calls to time: what `overhead` may be given for one, its arguments over size, and other ways to make the same call
(tools/autograd/templates/python_torch_functions.cpp).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ._operators import find_operator
from ._torch_internals.tracing import required_arguments

Make = Callable[[int], tuple[Any, ...]]

_PYTHON_OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**", "matmul": "@"}


@dataclass(frozen=True, slots=True)
class TimedCall:
    """One call over arguments of any size.

    function       what is called; make(n) gives its arguments, of which the first tensor has about n elements
    overload       the operator that it is, or None for a function of which it is not known
    """

    name: str
    function: Callable[..., Any]
    make: Make
    overload: Any = None

    @property
    def base(self) -> str:
        return str(self.overload).split(".")[1] if self.overload is not None else ""

    def symbol(self) -> str:
        """The call as Python's own operator, "a0 + a1"; "" where it has none."""
        sign = _PYTHON_OPERATORS.get(self.base, "")
        return f"a0 {sign} a1" if sign else ""

    def method(self) -> Any:
        """The method of torch.Tensor that is the same operator, or None."""
        return getattr(torch.Tensor, self.base, None) if self.base else None

    def in_place(self) -> Any:
        """The method that writes the result into the first argument, or None."""
        return getattr(torch.Tensor, f"{self.base}_", None) if self.base else None


def timed_call(fn: Any, make: Make | None, device: str) -> TimedCall:
    """The call that `fn` and `make` mean.

    fn     an operator's name or object, a function of torch that is one, or any function of tensors
    make   make(n) -> the arguments as a tuple; without it they are float tensors of n elements for an operator or
           function that needs nothing else

    TypeError for anything else, ValueError for a call whose arguments cannot be guessed.
    """
    builtin = getattr(fn, "__name__", "") if callable(fn) and not isinstance(fn, type) else ""
    if isinstance(fn, str) or hasattr(fn, "overloadpacket") or hasattr(fn, "overloads"):
        overload = find_operator(fn, "overhead")
        return _of_operator(overload, _python_function(overload), make, device)
    if not callable(fn):
        raise TypeError(
            f'overhead: {type(fn).__name__} cannot be timed; give an operator such as "add" or a function of tensors.'
        )
    known = any(getattr(place, builtin, None) is fn for place in (torch, torch.nn.functional)) if builtin else False
    if known and hasattr(torch.ops.aten, builtin):
        try:
            return _of_operator(find_operator(builtin, "overhead"), fn, make, device)
        except ValueError:
            # Several overloads: with its arguments given it is a function like any other.
            if make is None:
                raise
    name = builtin or type(fn).__name__
    return TimedCall("the function" if name == "<lambda>" else name, fn, make or _guessed(fn, name, device))


def tensors_in(args: Any) -> list[Any]:
    """The tensors among arguments, also those in lists and dicts."""
    found = []
    for arg in args:
        if isinstance(arg, torch.Tensor):
            found.append(arg)
        elif isinstance(arg, list | tuple):
            found += tensors_in(arg)
        elif isinstance(arg, dict):
            found += tensors_in(arg.values())
    return found


def with_tensors(args: tuple[Any, ...], change: Callable[[Any], Any]) -> tuple[Any, ...]:
    """The arguments with every tensor changed."""

    def each(arg: Any) -> Any:
        if isinstance(arg, torch.Tensor):
            return change(arg)
        return type(arg)(map(each, arg)) if type(arg) in (list, tuple) else arg

    return tuple(map(each, args))


def asking_for_gradients(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Copies of the arguments of which every floating point tensor requires grad."""
    return with_tensors(args, lambda t: t.detach().clone().requires_grad_(t.is_floating_point() or t.is_complex()))


def with_out(call: TimedCall, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], str] | None:
    """Arguments with a result to write to, and the expression that does; None where the call gives no one tensor."""
    with torch.no_grad():
        result = call.function(*args)
    if not isinstance(result, torch.Tensor):
        return None
    names = ", ".join(f"a{nr}" for nr in range(len(args)))
    return (*args, result.clone()), f"f({names}, out=a{len(args)})"


def _python_function(overload: Any) -> Any:
    """The function of torch that a program calls for an operator; the operator itself where there is none."""
    namespace, base = str(overload).split(".")[:2]
    if namespace != "aten":
        return overload
    for place in (torch, torch.nn.functional, torch.Tensor):
        if hasattr(place, base):
            return getattr(place, base)
    return overload


def _of_operator(overload: Any, function: Any, make: Make | None, device: str) -> TimedCall:
    namespace, base, name = str(overload).split(".")
    title = base if name == "default" else f"{base}.{name}"
    return TimedCall(
        title if namespace == "aten" else str(overload), function, make or _arguments(overload, base, device), overload
    )


def _arguments(overload: Any, base: str, device: str) -> Make:
    if base in _SPECIAL:
        special = _SPECIAL[base]
        return lambda n: special(lambda *shape: _random(shape, device), n)
    needed = required_arguments(overload)
    other = [name for name, kind in needed if kind != "Tensor"]
    if other or not needed:
        what = f"needs {', '.join(other)} too" if other else "takes no tensor"
        raise ValueError(
            f"overhead: {overload} {what}; give its arguments for n elements, such as make=lambda n: (torch.rand(n),)."
        )
    return lambda n: tuple(_random((n,), device) for _ in needed)


def _guessed(fn: Any, name: str, device: str) -> Make:
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        parameters = {}.values()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    count = sum(each.kind in positional and each.default is each.empty for each in parameters)
    if not count:
        raise ValueError(
            f"overhead: what to call {name} with is not known; "
            f"give its arguments for n elements, such as make=lambda n: (torch.rand(n),)."
        )
    return lambda n: tuple(_random((n,), device) for _ in range(count))


def _random(shape: tuple[int, ...], device: str) -> Any:
    return torch.rand(shape, device=device)


def _square(n: int) -> int:
    return max(1, math.isqrt(n))


def _rows(n: int) -> tuple[int, int]:
    width = min(64, max(1, n))
    return max(1, n // width), width


# Operators that need more than flat tensors: from a maker of tensors and n to the arguments.
_SPECIAL: dict[str, Callable[[Callable[..., Any], int], tuple[Any, ...]]] = {
    "mm": lambda new, n: (new(_square(n), _square(n)), new(_square(n), _square(n))),
    "matmul": lambda new, n: (new(_square(n), _square(n)), new(_square(n), _square(n))),
    "linear": lambda new, n: (new(_square(n), _square(n)), new(_square(n), _square(n)), new(_square(n))),
    "addmm": lambda new, n: (new(_square(n)), new(_square(n), _square(n)), new(_square(n), _square(n))),
    "bmm": lambda new, n: (new(1, _square(n), _square(n)), new(1, _square(n), _square(n))),
    "layer_norm": lambda new, n: (new(*_rows(n)), _rows(n)[1:]),
    "softmax": lambda new, n: (new(*_rows(n)), -1),
    "t": lambda new, n: (new(*_rows(n)),),
    "cat": lambda new, n: ([new(n), new(n)],),
}
