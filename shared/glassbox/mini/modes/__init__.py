"""modes: layers that change what calls do while a block runs (PyTorch: torch/utils, torch/amp, torch/_functorch)."""

from . import autocast as _autocast
from . import dynamic_layer, python_dispatch, register_batch_rules
from . import functionalize as _functionalize
from .autocast import autocast, get_autocast_dtype, is_autocast_enabled
from .functionalize import functionalize
from .python_dispatch import TorchDispatchMode, current_modes, enable_reentrant_dispatch
from .recorder import Recorder, record
from .vmap import vmap


def register_all() -> None:
    """The kernels of all modes; the operators must be there."""
    for module in (python_dispatch, dynamic_layer, _autocast, register_batch_rules, _functionalize):
        module.register_all()


__all__ = [
    "Recorder",
    "TorchDispatchMode",
    "autocast",
    "current_modes",
    "enable_reentrant_dispatch",
    "functionalize",
    "get_autocast_dtype",
    "is_autocast_enabled",
    "record",
    "register_all",
    "vmap",
]
