"""Type promotion: the dtype that several dtypes meet in (PyTorch: ATen/native/TypeProperties.cpp).

Dtypes are ordered by kind: bool, then integers, then floating point. Two of a kind meet in the one that holds
both. Of the operands of an operator, a tensor with dimensions counts most, a 0-d tensor less, a Python number
least: the lesser decides only where it is of a higher kind.
"""

from collections.abc import Sequence
from typing import Any

from .dtype import bfloat16, by_name, float32
from .dtype import dtype as DType  # noqa: N812
from .pieces import cached, piece

DEFAULT_DTYPE = float32

# An operand as the piece result_type sees it: the name of its dtype and what it is.
TENSOR, ZERO_DIM, NUMBER = "tensor", "0-d tensor", "number"
Category = tuple[str, str]

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def _a_dtype_name(out: Any, args: tuple[Any, ...]) -> str:
    if isinstance(out, DType):
        return out.name
    if not isinstance(out, str):
        raise ValueError('the name of a dtype, such as "float32"')
    return by_name(out).name


def _kind(name: str) -> int:
    """0 for bool, 1 for integers, 2 for floating point."""
    if name == "bool":
        return 0
    return 2 if by_name(name).is_floating_point else 1


@piece(returns=_a_dtype_name)
def promote_types(a: str, b: str) -> str:
    """The smallest dtype that both dtypes fit into, by name: promote_types("int32", "bool") is "int32".

    The higher kind wins whatever its size. uint8 with a signed type needs a wider signed one.
    """
    if a == b:
        return a
    if _kind(a) != _kind(b):
        return a if _kind(a) > _kind(b) else b
    if _kind(a) == 2:
        return "float64" if "float64" in (a, b) else "float32"
    if "uint8" in (a, b):
        signed = b if a == "uint8" else a
        return "int16" if signed == "int8" else signed
    return a if _BITS[a] > _BITS[b] else b


@piece(returns=_a_dtype_name)
def result_type(operands: Sequence[Category]) -> str:
    """The dtype that an operator computes in, by name.

    operands: per operand the name of its dtype and "tensor", "0-d tensor" or "number". A floating-point
    number is a float32 here, whatever Python stores. Source: update_result_type_state and combine_categories.
    """
    best: dict[str, str | None] = {TENSOR: None, ZERO_DIM: None, NUMBER: None}
    for name, category in operands:
        if category == NUMBER and _kind(name) == 2:
            name = DEFAULT_DTYPE.name
        before = best[category]
        best[category] = name if before is None else promote(by_name(before), by_name(name)).name
    return _combine(best[TENSOR], _combine(best[ZERO_DIM], best[NUMBER])) or DEFAULT_DTYPE.name


def _combine(higher: str | None, lower: str | None) -> str | None:
    if higher is None or lower is None:
        return higher or lower
    if _kind(lower) > _kind(higher):
        return lower
    return higher


@cached
def promote(a: DType, b: DType) -> DType:
    """promote_types for dtype objects, remembered."""
    return by_name(promote_types(a.name, b.name))


@cached
def common_dtype(operands: tuple[Category, ...]) -> DType:
    """result_type as a dtype object, remembered."""
    return by_name(result_type(operands))


def can_cast(source: DType, target: DType) -> bool:
    """Whether a result may be written into a tensor of another dtype: never to a lower kind."""
    return _kind(target.name) >= _kind(source.name)


def compute_dtype(dtype: DType) -> DType:
    """The dtype whose arithmetic stands in for `dtype`: float32 for bfloat16 (PyTorch: opmath_type)."""
    return float32 if dtype is bfloat16 else dtype
