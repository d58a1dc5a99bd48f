"""Lab 2, extension: a boxed kernel that rewrites arguments (PyTorch: ATen/native/MathBitsFallback.h)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from typing import Any

from ..model import Case, Draw, Property, Task
from . import real

TENSORS = ("x", "y", "z", "w")
Named = tuple[tuple[str, Any], ...]


class _Reached(Exception):  # noqa: N818 - it is what is waited for
    """The kernel has been reached, with these arguments."""


@cache
def _tensors() -> dict[str, Any]:
    import torch

    return {name: torch.zeros(1) for name in TENSORS}


def _true_rewrite(schema: str, args: Sequence[Any], kwargs: Named, swaps: Sequence[tuple[str, Any, Any]]) -> Any:
    import torch

    def kernel(*args: Any, **kwargs: Any) -> None:
        raise _Reached(args, kwargs)

    _, _, signature = schema.partition("(")
    with real.operators(f"f({signature}") as library:
        library.impl("f", kernel, "CompositeExplicitAutograd")
        op = real.operator(library, "f")
        declared = op._schema.arguments
        try:
            # A fallback is told what differs from the defaults; all the rest is in the schema.
            op(*map(_real, args), **{name: _real(value) for name, value in kwargs})
        except _Reached as reached:
            args, named = torch._library.utils.fill_defaults(op._schema, *reached.args)
        rewritten = [
            _swapped(argument, value, swaps) for argument, value in zip(declared, [*args, *named.values()], strict=True)
        ]
    count = sum(not argument.kwarg_only for argument in declared)
    names = [argument.name for argument in declared[count:]]
    return tuple(rewritten[:count]), tuple(zip(names, rewritten[count:], strict=True))


def _real(value: Any) -> Any:
    """A case's value as PyTorch takes it: a tensor for the name of one."""
    if isinstance(value, tuple):
        return [_real(each) for each in value]
    return _tensors().get(value, value) if isinstance(value, str) else value


def _swapped(argument: Any, value: Any, swaps: Sequence[tuple[str, Any, Any]]) -> Any:
    """A value as the case writes it, swapped where its declared type says so and the operator only reads it."""
    if isinstance(value, list | tuple):
        return tuple(_swapped(argument, each, swaps) for each in value)
    told = next((name for name, tensor in _tensors().items() if tensor is value), value)
    base = str(argument.type).removeprefix("Optional[").removeprefix("List[").rstrip("]")
    if argument.alias_info is not None and argument.alias_info.is_write:
        return told
    for kind, old, new in swaps:
        if kind == base and type(old) is type(told) and old == told:
            return new
    return told


# Schemas to draw from: the name, then each argument as (type, name, default or ""), "*" before keyword-only ones.

KINDS = ("Tensor", "Tensor?", "int", "float", "bool", "str", "int[]", "int?", "float?", "Tensor[]", "int[2]")
NAMES = {
    "Tensor": ("self", "other", "mat2", "target"),
    "Tensor?": ("weight", "bias", "mask"),
    "int": ("dim", "n", "start", "groups"),
    "float": ("eps", "p", "beta", "scale"),
    "bool": ("keepdim", "train", "flag", "inplace"),
    "str": ("mode", "reduction"),
    "int[]": ("size", "dims", "shape"),
    "int?": ("seed", "end", "correction"),
    "float?": ("value", "rcond"),
    "Tensor[]": ("tensors", "rest"),
    "int[2]": ("stride", "padding"),
}
DEFAULTS = {
    "Tensor?": ("None",),
    "int": ("0", "1", "-1", "2"),
    "float": ("0.5", "1e-05", "0.1", "2.5"),
    "bool": ("True", "False"),
    "str": ('"mean"', '"sum"', '"constant"'),
    "int[]": ("[]", "[0]", "[1, 2]"),
    "int?": ("None", "1"),
    "float?": ("None", "0.25"),
    "int[2]": ("1", "0", "[2, 3]"),
}
OPS = ("aten::pool.out", "mine::blend", "aten::pad", "norm", "lerp.Scalar", "lab::mix.default")


def _value(rng: random.Random, kind: str) -> Any:
    base = kind.removesuffix("?")
    if kind.endswith("?") and rng.random() < 0.25:
        return None
    if base == "Tensor":
        return rng.choice(TENSORS)
    if base == "Tensor[]":
        return tuple(rng.choices(TENSORS, k=rng.randint(1, 3)))
    if base == "int[]":
        return tuple(rng.randint(-1, 4) for _ in range(rng.randint(0, 3)))
    if base == "int[2]":
        return (rng.randint(0, 4), rng.randint(0, 4)) if rng.random() < 0.6 else rng.randint(0, 4)
    return {
        "int": rng.randint(-2, 5),
        "float": rng.choice((0.5, 0.25, 1.5, 0.1, 3.0)),
        "bool": rng.random() < 0.5,
        "str": rng.choice(("mean", "sum", "constant", "none")),
    }[base]


