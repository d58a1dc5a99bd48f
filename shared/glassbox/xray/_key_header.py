"""Which bit is which dispatch key, and their order: read from the installed torch's c10/core/DispatchKey.h.

Python's own enum lacks some keys, and numbers move between versions, so none is written down here.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ..records import KeyLayout
from . import _torch_internals as internals


@lru_cache(maxsize=1)
def torch_layout() -> KeyLayout:
    """The key layout of the installed torch; TorchInternalsError where its headers are missing or read otherwise."""
    return parse_header(internals.header("c10/core/DispatchKey.h"))


def parse_header(text: str) -> KeyLayout:
    """The layout that a DispatchKey.h describes; TorchInternalsError where the file is built in another way."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    backends = re.findall(r"_\((\w+), extra\)", _macro(text, "C10_FORALL_BACKEND_COMPONENTS"))
    per_backend = re.findall(r"_\((\w+),\s*(\w*)\s*\)", _macro(text, "C10_FORALL_FUNCTIONALITY_KEYS"))
    body = re.search(r"enum class DispatchKey\b[^{]*\{(.*?)\n\};", text, flags=re.S)
    if not (backends and per_backend and body):
        raise internals.missing("list of dispatch keys of the known form in c10/core/DispatchKey.h")
    head, end, rest = body[1].partition("EndOfFunctionalityKeys")
    _, begun, aliases = rest.partition("EndOfRuntimeBackendKeys")
    if not (end and begun):
        raise internals.missing("EndOfFunctionalityKeys and EndOfRuntimeBackendKeys in c10/core/DispatchKey.h")
    return KeyLayout(
        tuple(backends),
        tuple(name for name in _entries(head) if name != "Undefined"),
        tuple((name, prefix) for name, prefix in per_backend),
        tuple(_entries(aliases.partition(",")[2])),
    )


def _macro(text: str, name: str) -> str:
    """The lines of a #define."""
    found = re.search(rf"#define {name}\(.*?(?<!\\)\n", text, flags=re.S)
    return found[0] if found else ""


def _entries(text: str) -> list[str]:
    """The names of an enum's body that are not another's second name."""
    return [part.strip() for part in text.split(",") if re.fullmatch(r"\s*\w+\s*", part)]
