"""register_autograd: a derivative for an operator from outside (PyTorch: torch/_library/autograd.py)."""

from collections.abc import Callable
from typing import Any

from ..aten.core.dispatcher import OperatorHandle, dispatcher
from ..aten.core.kernel_function import KernelFunction, place_of
from ..aten.core.library import Library
from ..aten.core.op_overload import OpOverload
from ..c10.dispatch_key_set import AFTER_AUTOGRAD, AUTOGRAD
from ..c10.grad_mode import grad_enabled
from ..c10.local_dispatch_key_set import KeysGuard
from .function import Function
from .variable import any_requires_grad


def register_autograd(
    op: str | OpOverload,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Library | None = None,
) -> None:
    """Give an operator a derivative: backward(ctx, *grads) returns one gradient or None per positional argument.

    setup_context(ctx, inputs, output) runs after the forward pass and keeps what backward needs; an
    operator with keyword-only arguments has setup_context(ctx, inputs, keyword_only_inputs, output).
    Without `lib` it stays. RuntimeError for an operator that writes to an argument or returns a view,
    NotImplementedError for one with tensors in a list or by keyword only.
    """
    handle = op._handle if isinstance(op, OpOverload) else dispatcher.find_schema_or_throw(op)
    schema = handle.schema
    if schema.is_mutable or schema.is_view:
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {schema}: make one that returns fresh "
            "tensors"
        )
    for argument in schema.arguments:
        if argument.type.is_tensor and (argument.kwarg_only or argument.type.is_list):
            raise NotImplementedError(
                f"register_autograd needs every tensor as a positional argument of its own; {argument.name} of "
                f"{schema} is not"
            )
    formula = _formula(handle, backward, setup_context)
    count = len(schema.positional)

    def autograd(op: OperatorHandle, key_set: int, arguments: tuple[Any, ...]) -> Any:
        below = key_set & AFTER_AUTOGRAD
        tensors = [
            value
            for a, value in zip(schema.arguments, arguments, strict=True)
            if a.type.is_tensor and value is not None
        ]
        if grad_enabled.get() and any_requires_grad(tensors):
            return formula.apply(*arguments[:count], (below, arguments))
        with KeysGuard(exclude=AUTOGRAD):
            return op.redispatch(below, *arguments)

    into = Library(schema.namespace, "FRAGMENT") if lib is None else lib
    into._impl(handle.overload, lambda op: KernelFunction(autograd, place_of(backward), boxed=True), "Autograd", True)


def _formula(
    handle: OperatorHandle, backward: Callable[..., Any], setup_context: Callable[..., Any] | None
) -> type[Function]:
    schema = handle.schema
    count = len(schema.positional)
    keywords = [argument.name for argument in schema.arguments[count:]]

    def forward(ctx: Any, *inputs: Any) -> Any:
        below, arguments = inputs[-1]
        with KeysGuard(exclude=AUTOGRAD):
            result = handle.redispatch(below, *arguments)
        if setup_context is not None:
            if keywords:
                named = dict(zip(keywords, arguments[count:], strict=True))
                setup_context(ctx=ctx, inputs=inputs[:-1], keyword_only_inputs=named, output=result)
            else:
                setup_context(ctx=ctx, inputs=inputs[:-1], output=result)
        return result

    def backward_of_all(ctx: Any, *grads: Any) -> Any:
        results = backward(ctx, *grads)
        # The last input is how the forward pass was called, which has no gradient.
        return (*results, None) if isinstance(results, tuple) else (results, None)

    name = f"GeneratedBackwardFor_{schema.namespace}_{schema.base}_{schema.overload or 'default'}"
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward_of_all)}
    made: type[Function] = type(Function)(name, (Function,), methods)  # type: ignore[misc]
    return made
