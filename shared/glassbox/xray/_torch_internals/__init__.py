"""The private parts of PyTorch that the instruments need, each behind one function (torch/_C, torch/_subclasses).

Whatever a PyTorch version lacks raises `TorchInternalsError` with one sentence; nothing else in the package
touches a private name of torch.
"""

from .access import TorchInternalsError, missing, private
from .dispatch import computed_table, highest_key, key_names, key_set, local_sets
from .running import current_node, next_sequence_nr, sequence_nr
from .storages import base_of, is_fake, is_view, storage_identity, storage_use_count, unusual_kind, version_of

__all__ = [
    "TorchInternalsError",
    "base_of",
    "computed_table",
    "current_node",
    "highest_key",
    "is_fake",
    "is_view",
    "key_names",
    "key_set",
    "local_sets",
    "missing",
    "next_sequence_nr",
    "private",
    "sequence_nr",
    "storage_identity",
    "storage_use_count",
    "unusual_kind",
    "version_of",
]
