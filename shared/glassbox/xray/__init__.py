"""Instruments for the real PyTorch and the mini-framework: they look at tensors and return records.

torch is imported only when a torch tensor is asked about, so everything works over mini tensors without it.
"""

from ._looking import view_of
from ._torch_internals import TorchInternalsError
from .alias_table import Alias, AliasTable, aliases
from .leak import Leak, LeakReport, leaks
from .storage import StorageMap, storage_map, use_count

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
