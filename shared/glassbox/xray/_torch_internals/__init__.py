"""The private parts of PyTorch that the instruments need, each behind one function (torch/_C, torch/_subclasses).

Whatever a PyTorch version lacks raises `TorchInternalsError` with one sentence; nothing else in the package
touches a private name of torch.
"""

from .access import TorchInternalsError, missing, private
from .contexts import dispatch_modes, transforms, wrapper_level
from .dispatch import (
    computed_table,
    highest_key,
    key_names,
    key_set,
    local_sets,
    registrations,
    schema_arguments,
)
from .packaged import derivatives_yaml, generator_source, header, native_functions_yaml, version
from .running import current_node, next_sequence_nr, node_getter, sequence_counter, sequence_nr
from .storages import base_of, is_fake, is_view, storage_identity, storage_use_count, unusual_kind, version_of
from .top_calls import PASSED_OVER, top_calls, watched_here

__all__ = [
    "PASSED_OVER",
    "TorchInternalsError",
    "base_of",
    "computed_table",
    "current_node",
    "derivatives_yaml",
    "dispatch_modes",
    "generator_source",
    "header",
    "highest_key",
    "is_fake",
    "is_view",
    "key_names",
    "key_set",
    "local_sets",
    "missing",
    "native_functions_yaml",
    "next_sequence_nr",
    "node_getter",
    "private",
    "registrations",
    "schema_arguments",
    "sequence_counter",
    "sequence_nr",
    "storage_identity",
    "storage_use_count",
    "top_calls",
    "transforms",
    "unusual_kind",
    "version",
    "version_of",
    "watched_here",
    "wrapper_level",
]
