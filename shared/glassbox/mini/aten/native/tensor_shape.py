"""View ops: new metadata over the same storage, never a copy (PyTorch: ATen/native/TensorShape.cpp)."""

from typing import Any

from ...c10 import geometry, layout
from ...c10.tensor_impl import make_tensor

Ints = tuple[int, ...]


def alias(ks: int, self: Any) -> Any:
    """The same elements again."""
    return self.alias(self._shape, self._stride, self._offset)


def detach(ks: int, self: Any) -> Any:
    """The same elements outside of autograd, with the same version counter: changes are noticed."""
    return self.shallow_copy(self._version_counter)


def detach_(ks: int, self: Any) -> Any:
    """The very tensor, taken out of autograd by the layer above."""
    return self


def permute(ks: int, self: Any, dims: Ints) -> Any:
    """The dimensions in another order."""
    shape, stride = geometry.permute(self._shape, self._stride, dims)
    return self.alias(shape, stride, self._offset)


def transpose(ks: int, self: Any, dim0: int, dim1: int) -> Any:
    """Two dimensions exchanged."""
    shape, stride = geometry.transpose(self._shape, self._stride, dim0, dim1)
    return self.alias(shape, stride, self._offset)


def t(ks: int, self: Any) -> Any:
    """A matrix transposed; anything with fewer dimensions as it is."""
    shape = self._shape
    if len(shape) == 2:
        rows, columns = self._stride
        array = self._array
        return make_tensor(
            self._storage,
            (shape[1], shape[0]),
            (columns, rows),
            self._offset,
            self._dtype,
            self._device,
            self._key_set,
            self._version_counter,
            # Cheaper than to make it from the storage when a kernel asks.
            None if array is None else array.T,
        )
    if len(shape) > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {len(shape)}D")
    return self.alias(shape, self._stride, self._offset)


def view(ks: int, self: Any, size: Ints) -> Any:
    """The same elements in the same order in another shape; RuntimeError where no strides can say so."""
    full, stride = geometry.view(self._shape, self._stride, size)
    if stride is None:
        raise RuntimeError(
            f"view: size {list(size)} is not compatible with size {list(self._shape)} and stride "
            f"{list(self._stride)}: a dimension would span two contiguous subspaces; use .reshape(...)."
        )
    return self.alias(full, stride, self._offset)


def _reshape_alias(ks: int, self: Any, size: Ints, stride: Ints) -> Any:
    """A view in a shape and with strides that reshape has worked out."""
    return self.alias(size, stride, self._offset)


def _unsafe_view(ks: int, self: Any, size: Ints) -> Any:
    """A view that is not written down as one: what it looks at has no other owner."""
    full, stride = geometry.view(self._shape, self._stride, size)
    if stride is None:
        # Only where a learner's view_strides says so of a fresh copy, which is contiguous.
        stride = geometry.contiguous_strides(full)
    return self.fresh(self._storage, full, stride, self._dtype, self._device)


def expand(ks: int, self: Any, size: Ints, implicit: bool) -> Any:
    """Dimensions of size 1 repeated with stride 0, new ones added in front."""
    full, stride = geometry.expand(self._shape, self._stride, size)
    return self.alias(full, stride, self._offset)


def squeeze(ks: int, self: Any) -> Any:
    """Without any dimension of size 1."""
    shape, stride = geometry.squeeze(self._shape, self._stride, None)
    return self.alias(shape, stride, self._offset)


def squeeze_dim(ks: int, self: Any, dim: int) -> Any:
    """Without one dimension, if its size is 1."""
    shape, stride = geometry.squeeze(self._shape, self._stride, (dim,))
    return self.alias(shape, stride, self._offset)


def squeeze_dims(ks: int, self: Any, dim: Ints) -> Any:
    """Without those of the dimensions whose size is 1."""
    shape, stride = geometry.squeeze(self._shape, self._stride, dim)
    return self.alias(shape, stride, self._offset)


def unsqueeze(ks: int, self: Any, dim: int) -> Any:
    """With a dimension of size 1 more."""
    shape, stride = geometry.unsqueeze(self._shape, self._stride, dim)
    return self.alias(shape, stride, self._offset)


def select(ks: int, self: Any, dim: int, index: int) -> Any:
    """One index along a dimension, which disappears."""
    shape, stride, offset = geometry.select(self._shape, self._stride, self._offset, dim, index)
    return self.alias(shape, stride, offset)


