"""Boxing: a call's arguments as Python writes them (PyTorch: parseIValuesToPyArgsKwargs, torch/csrc/autograd).

An operator's call has every argument of its schema in order. What is written in Python and gets to see
calls (a dispatch mode, a kernel from a Library) is given them as a person would write them: defaults left
out, keyword-only arguments by keyword, lists as lists, and a number where a number stood for a tensor.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...c10.tensor_impl import WRAPPED_NUMBER, TensorImpl
from .function_schema import FunctionSchema

if TYPE_CHECKING:
    from .dispatcher import OperatorHandle

Unbind = Callable[[tuple[Any, ...]], tuple[tuple[Any, ...], dict[str, Any]]]


def make_unbinder(schema: FunctionSchema) -> Unbind:
    """A function that turns all arguments in the schema's order into (args, kwargs)."""
    count = len(schema.positional)
    defaults = [argument.default for argument in schema.arguments]
    numbers = schema.takes_numbers
    # Only trailing defaults can be left out, so what comes before the last argument without one is always given.
    required = max((nr + 1 for nr, each in enumerate(schema.positional) if not each.has_default), default=0)
    keywords = [(nr, each.name, each.default) for nr, each in enumerate(schema.arguments) if nr >= count]
    # The places of what Python writes in another way: lists, and numbers that stand for a tensor.
    written = [
        nr
        for nr, each in enumerate(schema.positional)
        if each.type.is_list or numbers and each.type.is_tensor and nr > 0
    ]

    def unbind(arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        given = count
        while given > required and _is_default(arguments[given - 1], defaults[given - 1]):
            given -= 1
        args = arguments[:given]
        for nr in written:
            if nr < given and (value := to_python(args[nr], numbers)) is not args[nr]:
                args = (*args[:nr], value, *args[nr + 1 :])
        kwargs = {
            name: to_python(arguments[nr], numbers)
            for nr, name, default in keywords
            if not _is_default(arguments[nr], default)
        }
        return args, kwargs

    return unbind


def to_python(value: Any, numbers: bool) -> Any:
    """One argument as Python writes it.

    numbers: whether the operator would take a number in its place, so that a tensor that stands for one can become it.
    """
    if numbers and isinstance(value, TensorImpl):
        return value.strided_array().item() if value._meta is WRAPPED_NUMBER else value
    return [to_python(item, False) for item in value] if type(value) is tuple else value


def _is_default(value: Any, default: Any) -> bool:
    return value is default or type(value) is type(default) and value == default


def returned(op: "OperatorHandle", arguments: tuple[Any, ...], result: Any) -> Any:
    """What Python gave for a call as the call's result; RuntimeError where the schema says otherwise.

    An op that writes into an argument returns that argument, whatever Python returned.
    """
    schema = op.schema
    if schema.is_inplace:
        return arguments[0]
    if schema.is_out:
        outs = arguments[len(arguments) - len(schema.out_arguments) :]
        return outs if len(outs) > 1 else outs[0]
    if len(schema.returns) == 1:
        kind = schema.returns[0].type
        if kind.is_tensor and not kind.is_list:
            if not isinstance(result, TensorImpl):
                raise _cannot_cast(op, result, "a Tensor")
        elif kind.is_list:
            if not isinstance(result, list | tuple):
                raise _cannot_cast(op, result, f"a list of {kind.base}s")
            return tuple(result)
        return result
    if schema.returns and (not isinstance(result, list | tuple) or len(result) != len(schema.returns)):
        raise _cannot_cast(op, result, f"{len(schema.returns)} results")
    return tuple(result) if schema.returns else None


def _cannot_cast(op: "OperatorHandle", result: Any, expected: str) -> RuntimeError:
    return RuntimeError(
        f"Unable to cast {result!r} to {expected}: what runs for {op.name} must return what its schema says: "
        f"{op.schema}"
    )
