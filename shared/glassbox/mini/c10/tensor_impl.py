"""TensorImpl: a tensor is metadata over a storage (PyTorch: c10/core/TensorImpl.h)."""

import sys
from typing import Any

import numpy as np

from . import geometry, inference_mode, layout
from .device import device as Device  # noqa: N812
from .dtype import bfloat16, bfloat16_to_float32, float32_to_bfloat16
from .dtype import dtype as DType  # noqa: N812
from .storage import Storage

Ints = tuple[int, ...]

# NumPy's own limit; PyTorch has none.
MAX_DIMS = 64


class _Mark:
    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


# What `_meta` holds in a 0-d tensor made of a Python number: promotion lets its dtype count least
# (PyTorch: TensorImpl::is_wrapped_number).
WRAPPED_NUMBER = _Mark("WRAPPED_NUMBER")


class TensorImpl:
    """Shape, stride, offset, dtype and device over a storage, and what autograd keeps beside them.

    _shape, _stride: plain tuples of ints; _offset: int; all count elements.
    _key_set: the tensor's dispatch keys as a bare number.
    _version_counter: a list of one int, shared by all views of a tensor, that in-place ops count up; None for
    an inference tensor, whose changes nobody tracks.
    _base: the tensor that this one is a view of, never itself a view; None if it is no view.
    _array: the elements as a strided NumPy array, made at first use (call strided_array()).
    _requires_grad, _grad_fn, _output_nr, _grad: autograd's (PyTorch: AutogradMeta); _requires_grad is True of
    every tensor that a gradient flows to, leaf or not. _grad_accumulator: a weak reference to a leaf's
    AccumulateGrad. _attr_version: at which version a view's grad_fn was true.
    _meta: what few tensors have (hooks, view history, name): see autograd; None for most.
    """

    __slots__ = (
        "_storage",
        "_shape",
        "_stride",
        "_offset",
        "_dtype",
        "_device",
        "_key_set",
        "_version_counter",
        "_base",
        "_array",
        "_requires_grad",
        "_grad_fn",
        "_output_nr",
        "_grad",
        "_grad_accumulator",
        "_attr_version",
        "_meta",
        "__weakref__",
    )

    # No __init__: make_tensor sets every slot, at half the cost.
    _storage: Storage
    _shape: Ints
    _stride: Ints
    _offset: int
    _dtype: DType
    _device: Device
    _key_set: int
    _version_counter: list[int] | None
    _base: Any
    _array: np.ndarray | None
    _requires_grad: bool
    _grad_fn: Any
    _output_nr: int
    _grad: Any
    _grad_accumulator: Any
    _attr_version: int
    _meta: Any

    @staticmethod
    def fresh(storage: Storage, shape: Ints, stride: Ints, dtype: DType, device: Device) -> Any:
        """A new tensor over a storage of its own, starting at its first byte."""
        if inference_mode.blocks[0] and inference_mode.is_enabled():
            keys, counter = device.inference_keys, None
        else:
            keys, counter = device.keys, [0]
        return make_tensor(storage, shape, stride, 0, dtype, device, keys, counter)

    @staticmethod
    def allocate(shape: Ints, stride: Ints, dtype: DType, device: Device) -> Any:
        """A fresh tensor whose bytes are not set, with just enough storage for shape and stride."""
        storage = Storage.allocate(layout.storage_span(shape, stride) * dtype.itemsize)
        return TensorImpl.fresh(storage, shape, stride, dtype, device)

    @staticmethod
    def adopt(array: np.ndarray, dtype: DType, device: Device) -> Any:
        """A fresh contiguous tensor whose storage is the given C-contiguous array, without a copy.

        `array` holds elements as the storage does: for bfloat16 a uint16 array of bits.
        """
        if not array.flags.c_contiguous:
            raise ValueError("a storage's owner must be C-contiguous: copy the array first")
        return adopt(array, array.shape, geometry.canonical[array.shape], dtype, device)

    @staticmethod
    def of_values(values: np.ndarray, dtype: DType, device: Device) -> Any:
        """A fresh contiguous tensor of NumPy values in any layout, rounded or converted to `dtype`."""
        if dtype is bfloat16:
            with np.errstate(all="ignore"):
                values = float32_to_bfloat16(values)
        array = np.ascontiguousarray(values, dtype=dtype.numpy).reshape(np.shape(values))
        return TensorImpl.adopt(array, dtype, device)

    def values(self) -> np.ndarray:
        """The elements as NumPy knows them: bfloat16 as a float32 copy, anything else the strided view."""
        array = self.strided_array()
        return bfloat16_to_float32(array) if self._dtype is bfloat16 else array

    def alias(self, shape: Ints, stride: Ints, offset: int) -> Any:
        """Other metadata over the same storage, with the same version counter.

        That it is a view of something is for the ADInplaceOrView kernel to write down.
        """
        return make_tensor(
            self._storage,
            shape,
            stride,
            offset,
            self._dtype,
            self._device,
            self._key_set,
            self._version_counter,
        )

    def shallow_copy(self, version_counter: list[int] | None) -> Any:
        """The same metadata over the same storage without being a view of it (what detach and .data give)."""
        return make_tensor(
            self._storage,
            self._shape,
            self._stride,
            self._offset,
            self._dtype,
            self._device,
            self._key_set,
            version_counter,
            self._array,
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
        """Count one in-place change, seen by every view; nothing for an inference tensor."""
        if self._version_counter is not None:
            self._version_counter[0] += 1

    def is_inference(self) -> bool:
        """Whether it was made in inference mode: no version, no place in any graph."""
        return self._version_counter is None


# The class of every tensor: the Python skin puts itself here (PyTorch: a TensorImpl's PyInterpreter).
Tensor: type[TensorImpl] = TensorImpl


def adopt(array: np.ndarray, shape: Ints, stride: Ints, dtype: DType, device: Device) -> Any:
    """A fresh tensor over an array in index order, for callers that know its layout already."""
    storage = Storage()
    storage.owner = array
    if inference_mode.blocks[0]:
        return TensorImpl.fresh(storage, shape, stride, dtype, device)
    return make_tensor(storage, shape, stride, 0, dtype, device, device.keys, [0], array)


def set_tensor_class(skin: type[TensorImpl]) -> None:
    """From now on every tensor is a `skin`."""
    global Tensor
    Tensor = skin


def make_tensor(
    storage: Storage,
    shape: Ints,
    stride: Ints,
    offset: int,
    dtype: DType,
    device: Device,
    key_set: int,
    version_counter: list[int] | None,
    array: np.ndarray | None = None,
) -> Any:
    """A tensor of the skin's class, outside of any graph; every tensor comes from here."""
    self = Tensor()
    self._storage = storage
    self._shape = shape
    self._stride = stride
    self._offset = offset
    self._dtype = dtype
    self._device = device
    self._key_set = key_set
    self._version_counter = version_counter
    self._base = None
    self._array = array
    self._requires_grad = False
    self._grad_fn = None
    self._output_nr = 0
    self._grad = None
    self._grad_accumulator = None
    self._attr_version = 0
    self._meta = None
    return self
