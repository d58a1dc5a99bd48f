"""Which dimensions broadcasting repeated (PyTorch: sum_to in aten/src/ATen/ExpandUtils.h).

The function marked @piece can be replaced while the framework runs (see pieces.py).
"""

from collections.abc import Sequence
from typing import Any

from .pieces import an_int, piece

Ints = tuple[int, ...]


def _dims(result: Any, args: tuple[Any, ...]) -> Ints | None:
    expected = "None or a tuple of dimensions of the second shape"
    if result is None:
        return None
    if not isinstance(result, tuple | list):
        raise ValueError(expected)
    dims = tuple(an_int(dim) for dim in result)
    if not all(0 <= dim < len(args[1]) for dim in dims):
        raise ValueError(expected)
    return dims


@piece(returns=_dims)
def unbroadcast(shape: Sequence[int], grad_shape: Sequence[int]) -> Ints | None:
    """The dimensions of `grad_shape` that a tensor of `shape` was repeated along to fill it; None if it cannot be."""
    lead = len(grad_shape) - len(shape)
    if lead < 0 or any(n not in (1, m) for n, m in zip(shape, grad_shape[lead:], strict=True)):
        return None
    within = (dim for dim in range(lead, len(grad_shape)) if shape[dim - lead] == 1 and grad_shape[dim] != 1)
    return (*range(lead), *within)
