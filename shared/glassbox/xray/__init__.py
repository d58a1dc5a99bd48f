"""Instruments for the real PyTorch and the mini-framework: they look at tensors and programs and return records.

Instruments over the real PyTorch are imported when they are first asked for, so everything else works over mini tensors
without torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

from ._looking import view_of
from ._torch_internals import TorchInternalsError
from .alias_table import Alias, AliasTable, aliases
from .leak import Leak, LeakReport, leaks
from .storage import StorageMap, storage_map, use_count

if TYPE_CHECKING:
    from .call_paths import call_path as call_path
    from .copies import hidden_copies as hidden_copies
    from .dispatch_tables import table as table
    from .engine_runs import engine_run as engine_run
    from .forward_graphs import forward_graph as forward_graph
    from .graphs import grad_graph as grad_graph
    from .hops import onion as onion
    from .key_families import cheat_sheet as cheat_sheet
    from .key_sets import keys as keys
    from .ledger import overhead as overhead
    from .lifetimes import lifetime as lifetime
    from .observing import observe as observe
    from .op_logging import op_log as op_log
    from .portraits import profile as profile
    from .reasons import why as why
    from .saving import saved_memory as saved_memory
    from .take_home import notes as notes
    from .timelines import timeline as timeline
    from .yaml_entries import derivative as derivative
    from .yaml_entries import native_function as native_function

# name -> the module that has it; a module may not be called as its instrument is, since it would hide it
_LATER = {
    "call_path": "call_paths",
    "cheat_sheet": "key_families",
    "derivative": "yaml_entries",
    "engine_run": "engine_runs",
    "forward_graph": "forward_graphs",
    "grad_graph": "graphs",
    "hidden_copies": "copies",
    "keys": "key_sets",
    "lifetime": "lifetimes",
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
    "call_path",
    "cheat_sheet",
    "derivative",
    "engine_run",
    "forward_graph",
    "grad_graph",
    "hidden_copies",
    "keys",
    "leaks",
    "lifetime",
    "native_function",
    "notes",
    "observe",
    "onion",
    "op_log",
    "overhead",
    "profile",
    "saved_memory",
    "storage_map",
    "table",
    "timeline",
    "use_count",
    "view_of",
    "why",
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
