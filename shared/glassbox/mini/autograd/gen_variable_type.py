"""Node classes and Autograd kernels, made from derivatives.yaml (PyTorch: tools/autograd/gen_variable_type.py).

An Autograd kernel makes the op's node where a gradient is wanted, saves what its formulas need, and redispatches to
what lies below; afterwards the node becomes the result's grad_fn. An op without formulas gets a node that says so
when a gradient arrives.
"""

import ast
from collections.abc import Callable
from typing import Any

from ..aten.core.dispatcher import OperatorHandle
from ..aten.core.function_schema import Argument, FunctionSchema
from ..aten.core.gen_operators import names, parameters
from ..aten.core.source import compile_later, compile_source
from ..c10.dispatch_key_set import AFTER_AUTOGRAD
from ..c10.grad_mode import grad_enabled
from ..c10.pieces import on_swap, pieces
from . import (
    anomaly,
    functions_manual,
    functions_nn,
    functions_pointwise,
    functions_reduction,
    node,
    saved_variable,
    variable,
    view,
)
from .load_derivatives import DifferentiabilityInfo, Formula

_NAMESPACE: dict[str, Any] = {
    "AFTER_AUTOGRAD": AFTER_AUTOGRAD,
    "grad_enabled": grad_enabled.get,
    "anomaly_blocks": anomaly.enabled,
    "remember": anomaly.remember,
    "Node": node.Node,
    "NotImplementedNode": node.NotImplementedNode,
    "gradient_edge": variable.gradient_edge,
    "edges_of_list": variable.edges_of_list,
    "next_sequence_nr": node.next_sequence_nr,
    "set_histories": variable.set_histories,
    "any_requires_grad": variable.any_requires_grad,
    "save": saved_variable.save,
    "SavedList": saved_variable.SavedList,
    "check_inplace": view.check_inplace,
    "rebase_history": view.rebase_history,
}


_classes: dict[str, type[node.Node]] = {}


def node_class(info: DifferentiabilityInfo) -> type[node.Node]:
    """The class of an op's nodes, made when the first one is."""
    found = _classes.get(info.node)
    if found is None:
        found = _classes[info.node] = make_node(info)
    return found


def make_node(info: DifferentiabilityInfo) -> type[node.Node]:
    """The class of an op's nodes."""
    namespace = _NAMESPACE | {"__name__": __name__}
    used = set().union(*(_names(formula.expression) for formula in info.formulas))
    for module in (functions_nn, functions_reduction, functions_pointwise, functions_manual):
        found = {name: value for name, value in vars(module).items() if name in used}
        _bound.extend((namespace, name, vars(module)) for name in found.keys() & pieces().keys())
        namespace |= found
    return compile_source(node_source(info), info.node, namespace)[info.node]


# The pieces that formulas call by a name of their own, so that a call costs no look-up in a module.
_bound: list[tuple[dict[str, Any], str, dict[str, Any]]] = []


def _bind_anew() -> None:
    for namespace, name, module in _bound:
        namespace[name] = module[name]


on_swap(_bind_anew)


def make_kernel(op: OperatorHandle, info: DifferentiabilityInfo | None) -> Callable[..., Any]:
    """The op's Autograd kernel; without info one that makes a node that has no derivative."""
    name = op.schema.key.replace(".", "_")

    def write() -> str:
        return out_source(op.schema, name) if op.schema.is_out else kernel_source(op.schema, name, info)

    def names() -> dict[str, Any]:
        found = _NAMESPACE | {"kernels": op.kernels}
        if info is not None and info.formulas and not op.schema.is_out:
            found[info.node] = node_class(info)
        return found

    return compile_later(name, f"VariableType.{op.schema.key}", write, names)


# Nodes

# Of what is saved of a tensor's metadata, what PyTorch lets people see.
SHOWN_METADATA = ("_sym_sizes", "_sym_strides")


