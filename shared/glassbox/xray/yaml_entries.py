"""Yaml entries: what native_functions.yaml and derivatives.yaml of the installed torch say of an operator, explained.

Both files lie in the wheel (torchgen/packaged). They are large, so an operator's entry is cut out of the text, and only
that is parsed. The mini-framework has files of the same form.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from ..records import Derivative, NativeFunction
from ._entry_words import entry_notes, kind_of
from ._formula_words import node_class, read_formulas, result_names
from ._schema_words import split_schema
from ._yaml_sources import Operator, Source, look_up, parse


def native_function(op: Any) -> NativeFunction:
    """An operator's entry in native_functions.yaml, each line explained, and what the generator makes of it.

    op   as in `table`: "add.Tensor", torch.ops.aten.add.Tensor, mini.ops.aten.add.Tensor, ...

    An operator that the generator made from another's entry (autogen) gives a record that names that entry; one that is
    not PyTorch's own gives a record that says who registered it. TypeError and ValueError as in `table`.
    """
    found = look_up(op, "native_function")
    if found.is_aten and found.own in found.source.native:
        return _read_native(found.own, found.source)
    return _absent(found)


def derivative(op: Any) -> Derivative:
    """An operator's entry in derivatives.yaml: the formula per argument and what the node keeps for it.

    op   as in `table`

    An in-place operator without an entry of its own has the functional one's. One without any entry gives a record
    whose `reason` says why: it is made of others, its result has no gradient, or nobody wrote one. TypeError and
    ValueError as in `table`.
    """
    found = look_up(op, "derivative")
    entry = _entry_for(found) if found.is_aten else ""
    if not entry:
        return Derivative(found.own, "", "", (), reason=_no_derivative(found))
    text = found.source.derivatives[entry]
    parsed = parse(text)
    _, arguments, returns = split_schema(found.source.derivative_schema(entry, parsed))
    backward, forward, constant = read_formulas(parsed, [each.name for each in arguments], result_names(returns))
    differentiable = tuple(str(each) for each in parsed.get("output_differentiability", ()))
    node = _node_of(entry, found.source) if backward else ""
    if node and found.own.partition(".")[0] == entry.partition(".")[0] + "_copy":
        node += "_copy"
    reasons = list(_reasons(found, entry, bool(backward), differentiable))
    return Derivative(
        found.own, entry, node, backward, forward, constant, differentiable, " ".join(reasons), text.rstrip()
    )


def _read_native(name: str, source: Source) -> NativeFunction:
    text = source.native[name]
    parsed = parse(text)
    _, arguments, returns = split_schema(parsed["func"])
    dispatch = tuple(
        (tuple(key.strip() for key in keys.split(",")), str(kernel))
        for keys, kernel in parsed.get("dispatch", {}).items()
    )
    delegate = parsed.get("structured_delegate", "")
    return NativeFunction(
        name,
        parsed["func"],
        arguments,
        returns,
        tuple((key, _plain(value)) for key, value in parsed.items() if key not in ("func", "dispatch")),
        dispatch,
        kind_of(parsed),
        entry_notes(name, parsed, name in source.derivatives),
        _read_native(delegate, source) if delegate in source.native else None,
        text=text,
    )


def _absent(op: Operator) -> NativeFunction:
    """The record of an operator that has no entry."""
    _, arguments, returns = split_schema(op.schema)
    made_by = _maker_of(op) if op.is_aten else ""
    if made_by:
        words = f"The generator makes {op.own} by itself, since the entry of {made_by} lists it under autogen"
        words += f": its kernel calls {made_by} and copies the result into out." if op.own.endswith("out") else "."
    elif op.is_aten:
        words = f"PyTorch defines it elsewhere: {_where_defined(op)}."
    else:
        words = f"It belongs to the namespace {op.full.partition('::')[0]}, not to aten: {_where_defined(op)}."
    kind = "generated" if made_by else "absent"
    return NativeFunction(op.own, op.schema, arguments, returns, (), (), kind, (("so", words),), generated_by=made_by)


def _maker_of(op: Operator) -> str:
    """The operator whose entry lists this one under autogen; "" if none does."""
    for maker, text in op.source.native.items():
        line = re.search(r"^  autogen:(.*)$", text, flags=re.M)
        if line and op.own in re.split(r"[,\s]+", line[1]):
            return maker
    return ""


def _where_defined(op: Operator) -> str:
    from .dispatch_tables import short_place

    line = next((each for each in op.dump.splitlines() if each.startswith("debug: ")), "")
    place = line.partition("registered at ")[2].removeprefix("defined at ")
    return f"defined at {short_place(place)}" if place else "defined in an unknown place"


def _entry_for(op: Operator) -> str:
    """The entry of derivatives.yaml that counts for an operator; "" for none."""
    known = op.source.derivatives
    if op.own in known:
        return op.own
    base, dot, overload = op.own.partition(".")
    if _is_out(op) or base.startswith("_foreach_"):
        return ""
    if base.endswith("_copy") and base.removesuffix("_copy") + dot + overload in known:
        return base.removesuffix("_copy") + dot + overload
    if base.endswith("_") and not base.endswith("__"):
        functional = base[:-1]
        if functional + dot + overload in known:
            return functional + dot + overload
        wanted = _signature(op.schema)
        same_base = [each for each in known if each.partition(".")[0] == functional]
        schemas = {each: op.source.derivative_schema(each, parse(known[each])) for each in same_base}
        return next((each for each, schema in schemas.items() if _signature(schema) == wanted), "")
    return ""


def _signature(schema: str) -> tuple[tuple[str, str], ...]:
    return tuple((each.type, each.name) for each in split_schema(schema)[1])


def _is_out(op: Operator) -> bool:
    return any(each.keyword and "!" in each.annotation for each in split_schema(op.schema)[1])


def _node_of(entry: str, source: Source) -> str:
    """The class of the entry's nodes: those of one name, and of one autograd key, are numbered in the file's order."""
    wanted = node_class(entry.partition(".")[0])
    number: dict[str, int] = {}
    for each, text in source.derivatives.items():
        if node_class(each.partition(".")[0]) != wanted:
            continue
        parsed = parse(text)
        if each == entry and "node" in parsed:
            return str(parsed["node"])
        _, arguments, returns = split_schema(source.derivative_schema(each, parsed))
        formulas = read_formulas(parsed, [a.name for a in arguments], result_names(returns))[0]
        keys = list(dict.fromkeys("" if formula.key == "Default" else formula.key for formula in formulas))
        if each == entry:
            key = "" if "" in keys else keys[0]
            return f"{wanted}{key}{number.get(key, 0)}"
        for key in keys:
            number[key] = number.get(key, 0) + 1
    return wanted


def _reasons(op: Operator, entry: str, has_formula: bool, differentiable: tuple[str, ...]) -> Any:
    """What is to be said besides the formulas, sentence by sentence."""
    if entry != op.own:
        yield f"{op.own} has no entry of its own; the generator takes that of {entry}."
    if has_formula and op.table.get("AutogradCPU", "").endswith("[math kernel]"):
        own = [key for key, row in op.table.items() if key.startswith("Autograd") and row.endswith("[autograd kernel]")]
        where = f"counts for {', '.join(own)}" if own else "is not used"
        yield (
            "On most backends its CompositeImplicitAutograd kernel runs, and autograd records the operators that it "
            f"calls; the formula {where}."
        )
    if differentiable and set(differentiable) == {"False"}:
        yield "No result has a gradient, so no node is made."
    elif not has_formula:
        yield "No argument has a gradient."


def _no_derivative(op: Operator) -> str:
    """Why an operator has no formula."""
    row = op.table.get("AutogradCPU", "")
    base = op.own.partition(".")[0]
    if row.endswith("[math kernel]"):
        return "It is CompositeImplicitAutograd: it calls operators that have derivatives, and autograd records those."
    if not op.is_aten:
        return (
            "It is not of aten: its derivative is whatever was registered for its Autograd keys, with "
            "torch.library.register_autograd for instance."
        )
    if _is_out(op):
        return "It writes to out: autograd refuses such a call where an argument requires grad."
    if base.startswith("_foreach_"):
        return "A foreach operator: the generator makes its derivative from that of the operator it repeats."
    if not any(each.type.startswith("Tensor") for each in split_schema(op.schema)[1]):
        return "It takes no tensor, so there is nothing to have a gradient."
    if not any("Tensor" in each.type for each in split_schema(op.schema)[2]):
        return "It returns no tensor, so there is nothing whose gradient could be asked for."
    if base in _constant_ones():
        return "The generator lists it among those whose result has no gradient (DONT_REQUIRE_DERIVATIVE)."
    if row.endswith("[autograd kernel]"):
        from .dispatch_tables import read_row

        place = read_row("AutogradCPU", row).place
        if "/generated/" not in place:
            return f"Its autograd kernel is written by hand: {place}."
        return (
            "Nobody wrote one: where an argument requires grad, backward through the result raises, saying that the "
            "derivative is not implemented."
        )
    return "Nothing is registered for its Autograd keys, so autograd passes it by."


@lru_cache(maxsize=1)
def _constant_ones() -> frozenset[str]:
    """The operators that the generator lets go without a derivative, from its source."""
    from . import _torch_internals as internals

    found = re.search(r"^DONT_REQUIRE_DERIVATIVE = \{(.*?)^\}", internals.generator_source(), flags=re.M | re.S)
    return frozenset(re.findall(r'^\s*"(\w+)"', found[1], flags=re.M)) if found else frozenset()


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key}: {each}" for key, each in value.items())
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    return str(value)
