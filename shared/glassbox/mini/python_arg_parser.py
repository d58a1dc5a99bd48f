"""Reading the arguments of a Python call (PyTorch: torch/csrc/utils/python_arg_parser.cpp).

Python lets a caller leave out defaults, use keywords, give a number for a tensor, one int for a list, or sizes one by
one. An operator's call wants every argument of its schema in order. The functions here go from one to the other or
raise TypeError in the words of the operator that was called.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .aten.core.function_schema import Argument, FunctionSchema, Type
from .c10 import dtype as dtypes
from .c10.device import CPU
from .c10.device import device as Device  # noqa: N812
from .c10.dtype import dtype as DType  # noqa: N812
from .c10.generator import Generator
from .c10.storage import Storage
from .c10.tensor_impl import WRAPPED_NUMBER, TensorImpl, make_tensor

Convert = Callable[[Any, str], Any]

_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
MEMORY_FORMATS = ("contiguous_format", "preserve_format")
_wrapped: dict[tuple[type, Any], TensorImpl] = {}


def wrapped_number(value: Any) -> TensorImpl:
    """A Python number as a 0-d CPU tensor whose dtype counts least: float64, int64 or bool.

    The same small tensor serves equal numbers, since nobody writes to it.
    """
    kind = type(value)
    # -0.0 equals 0.0 and must not be taken for it.
    cacheable = kind is int or kind is bool or (kind is float and value != 0.0)
    found = _wrapped.get((kind, value)) if cacheable else None
    if found is None:
        dtype = dtypes.of_scalar(value)
        dtype = dtypes.float64 if dtype is dtypes.float32 else dtype
        array = np.array(dtypes.to_element(value, dtype), dtype.numpy)
        array.flags.writeable = False
        # Not through fresh(): a number is no inference tensor, whatever the mode is when it is met first.
        found = make_tensor(Storage.over(array), (), (), 0, dtype, CPU, CPU.keys, [0], array)
        found._meta = WRAPPED_NUMBER
        if cacheable and len(_wrapped) < 4096:
            _wrapped[kind, value] = found
    return found


def _expected(where: str, kind: str, value: Any) -> TypeError:
    return TypeError(f"{where} must be {kind}, not {type(value).__name__}")


def to_tensor(value: Any, where: str) -> Any:
    if isinstance(value, TensorImpl):
        return value
    raise _expected(where, "a Tensor", value)


def to_tensor_or_number(value: Any, where: str) -> Any:
    if isinstance(value, TensorImpl):
        return value
    if isinstance(value, _NUMBERS):
        return wrapped_number(value)
    raise _expected(where, "a Tensor", value)


def to_int(value: Any, where: str) -> int:
    if not isinstance(value, bool | np.bool_ | float | np.floating):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise _expected(where, "an int", value)


def _to_index(value: Any, where: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise _expected(where, "an int", value) from None


def to_float(value: Any, where: str) -> float:
    if isinstance(value, _NUMBERS):
        return float(value)
    if isinstance(value, TensorImpl) and not value._shape:
        return float(value)  # type: ignore[arg-type]
    raise _expected(where, "a float", value)


def to_bool(value: Any, where: str) -> bool:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise _expected(where, "a bool", value)


def to_scalar(value: Any, where: str) -> bool | int | float:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return value.item()
    if isinstance(value, TensorImpl) and not value._shape and not value._requires_grad:
        return value.item()  # type: ignore[attr-defined]
    raise _expected(where, "a number", value)


def to_str(value: Any, where: str) -> str:
    if isinstance(value, str):
        return value
    raise _expected(where, "a str", value)


def to_dtype(value: Any, where: str) -> DType:
    if isinstance(value, DType):
        return value
    if isinstance(value, type) and value in (float, int, bool):
        return dtypes.named(value, where)
    raise _expected(where, "a dtype such as mini.float32", value)


def to_device(value: Any, where: str) -> Device:
    if isinstance(value, Device | str):
        return Device(value).without_index()
    raise _expected(where, 'a device such as "cpu"', value)


def to_generator(value: Any, where: str) -> Generator:
    if isinstance(value, Generator):
        return value
    raise _expected(where, "a Generator", value)


def to_memory_format(value: Any, where: str) -> str:
    name = str(value).rpartition(".")[2]
    if name in MEMORY_FORMATS:
        return name
    raise TypeError(f"{where} must be one of {', '.join(MEMORY_FORMATS)}, not {value!r}")


_BASE: dict[str, Convert] = {
    "Tensor": to_tensor,
    "int": to_int,
    "float": to_float,
    "bool": to_bool,
    "Scalar": to_scalar,
    "str": to_str,
    "ScalarType": to_dtype,
    "Device": to_device,
    "Generator": to_generator,
    "MemoryFormat": to_memory_format,
}


def converter(kind: Type, numbers: bool = False) -> Convert:
    """The function (value, where) that turns what a caller gave into what the schema's type says."""
    one = to_tensor_or_number if numbers and kind.is_tensor else _BASE[kind.base]
    if kind.is_list:
        one = _list_of(_or_none(one) if kind.inner_optional else one, kind)
    return _or_none(one) if kind.optional else one


