"""Operators by name: what a reader may write for one, and the operators that it means (torch/_ops.py)."""

from __future__ import annotations

import difflib
from typing import Any

import torch

from ._torch_internals.schemas import takes_tensors


def find_operator(op: Any, where: str) -> Any:
    """The torch._ops.OpOverload that `op` names.

    op      "add.Tensor", "aten.add.Tensor", "aten::add.Tensor", torch.ops.aten.add.Tensor, or an operator of another
            namespace. A name without overload means the default overload (but not TorchScript's operators on two
            numbers, as for "add"), else the one called Tensor, else the only one there is.
    where   the instrument that asks, for the message

    TypeError for anything else, ValueError for a name that is unknown or means several overloads; the message lists
    what there is.
    """
    if hasattr(op, "overloadpacket"):
        return op
    if hasattr(op, "overloads") and hasattr(op, "__name__"):
        return _of_packet(op, "", str(op), where)
    if not isinstance(op, str):
        raise TypeError(
            f'{where}: {type(op).__name__} is no operator; give a name such as "add.Tensor" or an object such as '
            f"torch.ops.aten.add.Tensor."
        )
    namespace, rest = "aten", op
    if "::" in op:
        namespace, _, rest = op.partition("::")
    elif op.count(".") == 2 or op.startswith("aten."):
        namespace, _, rest = op.partition(".")
    name, _, overload = rest.partition(".")
    try:
        packet = getattr(getattr(torch.ops, namespace), name)
    except (AttributeError, RuntimeError):
        raise ValueError(f"{where}: there is no operator {op!r}{_alike(namespace, name)}.") from None
    return _of_packet(packet, overload, op, where)


def _of_packet(packet: Any, overload: str, written: str, where: str) -> Any:
    names = packet.overloads()
    if not overload:
        if "default" in names and ("Tensor" not in names or takes_tensors(packet.default)):
            overload = "default"
        elif "Tensor" in names:
            overload = "Tensor"
        elif len(names) == 1:
            overload = names[0]
        else:
            raise ValueError(f"{where}: {written!r} means several operators; say one of {_listed(packet, names)}.")
    if overload not in names:
        raise ValueError(f"{where}: {written!r} is no operator; its overloads are {_listed(packet, names)}.")
    return getattr(packet, overload)


def _listed(packet: Any, names: list[str]) -> str:
    base = str(packet).partition(".")[2]
    return ", ".join(f'"{base}.{name}"' for name in names)


def _alike(namespace: str, name: str) -> str:
    if namespace != "aten":
        return ""
    known = {*dir(torch.Tensor), *dir(torch)}
    close = [each for each in difflib.get_close_matches(name, known, n=5) if hasattr(torch.ops.aten, each)][:2]
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
