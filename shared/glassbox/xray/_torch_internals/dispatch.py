"""Key sets and dispatch tables (torch/csrc/utils/python_dispatch.cpp)."""

from __future__ import annotations

from typing import Any

from .access import missing, private


def key_set(tensor: Any) -> int:
    """The keys that a tensor brings into a call, as the 64-bit number."""
    return int(private("torch._C._dispatch_keys")(tensor).raw_repr())


def local_sets() -> tuple[int, int]:
    """The thread's included and excluded keys, as 64-bit numbers."""
    included = private("torch._C._dispatch_tls_local_include_set")()
    excluded = private("torch._C._dispatch_tls_local_exclude_set")()
    return int(included.raw_repr()), int(excluded.raw_repr())


def key_names(bits: int) -> tuple[str, ...]:
    """The runtime keys of a set by name, lowest priority first; also those that Python's DispatchKey enum lacks."""
    text = str(private("torch._C.DispatchKeySet").from_raw_repr(bits))
    inside = text.partition("(")[2].rpartition(")")[0]
    return tuple(name for name in inside.split(", ") if name)


def highest_key(bits: int) -> str:
    """The name of the set's key of highest priority, which the dispatcher takes; "Undefined" for an empty set."""
    names = key_names(bits)
    return names[-1] if names else "Undefined"


def computed_table(op: str) -> dict[str, str]:
    """Runtime key -> what its row of the operator's table says, such as "registered at FILE:LINE [kind]".

    op   as "aten::add.Tensor"
    """
    lines = private("torch._C._dispatch_dump_table")(op).splitlines()
    return {key: row for key, _, row in (line.partition(": ") for line in lines)}


def registrations(op: str) -> str:
    """What is registered for an operator, kernel by kernel, alias keys included, as the dispatcher prints it.

    op   as "aten::add.Tensor"
    """
    return str(private("torch._C._dispatch_dump")(op))


def schema_arguments(op: Any) -> list[tuple[str, str]]:
    """Name and type of each argument of a torch._ops.OpOverload: ("self", "Tensor"), ("index", "Optional[Tensor]")."""
    try:
        return [(each.name, str(each.type)) for each in op._schema.arguments]
    except AttributeError:
        raise missing("OpOverload._schema") from None
