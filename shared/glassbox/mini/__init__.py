"""A small PyTorch over NumPy with the same names and the same semantics (PyTorch: torch/__init__.py).

c10 holds what a tensor is made of, aten what can be done with tensors, tensor.py the Python skin. Each folder
imports downwards only; torch is never imported.
"""

import builtins

from .c10.device import device
from .c10.dtype import bfloat16, dtype, float32, float64, int8, int16, int32, int64, uint8
from .c10.dtype import bool_ as bool  # noqa: A004
from .c10.pieces import pieces, using
from .c10.size import Size
from .c10.storage import Storage
from .factories import arange, empty, empty_like, full, ones, ones_like, tensor, zeros, zeros_like
from .tensor import Tensor


def equal(input: Tensor, other: Tensor) -> builtins.bool:
    """Whether two tensors have the same shape and equal elements."""
    return input.equal(other)


__all__ = [
    "Size",
    "Storage",
    "Tensor",
    "arange",
    "bfloat16",
    "bool",
    "device",
    "dtype",
    "empty",
    "empty_like",
    "equal",
    "float32",
    "float64",
    "full",
    "int16",
    "int32",
    "int64",
    "int8",
    "ones",
    "ones_like",
    "pieces",
    "tensor",
    "uint8",
    "using",
    "zeros",
    "zeros_like",
]
