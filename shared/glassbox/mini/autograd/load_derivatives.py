"""derivatives.yaml read: formulas, and what each needs saved (PyTorch: tools/autograd/load_derivatives.py).

A formula is a Python expression over the names of the op's arguments and results and `grad` (`grads[i]` of several).
Of a tensor argument x a formula needs the tensor itself, which is then saved, or only x.shape, x.dtype and the like,
which are saved alone.
"""

import ast
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..aten.core.function_schema import FunctionSchema
from ..aten.native_functions import native_functions

FILE = Path(__file__).with_name("derivatives.yaml")
NON_DIFFERENTIABLE = "non_differentiable"
# What x.shape and its like in a formula save instead of x: under which name (PyTorch's: x_sym_sizes), and as which
# expression over x. The second table is for arguments that are lists of tensors.
METADATA = {
    "shape": ("sym_sizes", "{}._shape"),
    "stride": ("sym_strides", "{}._stride"),
    "offset": ("sym_storage_offset", "{}._offset"),
    "dtype": ("scalar_type", "{}._dtype"),
    "device": ("device", "{}._device"),
    "ndim": ("dim", "len({}._shape)"),
    "geometry": ("geometry", "({0}._shape, {0}._stride, {0}._offset)"),
}
LIST_METADATA = {
    "shapes": ("args_sizes", "tuple([each._shape for each in {}])"),
    "dtypes": ("args_scalartypes", "tuple([each._dtype for each in {}])"),
}
ENTRY_FIELDS = frozenset(("name", "node", "output_differentiability"))


@dataclass(frozen=True)
class Formula:
    """The gradients of some arguments, by one expression.

    inputs       the arguments; more than one where the expression gives a tuple
    expression   over saved names: x where x is saved, x_sym_sizes where only its shape is
    saved        names of tensor arguments that it needs whole
    results      (name, number) of the results that it needs
    fields       name -> (argument, expression over it that is saved)
    """

    inputs: tuple[str, ...]
    expression: str
    saved: tuple[str, ...]
    results: tuple[tuple[str, int], ...]
    fields: Mapping[str, tuple[str, str]]


@dataclass(frozen=True)
class DifferentiabilityInfo:
    """What derivatives.yaml says of one op: its node's name, its formulas, and the arguments they are for."""

    schema: FunctionSchema
    node: str
    formulas: tuple[Formula, ...]
    inputs: tuple[str, ...]
    output_differentiability: tuple[bool, ...] | None = None


@functools.cache
def differentiability_infos() -> dict[str, DifferentiabilityInfo]:
    """Every entry by its op's base.overload name; ValueError says which formula cannot be read."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found: dict[str, DifferentiabilityInfo] = {}
    counts: dict[str, int] = {}
    for entry in yaml.load(FILE.read_text(encoding="utf-8"), loader):
        key = entry.pop("name")
        native = native_functions().get(key)
        if native is None:
            raise ValueError(f"{FILE.name}: {key} is in no entry of native_functions.yaml")
        if key in found:
            raise ValueError(f"{FILE.name}: {key} stands there twice")
        node = entry.get("node", "")
        if not node and not set(entry) <= ENTRY_FIELDS:
            prefix = node_prefix(native.schema.base)
            number = counts.get(prefix, 0)
            counts[prefix] = number + 1
            node = f"{prefix}{number}"
        found[key] = info_of(native.schema, entry, node)
    names = [info.node for info in found.values() if info.formulas]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"{FILE.name}: two entries make nodes called {', '.join(sorted(twice))}: give one a `node:`")
    return found


def node_prefix(base: str) -> str:
    """mul -> MulBackward, _log_softmax -> LogSoftmaxBackward, nll_loss_forward -> NllLossBackward."""
    return "".join(part.title() for part in base.removesuffix("_forward").split("_")) + "Backward"


def info_of(schema: FunctionSchema, entry: Mapping[str, Any], node: str) -> DifferentiabilityInfo:
    """An entry's formulas for an op, checked against its schema."""
    entry = dict(entry)
    differentiability = entry.pop("output_differentiability", None)
    entry.pop("node", None)
    formulas: list[Formula] = []
    known = {argument.name: argument for argument in schema.arguments}
    for names, text in entry.items():
        inputs = tuple(name.strip() for name in names.split(","))
        for name in inputs:
            if name not in known or not known[name].type.is_tensor:
                raise ValueError(f"{FILE.name}: {name!r} is no tensor argument of {schema}")
        if text != NON_DIFFERENTIABLE:
            formulas.append(read_formula(schema, inputs, str(text)))
    order = [argument.name for argument in schema.arguments]
    # A node computes its gradients in the order of these words, as PyTorch's does.
    formulas.sort(key=lambda formula: ", ".join(formula.inputs))
    return DifferentiabilityInfo(
        schema,
        node,
        tuple(formulas),
        tuple(sorted((name for f in formulas for name in f.inputs), key=order.index)),
        None if differentiability is None else tuple(differentiability),
    )


def result_names(schema: FunctionSchema) -> tuple[str, ...]:
    """How formulas call the results: by their names in the schema, else result, or result0, result1, ..."""
    if len(schema.returns) == 1:
        return (schema.returns[0].name or "result",)
    return tuple(each.name or f"result{nr}" for nr, each in enumerate(schema.returns))


def read_formula(schema: FunctionSchema, inputs: tuple[str, ...], text: str) -> Formula:
    """One formula; ValueError where it is no expression."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as problem:
        raise ValueError(f"{FILE.name}: {schema.key}: the formula {text!r} is no expression: {problem.msg}") from None
    arguments = {argument.name: argument for argument in schema.arguments}
    results = {name: nr for nr, name in enumerate(result_names(schema))}
    saved: list[str] = []
    used: list[tuple[str, int]] = []
    fields: dict[str, tuple[str, str]] = {}

    class Saved(ast.NodeTransformer):
        def visit_Attribute(self, node: ast.Attribute) -> ast.AST:  # noqa: N802
            inner = node.value
            if isinstance(inner, ast.Name) and inner.id in arguments and arguments[inner.id].type.is_tensor:
                argument = arguments[inner.id]
                table = LIST_METADATA if argument.type.is_list else METADATA
                if node.attr in table:
                    suffix, text = table[node.attr]
                    name, value = f"{inner.id}_{suffix}", text.format(inner.id)
                    if argument.type.optional:
                        value = f"None if {inner.id} is None else {value}"
                    fields[name] = (inner.id, value)
                    return ast.Name(name, ast.Load())
            return self.generic_visit(node)

        def visit_Name(self, node: ast.Name) -> ast.AST:  # noqa: N802
            name = node.id
            if name in arguments:
                if not arguments[name].type.is_tensor:
                    fields[name] = (name, name)
                elif name not in saved:
                    saved.append(name)
            elif name in results and (name, results[name]) not in used:
                used.append((name, results[name]))
            return node

    expression = ast.unparse(Saved().visit(tree))
    return Formula(inputs, expression, tuple(saved), tuple(used), fields)