def node_source(info: DifferentiabilityInfo) -> str:
    """The text of an op's node class."""
    schema = info.schema
    slots = [f"saved_{name}" for name in _saved(info)] + [f"saved_{name}" for name in _results(info)]
    fields = _fields(info)
    arguments = {argument.name for argument in schema.arguments}
    lists = [name for name in info.inputs if _argument(schema, name).type.is_list]
    slots += [f"field_{name}" for name in fields] + [f"count_{name}" for name in lists]
    many = len(schema.returns) > 1 or schema.returns[0].type.is_list
    lines = [f"class {info.node}(Node):", f"    __slots__ = ({''.join(repr(slot) + ', ' for slot in slots)})"]
    if many:
        lines.append(f"    n_outputs = {-1 if schema.returns[0].type.is_list else len(schema.returns)}")
    lines += ["", f"    def apply(node, {'*grads' if many else 'grad'}):"]
    if many:
        lines += [
            "        if all(grad is None for grad in grads):",
            "            return (None,) * len(node.next_edges)",
        ]
        if any("grad" in _names(f.expression) for f in info.formulas):
            lines.append("        grad = grads[0]")
            if not any("grads" in _names(f.expression) for f in info.formulas):
                lines += ["        if grad is None:", "            return (None,) * len(node.next_edges)"]
    else:
        lines += ["        if grad is None:", "            return (None,) * len(node.next_edges)"]
    lines.append("        edges = node.next_edges")
    lines += _apply_with_lists(info, lists) if lists else _apply(info)
    released = [*_saved(info), *_results(info)]
    if released:
        lines += ["", "    def release_variables(node):"]
    else:
        lines.insert(2, "    saves = False")
    for name in released:
        lines += [f"        if node.saved_{name} is not None:", f"            node.saved_{name}.release()"]
    for name in released:
        lines += ["", "    @property", f"    def _saved_{name}(node):"]
        lines += [f"        saved = node.saved_{name}", "        return None if saved is None else saved.unpack(node)"]
        lines += ["", "    @property", f"    def _raw_saved_{name}(node):", f"        return node.saved_{name}"]
    for name in fields:
        if name not in arguments and not name.endswith(SHOWN_METADATA):
            continue
        lines += ["", "    @property", f"    def _saved_{name}(node):", f"        return node.field_{name}"]
    return "\n".join(lines) + "\n"


def _apply(info: DifferentiabilityInfo) -> list[str]:
    place = {name: nr for nr, name in enumerate(info.inputs)}
    lines = []
    if len(info.formulas) == 1 and len(info.inputs) == 1:
        formula = info.formulas[0]
        lines += [f"        {line}" for line in _unpacked(formula)]
        return [*lines, f"        return ({formula.expression},)"]
    for line in _unpacked(*info.formulas):
        lines.append(f"        {line}")
    for formula in info.formulas:
        wanted = " or ".join(f"edges[{place[name]}] is not None" for name in formula.inputs)
        targets = ", ".join(f"to_{name}" for name in formula.inputs)
        lines.append(f"        {' = '.join(f'to_{name}' for name in formula.inputs)} = None")
        lines.append(f"        if {wanted}:")
        if "grad_input_mask" in _names(formula.expression):
            mask = ", ".join(f"edges[{place[name]}] is not None" for name in formula.inputs)
            lines.append(f"            grad_input_mask = ({mask},)")
        lines.append(f"            {targets} = {formula.expression}")
    return [*lines, f"        return ({''.join(f'to_{name}, ' for name in info.inputs)})"]


