"""out= forms of operators that have no kernel of their own for them (PyTorch: autogen, CompositeExplicitAutograd).

An entry of native_functions.yaml asks for them with `autogen: dot.out`. The operator computes a fresh result, which is then
written into what the caller gave.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

from ..c10 import promotion
from .core.dispatcher import dispatcher
from .core.function_schema import Argument, FunctionSchema, Type
from .native.resize import resize_output, scalar_type
from .tensor_factories import below_autograd

# What may be cast to the dtype of the tensor that was given, as PyTorch's own kernels for these do.
CASTS = frozenset(("mean", "std", "var", "softmax", "log_softmax", "stack", "square", "full", "outer", "linspace", "eye"))


def out_schema(functional: FunctionSchema, key: str) -> FunctionSchema:
    """The schema of the out= form `key` of an operator: its arguments and one tensor more per result."""
    base, _, overload = key.partition(".")
    several = len(functional.returns) > 1
    letters = "abcdefgh"
    outs = tuple(
        Argument(
            result.name or (f"out{nr}" if several else "out"),
            Type("Tensor", alias=letters[nr], is_write=True),
            kwarg_only=True,
        )
        for nr, result in enumerate(functional.returns)
    )
    returns = tuple(
        dataclasses.replace(result, type=out.type) for result, out in zip(functional.returns, outs, strict=True)
    )
    return FunctionSchema(functional.namespace, base, overload, (*functional.arguments, *outs), returns)


def out_kernel(functional: FunctionSchema) -> Callable[..., Any]:
    """The kernel of an operator's out= form. RuntimeError for a tensor of a dtype that the result does not go into."""
    count = len(functional.returns)
    dtype_at = next((nr for nr, a in enumerate(functional.arguments) if a.type.base == "ScalarType"), None)
    factory = not any(argument.type.is_tensor for argument in functional.arguments)
    casts = functional.base in CASTS

    @below_autograd
    def kernel(ks: int, *arguments: Any) -> Any:
        given, outs = arguments[:-count], arguments[-count:]
        if dtype_at is not None:
            given = _with_dtype(given, dtype_at, outs[0], factory)
        results = dispatcher.find_schema_or_throw(f"aten::{functional.key}").call(*given)
        for out, result in zip(outs, results if count > 1 else (results,), strict=True):
            _write(out, result, casts)
        return outs if count > 1 else outs[0]

    return kernel


def _with_dtype(given: tuple[Any, ...], place: int, out: Any, factory: bool) -> tuple[Any, ...]:
    asked = given[place]
    if factory and asked not in (None, out._dtype, "long"):
        raise RuntimeError(f"dtype {asked.name} does not match dtype of out parameter ({out._dtype.name})")
    dtype = out._dtype if factory or asked is None and out._dtype.is_floating_point else asked
    return (*given[:place], dtype, *given[place + 1 :])


def _write(out: Any, result: Any, casts: bool) -> None:
    from . import ops as at

    if out._dtype is not result._dtype and not (casts and promotion.can_cast(result._dtype, out._dtype)):
        if casts:
            raise RuntimeError(
                f"result type {scalar_type(result._dtype)} can't be cast to the desired output type "
                f"{scalar_type(out._dtype)}"
            )
        raise RuntimeError(f"Expected out tensor to have dtype {result._dtype.name}, but got {out._dtype.name} instead")
    resize_output(out, result._shape)
    at.copy_(out, result, False)