def _call(
    swaps: int = 0,
    kinds: Sequence[str] = KINDS,
    written: bool = False,
    wrong: str = "",
    keyword: float = 0.4,
    least: int = 3,
) -> Draw:
    """A schema with arguments of some kinds, a call of it, and swaps; an argument is written to where told."""

    def draw(rng: random.Random) -> Case:
        arguments = _arguments(rng, kinds, written, least)
        required = [nr for nr, one in enumerate(arguments) if not one[2]]
        only = rng.randint(max(1, len(arguments) - 2), len(arguments) + 1)
        texts = [f"{kind} {name}" + (f"={default}" if default else "") for kind, name, default in arguments]
        texts[only:only] = ["*"] if only < len(arguments) else []
        schema = f"{rng.choice(OPS)}({', '.join(texts)}) -> Tensor"
        # How many come by position, which of the rest by keyword.
        positional = rng.randint(1, min(only, len(arguments)))
        args = [_value(rng, _bare(kind)) for kind, _, _ in arguments[:positional]]
        named = [
            (name, _value(rng, _bare(kind)))
            for nr, (kind, name, default) in enumerate(arguments)
            if nr >= positional and (nr in required or rng.random() < keyword)
        ]
        rng.shuffle(named)
        if wrong == "unknown":
            named.insert(rng.randint(0, len(named)), (rng.choice(("alpha", "out", "dtype")), 1))
        elif wrong == "twice":
            named.append((arguments[rng.randrange(positional)][1], args[0]))
        elif wrong == "too many":
            args = [_value(rng, _bare(kind)) for kind, _, _ in arguments[:only]]
            named = [pair for pair in named if pair[0] in [name for _, name, _ in arguments[only:]]]
            args.append(1)
        elif wrong == "missing":
            args, named = args[:0], [pair for pair in named if pair[0] != arguments[0][1]]
        return schema, tuple(args), tuple(named), _swaps(rng, swaps, arguments, args, named)

    return draw


def _arguments(rng: random.Random, kinds: Sequence[str], written: bool, least: int) -> list[tuple[str, str, str]]:
    taken: set[str] = set()
    found = [("Tensor", "self", "")]
    taken.add("self")
    for _ in range(rng.randint(least, least + 3)):
        kind = rng.choice(kinds)
        free = [name for name in NAMES[kind] if name not in taken]
        if not free:
            continue
        name = rng.choice(free)
        taken.add(name)
        default = rng.choice(DEFAULTS[kind]) if kind in DEFAULTS and rng.random() < 0.65 else ""
        found.append((kind, name, default))
    # As in Python, an argument with a default is followed by none without.
    found.sort(key=lambda one: bool(one[2]))
    if written:
        at = rng.choice([nr for nr, one in enumerate(found) if one[0] == "Tensor"])
        found[at] = "Tensor(a!)", *found[at][1:]
        others = [nr for nr, one in enumerate(found) if one[0] == "Tensor"]
        if others:
            found[others[0]] = rng.choice(("Tensor(b)", "Tensor(b)", "Tensor(b!)")), *found[others[0]][1:]
    return found


def _bare(kind: str) -> str:
    """A kind without its alias annotation."""
    return "Tensor" if kind.startswith("Tensor(") else kind


def _swaps(
    rng: random.Random,
    count: int,
    arguments: Sequence[tuple[str, str, str]],
    args: Sequence[Any],
    named: Sequence[tuple[str, Any]],
) -> tuple[tuple[str, Any, Any], ...]:
    """Swaps of values that are there: by the right type, by another, of 1 for True, a second time; and of others."""
    if not count:
        return ()
    given = {**dict(zip([name for _, name, _ in arguments], args, strict=False)), **dict(named)}
    marked = [name for kind, name, _ in arguments if "(" in kind and name in given]
    types = {name: _bare(kind).removesuffix("?").removesuffix("[]").removesuffix("[2]") for kind, name, _ in arguments}
    rest = [name for name in given if name in types and name not in marked]
    found: list[tuple[str, Any, Any]] = []
    for name in [*marked, *rng.sample(rest, min(len(rest), count))]:
        value = given[name]
        if isinstance(value, tuple):
            value = rng.choice(value) if value else None
        if value is None:
            continue
        kind = types[name] if name in marked or rng.random() < 0.85 else rng.choice(("Tensor", "int", "str"))
        twin = _twin(value)
        if twin is not None and rng.random() < 0.35:
            found.append((kind, twin, _another(rng, types[name], value)))
        else:
            found.append((kind, value, _another(rng, types[name], value)))
            if rng.random() < 0.4:
                found.append((kind, value, _another(rng, types[name], value)))
    old, new = rng.sample(TENSORS, 2)
    found += [("int", 1, 7), ("str", "mean", "none"), ("Tensor", old, new)]
    return tuple(found)