def _apply_with_lists(info: DifferentiabilityInfo, lists: list[str]) -> list[str]:
    """A list argument has an edge per tensor, so places are counted as the node runs."""
    lines = ["        results = []", "        place = 0"]
    for name in info.inputs:
        formula = next(f for f in info.formulas if name in f.inputs)
        count = f"node.count_{name}" if name in lists else "1"
        lines += [
            f"        count = {count}",
            "        if any(edge is not None for edge in edges[place:place + count]):",
        ]
        lines += [f"            {line}" for line in _unpacked(formula)]
        value = formula.expression if name in lists else f"[{formula.expression}]"
        lines += [f"            results.extend({value})", "        else:", "            results.extend([None] * count)"]
        lines.append("        place += count")
    return [*lines, "        return tuple(results)"]


def _unpacked(*formulas: Formula) -> list[str]:
    """What the formulas need as local names; each saved tensor is unpacked once."""
    saved = dict.fromkeys(name for formula in formulas for name in formula.saved)
    results = dict.fromkeys(name for formula in formulas for name, _ in formula.results)
    fields = dict.fromkeys(name for formula in formulas for name in formula.fields)
    lines = []
    for name in saved:
        lines += [f"{name} = node.saved_{name}", f"if {name} is not None:", f"    {name} = {name}.unpack()"]
    lines += [f"{name} = node.saved_{name}.unpack(node)" for name in results]
    return lines + [f"{name} = node.field_{name}" for name in fields]


# Kernels


def kernel_source(schema: FunctionSchema, name: str, info: DifferentiabilityInfo | None) -> str:
    """The text of an op's Autograd kernel."""
    tensors = [argument for argument in schema.arguments if argument.type.is_tensor]
    differentiable = [a for a in tensors if info is None or a.name in info.inputs]
    lines = [f"def {name}(key_set, {parameters(schema)}):"]
    wanted = " or ".join(_wants(argument) for argument in differentiable)
    inplace = schema.is_inplace
    if info is not None and not info.formulas:
        lines += [
            "    below = key_set & AFTER_AUTOGRAD",
            f"    return kernels[below](below{names(schema)})",
        ]
        return "\n".join(lines) + "\n"
    lines.append(f"    if ({wanted}) and grad_enabled():")
    if inplace:
        lines.append("        check_inplace(self)")
    lines += [f"        {line}" for line in _make_node(schema, info, differentiable)]
    lines += ["        if anomaly_blocks[0]:", "            remember(grad_fn)", "    else:", "        grad_fn = None"]
    lines += ["    below = key_set & AFTER_AUTOGRAD", f"    result = kernels[below](below{names(schema)})"]
    lines.append("    if grad_fn is not None:")
    if inplace:
        lines.append("        rebase_history(self, grad_fn)")
    else:
        lines += [f"        {line}" for line in _history(schema, info)]
    for result_name, nr in _results(info).items() if info is not None else ():
        value = "result" if len(schema.returns) == 1 else f"result[{nr}]"
        lines.append(f"        grad_fn.saved_{result_name} = save({value}, {nr})")
    return "\n".join([*lines, "    return result"]) + "\n"


def _make_node(schema: FunctionSchema, info: DifferentiabilityInfo | None, differentiable: list[Argument]) -> list[str]:
    if info is None:
        edges = " + ".join(
            f"edges_of_list({a.name})" if a.type.is_list else f"(gradient_edge({a.name}),)" for a in differentiable
        )
        return [f"grad_fn = NotImplementedNode({schema.name!r})", f"grad_fn.next_edges = {edges}"]
    lines = [
        f"grad_fn = {info.node}()",
        "grad_fn.sequence_nr = next_sequence_nr()",
        "grad_fn.hooks = grad_fn._metadata = None",
    ]
    lists = [argument for argument in differentiable if argument.type.is_list]
    if lists:
        parts = []
        for argument in differentiable:
            if argument.type.is_list:
                lines.append(f"grad_fn.count_{argument.name} = len({argument.name})")
                parts.append(f"edges_of_list({argument.name})")
            else:
                parts.append(f"(gradient_edge({argument.name}),)")
        lines.append(f"grad_fn.next_edges = {' + '.join(parts)}")
    else:
        for nr, argument in enumerate(differentiable):
            lines.append(f"edge{nr} = gradient_edge({argument.name})")
        lines.append(f"grad_fn.next_edges = ({''.join(f'edge{nr}, ' for nr in range(len(differentiable)))})")
    place = {argument.name: nr for nr, argument in enumerate(differentiable)}
    for name in _saved(info):
        value = _value_to_save(schema, name)
        users = {each for formula in info.formulas if name in formula.saved for each in formula.inputs}
        # What only other arguments' gradients need is kept only where those are wanted.
        guard = " or ".join(f"edge{place[each]} is not None" for each in sorted(users, key=place.__getitem__))
        optional = _argument(schema, name).type.optional
        conditions = [f"({guard})"] if not lists and len(users) < len(differentiable) else []
        conditions += [f"{name} is not None"] if optional else []
        suffix = f" if {' and '.join(conditions)} else None" if conditions else ""
        lines.append(f"grad_fn.saved_{name} = {value}{suffix}")
    for field, (_, value) in _fields(info).items():
        lines.append(f"grad_fn.field_{field} = {value}")
    return lines


