"""ADInplaceOrView kernels, made from schemas (PyTorch: tools/autograd/gen_inplace_or_view_type.py).

An op that writes counts up the version of what it wrote to; an op that gives a view writes down of what. This lies
between Autograd and the backend, so it also happens where nothing is recorded.
"""

from collections.abc import Callable
from typing import Any

from ..aten.core.dispatcher import OperatorHandle
from ..aten.core.function_schema import FunctionSchema
from ..aten.core.gen_operators import names, parameters
from ..aten.core.source import compile_later
from ..c10 import inference_mode
from ..c10.dispatch_key_set import AFTER_AD_INPLACE_OR_VIEW
from ..c10.grad_mode import grad_enabled
from . import view

# What detach gives shares memory but is no view: it leaves the graph for good. detach_ changes no element.
LEFT_OUT = frozenset(("detach", "detach_"))


def needs_kernel(schema: FunctionSchema) -> bool:
    """Whether an op writes to something or gives a view."""
    return schema.base not in LEFT_OUT and (schema.is_mutable or schema.is_view)


def make_kernel(op: OperatorHandle) -> Callable[..., Any]:
    """The op's ADInplaceOrView kernel."""
    name = op.schema.key.replace(".", "_")

    def names() -> dict[str, Any]:
        return {
            "kernels": op.kernels,
            "AFTER_AD_INPLACE_OR_VIEW": AFTER_AD_INPLACE_OR_VIEW,
            "grad_enabled": grad_enabled.get,
            "as_view": view.as_view,
            "creation_of_several": view.creation_of_several,
            "inherit_creation": view.inherit_creation,
            "inference_blocks": inference_mode.blocks,
            "is_inference": inference_mode.is_enabled,
            "NO_GRAD_VIEW": view.created(view.NO_GRAD_MODE),
            "INFERENCE_VIEW": view.created(view.INFERENCE_MODE),
            "count_change": view.count_change,
        }

    return compile_later(name, f"ADInplaceOrView.{op.schema.key}", lambda: kernel_source(op.schema, name), names)


def kernel_source(schema: FunctionSchema, name: str) -> str:
    """The text of the kernel."""
    lines = [
        f"def {name}(key_set, {parameters(schema)}):",
        "    below = key_set & AFTER_AD_INPLACE_OR_VIEW",
        f"    result = kernels[below](below{names(schema)})",
    ]
    if schema.base == "resize_":
        # Only a change of sizes counts as one.
        lines[-1:] = ["    before = self._shape", lines[-1], "    if self._shape == before:", "        return result"]
    if schema.is_mutable:
        for argument in schema.arguments:
            if argument.type.is_write:
                lines += [
                    f"    counter = {argument.name}._version_counter",
                    "    if counter is not None:",
                    "        counter[0] += 1",
                    "    else:",
                    f"        count_change({argument.name})",
                ]
        return "\n".join([*lines, "    return result"]) + "\n"
    viewed = next(argument.name for argument in schema.arguments if argument.type.alias)
    lines += [f"    counter = {viewed}._version_counter", "    if counter is None:", "        return result"]
    if schema.returns[0].type.is_list:
        lines += [
            "    creation = creation_of_several()",
            "    for each in result:",
            f"        as_view({viewed}, each, creation)",
        ]
    else:
        lines += [
            f"    base = {viewed}._base",
            f"    result._base = {viewed} if base is None else base",
            "    result._attr_version = counter[0]",
            "    if not grad_enabled():",
            "        result._meta = INFERENCE_VIEW if inference_blocks[0] and is_inference() else NO_GRAD_VIEW",
            f"    elif base is not None and {viewed}._meta is not None:",
            f"        inherit_creation({viewed}, result)",
        ]
    return "\n".join([*lines, "    return result"]) + "\n"
