"""FunctionSchema: what an operator takes and returns (PyTorch: aten/src/ATen/core/function_schema.h).

`add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)` says: the op add_, overload
Tensor; self is written to (the !) and comes back (the same letter); alpha goes by keyword. A letter without
! marks a view.
"""

import re
from dataclasses import dataclass
from typing import Any

from ...c10.dtype import int64

BASE_TYPES = frozenset(
    ("Tensor", "int", "SymInt", "float", "bool", "Scalar", "str", "ScalarType", "Device", "Generator", "MemoryFormat")
)
NO_DEFAULT = type("NoDefault", (), {"__repr__": lambda self: "NO_DEFAULT", "__slots__": ()})()

# Operators that take a Python number where their schema says Tensor (PyTorch:
# should_allow_numbers_as_tensors).
NUMBERS_AS_TENSORS = frozenset(
    name + end
    for name in ("add", "sub", "mul", "div", "true_divide", "floor_divide", "divide", "multiply", "subtract")
    for end in ("", "_")
)
_REDUCTIONS = {"None": 0, "Mean": 1, "Sum": 2}
_NAME = re.compile(r"^(?:(?P<namespace>\w+)::)?(?P<base>\w+?)(?:\.(?P<overload>\w+))?$")
_TYPE = re.compile(r"^(?P<base>[A-Za-z]\w*)(?:\((?P<alias>[^)]*)\))?(?P<rest>(?:\[\d*\]|\?)*)$")


@dataclass(frozen=True, slots=True)
class AliasInfo:
    """What an alias annotation such as (a!) says: the letters, and whether the memory is written to."""

    before_set: frozenset[str]
    is_write: bool


@dataclass(frozen=True, slots=True)
class Type:
    """The type of an argument or a result.

    base          "Tensor", "int", "Scalar", ...
    is_list       `int[]`, `Tensor[]`
    size          the 2 of `int[2]`, which one int may stand for; None without
    optional      `Tensor?`, `int[]?`
    inner_optional  the elements may be None: `Tensor?[]`
    alias         the letter of an alias annotation; "" without
    is_write      the letter carries a !
    """

    base: str
    is_list: bool = False
    size: int | None = None
    optional: bool = False
    inner_optional: bool = False
    alias: str = ""
    is_write: bool = False

    @property
    def is_tensor(self) -> bool:
        return self.base == "Tensor"

    @property
    def alias_info(self) -> AliasInfo | None:
        return AliasInfo(frozenset((self.alias,)), self.is_write) if self.alias else None

    def __str__(self) -> str:
        text = self.base
        if self.alias:
            text += f"({self.alias}{'!' if self.is_write else ''})"
        if self.is_list:
            text += ("?" if self.inner_optional else "") + f"[{'' if self.size is None else self.size}]"
        return text + ("?" if self.optional else "")


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: its name, type, default (NO_DEFAULT where there is none) and whether it goes by keyword only."""

    name: str
    type: Type
    default: Any = NO_DEFAULT
    kwarg_only: bool = False

    @property
    def has_default(self) -> bool:
        return self.default is not NO_DEFAULT

    @property
    def is_out(self) -> bool:
        """An argument of an out= variant that takes the result."""
        return self.kwarg_only and self.type.is_write

    @property
    def alias_info(self) -> "AliasInfo | None":
        return self.type.alias_info

    @property
    def default_value(self) -> Any:
        """The default, None where there is none too: see has_default_value()."""
        return self.default if self.has_default else None

    def has_default_value(self) -> bool:
        return self.has_default

    def __str__(self) -> str:
        return f"{self.type} {self.name}" + (f"={_written(self.default, self.type)}" if self.has_default else "")


@dataclass(frozen=True, slots=True)
class Return:
    """One result: its type and its name, "" where the schema gives none."""

    type: Type
    name: str = ""

    @property
    def alias_info(self) -> AliasInfo | None:
        return self.type.alias_info

    def __str__(self) -> str:
        return f"{self.type} {self.name}".rstrip()


@dataclass(frozen=True, slots=True)
class FunctionSchema:
    """A parsed schema line. `name` is namespace::base, `overload` "" for the default one."""

    namespace: str
    base: str
    overload: str
    arguments: tuple[Argument, ...]
    returns: tuple[Return, ...]

    @property
    def name(self) -> str:
        return f"{self.namespace}::{self.base}"

    @property
    def overload_name(self) -> str:
        """The overload as PyTorch's schemas call it: "" for the nameless one, which is "default" in Python."""
        return self.overload

    @property
    def key(self) -> str:
        """base.overload, or base alone: how native_functions.yaml names the op."""
        return f"{self.base}.{self.overload}" if self.overload else self.base

    @property
    def positional(self) -> tuple[Argument, ...]:
        return tuple(argument for argument in self.arguments if not argument.kwarg_only)

    @property
    def out_arguments(self) -> tuple[Argument, ...]:
        return tuple(argument for argument in self.arguments if argument.is_out)

    @property
    def takes_numbers(self) -> bool:
        """Whether a Python number may stand where it says Tensor, but for self."""
        return self.base in NUMBERS_AS_TENSORS

    @property
    def is_out(self) -> bool:
        return bool(self.out_arguments)

    @property
    def is_inplace(self) -> bool:
        """The op writes into an argument that is no out= argument: add_, and native_batch_norm's own running stats do
        not count, since the schema says so by a letter with !."""
        return self.base.endswith("_") and not self.base.startswith("__") and not self.is_out

    @property
    def is_mutable(self) -> bool:
        return any(argument.type.is_write for argument in self.arguments)

    @property
    def is_view(self) -> bool:
        """A result shares memory with an argument and nothing is written."""
        return not self.is_mutable and any(result.type.alias for result in self.returns)

    def __str__(self) -> str:
        parts, keyword = [], False
        for argument in self.arguments:
            if argument.kwarg_only and not keyword:
                keyword = True
                parts.append("*")
            parts.append(str(argument))
        results = ", ".join(map(str, self.returns))
        if len(self.returns) != 1 or self.returns[0].name:
            results = f"({results})"
        return f"{self.namespace}::{self.key}({', '.join(parts)}) -> {results}"


