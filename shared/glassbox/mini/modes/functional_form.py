"""functional_form: the operator that computes what another writes (PyTorch: torchgen/native_function_generation.py)."""

import functools

from ..aten.core.dispatcher import OperatorHandle, dispatcher
from ..aten.core.function_schema import Argument


@functools.cache
def functional_form(op: OperatorHandle) -> OperatorHandle | None:
    """add.Tensor for add_.Tensor and add.out: the same arguments less out=, nothing written; None without one."""
    schema = op.schema
    name = schema.name[:-1] if schema.is_inplace else schema.name
    kept = [_kind(argument) for argument in schema.arguments if not argument.is_out]
    for other in dispatcher.overloads.get(name, ()):
        if not other.schema.is_mutable and [_kind(argument) for argument in other.schema.arguments] == kept:
            return other
    return None


def _kind(argument: Argument) -> tuple[str, str, bool]:
    return argument.name, argument.type.base, argument.type.is_list
