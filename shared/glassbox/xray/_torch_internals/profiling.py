"""What counting and timing operators needs: what an operator writes to, what torch.compile wraps
(torch/_ops.py, torch/_dynamo/eval_frame.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .access import missing, private

# What tensor subclasses with metadata of their own are asked; to answer is no work, and taking it apart never ends.
_QUERIES = (
    "aten.sym_is_contiguous.default",
    "aten.is_contiguous.default",
    "aten.is_contiguous.memory_format",
    "aten.is_strides_like_format.default",
    "aten.is_non_overlapping_and_dense.default",
    "aten.size.default",
    "aten.sym_size.default",
    "aten.stride.default",
    "aten.sym_stride.default",
    "aten.storage_offset.default",
    "aten.sym_storage_offset.default",
    "aten.numel.default",
    "aten.sym_numel.default",
    "aten.dim.default",
    "prim.layout.default",
    "prim.device.default",
)


def metadata_queries() -> frozenset[str]:
    """Names of the operators that only ask a tensor for its metadata; a mode that counts passes over them."""
    return frozenset(_QUERIES)


@functools.cache
def written_arguments(op: Any) -> tuple[tuple[int, str, bool], ...]:
    """(position, name, is an out= argument) of each argument that an operator's schema says it writes to.

    op   an OpOverload; () for what has no schema, such as a higher order operator
    """
    schema = getattr(op, "_schema", None)
    if schema is None:
        return ()
    try:
        return tuple(
            (nr, each.name, bool(each.is_out))
            for nr, each in enumerate(schema.arguments)
            if each.alias_info is not None and each.alias_info.is_write
        )
    except AttributeError:
        raise missing("FunctionSchema.arguments[].alias_info") from None


def plain_int(n: Any) -> int | None:
    """A size as an int: of a symbolic one its hint, which installs no guard; None where it has none."""
    if isinstance(n, int):
        return n
    hint = getattr(getattr(n, "node", None), "hint", None)
    return int(hint) if isinstance(hint, int) else None


def uncompiled(function: Any) -> Any:
    """What torch.compile was given to make `function`; `function` itself where it was not compiled."""
    own = getattr(function, "__dict__", {})
    children = own.get("_modules")
    modules = children if isinstance(children, dict) else {}
    # A compiled module also holds the forward that was compiled; it is the module that was given.
    for names, attribute in ((own, "_orig_mod"), (modules, "_orig_mod"), (own, "_torchdynamo_orig_callable")):
        if names.get(attribute) is not None:
            return uncompiled(names[attribute])
    return function


def was_compiled(function: Any) -> bool:
    """Whether torch.compile made `function`, a function or a module, or any module inside of it."""
    return uncompiled(function) is not function or (hasattr(function, "modules") and is_compiled(function))


def is_compiled(module: Any) -> bool:
    """Whether a module, or one inside of it, was compiled, by torch.compile(module) or module.compile()."""
    return any(
        uncompiled(each) is not each or getattr(each, "_compiled_call_impl", None) is not None
        for each in module.modules()
    )


def steps_in_backward(leaf: Any) -> bool:
    """Whether a leaf carries a hook that runs once its gradient is there, as optimizers in backward do."""
    return bool(getattr(leaf, "_post_accumulate_grad_hooks", None))


@functools.cache
def composite(op: Any) -> Callable[..., Any] | None:
    """The CompositeImplicitAutograd kernel of an operator, which is made of other operators; None where it has none.

    Decompositions in Python, which tracing uses instead of a kernel of the operator's own, are none.
    """
    if not hasattr(op, "overloadpacket"):
        return None
    has_kernel = private("torch._C._dispatch_has_kernel_for_dispatch_key")
    if not has_kernel(op.name(), "CompositeImplicitAutograd"):
        return None
    try:
        return functools.partial(op._op_dk, private("torch._C.DispatchKey").CompositeImplicitAutograd)
    except AttributeError:
        raise missing("OpOverload._op_dk") from None