def parse(line: str, namespace: str = "aten") -> FunctionSchema:
    """The schema that `line` writes; RuntimeError says what cannot be read in it and where."""
    text = line.strip()
    opened = text.find("(")
    if opened < 0 or "->" not in text:
        raise _problem(line, "it needs the form name(arguments) -> results")
    closed = _closing(text, opened, line)
    found = _NAME.match(text[:opened].strip())
    if not found:
        raise _problem(line, f"{text[:opened].strip()!r} is no operator name")
    arrow = text[closed + 1 :].strip()
    if not arrow.startswith("->"):
        raise _problem(line, f"after the arguments comes '->', not {arrow[:10]!r}")
    arguments: list[Argument] = []
    keyword = False
    for part in _split(text[opened + 1 : closed]):
        if part == "*":
            keyword = True
            continue
        arguments.append(_argument(part, keyword, line))
    names = [argument.name for argument in arguments]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise _problem(line, f"two arguments are called {twice!r}")
    defaulted = False
    for argument in arguments:
        if argument.kwarg_only:
            break
        if defaulted and not argument.has_default:
            raise _problem(line, f"{argument.name!r} has no default but comes after an argument that has one")
        defaulted = argument.has_default
    return FunctionSchema(
        found["namespace"] or namespace,
        found["base"],
        found["overload"] or "",
        tuple(arguments),
        _returns(arrow[2:].strip(), line),
    )


def _argument(text: str, keyword: bool, line: str) -> Argument:
    written, equals, default = text.partition("=")
    type_text, _, name = written.strip().rpartition(" ")
    if not type_text or not name.isidentifier():
        raise _problem(line, f"{text!r} is no argument: write a type, a name, and =default if there is one")
    kind = _type(type_text.strip(), line)
    return Argument(name, kind, _default(default.strip(), kind, line) if equals else NO_DEFAULT, keyword)


def _returns(text: str, line: str) -> tuple[Return, ...]:
    parts = _split(text[1:-1]) if text.startswith("(") and text.endswith(")") else [text]
    found = []
    for part in parts:
        kind, _, name = part.partition(" ")
        found.append(Return(_type(kind, line), name.strip()))
    return tuple(found)


def _type(text: str, line: str) -> Type:
    found = _TYPE.match(text)
    if not found or found["base"] not in BASE_TYPES:
        raise _problem(line, f"{text!r} is no type; known are {', '.join(sorted(BASE_TYPES))}, with [] and ?")
    rest, alias = found["rest"], found["alias"] or ""
    is_list = "[" in rest
    size = re.search(r"\[(\d+)\]", rest)
    base = "int" if found["base"] == "SymInt" else found["base"]
    letter = alias.split("->")[0].strip()
    return Type(
        base,
        is_list,
        int(size[1]) if size else None,
        rest.endswith("?"),
        is_list and "?" in rest[: rest.index("[")],
        letter.rstrip("!"),
        letter.endswith("!"),
    )


def _default(text: str, kind: Type, line: str) -> Any:
    if text in ("None", "True", "False") and not (text == "None" and kind.base == "int" and not kind.optional):
        return {"None": None, "True": True, "False": False}[text]
    if kind.base == "int" and text in _REDUCTIONS:
        return _REDUCTIONS[text]
    if text.startswith("[") and text.endswith("]"):
        return tuple(_default(item, Type(kind.base), line) for item in _split(text[1:-1]))
    if text[:1] in "\"'" and text[:1] and text[-1:] == text[:1]:
        return text[1:-1]
    if kind.base == "ScalarType" and text == "long":
        return int64
    if kind.base == "MemoryFormat":
        return text
    try:
        number: Any = float(text) if any(c in text for c in ".e") or kind.base == "float" else int(text)
    except ValueError:
        raise _problem(line, f"{text!r} is no default that can be read") from None
    return (number,) * (kind.size or 1) if kind.is_list else number


def _written(default: Any, kind: Type) -> str:
    if isinstance(default, tuple):
        return f"[{', '.join(_written(item, kind) for item in default)}]"
    if default is int64:
        return "long"
    return repr(default) if isinstance(default, str) and kind.base == "str" else str(default)


def _closing(text: str, opened: int, line: str) -> int:
    depth = 0
    for place in range(opened, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return place
    raise _problem(line, "a parenthesis is not closed")


def _split(text: str) -> list[str]:
    """At commas outside of any bracket."""
    parts, depth, start = [], 0, 0
    for place, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    rest = text[start:].strip()
    return [*parts, rest] if rest else parts


def _problem(line: str, what: str) -> RuntimeError:
    return RuntimeError(f"cannot read the schema {line.strip()!r}: {what}")
