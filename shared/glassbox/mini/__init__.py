"""A small PyTorch over NumPy with the same names and the same semantics (PyTorch: torch/__init__.py).

c10 holds what a tensor is made of, aten what can be done with tensors and who decides what runs, autograd the layer
that records and the engine that plays back. Each folder imports downwards only; torch is never imported.
"""

import importlib
from typing import Any

from . import _C, autograd, bindings, library, modes, sim
from .aten.core.dispatcher import dispatcher
from .aten.core.op_overload import Ops
from .autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .c10.device import device
from .c10.dispatch_key import DispatchKey
from .c10.dispatch_key_set import DispatchKeySet
from .c10.dtype import bfloat16, dtype, float32, float64, int8, int16, int32, int64, uint8
from .c10.dtype import bool_ as bool  # noqa: A004
from .c10.generator import Generator, default_generator
from .c10.pieces import pieces, using
from .c10.size import Size
from .c10.storage import Storage
from .factories import as_tensor, from_numpy, tensor
from .modes import (
    TorchDispatchMode,
    autocast,
    functionalize,
    get_autocast_dtype,
    is_autocast_enabled,
    record,
    vmap,
)
from .tensor import Tensor

_functions = bindings.initialize()
ops = Ops(dispatcher)
globals().update({name: function for name, function in _functions.items() if name not in globals()})


def nonzero(input: Any, *, out: Any = None, as_tuple: Any = False) -> Any:  # noqa: A002
    """Indices of the elements that are not 0: (number of them, dimensions), or per dimension one tensor of them."""
    if out is not None and (as_tuple or not isinstance(out, Tensor)):
        raise TypeError(
            f"nonzero(): argument 'out' must be a Tensor and goes with as_tuple=False, not {type(out).__name__}"
        )
    return input.nonzero(as_tuple=True) if as_tuple else _functions["nonzero"](input, out=out)


def where(condition: Any, *others: Any, **named: Any) -> Any:
    """where(condition, input, other): input where the condition holds, else other. where(condition): per dimension the
    indices of where it holds."""
    if others or named:
        return _functions["where"](condition, *others, **named)
    return nonzero(condition, as_tuple=True)


_LATER = ("models", "nn", "optim")


def __getattr__(name: str) -> Any:
    # Imported at first use: most programs that import the package need no layers.
    if name in _LATER:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


def manual_seed(seed: int) -> Generator:
    """Set the seed of the default generator, which random functions draw from."""
    return default_generator.manual_seed(seed)


__all__ = [
    "DispatchKey",
    "DispatchKeySet",
    "Generator",
    "Size",
    "Storage",
    "Tensor",
    "TorchDispatchMode",
    "_C",
    "as_tensor",
    "autocast",
    "autograd",
    "bfloat16",
    "bool",
    "device",
    "dispatcher",
    "dtype",
    "enable_grad",
    "float32",
    "float64",
    "from_numpy",
    "functionalize",
    "get_autocast_dtype",
    "inference_mode",
    "int16",
    "int32",
    "int64",
    "int8",
    "is_autocast_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "library",
    "manual_seed",
    "models",
    "modes",
    "nn",
    "no_grad",
    "ops",
    "optim",
    "pieces",
    "record",
    "set_grad_enabled",
    "sim",
    "tensor",
    "uint8",
    "using",
    "vmap",
]