def _value_to_save(schema: FunctionSchema, name: str) -> str:
    if _argument(schema, name).type.is_list:
        return f"SavedList({name})"
    # The op is about to overwrite self, but its formula needs self as it was.
    return "save(self.clone())" if name == "self" and schema.is_inplace else f"save({name})"


def _history(schema: FunctionSchema, info: DifferentiabilityInfo | None) -> list[str]:
    if schema.returns and schema.returns[0].type.is_list:
        return ["set_histories(result, grad_fn)"]
    if len(schema.returns) == 1:
        return [
            "if result._dtype.is_floating_point:",
            "    result._grad_fn = grad_fn",
            "    result._requires_grad = True",
            "    grad_fn.input_metadata = ((result._shape, result._dtype, result._device),)",
        ]
    outputs = info.output_differentiability if info is not None else None
    if outputs is not None:
        kept = ", ".join(f"result[{nr}]" if flag else "None" for nr, flag in enumerate(outputs))
        return [f"set_histories(({kept},), grad_fn)"]
    return ["set_histories(result, grad_fn)"]


def _wants(argument: Argument) -> str:
    name = argument.name
    if argument.type.is_list:
        return f"any_requires_grad({name})"
    test = f"{name}._requires_grad or {name}._base is not None and {name}._base._requires_grad"
    return f"{name} is not None and ({test})" if argument.type.optional else test


def out_source(schema: FunctionSchema, name: str) -> str:
    """The kernel of an out= variant: its result has no history, so it refuses where one is wanted."""
    tensors = [argument for argument in schema.arguments if argument.type.is_tensor]
    wanted = " or ".join(_wants(argument) for argument in tensors)
    message = (
        f"{schema.base}(): functions with out=... arguments don't support automatic differentiation, but one of the "
        f"arguments requires grad."
    )
    return (
        f"def {name}(key_set, {parameters(schema)}):\n"
        f"    if ({wanted}) and grad_enabled():\n"
        f"        raise RuntimeError({message!r})\n"
        f"    below = key_set & AFTER_AUTOGRAD\n"
        f"    return kernels[below](below{names(schema)})\n"
    )


def _argument(schema: FunctionSchema, name: str) -> Argument:
    return next(argument for argument in schema.arguments if argument.name == name)


def _saved(info: DifferentiabilityInfo) -> list[str]:
    return list(dict.fromkeys(name for formula in info.formulas for name in formula.saved))


def _results(info: DifferentiabilityInfo) -> dict[str, int]:
    return dict(pair for formula in info.formulas for pair in formula.results)


def _fields(info: DifferentiabilityInfo) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for formula in info.formulas:
        found.update(formula.fields)
    return found


def _names(expression: str) -> set[str]:
    return {each.id for each in ast.walk(ast.parse(expression, mode="eval")) if isinstance(each, ast.Name)}
