"""The gradients of select and slice: zeros but for what was seen (PyTorch: ATen/native/TensorShape.cpp)."""

from typing import Any

import numpy as np

from ...c10 import layout
from ...c10.tensor_impl import TensorImpl

Ints = tuple[int, ...]


def select_backward(ks: int, grad_output: Any, input_sizes: Ints, dim: int, index: int) -> Any:
    """A fresh tensor of `input_sizes` with the gradient at one index of `dim`, zero elsewhere."""
    return _placed(grad_output, input_sizes, dim, index)


def slice_backward(ks: int, grad_output: Any, input_sizes: Ints, dim: int, start: int, end: int, step: int) -> Any:
    """A fresh tensor of `input_sizes` with the gradient where the slice was, zero elsewhere."""
    return _placed(grad_output, input_sizes, dim, slice(start, end, step))


def _placed(grad: Any, sizes: Ints, dim: int, where: int | slice) -> Any:
    # Also of bfloat16's bits all zeros stand for 0.
    array = np.zeros(sizes, grad._dtype.numpy)
    array[(slice(None),) * layout.wrap_dim(dim, len(sizes)) + (where,)] = grad.strided_array()
    return TensorImpl.adopt(array, grad._dtype, grad._device)
