"""`element in tensor` (PyTorch: Tensor.__contains__ of torch/_tensor.py)."""

from typing import Any

import numpy as np

from ..c10.dtype import bfloat16, bfloat16_to_float32, float32_to_bfloat16
from ..c10.tensor_impl import TensorImpl


def contains(self: TensorImpl, element: Any) -> bool:
    """Whether any element equals a number, or, broadcast, the element of a tensor at its place.

    Raises RuntimeError for anything else and for a tensor whose shape does not fit.
    """
    if not isinstance(element, TensorImpl | bool | int | float | complex | np.number | np.bool_):
        raise RuntimeError(
            f"Tensor.__contains__ only supports Tensor or scalar, but you passed in {type(element).__name__}"
        )
    mine = self.values()
    if isinstance(element, TensorImpl):
        try:
            return bool((element.values() == mine).any())
        except ValueError:
            raise RuntimeError(
                f"the sizes {list(element._shape)} and {list(self._shape)} do not match: no broadcasting fits"
            ) from None
    if self._dtype is bfloat16 and isinstance(element, float):
        # A number is rounded to the tensor's own precision before it is compared, as NumPy does for float32.
        element = bfloat16_to_float32(float32_to_bfloat16(np.asarray(element, np.float32)))
    return bool((mine == element).any())