def slice(ks: int, self: Any, dim: int, start: int | None, end: int | None, step: int) -> Any:  # noqa: A001
    """A range of indices along a dimension."""
    shape, stride, offset = geometry.slice_view(
        self._shape, self._stride, self._offset, dim, start, end, step
    )
    return self.alias(shape, stride, offset)


def as_strided(ks: int, self: Any, size: Ints, stride: Ints, storage_offset: int | None) -> Any:
    """Any layout over the storage; RuntimeError where it would leave the storage."""
    offset = self._offset if storage_offset is None else storage_offset
    layout.check_bounds(size, stride, offset, self._storage.nbytes() // self._dtype.itemsize)
    return self.alias(size, stride, offset)


def split(ks: int, self: Any, split_size: int, dim: int) -> tuple[Any, ...]:
    """Views of consecutive parts of one size; the last may be smaller."""
    if self._shape and split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
    size = _size_to_split(self, dim)
    if split_size == 0 and size:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}")
    parts = tuple(min(split_size, size - at) for at in range(0, size, split_size)) if size else (0,)
    return _parts(self, parts, dim)


def split_with_sizes(ks: int, self: Any, split_sizes: Ints, dim: int) -> tuple[Any, ...]:
    """Views of consecutive parts of the given sizes, which must add up."""
    size = _size_to_split(self, dim)
    if any(part < 0 for part in split_sizes):
        raise RuntimeError(f"split expects sizes that are not negative, but got {list(split_sizes)}")
    if sum(split_sizes) != size:
        raise RuntimeError(
            f"split expects sizes that sum to {size}, the size of dimension {dim}, but got {list(split_sizes)}"
        )
    return _parts(self, split_sizes, dim)


def unbind(ks: int, self: Any, dim: int) -> tuple[Any, ...]:
    """All the slices along a dimension."""
    if not self._shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    dim = layout.wrap_dim(dim, len(self._shape))
    return tuple(select(ks, self, dim, index) for index in range(self._shape[dim]))


def _size_to_split(self: Any, dim: int) -> int:
    if not self._shape:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    return self._shape[layout.wrap_dim(dim, len(self._shape))]


def _parts(self: Any, sizes: Ints, dim: int) -> tuple[Any, ...]:
    dim = layout.wrap_dim(dim, len(self._shape))
    views, start = [], 0
    for part in sizes:
        # By narrow's rule, which lets an empty part stand at the end.
        shape = (*self._shape[:dim], part, *self._shape[dim + 1 :])
        views.append(self.alias(shape, self._stride, self._offset + start * self._stride[dim]))
        start += part
    return tuple(views)


# In place: self itself looks at its storage in another way


def _look(self: Any, shape: Ints, stride: Ints, offset: int | None = None) -> Any:
    self._shape, self._stride, self._array = shape, stride, None
    if offset is not None:
        self._offset = offset
    return self


def as_strided_(ks: int, self: Any, size: Ints, stride: Ints, storage_offset: int | None) -> Any:
    """as_strided of self itself."""
    seen = as_strided(ks, self, size, stride, storage_offset)
    return _look(self, seen._shape, seen._stride, seen._offset)


def squeeze_(ks: int, self: Any) -> Any:
    """squeeze of self itself."""
    return _look(self, *geometry.squeeze(self._shape, self._stride, None))


def squeeze__dim(ks: int, self: Any, dim: int) -> Any:
    """squeeze.dim of self itself."""
    return _look(self, *geometry.squeeze(self._shape, self._stride, (dim,)))


def squeeze__dims(ks: int, self: Any, dim: Ints) -> Any:
    """squeeze.dims of self itself."""
    return _look(self, *geometry.squeeze(self._shape, self._stride, dim))


def unsqueeze_(ks: int, self: Any, dim: int) -> Any:
    """unsqueeze of self itself."""
    return _look(self, *geometry.unsqueeze(self._shape, self._stride, dim))


def transpose_(ks: int, self: Any, dim0: int, dim1: int) -> Any:
    """transpose of self itself."""
    return _look(self, *geometry.transpose(self._shape, self._stride, dim0, dim1))


def t_(ks: int, self: Any) -> Any:
    """t of self itself."""
    seen = t(ks, self)
    return _look(self, seen._shape, seen._stride)
