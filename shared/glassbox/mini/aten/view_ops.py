"""View ops: new metadata over the same storage, never a copy (PyTorch: ATen/native/TensorShape.cpp)."""

from collections.abc import Sequence
from typing import TypeVar

from ..c10 import geometry, layout
from ..c10.tensor_impl import TensorImpl

T = TypeVar("T", bound=TensorImpl)


def permute(self: T, dims: Sequence[int]) -> T:
    """The dimensions in another order."""
    shape, stride = geometry.permute(self._shape, self._stride, tuple(dims))
    return self.alias(shape, stride, self._offset)


def transpose(self: T, dim0: int, dim1: int) -> T:
    """Two dimensions exchanged."""
    shape, stride = geometry.transpose(self._shape, self._stride, dim0, dim1)
    return self.alias(shape, stride, self._offset)


def movedim(self: T, source: Sequence[int], destination: Sequence[int]) -> T:
    """Dimensions `source` moved to `destination`; the others keep their order."""
    ndim = len(self._shape)
    if len(source) != len(destination):
        raise RuntimeError(f"movedim: {len(source)} dimensions cannot move to {len(destination)} places")
    moved = [layout.wrap_dim(dim, ndim) for dim in source]
    places = [layout.wrap_dim(dim, ndim) for dim in destination]
    for dims, given in ((moved, source), (places, destination)):
        if len(set(dims)) < len(dims):
            raise RuntimeError(f"movedim: a dimension is repeated in {list(given)}")
    if ndim == 0:
        return permute(self, ())
    order = [dim for dim in range(ndim) if dim not in moved]
    for place, dim in sorted(zip(places, moved, strict=True)):
        order.insert(place, dim)
    return permute(self, order)


def view(self: T, size: Sequence[int]) -> T:
    """The same elements in the same order in another shape; RuntimeError where no strides can say so."""
    full, stride = geometry.view(self._shape, self._stride, tuple(size))
    if stride is None:
        raise RuntimeError(
            f"view: size {list(size)} is not compatible with size {list(self._shape)} and stride "
            f"{list(self._stride)}: a dimension would span two contiguous subspaces; use .reshape(...)."
        )
    return self.alias(full, stride, self._offset)


def expand(self: T, size: Sequence[int]) -> T:
    """Dimensions of size 1 repeated with stride 0, new ones added in front."""
    full, stride = geometry.expand(self._shape, self._stride, tuple(size))
    return self.alias(full, stride, self._offset)


def squeeze(self: T, dims: tuple[int, ...] | None) -> T:
    """Without dimensions of size 1."""
    shape, stride = geometry.squeeze(self._shape, self._stride, dims)
    return self.alias(shape, stride, self._offset)


def unsqueeze(self: T, dim: int) -> T:
    """With a dimension of size 1 more."""
    shape, stride = geometry.unsqueeze(self._shape, self._stride, dim)
    return self.alias(shape, stride, self._offset)


def select(self: T, dim: int, index: int) -> T:
    """One index along a dimension, which disappears."""
    return self.alias(*geometry.select(self._shape, self._stride, self._offset, dim, index))


def slice_dim(self: T, dim: int, start: int | None, stop: int | None, step: int | None) -> T:
    """A range of indices along a dimension."""
    return self.alias(*geometry.slice_view(self._shape, self._stride, self._offset, dim, start, stop, step))


def narrow(self: T, dim: int, start: int, length: int) -> T:
    """`length` indices from `start` on; unlike a slice it refuses bounds that do not fit."""
    if not self._shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    size = self._shape[layout.wrap_dim(dim, len(self._shape))]
    if not -size <= start <= size:
        raise IndexError(
            f"start out of range (expected to be in range of [{-size}, {size}], but got {start})"
        )
    start = start + size if start < 0 else start
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return slice_dim(self, dim, start, start + length, 1)


def as_strided(self: T, size: Sequence[int], stride: Sequence[int], storage_offset: int | None) -> T:
    """Any layout over the storage of `self`; RuntimeError if it would leave the storage."""
    offset = self._offset if storage_offset is None else storage_offset
    elements = self._storage.nbytes() // self._dtype.itemsize
    layout.check_bounds(size, stride, offset, elements)
    return self.alias(tuple(size), tuple(stride), offset)


def split(self: T, sizes: int | Sequence[int], dim: int) -> tuple[T, ...]:
    """Views of consecutive parts: of a given size each (the last may be smaller), or of the given sizes."""
    if not self._shape:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if isinstance(sizes, int) and sizes < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={sizes}")
    size = self._shape[layout.wrap_dim(dim, len(self._shape))]
    if isinstance(sizes, int):
        if sizes == 0 and size:
            raise RuntimeError(
                f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}"
            )
        sizes = [min(sizes, size - at) for at in range(0, size, sizes)] if size else [0]
    if any(part < 0 for part in sizes):
        raise RuntimeError(f"split expects sizes that are not negative, but got {list(sizes)}")
    if sum(sizes) != size:
        raise RuntimeError(
            f"split expects sizes that sum to {size}, the size of dimension {dim}, but got {list(sizes)}"
        )
    views, start = [], 0
    for part in sizes:
        views.append(narrow(self, dim, start, part))
        start += part
    return tuple(views)


def unbind(self: T, dim: int) -> tuple[T, ...]:
    """All the slices along a dimension."""
    if not self._shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    dim = layout.wrap_dim(dim, len(self._shape))
    return tuple(select(self, dim, index) for index in range(self._shape[dim]))
