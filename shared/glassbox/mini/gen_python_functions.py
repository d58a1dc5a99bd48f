"""Methods and functions of Python, made from the list of operators (PyTorch: tools/autograd/gen_python_functions.py).

A name with one overload becomes a function with that schema's own parameters, whose checks cost next to nothing where
the arguments are already what the schema says. A name with several goes through the argument parser.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import Any

from . import python_arg_parser as parser
from .aten.core.dispatcher import OperatorHandle
from .aten.core.function_schema import Argument
from .aten.core.gen_operators import literal
from .aten.core.source import compile_later
from .c10 import tensor_impl
from .c10.tensor_impl import TensorImpl

_NO_SIZES = "{0}() needs sizes, such as {0}(2, 3); for a 0-d tensor write {0}(())"


def make_method(name: str, overloads: list[OperatorHandle]) -> Callable[..., Any]:
    """The method `name` of Tensor."""
    plain = [op for op in overloads if not op.schema.is_out]
    if any(op.schema.arguments[0].name != "self" for op in plain):
        return _self_later(name, _parsed(name, plain), plain[0])
    if len(plain) == 1 and _is_simple(plain[0]):
        return _compiled(name, plain[0], method=True)
    return _parsed(name, plain)


def _self_later(name: str, function: Callable[..., Any], op: OperatorHandle) -> Callable[..., Any]:
    """A method whose schema has self in a later place, as where's: x.where(condition, y)."""
    place = next(nr for nr, argument in enumerate(op.schema.arguments) if argument.name == "self")

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) < place:
            return function(*args, **kwargs, self=self)
        return function(*args[:place], self, *args[place:], **kwargs)

    method.__name__ = name
    method.__doc__ = function.__doc__
    return method


def make_function(name: str, overloads: list[OperatorHandle]) -> Callable[..., Any]:
    """The function `name` of the package."""
    plain = [op for op in overloads if not op.schema.is_out]
    if len(plain) == 1 and _is_simple(plain[0]):
        with_out = _parsed(name, overloads) if len(overloads) > 1 else None
        function = _compiled(name, plain[0], method=False, with_out=with_out)
    else:
        function = _parsed(name, overloads)
    return _factory(function) if any(_makes_tensors(op) for op in overloads) else function


def _makes_tensors(op: OperatorHandle) -> bool:
    return any(argument.type.base == "Device" for argument in op.schema.arguments)


def _factory(function: Callable[..., Any]) -> Callable[..., Any]:
    """A factory function takes requires_grad, which is Python's affair and no operator's."""

    @functools.wraps(function)
    def make(*args: Any, requires_grad: bool = False, **kwargs: Any) -> Any:
        made = function(*args, **kwargs)
        return made.requires_grad_() if requires_grad else made

    return make


def _is_simple(op: OperatorHandle) -> bool:
    return all(argument.name.isidentifier() and argument.name != "from" for argument in op.schema.arguments)


def _parsed(name: str, overloads: list[OperatorHandle]) -> Callable[..., Any]:
    # An out= variant takes what the others take, so it must only be tried when it is asked for.
    with_out = sorted((op for op in overloads if op.schema.is_out), key=_tensors_wanted, reverse=True)
    # A tensor of one element would do for a number too, so overloads that want tensors are tried first.
    without = sorted((op for op in overloads if not op.schema.is_out), key=_tensors_wanted, reverse=True)
    out_names = {argument.name for op in with_out for argument in op.schema.out_arguments} | {"out"}

    several = len(without) > 1
    wants = [(op, _tensor_places(op)) for op in without]

    # x.sum() and its like: what takes nothing but the tensor needs no choosing.
    bare = next((op for op in without if _takes_self_alone(op)), None)
    bare_call, defaults = (bare.call, _defaults(bare)) if bare is not None else (None, ())

    def function(*args: Any, **kwargs: Any) -> Any:
        if bare_call is not None and not kwargs and len(args) == 1 and isinstance(args[0], TensorImpl):
            return bare_call(args[0], *defaults)
        chosen = without
        if kwargs and with_out and not out_names.isdisjoint(kwargs):
            kwargs = _spread(kwargs)
            chosen = without if out_names.isdisjoint(kwargs) else with_out
        elif several:
            chosen = _possible(args) or without
        op, bound = parser.choose(name, chosen, args, kwargs)
        return op.call(*bound)

    def _possible(args: tuple[Any, ...]) -> list[OperatorHandle]:
        # A number where an overload wants a tensor rules it out at once.
        numbers = [nr for nr, arg in enumerate(args) if not isinstance(arg, TensorImpl)]
        return [op for op, places in wants if places.isdisjoint(numbers)] if numbers else without

    def _spread(kwargs: dict[str, Any]) -> dict[str, Any]:
        if "out" not in kwargs:
            return kwargs
        outs = kwargs["out"]
        rest = {key: value for key, value in kwargs.items() if key != "out"}
        if outs is None:
            return rest
        given = tuple(outs) if isinstance(outs, tuple | list) else (outs,)
        for op in with_out:
            names = [argument.name for argument in op.schema.out_arguments]
            if len(names) == len(given):
                return rest | dict(zip(names, given, strict=True))
        return kwargs

    function.__name__ = name
    function.__qualname__ = name
    function.__doc__ = "\n".join(str(op.schema) for op in overloads)
    return function


