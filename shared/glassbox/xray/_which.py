"""Which framework: whether a function works on mini tensors, told from its arguments and from what it refers to."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, ModuleType
from typing import Any

from ._looking import is_tensor_type, is_torch


def over_mini(fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether fn(*args, **kwargs) is a call of the mini-framework.

    Its arguments decide; where they hold no tensor, what fn is part of, encloses and names. PyTorch where none tells,
    unless only the mini-framework is imported.
    """
    if "glassbox.mini" not in sys.modules:
        return False
    for values in ([*args, *kwargs.values()], [fn, *_referred(fn)]):
        sides = {side for value in values for side in _sides(value)}
        if len(sides) == 1:
            return sides == {"mini"}
        if sides:
            return False
    return "torch" not in sys.modules


def _sides(value: Any, depth: int = 0) -> Iterator[str]:
    if is_tensor_type(type(value)):
        yield "torch" if is_torch(value) else "mini"
    elif isinstance(value, list | tuple | dict) and depth < 3:
        for each in value.values() if isinstance(value, dict) else value:
            yield from _sides(each, depth + 1)
    else:
        home = value.__name__ if isinstance(value, ModuleType) else _home(value)
        if home.partition(".")[0] == "torch":
            yield "torch"
        elif home == "glassbox.mini" or home.startswith("glassbox.mini."):
            yield "mini"


def _home(value: Any) -> str:
    kind = type(value)
    if callable(value) and isinstance(home := getattr(value, "__module__", None), str):
        return home
    return str(kind.__module__)


def _referred(fn: Any) -> Iterator[Any]:
    """What a Python function has at hand: the object it is a method of, what it encloses, the globals that it names."""
    function = getattr(fn, "__func__", fn)
    yield getattr(fn, "__self__", None)
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue
    for name in _names(code):
        if name in function.__globals__:
            yield function.__globals__[name]


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def wanted_operator(name: str, op: str) -> bool:
    """Whether "aten.add.Tensor" is what "add", "add.Tensor", "aten.add" or "aten::add.Tensor" means; anything is ""."""
    asked = op.replace("::", ".")
    namespace, _, rest = name.partition(".")
    base = rest.partition(".")[0]
    return not op or asked in (name, rest, base, f"{namespace}.{base}")


def node_in_words(name: str, number: int, saved: Sequence[str]) -> str:
    """What a call's node is and keeps; that sizes and strides go with a tensor goes without saying."""
    kept = sorted(each for each in saved if not each.endswith(("_sym_sizes", "_sym_strides")))
    return f"grad_fn is {name}, number {number}; it saved {', '.join(kept) or 'nothing'}"


def require_eager(fn: Any, where: str) -> None:
    """ValueError in one sentence for a function or module that torch.compile made."""
    from ._torch_internals.profiling import was_compiled

    if was_compiled(fn):
        raise ValueError(
            f"{where}: a compiled function runs kernels that were generated for it in place of operators; "
            f"pass the function as it was before torch.compile."
        )
