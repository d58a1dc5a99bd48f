"""Footprint: the bytes that a tensor's layout covers, remembered per layout (PyTorch: no need, it is C++)."""

from typing import NamedTuple

from ..c10 import layout
from ..c10.pieces import cached
from ..c10.tensor_impl import TensorImpl

Ints = tuple[int, ...]


class Footprint(NamedTuple):
    """What a layout covers.

    numel: elements. nbytes: of the cells seen, an expanded dimension counting once. span: bytes from the
    first cell to behind the last. steps: strides in bytes. dense: whether every byte of the span is covered
    once.
    """

    numel: int
    nbytes: int
    span: int
    steps: Ints
    dense: bool


def footprint(tensor: TensorImpl) -> Footprint:
    """The footprint of a tensor, counted from its first element."""
    return _of_layout(tensor._shape, tensor._stride, tensor._dtype.itemsize)


@cached
def _of_layout(shape: Ints, stride: Ints, itemsize: int) -> Footprint:
    seen = layout.numel(tuple(n for n, step in zip(shape, stride, strict=True) if step or n == 0))
    return Footprint(
        layout.numel(shape),
        seen * itemsize,
        layout.storage_span(shape, stride) * itemsize,
        tuple(step * itemsize for step in stride),
        layout.is_dense(shape, stride),
    )