def _tensors_wanted(op: OperatorHandle) -> int:
    return sum(argument.type.is_tensor and not argument.type.is_list for argument in op.schema.arguments)


def _tensor_places(op: OperatorHandle) -> frozenset[int]:
    """Where among the positional arguments nothing but a tensor will do."""
    if op.schema.takes_numbers:
        return frozenset((0,) if op.schema.is_inplace else ())
    kinds = enumerate(argument.type for argument in op.schema.positional)
    return frozenset(nr for nr, kind in kinds if kind.is_tensor and not kind.is_list and not kind.optional)


def _takes_self_alone(op: OperatorHandle) -> bool:
    first, *rest = op.schema.arguments or (None,)
    return (
        first is not None
        and first.type.is_tensor
        and not first.type.is_list
        and all(argument.has_default for argument in rest)
    )


def _defaults(op: OperatorHandle) -> tuple[Any, ...]:
    return tuple(argument.default for argument in op.schema.arguments[1:])


def _compiled(
    name: str, op: OperatorHandle, method: bool, with_out: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    source = functools.cache(lambda: _source(name, op, method, with_out is not None))

    def names() -> dict[str, Any]:
        # by_name: sizes that are given by keyword, which no signature with *sizes can say.
        return source()[1] | {"call": op.call, "with_out": with_out, "by_name": _parsed(name, [op])}

    where = f"{'Tensor.' if method else ''}{name}"
    function = compile_later(name, where, lambda: source()[0], names)
    function.__doc__ = str(op.schema)
    return function


def _source(name: str, op: OperatorHandle, method: bool, takes_out: bool) -> tuple[str, dict[str, Any]]:
    schema = op.schema
    arguments = schema.arguments if method else _called_input(schema.arguments)
    namespace: dict[str, Any] = {"Tensor": tensor_impl.Tensor}
    numbers = schema.takes_numbers
    varargs = parser.takes_varargs(schema.positional)
    lines = []
    if takes_out:
        lines.append(f"    if out is not None: return with_out({_passed_on(arguments, varargs)}, out=out)")
    for nr, argument in enumerate(arguments):
        if method and argument.name == "self":
            continue
        convert = f"to_{argument.name}"
        namespace[convert] = parser.converter(argument.type, numbers and not (nr == 0 and schema.is_inplace))
        where = f"{schema.base}(): argument '{argument.name}'"
        if varargs and argument.type.is_list and not argument.kwarg_only:
            a = argument.name
            lines.append(f"    if named: return by_name({_passed_on(arguments, varargs)}, **named)")
            lines.append(f"    if len({a}) == 1 and type({a}[0]) is not int: {a} = {a}[0]")
            lines.append(f"    elif not {a}: raise TypeError({_NO_SIZES.format(name)!r})")
        test = _needs_converting(argument)
        lines.append(f"    {test}{argument.name} = {convert}({argument.name}, {where!r})")
    text = f"def {name}({_parameters(arguments, varargs, takes_out)}):\n"
    text += "\n".join([*lines, f"    return call({', '.join(a.name for a in arguments)})"]) + "\n"
    return text, namespace


def _called_input(arguments: tuple[Argument, ...]) -> tuple[Argument, ...]:
    """The arguments by the names that functions have for them: what a schema calls self is called input."""
    if any(argument.name == "input" for argument in arguments):
        return arguments
    return tuple(
        dataclasses.replace(argument, name="input") if argument.name == "self" else argument for argument in arguments
    )


def _needs_converting(argument: Argument) -> str:
    kind, name = argument.type, argument.name
    if kind.optional or argument.default is None:
        return f"if {name} is not None: "
    if kind.is_list:
        return ""
    plain = {"Tensor": "Tensor", "int": "int", "bool": "bool", "float": "float"}.get(kind.base)
    return f"if type({name}) is not {plain}: " if plain else ""


def _parameters(arguments: Iterable[Argument], varargs: bool, takes_out: bool) -> str:
    parts, star = [], False
    for argument in arguments:
        if argument.kwarg_only and not star and not varargs:
            parts.append("*")
            star = True
        text = argument.name
        if varargs and argument.type.is_list and not argument.kwarg_only:
            text = f"*{text}"
        elif argument.has_default:
            text += f"={literal(argument.default)}"
        parts.append(text)
    if takes_out:
        parts += ["out=None"] if star or varargs else ["*", "out=None"]
    return ", ".join([*parts, "**named"] if varargs else parts)


def _passed_on(arguments: Iterable[Argument], varargs: bool) -> str:
    parts = []
    for argument in arguments:
        if varargs and argument.type.is_list and not argument.kwarg_only:
            parts.append(f"*{argument.name}")
        else:
            parts.append(f"{argument.name}={argument.name}" if argument.kwarg_only else argument.name)
    return ", ".join(parts)
