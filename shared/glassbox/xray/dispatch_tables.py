"""Dispatch tables: an operator's rows and registrations (torch._C._dispatch_dump_table, _dispatch_dump)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from ..records import DispatchRow, DispatchTable, KeyLayout, Registration

_ROW = re.compile(r"(?:(fallthrough) )?registered (?:at |by )?(.*?)(?: \[([^\]]*)\])?", re.DOTALL)
_REGISTRATION = re.compile(
    r"(?P<key>\w+)(?P<alias>\[alias\])?(?P<inactive> \(inactive\))?: (?P<fallthrough>fallthrough )?registered "
    r"(?:at |by )?(?P<place>.*?)(?P<late> \(inactive\))?(?: :: (?P<signature>.*?)(?: \[ (?P<how>[\w ]*)\])?)?"
)
# Where a wheel was built and where it is installed is nobody's business: paths begin in PyTorch's tree or its package.
_INSTALLED = re.compile(r"^.*/(?:site|dist)-packages/")
_BUILD = re.compile(r"^.*?/(?=(?:build/aten|aten/src|torch/csrc|torch/aten|c10)/)")
_ALIAS_OF = {
    "autograd kernel": ("Autograd",),
    "math kernel": ("CompositeImplicitAutograd",),
    "nested kernel": ("CompositeImplicitAutogradNestedTensor",),
    "batched kernel": ("FuncTorchBatchedDecomposition",),
    "default backend kernel": ("CompositeExplicitAutogradNonFunctional", "CompositeExplicitAutograd"),
}


def table(op: Any) -> DispatchTable:
    """The dispatch table of an operator: which kernel each runtime key's row holds, and from which registration.

    op   "add.Tensor", "aten::add.Tensor", torch.ops.aten.add.Tensor, an operator of any other namespace, or one of the
         mini-framework (glassbox.mini.ops.aten.add.Tensor). A name without overload means the operator on tensors.

    TypeError for anything else, ValueError for an unknown name. The table is a snapshot: what is registered later (with
    torch.library, or by an import) is not in it.
    """
    if type(op).__module__.startswith("glassbox.mini"):
        return _of_mini(op)
    from . import _torch_internals as internals
    from ._key_header import torch_layout
    from ._operators import find_operator

    found = find_operator(op, "table")
    name = found.name()
    return read_table(str(found), torch_layout(), internals.computed_table(name), internals.registrations(name))


def _of_mini(op: Any) -> DispatchTable:
    from .. import mini
    from ._calls_of_mini import OfMini

    found, framework = mini_operator(op, "table"), OfMini()
    name = found.name()
    return read_table(str(found), framework.layout(), framework.table(name), mini._C._dispatch_dump(name))


def mini_operator(op: Any, where: str) -> Any:
    """The overload that a mini operator or packet means; errors as find_operator has them."""
    if hasattr(op, "overloads"):
        names = list(op.overloads())
        if len(names) != 1 and "default" not in names:
            known = ", ".join(f"{op}.{name}" for name in names)
            raise ValueError(f"{where}: {op} means several operators; give one of {known}.")
        return getattr(op, "default" if "default" in names else names[0])
    if not hasattr(op, "redispatch"):
        raise TypeError(f"{where}: {type(op).__name__} is no operator; give one such as mini.ops.aten.add.Tensor.")
    return op


def read_table(op: str, layout: KeyLayout, computed: dict[str, str], dump: str) -> DispatchTable:
    """The record of an operator from the two texts that the dispatcher prints."""
    lines = dump.splitlines()
    registrations = tuple(found for line in lines if (found := _registration(line)) is not None)
    known = runtime_keys(layout)
    schema = next((line.removeprefix("schema: ") for line in lines if line.startswith("schema: ")), "")
    entries = [read_row(key, text, registrations) for key, text in computed.items()]
    place = {key: nr for nr, key in enumerate(known)}
    # A key that the header does not list is kept, at the end.
    entries.sort(key=lambda row: place.get(row.key, len(place)))
    return DispatchTable(op, schema, tuple(entries), registrations, known)


def runtime_keys(layout: KeyLayout) -> tuple[str, ...]:
    """Every key that has a row, highest priority first; Undefined, which has one too, is last."""
    found: list[str] = []
    for functionality in reversed(layout.functionalities):
        backends = layout.backends if layout.prefix(functionality) is not None else ("",)
        found += [layout.key(functionality, backend) for backend in backends]
    return (*found, "Undefined")


class RowText(NamedTuple):
    """What the text of a row says; kind is "" where it says none."""

    fallthrough: bool
    place: str
    kind: str


# Thousands of operators share a row's text.
@lru_cache(maxsize=16384)
def parse_row(text: str) -> RowText | None:
    """The parts of a row's text, such as "fallthrough registered at FILE:LINE [backend fallback]".

    None for a text of another form.
    """
    found = _ROW.fullmatch(text)
    if found is None:
        return None
    fallthrough, where, kind = found.groups()
    return RowText(bool(fallthrough), short_place(where), (kind or "").replace("_", " "))


def read_row(key: str, text: str, registrations: tuple[Registration, ...] = ()) -> DispatchRow:
    """A row from its text, such as "registered at FILE:LINE [autograd kernel]"."""
    found = parse_row(text)
    if found is None:
        # A kernel of PyTorch's own that refuses has no place: "ambiguous_autogradother [ambiguous autogradother]".
        bare = re.fullmatch(r"\w+ \[([\w ]+)\]", text)
        return DispatchRow(key, bare[1] if bare else text)
    kind = found.kind or "kernel"
    registered_to = _registered_to(key, kind, found.place, registrations)
    return DispatchRow(key, kind, found.place, found.fallthrough, registered_to)


def _registered_to(key: str, kind: str, place: str, registrations: tuple[Registration, ...]) -> str:
    if kind == "kernel":
        return key
    aliases = _ALIAS_OF.get(kind, ())
    there = [each for each in registrations if each.key in aliases and each.active]
    exact = [each for each in there if each.place == place]
    return next((each.key for each in exact or there), aliases[0] if len(aliases) == 1 else "")


def short_place(where: str) -> str:
    """A file, with its line or without, from the installed package or PyTorch's tree on; other files as they are."""
    path = where.replace("\\", "/")
    installed = _INSTALLED.sub("", path)
    return installed if installed != path else _BUILD.sub("", path)


def _registration(line: str) -> Registration | None:
    found = _REGISTRATION.fullmatch(line)
    if found is None or found["key"] in ("debug", "name", "schema"):
        return None
    return Registration(
        found["key"],
        bool(found["alias"]),
        not (found["inactive"] or found["late"]),
        bool(found["fallthrough"]) or "fallthrough" in (found["how"] or ""),
        short_place(found["place"]),
        (found["signature"] or "").replace("(none)", ""),
    )
