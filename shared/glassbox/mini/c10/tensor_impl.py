"""TensorImpl: a tensor is metadata over a storage (PyTorch: c10/core/TensorImpl.h)."""

import sys
from typing import Self

import numpy as np

from . import geometry, layout
from .device import device as Device  # noqa: N812
from .dtype import dtype as DType  # noqa: N812
from .storage import Storage

Ints = tuple[int, ...]

# NumPy's own limit; PyTorch has none.
MAX_DIMS = 64


class TensorImpl:
    """Shape, stride, offset, dtype and device over a storage.

    _shape, _stride: plain tuples of ints; _offset: int; all count elements.
    _version_counter: a list of one int, shared by all views of a tensor, that in-place ops count up.
    _base: the tensor that this one is a view of, never itself a view; None if it is no view.
    _array: the elements as a strided NumPy array, made at first use (call strided_array()).
    """

    __slots__ = (
        "_storage",
        "_shape",
        "_stride",
        "_offset",
        "_dtype",
        "_device",
        "_version_counter",
        "_base",
        "_array",
        "__weakref__",
    )

    def __init__(
        self,
        storage: Storage,
        shape: Ints,
        stride: Ints,
        offset: int,
        dtype: DType,
        device: Device,
        version_counter: list[int],
        base: Self | None = None,
    ) -> None:
        self._storage = storage
        self._shape = shape
        self._stride = stride
        self._offset = offset
        self._dtype = dtype
        self._device = device
        self._version_counter = version_counter
        self._base = base
        self._array: np.ndarray | None = None

    @classmethod
    def allocate(cls, shape: Ints, stride: Ints, dtype: DType, device: Device) -> Self:
        """A fresh tensor whose bytes are not set, with just enough storage for shape and stride."""
        storage = Storage(layout.storage_span(shape, stride) * dtype.itemsize)
        return cls(storage, shape, stride, 0, dtype, device, [0])

    def alias(self, shape: Ints, stride: Ints, offset: int) -> Self:
        """A view: other metadata over the same storage, with the same version counter."""
        base = self if self._base is None else self._base
        return type(self)(
            self._storage, shape, stride, offset, self._dtype, self._device, self._version_counter, base
        )

    def shallow_copy(self, version_counter: list[int]) -> Self:
        """The same metadata over the same storage without being a view of it (what detach and .data give)."""
        return type(self)(
            self._storage, self._shape, self._stride, self._offset, self._dtype, self._device, version_counter
        )

    def strided_array(self) -> np.ndarray:
        """The elements as a NumPy array over the storage's own bytes; for bfloat16 a uint16 array of bits."""
        array = self._array
        if array is None:
            try:
                self._array = array = self._make_array()
            except (ValueError, TypeError) as problem:
                raise RuntimeError(self._why_no_array()) from problem
        return array

    def _make_array(self) -> np.ndarray:
        if 0 in self._shape:
            # An empty view may start behind the end of its storage, which NumPy would refuse.
            return np.empty(self._shape, self._dtype.numpy)
        itemsize = self._dtype.itemsize
        return np.ndarray(
            self._shape,
            self._dtype.numpy,
            self._storage.owner,
            self._offset * itemsize,
            geometry.byte_strides(self._stride, itemsize),
        )

    def _why_no_array(self) -> str:
        if len(self._shape) > MAX_DIMS:
            return (
                f"the elements of a tensor with {len(self._shape)} dimensions cannot be reached: "
                f"NumPy, which moves them here, has at most {MAX_DIMS}"
            )
        if layout.numel(self._shape) * self._dtype.itemsize > sys.maxsize or 0 in self._shape:
            return f"sizes {list(self._shape)} are too large for NumPy, which moves the elements here"
        # Only a replaced piece can get here: the framework's own never leave the storage.
        return (
            f"sizes {list(self._shape)}, strides {list(self._stride)} and storage offset {self._offset} "
            f"do not fit a storage of {self._storage.nbytes() // self._dtype.itemsize} elements"
        )

    def bump_version(self) -> None:
        """Count one in-place change, seen by every view."""
        self._version_counter[0] += 1
