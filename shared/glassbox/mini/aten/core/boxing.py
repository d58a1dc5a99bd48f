"""Boxing: a call's arguments as Python writes them (PyTorch: parseIValuesToPyArgsKwargs in torch/csrc/jit).

An operator's call has every argument of its schema in order. What is written in Python and gets to see
calls (a dispatch mode, a kernel from a Library) is given them as a person would write them: defaults left
out, keyword-only arguments by keyword, lists as lists, and a number where a number stood for a tensor.
"""

from collections.abc import Callable
from typing import Any

from ...c10.tensor_impl import WRAPPED_NUMBER, TensorImpl
from .function_schema import Argument, FunctionSchema

Unbind = Callable[[tuple[Any, ...]], tuple[tuple[Any, ...], dict[str, Any]]]


def make_unbinder(schema: FunctionSchema) -> Unbind:
    """A function that turns all arguments in the schema's order into (args, kwargs)."""
    positional = schema.positional
    count = len(positional)
    keywords = schema.arguments[count:]
    # Only trailing defaults can be left out, so what comes before the last argument without one is always
    # given.
    numbers = schema.takes_numbers
    required = max((nr + 1 for nr, argument in enumerate(positional) if not argument.has_default), default=0)

    def unbind(arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        given = count
        while given > required and _is_default(positional[given - 1], arguments[given - 1]):
            given -= 1
        args = tuple([to_python(value, numbers and nr > 0) for nr, value in enumerate(arguments[:given])])
        kwargs = {
            argument.name: to_python(value, numbers)
            for argument, value in zip(keywords, arguments[count:], strict=True)
            if not _is_default(argument, value)
        }
        return args, kwargs

    return unbind


def to_python(value: Any, numbers: bool) -> Any:
    """One argument as Python writes it.

    numbers: whether the operator would take a number in its place, so that a tensor that stands for one can
    become it.
    """
    if numbers and isinstance(value, TensorImpl):
        return value.strided_array().item() if value._meta is WRAPPED_NUMBER else value
    return [to_python(item, False) for item in value] if type(value) is tuple else value


def _is_default(argument: Argument, value: Any) -> bool:
    default = argument.default
    return value is default or type(value) is type(default) and value == default
