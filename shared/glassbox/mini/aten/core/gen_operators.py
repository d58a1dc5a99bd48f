"""The call of each operator, made from its schema (PyTorch: at::_ops::add_Tensor::call, by torchgen/gen.py).

A call unites the key sets of its tensor arguments and of the thread, and hands itself to the kernel that
the operator's table holds for that set. It is generated so that a call of two tensors costs no loop over a
schema.
"""

import keyword
from collections.abc import Callable, Iterable
from typing import Any

from ...c10.dispatch_key_set import FULL
from ...c10.dtype import int64
from ...c10.local_dispatch_key_set import local_keys
from .function_schema import Argument, FunctionSchema
from .source import compile_later, compile_source, ready


def key_set_of_list(tensors: Iterable[Any]) -> int:
    """The keys of all tensors of a list; None counts for nothing."""
    found = 0
    for tensor in tensors:
        if tensor is not None:
            found |= tensor._key_set
    return found


def _keys(argument: Argument) -> str:
    name, kind = argument.name, argument.type
    if kind.is_list:
        return f"key_set_of_list({name})" if not kind.optional else f"key_set_of_list({name} or ())"
    return f"(0 if {name} is None else {name}._key_set)" if kind.optional else f"{name}._key_set"


def parameters(schema: FunctionSchema) -> str:
    """The schema's arguments as parameters of a Python function, all of them positional, with their defaults."""
    parts, defaulted = [], False
    for argument in schema.arguments:
        # Out= arguments have no default but come last: a call always gives them.
        defaulted = defaulted or argument.has_default
        default = literal(argument.default) if argument.has_default else "None"
        name = identifier(argument.name)
        parts.append(f"{name}={default}" if defaulted else name)
    return ", ".join(parts)


def literal(default: Any) -> str:
    """A schema's default as generated code writes it."""
    return "long" if default is int64 else repr(default)


def names(schema: FunctionSchema) -> str:
    """The schema's arguments by name, as they are handed on."""
    return "".join(f", {identifier(argument.name)}" for argument in schema.arguments)


def identifier(name: str) -> str:
    """An argument's name as Python can write it: random_ has one called from."""
    return f"{name}_" if keyword.iskeyword(name) else name


def call_source(schema: FunctionSchema) -> str:
    """The text of the operator's call."""
    sets = [_keys(argument) for argument in schema.arguments if argument.type.is_tensor]
    union = " | ".join([*sets, "included"])
    return (
        f"def call({parameters(schema)}):\n"
        f"    included, allowed = local_keys()\n"
        f"    key_set = ({union}) & allowed\n"
        f"    return kernels[key_set](key_set{names(schema)})\n"
    )


def stepwise_call_source(schema: FunctionSchema) -> str:
    """The same call with its first step left to a function, for when a learner's own takes that step."""
    sets = [_keys(argument) for argument in schema.arguments if argument.type.is_tensor]
    return (
        f"def call({parameters(schema)}):\n"
        f"    included, allowed = local_keys()\n"
        f"    key_set = compute_key_set([{', '.join(sets)}], included, FULL & ~allowed)\n"
        f"    return kernels[key_set](key_set{names(schema)})\n"
    )


def take_steps(
    call: Callable[..., Any], schema: FunctionSchema, step: Callable[[list[int], int, int], int] | None
) -> None:
    """Lets an operator's call, wherever it is already held, unite the key sets by `step`; None for its own way."""
    namespace: dict[str, Any] = call.__globals__
    if (namespace.get("compute_key_set") is not None) == (step is not None):
        return
    ready(call)
    namespace["compute_key_set"] = step
    text = call_source(schema) if step is None else stepwise_call_source(schema)
    compiled = compile_source(text, f"{schema.key}.call", dict(namespace))["call"]
    call.__code__ = compiled.__code__


def make_call(schema: FunctionSchema, kernels: dict[int, Callable[..., Any]]) -> Callable[..., Any]:
    """The operator's call over its table of kernels."""

    def names() -> dict[str, Any]:
        return {
            "local_keys": local_keys.get,
            "kernels": kernels,
            "key_set_of_list": key_set_of_list,
            "FULL": FULL,
        }

    return compile_later("call", f"{schema.key}.call", lambda: call_source(schema), names)