def _twin(value: Any) -> Any:
    """A value that Python calls equal and that is of another type; None where there is none."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return bool(value) if value in (0, 1) else float(value)
    return int(value) if isinstance(value, float) and value.is_integer() else None


def _another(rng: random.Random, kind: str, value: Any) -> Any:
    new = value
    while new in (None, value):
        new = _value(rng, kind)
    return new


rewrite_call = Task(
    id="lab2.rewrite_call",
    title="A boxed kernel that rewrites arguments",
    function="rewrite_call",
    points=12,
    minutes=40,
    difficulty=4,
    oracle=_true_rewrite,
    # The mini-framework parses schemas and binds calls, but swaps nothing: each property but the first needs swaps.
    properties=(
        Property(
            "arguments in the schema's order, defaults filled in",
            weight=2,
            corners=(
                _call(kinds=("int", "bool", "float")),
                _call(kinds=("int", "str"), keyword=0),
                _call(kinds=("Tensor", "Tensor?", "float?", "int?"), keyword=0.2),
                _call(kinds=("bool", "float", "str"), keyword=1),
            ),
            draws=(_call(kinds=("int", "bool", "float", "str", "Tensor", "Tensor?", "int?", "float?")),),
            why="a boxed kernel serves every operator: it knows of one only what the schema says",
            slip="keywords in any order go to their places, and what is after * is returned by name",
        ),
        Property(
            "lists",
            weight=3,
            corners=(
                _call(kinds=("int[]", "int")),
                _call(kinds=("int[2]",), keyword=0),
                _call(3, kinds=("int[2]",), keyword=0),
                _call(kinds=("Tensor[]", "int[2]", "bool")),
            ),
            draws=(
                _call(3, kinds=("int[]", "int[2]", "Tensor[]", "int")),
                _call(3, kinds=("int[2]", "int[]", "float")),
            ),
            why="conv2d's stride is int[2], so that 2 may be written for [2, 2]",
            slip="commas stand in defaults too; for int[2] a single number, given or as the default, is both, and each "
            "of the two may be swapped",
            count=20,
        ),
        Property(
            "values swapped by their declared type",
            weight=4,
            corners=(
                _call(3, kinds=("int", "bool", "str"), keyword=0.6),
                _call(3, kinds=("Tensor", "Tensor?", "int"), written=True),
                _call(3, kinds=("int[]", "int[2]", "Tensor[]", "int?")),
                _call(3, kinds=("Tensor", "Tensor[]"), written=True, least=4),
                _call(6, kinds=("int", "bool", "float", "int?"), keyword=1, least=5),
                _call(6, kinds=("int", "str", "Tensor"), keyword=1, least=5),
            ),
            draws=(_call(3, written=True), _call(3), _call(3, kinds=("Tensor", "int", "int[]"), written=True)),
            why="this is how a fallback sends arguments to another device, or negates what is lazily negated",
            slip="defaults and the elements of lists are swapped too; an argument with ! is written to, so it stays",
            count=20,
        ),
        Property(
            "calls that do not fit the schema",
            weight=1,
            corners=(
                _call(wrong="unknown", kinds=("int", "bool")),
                _call(wrong="twice", kinds=("int", "bool")),
                _call(wrong="too many", kinds=("int", "bool")),
                _call(wrong="missing", kinds=("int", "bool")),
            ),
            draws=(_call(3), _call(3, written=True)),
            why="the binding refuses these before any kernel is asked",
            slip="RuntimeError for a keyword that is unknown or given twice, for one argument too many, and for one "
            "that is missing and has no default",
            count=15,
        ),
    ),
    hints=(
        "Cut the text into arguments first: what stands between the first ( and the last ) before ->, split at commas "
        "that are outside brackets.",
        "An argument is its type, its name, and perhaps =default. ast.literal_eval reads every default that occurs.",
        "Type for a swap: without ?, without [..], without the annotation in round brackets; ! in that annotation "
        "means that the operator writes to it. True == 1 in Python, so compare types as well.",
    ),
    read="notebook 02, 10. One boxed kernel that sees every operator",
)
