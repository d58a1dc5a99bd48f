"""Schemas: what an operator says of its arguments (aten/src/ATen/core/function_schema.h)."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from .access import missing


@dataclass(frozen=True, slots=True)
class Promise:
    """What the schema promises about memory.

    names    of the arguments
    writes   those that are written to: Tensor(a!)
    views    whether an output may share an argument's memory that is not written to: Tensor(a) in and out
    """

    names: tuple[str, ...]
    writes: frozenset[str]
    views: bool


@functools.cache
def promise_of(op: Any) -> Promise:
    """The promise of a torch._ops.OpOverload; an empty one for a higher-order operator, which has no schema."""
    schema = _schema(op)
    if schema is None:
        return Promise((), frozenset(), False)
    arguments = [(each.name, each.alias_info) for each in schema.arguments]
    returned = [each.alias_info for each in schema.returns if each.alias_info is not None]
    return Promise(
        tuple(name for name, _ in arguments),
        frozenset(name for name, alias in arguments if alias is not None and alias.is_write),
        any(not alias.is_write for alias in returned),
    )


def takes_tensors(op: Any) -> bool:
    """Whether an argument of the operator is a tensor, or a list of them."""
    schema = _schema(op)
    return schema is not None and any("Tensor" in str(each.type) for each in schema.arguments)


def _schema(op: Any) -> Any:
    schema = getattr(op, "_schema", None)
    if schema is None and type(op).__name__ == "OpOverload":
        raise missing("OpOverload._schema")
    return schema
