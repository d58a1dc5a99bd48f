"""Lab 2: real operators to predict the hops of, and what the installed PyTorch has registered for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

Call = tuple[tuple[str, tuple[str, ...]], ...]
"""An operator and the keys that it has kernels for; a second one for what its composite kernel calls."""

TOLD = (
    *("CPU", "Autograd", "ADInplaceOrView", "AutocastCPU", "BackendSelect", "FuncTorchBatched"),
    *("CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional"),
    "FuncTorchBatchedDecomposition",
)
_UNARY = """
abs acos acosh angle asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac
hardsigmoid hardswish i0 isinf lgamma log log10 log1p log2 mish nan_to_num neg rad2deg reciprocal relu round rsqrt
sgn sigmoid sign signbit silu sin sinc sinh sqrt tan tanh trunc
"""
_BINARY = """
add.Tensor atan2 copysign.Tensor div.Tensor eq.Tensor fmax fmin fmod.Tensor ge.Tensor gt.Tensor heaviside hypot
le.Tensor logaddexp logaddexp2 lt.Tensor maximum minimum mul.Tensor ne.Tensor nextafter remainder.Tensor sub.Tensor
xlogy.Tensor
"""
_COMPOSITE = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctanh": "atanh",
    "negative": "neg",
    "fix": "trunc",
    "square": "pow.Tensor_Scalar",
    "relu6": "hardtanh",
}
_COMPOSITE_BINARY = {
    "arctan2": "atan2",
    "divide.Tensor": "div.Tensor",
    "greater.Tensor": "gt.Tensor",
    "greater_equal.Tensor": "ge.Tensor",
    "less.Tensor": "lt.Tensor",
    "less_equal.Tensor": "le.Tensor",
    "max.other": "maximum",
    "min.other": "minimum",
    "multiply.Tensor": "mul.Tensor",
    "not_equal.Tensor": "ne.Tensor",
    "subtract.Tensor": "sub.Tensor",
    "true_divide.Tensor": "div.Tensor",
}
_INPLACE = (
    "abs_ ceil_ cos_ erf_ exp_ expm1_ floor_ neg_ reciprocal_ relu_ round_ sigmoid_ sin_ sqrt_ tanh_ trunc_ zero_"
)
_INPLACE_COMPOSITE = {
    "absolute_": "abs_",
    "arcsin_": "asin_",
    "arctan_": "atan_",
    "negative_": "neg_",
    "fix_": "trunc_",
}
_VIEWS: dict[str, tuple[Any, ...]] = {
    "unsqueeze": (0,),
    "transpose.int": (0, 1),
    "select.int": (0, 0),
    "slice.Tensor": (0, 0, 1),
    "diagonal": (),
    "permute": ([1, 0],),
    "alias": (),
}
_VIEW_COMPOSITES = {"swapaxes": ("transpose.int", (0, 1)), "swapdims": ("transpose.int", (0, 1))}
_LIKE = "zeros_like ones_like empty_like"
_FACTORIES: dict[str, tuple[Any, ...]] = {
    "randn": ([2],),
    "rand": ([2],),
    "empty.memory_format": ([2],),
    "randperm": (3,),
    "zeros": ([2],),
    "ones": ([2],),
    "eye": (2,),
    "full": ([2], 1.0),
    "arange": (3,),
    "linspace": (0, 1, 3),
}


def _of_x(*rest: Any) -> Callable[[Any], tuple[Any, ...]]:
    return lambda x: (x, *rest)


def _without_x(*given: Any) -> Callable[[Any], tuple[Any, ...]]:
    return lambda x: given


def _twice(x: Any) -> tuple[Any, ...]:
    return x, x


Operator = tuple[str | None, Callable[[Any], tuple[Any, ...]], str]
"""What the composite kernel calls, the arguments made of x, and the kind."""


def _operators() -> dict[str, Operator]:
    found: dict[str, Operator] = {}
    for names, make, kind in (
        (_UNARY, _of_x(), "plain"),
        (_BINARY, _twice, "plain"),
        (_INPLACE, _of_x(), "inplace"),
        (_LIKE, _of_x(), "plain"),
    ):
        found |= dict.fromkeys(names.split(), (None, make, kind))
    for table, make, kind in (
        (_COMPOSITE, _of_x(), "composite"),
        (_COMPOSITE_BINARY, _twice, "composite"),
        (_INPLACE_COMPOSITE, _of_x(), "inplace composite"),
    ):
        found |= {name: (called, make, kind) for name, called in table.items()}
    found |= {name: (None, _of_x(*rest), "view") for name, rest in _VIEWS.items()}
    found |= {name: (called, _of_x(*rest), "view composite") for name, (called, rest) in _VIEW_COMPOSITES.items()}
    found |= {name: (None, _without_x(*rest), "factory") for name, rest in _FACTORIES.items()}
    found |= {
        "mm": (None, _twice, "autocast"),
        "addmm": (None, lambda x: (x, x, x), "autocast"),
        "mse_loss": (None, _twice, "autocast"),
        "prod": (None, _of_x(), "autocast"),
        "cat": (None, lambda x: ([x, x],), "autocast"),
        "stack": (None, lambda x: ([x, x],), "autocast"),
    }
    return found


OPERATORS = _operators()
BY_KIND = {
    kind: tuple(name for name, one in OPERATORS.items() if one[2] == kind)
    for kind in {one[2] for one in OPERATORS.values()}
}


@cache
def registered(name: str) -> tuple[str, ...]:
    """The keys that the installed PyTorch has kernels of an operator for, as torch._C._dispatch_dump lists them."""
    import torch

    heads = [
        line.partition(":")[0].removesuffix("[alias]") for line in torch._C._dispatch_dump(f"aten::{name}").splitlines()
    ]
    return tuple(key for key in TOLD if key in heads)


def call_of(name: str) -> Call:
    called = OPERATORS[name][0]
    return tuple((each, registered(each)) for each in (name, called) if each is not None)
