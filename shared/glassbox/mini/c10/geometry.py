"""Geometry: the layout functions that ops use, with their answers remembered (PyTorch: no need, it is C++).

A program asks for the same few layouts again and again, and looking one up is cheaper than the arithmetic.
Swapping a piece empties these tables (see pieces.py). Arguments are plain ints and tuples; errors are not
remembered.
"""

from . import expand_utils, layout
from .pieces import cached, on_swap

Ints = tuple[int, ...]


class _Canonical(dict[Ints, Ints]):
    """shape -> the strides of a fresh tensor; subscripting a dict is quicker than any call."""

    def __missing__(self, shape: Ints) -> Ints:
        if len(self) >= _MOST:
            self.clear()
        strides = self[shape] = layout.contiguous_strides(shape)
        return strides


_MOST = 4096
canonical = _Canonical()
on_swap(canonical.clear)


def contiguous_strides(shape: Ints) -> Ints:
    return canonical[shape]


@cached
def is_contiguous(shape: Ints, stride: Ints) -> bool:
    return layout.is_contiguous(shape, stride)


@cached
def dense_strides(shape: Ints, stride: Ints) -> Ints:
    return layout.dense_strides(shape, stride)


@cached
def permute(shape: Ints, stride: Ints, dims: Ints) -> tuple[Ints, Ints]:
    return layout.permute(shape, stride, dims)


@cached
def transpose(shape: Ints, stride: Ints, dim0: int, dim1: int) -> tuple[Ints, Ints]:
    return layout.transpose(shape, stride, dim0, dim1)


@cached
def slice_view(
    shape: Ints, stride: Ints, offset: int, dim: int, start: int | None, stop: int | None, step: int | None
) -> tuple[Ints, Ints, int]:
    return layout.slice_view(shape, stride, offset, dim, start, stop, step)


@cached
def select(shape: Ints, stride: Ints, offset: int, dim: int, index: int) -> tuple[Ints, Ints, int]:
    return layout.select(shape, stride, offset, dim, index)


@cached
def expand(shape: Ints, stride: Ints, size: Ints) -> tuple[Ints, Ints]:
    """Shape and strides, with every -1 in `size` replaced by the size that it keeps."""
    strides = layout.expand(shape, stride, size)
    new = len(size) - len(shape)
    return tuple(shape[dim - new] if n == -1 else n for dim, n in enumerate(size)), strides


@cached
def view(shape: Ints, stride: Ints, size: Ints) -> tuple[Ints, Ints | None]:
    """Shape, with a -1 in `size` inferred, and strides of a view; None for strides where there is none."""
    full = layout.infer_size(size, layout.numel(shape))
    return full, layout.view_strides(shape, stride, full)


@cached
def reshape(shape: Ints, stride: Ints, size: Ints) -> tuple[Ints, Ints, bool]:
    return layout.reshape(shape, stride, size)


@cached
def squeeze(shape: Ints, stride: Ints, dims: Ints | None) -> tuple[Ints, Ints]:
    return layout.squeeze(shape, stride, dims)


@cached
def unsqueeze(shape: Ints, stride: Ints, dim: int) -> tuple[Ints, Ints]:
    return layout.unsqueeze(shape, stride, dim)


@cached
def byte_strides(stride: Ints, itemsize: int) -> Ints:
    return tuple(step * itemsize for step in stride)


@cached
def expanded_dims(shape: Ints, size: Ints) -> Ints | None:
    """The dimensions of `size` along which a tensor of `shape` would be repeated to fill it; None if it cannot."""
    return expand_utils.unbroadcast(shape, size)
