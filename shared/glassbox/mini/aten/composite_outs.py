"""out= forms of operators that have no kernel of their own for them (PyTorch: autogen, CompositeExplicitAutograd).

An entry of native_functions.yaml asks for them with `autogen: dot.out`. The operator computes a fresh result, which
is then written into what the caller gave.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

from ..c10 import layout, promotion
from ..c10.dtype import bfloat16
from .core.dispatcher import dispatcher
from .core.function_schema import Argument, FunctionSchema, Type
from .memory_overlap import assert_no_internal_overlap
from .native.resize import resize_output, scalar_type, set_sizes_contiguous
from .tensor_factories import below_autograd

# What may be cast to the dtype of the tensor that was given, as PyTorch's own kernels for these do.
CASTS = frozenset(("mean", "std", "var", "square", "full", "outer", "linspace", "eye", "max", "min"))
# What resizes an out tensor to the strides of a fresh result.
KEEPS_LAYOUT = frozenset(("nonzero", "sort"))
# Factories that keep an out tensor of another shape if it has the right number of elements.
BY_COUNT = frozenset(("arange", "linspace"))
# Factories that draw into the out tensor itself, whose layout decides which number goes where.
RANDOM = frozenset(("rand", "randn"))


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
    factory = functional.base in BY_COUNT or not any(a.type.is_tensor for a in functional.arguments)
    dtype_at = None
    if factory or functional.base in ("mean", "prod", "sum"):
        dtype_at = next((nr for nr, a in enumerate(functional.arguments) if a.type.base == "ScalarType"), None)
    casts = functional.base in CASTS

    @below_autograd
    def kernel(ks: int, *arguments: Any) -> Any:
        given, outs = arguments[:-count], arguments[-count:]
        if dtype_at is not None:
            given = _with_dtype(given, dtype_at, outs[0], factory)
        if functional.base in RANDOM:
            return _draw(functional.base, given, outs[0])
        if (
            functional.base in ("std", "var")
            and given[0]._dtype is bfloat16
            and outs[0]._dtype is not bfloat16
            and _reduces_all(given)
        ):
            raise RuntimeError(f"{functional.base}(): a BFloat16 input goes into no out tensor of another dtype")
        results = dispatcher.find_schema_or_throw(f"aten::{functional.key}").call(*given)
        for out, result in zip(outs, results if count > 1 else (results,), strict=True):
            if factory:
                _resize_factory(functional.base, out, result._shape)
                result = result.view(out._shape)
            write(out, result, casts, functional.base in KEEPS_LAYOUT)
        return outs if count > 1 else outs[0]

    return kernel


def _reduces_all(given: tuple[Any, ...]) -> bool:
    self, dim = given[:2]
    return 0 not in self._shape and (not dim or len(dim) == len(self._shape))


def _with_dtype(given: tuple[Any, ...], place: int, out: Any, factory: bool) -> tuple[Any, ...]:
    asked = given[place]
    if factory and asked not in (None, out._dtype, "long"):
        raise RuntimeError(f"dtype {asked.name} does not match dtype of out parameter ({out._dtype.name})")
    dtype = out._dtype if factory or asked is None and out._dtype.is_floating_point else asked
    return (*given[:place], dtype, *given[place + 1 :])


def _resize_factory(base: str, out: Any, shape: tuple[int, ...]) -> None:
    by_count = base in BY_COUNT
    same = layout.numel(out._shape) == layout.numel(shape) if by_count else out._shape == shape
    if same:
        return
    if base == "arange":
        # The only factory that warns.
        resize_output(out, shape)
    else:
        set_sizes_contiguous(out, shape)


def _draw(base: str, given: tuple[Any, ...], out: Any) -> Any:
    from . import ops as at

    size = next(value for value in given if isinstance(value, tuple))
    _resize_factory(base, out, size)
    return at.normal_(out, 0.0, 1.0, None) if base == "randn" else at.uniform_(out, 0.0, 1.0, None)


def write(out: Any, result: Any, casts: bool = False, keeps_layout: bool = False) -> Any:
    """Resize `out` to the result and copy; RuntimeError where the dtypes do not go together. Returns `out`.

    keeps_layout: what is resized gets the strides of the result.
    """
    from . import ops as at

    if out._dtype is not result._dtype and not (casts and promotion.can_cast(result._dtype, out._dtype)):
        if casts:
            raise RuntimeError(
                f"result type {scalar_type(result._dtype)} can't be cast to the desired output type "
                f"{scalar_type(out._dtype)}"
            )
        raise RuntimeError(f"Expected out tensor to have dtype {result._dtype.name}, but got {out._dtype.name} instead")
    assert_no_internal_overlap(out)
    if resize_output(out, result._shape) and keeps_layout:
        out._stride, out._array = result._stride, None
    return at.copy_(out, result, False)