def _or_none(one: Convert) -> Convert:
    def convert(value: Any, where: str) -> Any:
        return None if value is None else one(value, where)

    return convert


def _list_of(one: Convert, kind: Type) -> Convert:
    later = _to_index if kind.base == "int" else None

    def convert(value: Any, where: str) -> tuple[Any, ...]:
        if type(value) is tuple and later is not None:
            for item in value:
                if type(item) is not int:
                    break
            else:
                return value
        if isinstance(value, tuple | list):
            if later is not None and value:
                # Only the first item tells what a list holds: zeros(2, True) is taken, zeros(True, 2) is not.
                return (one(value[0], where), *[later(item, where) for item in value[1:]])
            return tuple([one(item, where) for item in value])
        if kind.size is not None and not isinstance(value, TensorImpl):
            return (one(value, where),) * (kind.size if kind.size > 1 else 1)
        raise _expected(where, f"a tuple of {kind.base}s", value)

    return convert


def takes_varargs(positional: tuple[Argument, ...]) -> bool:
    """Whether sizes may be given one by one, as in x.view(2, 3): the only argument is a list of ints."""
    rest = [argument for argument in positional if argument.name != "self"]
    return len(rest) == 1 and rest[0].type.base == "int" and rest[0].type.is_list and rest[0].type.size is None


def make_binder(schema: FunctionSchema) -> Callable[[tuple[Any, ...], dict[str, Any]], tuple[Any, ...]]:
    """A function (args, kwargs) -> all arguments of the schema in order; TypeError where they do not fit."""
    name = schema.base
    positional = schema.positional
    numbers = schema.takes_numbers
    known = {argument.name for argument in schema.arguments}
    # What a schema calls self is called input in Python's functions.
    called = {"self": "input"} if "input" not in known else {}
    names = [called.get(argument.name, argument.name) for argument in schema.arguments]
    steps = [
        (each, converter(each.type, numbers and not (nr == 0 and schema.is_inplace)), f"{name}(): argument '{shown}'")
        for nr, (each, shown) in enumerate(zip(schema.arguments, names, strict=True))
    ]
    varargs = takes_varargs(positional)
    aliases = {"axis": "dim", "axes": "dim", "keepdims": "keepdim", "x": "self", "x2": "other", "input": "self"}
    converters = [(convert, where) for _, convert, where in steps[: len(positional)]]
    required = sum(not argument.has_default for argument in positional)
    by_keyword = all(argument.has_default for argument in schema.arguments[len(positional) :])
    defaults = tuple(argument.default for argument in schema.arguments)

    def bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        count = len(args)
        if not kwargs and not varargs and by_keyword and required <= count <= len(positional):
            # Nothing by name and nothing missing: no need to look up who is who.
            bound = [convert(value, where) for (convert, where), value in zip(converters, args, strict=False)]
            return (*bound, *defaults[count:])
        return look_up(args, kwargs)

    def look_up(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        if varargs and len(args) != len(positional) or varargs and args and _is_int(args[-1]):
            fixed = len(positional) - 1
            if len(args) > fixed:
                args = (*args[:fixed], tuple(args[fixed:]))
        if len(args) > len(positional):
            raise TypeError(
                f"{name}() takes {len(positional)} positional argument{'s' * (len(positional) != 1)} "
                f"but {len(args)} were given"
            )
        given = dict(zip((argument.name for argument in positional), args, strict=False))
        for key, value in kwargs.items():
            key = key if key in known else aliases.get(key, key)
            if key not in known:
                raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
            if key in given:
                raise TypeError(f"{name}() got multiple values for argument '{key}'")
            given[key] = value
        bound = []
        for (argument, convert, where), shown in zip(steps, names, strict=True):
            if argument.name in given:
                bound.append(convert(given[argument.name], where))
            elif argument.has_default:
                bound.append(argument.default)
            else:
                raise TypeError(f"{name}() missing 1 required argument: '{shown}'")
        return tuple(bound)

    return bind


def _is_int(value: Any) -> bool:
    return isinstance(value, int | np.integer) or isinstance(value, TensorImpl) and not value._shape


def choose(
    name: str, overloads: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...]]:
    """The first overload whose schema takes the arguments, and the arguments bound to it.

    TypeError with all the schemas where none does.
    """
    problems = []
    for op in overloads:
        try:
            return op, op.bind(args, kwargs)
        except TypeError as problem:
            problems.append(str(problem))
    if len(overloads) == 1:
        raise TypeError(problems[0])
    given = ", ".join([type(a).__name__ for a in args] + [f"{k}={type(v).__name__}" for k, v in kwargs.items()])
    lines = "".join(f"\n * {op.schema}: {why}" for op, why in zip(overloads, problems, strict=True))
    raise TypeError(
        f"{name}() received an invalid combination of arguments - got ({given}), but expected one of:{lines}"
    )
