"""Instruments for the real PyTorch and the mini-framework: they look at tensors and programs and return records.

Instruments over the real PyTorch are imported when they are first asked for, so everything else works over mini tensors
without torch.
"""

import importlib
from typing import Any

from ._looking import view_of
from ._torch_internals import TorchInternalsError
from .alias_table import Alias, AliasTable, aliases
from .leak import Leak, LeakReport, leaks
from .storage import StorageMap, storage_map, use_count

# name -> the module that has it; a module may not be called as its instrument is, since it would hide it
_LATER = {
    "call_path": "call_paths",
    "cheat_sheet": "key_families",
    "derivative": "yaml_entries",
    "forward_graph": "graphs",
    "grad_graph": "graphs",
    "hidden_copies": "copies",
    "keys": "key_sets",
    "native_function": "yaml_entries",
    "notes": "take_home",
    "observe": "observing",
    "onion": "hops",
    "op_log": "op_logging",
    "overhead": "ledger",
    "profile": "portraits",
    "saved_memory": "saving",
    "table": "dispatch_tables",
    "timeline": "timelines",
    "why": "reasons",
}

__all__ = [
    "Alias",
    "AliasTable",
    "Leak",
    "LeakReport",
    "StorageMap",
    "TorchInternalsError",
    "aliases",
    "leaks",
    "storage_map",
    "use_count",
    "view_of",
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
