"""Comparing whole tensors: one answer for all elements (PyTorch: ATen/native/ReduceOps.cpp, cpu_equal)."""

from typing import Any

import numpy as np


def equal(ks: int, self: Any, other: Any) -> bool:
    """Whether both have the same shape and equal elements; NaN equals nothing."""
    return self._shape == other._shape and bool(np.array_equal(self.values(), other.values()))
