"""Tensor: the Python skin over TensorImpl, methods and nothing else (PyTorch: torch/_tensor.py)."""

import operator
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .aten import compare, indexing, view_ops
from .aten import copy as copies
from .c10 import geometry, layout
from .c10.device import device as Device  # noqa: N812
from .c10.dtype import bfloat16, float64, named, of_scalar
from .c10.dtype import dtype as DType  # noqa: N812
from .c10.size import Size
from .c10.storage import Storage
from .c10.tensor_impl import TensorImpl
from .tensor_str import tensor_str

Sizes = int | Sequence[int]


class Tensor(TensorImpl):
    """A strided tensor. Make one with mini.tensor, zeros, arange, ...; methods behave as torch.Tensor's."""

    __slots__ = ()

    # What it is

    @property
    def shape(self) -> Size:
        return Size(self._shape)

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self._shape[_existing(dim, self._shape)]

    def stride(self, dim: int | None = None) -> Any:
        return tuple(self._stride) if dim is None else self._stride[_existing(dim, self._shape)]

    def storage_offset(self) -> int:
        return self._offset

    def dim(self) -> int:
        return len(self._shape)

    @property
    def ndim(self) -> int:
        return len(self._shape)

    def numel(self) -> int:
        return layout.numel(self._shape)

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def device(self) -> Device:
        return self._device

    def element_size(self) -> int:
        return self._dtype.itemsize

    @property
    def itemsize(self) -> int:
        return self._dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.numel() * self._dtype.itemsize

    def is_floating_point(self) -> bool:
        return self._dtype.is_floating_point

    def is_contiguous(self) -> bool:
        return geometry.is_contiguous(self._shape, self._stride)

    def data_ptr(self) -> int:
        """Address of the first element; 0 for an empty tensor."""
        return self._storage.data_ptr() + self._offset * self._dtype.itemsize if self.numel() else 0

    def untyped_storage(self) -> Storage:
        return self._storage

    def is_set_to(self, other: "Tensor") -> bool:
        """Whether both see the same elements of the same storage with the same shape and strides."""
        return (self._storage, self._shape, self._stride, self._offset) == (
            other._storage,
            other._shape,
            other._stride,
            other._offset,
        )

    def _is_view(self) -> bool:
        return self._base is not None

    @property
    def _version(self) -> int:
        return self._version_counter[0]

    # Views

    @property
    def T(self) -> "Tensor":  # noqa: N802
        if len(self._shape) != 2:
            warnings.warn(
                ".T of a tensor that is not a matrix is deprecated: use permute, or mT for a batch of them",
                UserWarning,
                stacklevel=2,
            )
        return view_ops.permute(self, range(len(self._shape) - 1, -1, -1))

    @property
    def mT(self) -> "Tensor":  # noqa: N802
        if len(self._shape) < 2:
            raise RuntimeError(
                f"mT is only supported on matrices or batches of them, got a {len(self._shape)}-D tensor"
            )
        return view_ops.transpose(self, -2, -1)

    def t(self) -> "Tensor":
        if len(self._shape) > 2:
            raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {len(self._shape)}D")
        return view_ops.transpose(self, 0, len(self._shape) - 1 if self._shape else 0)

    def transpose(self, dim0: int, dim1: int) -> "Tensor":
        return view_ops.transpose(self, dim0, dim1)

    def permute(self, *dims: Sizes) -> "Tensor":
        return view_ops.permute(self, _sizes("permute", dims))

    def movedim(self, source: Sizes, destination: Sizes) -> "Tensor":
        return view_ops.movedim(self, _sizes("movedim", (source,)), _sizes("movedim", (destination,)))

    def view(self, *size: Sizes) -> "Tensor":
        return view_ops.view(self, _sizes("view", size))

    def view_as(self, other: "Tensor") -> "Tensor":
        return view_ops.view(self, _a_tensor("view_as", other)._shape)

    def expand(self, *size: Sizes) -> "Tensor":
        return view_ops.expand(self, _sizes("expand", size))

    def expand_as(self, other: "Tensor") -> "Tensor":
        return view_ops.expand(self, _a_tensor("expand_as", other)._shape)

    def squeeze(self, dim: Sizes | None = None) -> "Tensor":
        return view_ops.squeeze(self, None if dim is None else _sizes("squeeze", (dim,)))

    def unsqueeze(self, dim: int) -> "Tensor":
        return view_ops.unsqueeze(self, dim)

    def narrow(self, dim: int, start: int, length: int) -> "Tensor":
        return view_ops.narrow(self, dim, start, length)

    def select(self, dim: int, index: int) -> "Tensor":
        return view_ops.select(self, dim, index)

    def as_strided(
        self, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
    ) -> "Tensor":
        return view_ops.as_strided(
            self, _sizes("as_strided", (size,)), _sizes("as_strided", (stride,)), storage_offset
        )

    def split(self, split_size: int | Sequence[int], dim: int = 0) -> tuple["Tensor", ...]:
        return view_ops.split(self, split_size, dim)

    def unbind(self, dim: int = 0) -> tuple["Tensor", ...]:
        return view_ops.unbind(self, dim)

    def __getitem__(self, key: Any) -> "Tensor":
        return indexing.index(self, key)

    def __iter__(self) -> Iterator["Tensor"]:
        if not self._shape:
            raise TypeError("iteration over a 0-d tensor")
        return iter(view_ops.unbind(self, 0))

    # Views or copies

    def reshape(self, *size: Sizes) -> "Tensor":
        return copies.reshape(self, _sizes("reshape", size))

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> "Tensor":
        """Dimensions start_dim..end_dim joined into one: a view if strides allow, else a copy."""
        ndim = len(self._shape)
        first, last = layout.wrap_dim(start_dim, ndim), layout.wrap_dim(end_dim, ndim)
        if first > last:
            raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
        if ndim == 0:
            return copies.reshape(self, (1,))
        if first == last:
            return self
        joined = layout.numel(self._shape[first : last + 1])
        return copies.reshape(self, (*self._shape[:first], joined, *self._shape[last + 1 :]))

    def contiguous(self) -> "Tensor":
        return copies.contiguous(self)

    def to(self, *args: Any, dtype: DType | None = None, device: Any = None, copy: bool = False) -> "Tensor":
        """To a dtype, a device, both, or those of a tensor: `self` if nothing has to change, else a copy."""
        for arg in args:
            if isinstance(arg, DType | type):
                dtype = named(arg, "to")
            elif isinstance(arg, TensorImpl):
                dtype, device = arg._dtype, arg._device
            elif isinstance(arg, str | Device):
                device = arg
            else:
                raise TypeError(f"to() takes a dtype, a device or a tensor, got {type(arg).__name__}")
        where = self._device if device is None else Device(device)
        return copies.to(self, self._dtype if dtype is None else named(dtype, "to"), where, copy)

    # Copies

    def clone(self) -> "Tensor":
        return copies.clone(self)

    def item(self) -> Any:
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return compare.values(self).item()

    def tolist(self) -> Any:
        return compare.values(self).tolist()

    # The same storage in another wrapping

    def detach(self) -> "Tensor":
        """The same elements outside of autograd, with the same version counter: changes are noticed."""
        return self.shallow_copy(self._version_counter)

    @property
    def data(self) -> "Tensor":
        """The same elements with a version counter of their own: changes go unnoticed."""
        return self.shallow_copy([0])

    def numpy(self) -> np.ndarray:
        """A NumPy array over the same bytes; TypeError for bfloat16, which NumPy lacks."""
        if self._dtype is bfloat16:
            raise TypeError("NumPy has no bfloat16: convert with .to(mini.float32) first")
        return self.strided_array().view()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    # In place

    def fill_(self, value: Any) -> "Tensor":
        return copies.fill_(self, value)

    def zero_(self) -> "Tensor":
        return copies.fill_(self, 0)

    def copy_(self, src: Any) -> "Tensor":
        if not isinstance(src, TensorImpl):
            wide = float64 if isinstance(src, float) else of_scalar(src)
            src = copies.scalar_tensor(self, src, wide)
        return copies.copy_(self, src)

    def __setitem__(self, key: Any, value: Any) -> None:
        target = indexing.index(self, key)
        if not isinstance(value, TensorImpl):
            if not isinstance(value, bool | int | float | np.generic):
                raise TypeError(
                    f"can't assign a {type(value).__name__} to a tensor: make it one with mini.tensor(...)"
                )
            value = copies.scalar_tensor(target, value, target._dtype)
        copies.assign(target, value)

    # As a Python object

    def equal(self, other: "Tensor") -> bool:
        """Whether both have the same shape and equal elements; NaN equals nothing."""
        return compare.equal(self, _a_tensor("equal", other))

    def __contains__(self, element: Any) -> bool:
        return compare.contains(self, element)

    def __eq__(self, other: object) -> Any:
        raise TypeError(
            "== compares element by element and comes with the operators: use .equal(other) or `is`"
        )

    __hash__ = object.__hash__

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of a 0-d tensor")
        return self._shape[0]

    def __bool__(self) -> bool:
        if self.numel() != 1:
            amount = "more than one value" if self.numel() else "no values"
            raise RuntimeError(f"Boolean value of Tensor with {amount} is ambiguous")
        return bool(self.item())

    def __float__(self) -> float:
        return float(self._only_element())

    def __int__(self) -> int:
        return int(self._only_element())

    def __index__(self) -> int:
        if self.numel() != 1 or self._dtype.is_floating_point:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def _only_element(self) -> Any:
        if self.numel() != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return self.item()

    def __repr__(self) -> str:
        return tensor_str(self)

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec) if self._shape else format(self.item(), spec)


TensorImpl.tensor_class = Tensor


def _existing(dim: int, shape: tuple[int, ...]) -> int:
    if not shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return layout.wrap_dim(dim, len(shape))


def _sizes(name: str, args: tuple[Any, ...]) -> tuple[int, ...]:
    """The ints of f(2, 3), f((2, 3)) or f([2, 3]); TypeError for anything else, such as a bool in front."""
    given = args[0] if len(args) == 1 and isinstance(args[0], tuple | list) else args
    if not args:
        raise TypeError(f"{name}() needs sizes, such as {name}(2, 3); for a 0-d tensor write {name}(())")
    try:
        if not (given and isinstance(given[0], bool | np.bool_)):
            return tuple(operator.index(n) for n in given)
    except TypeError:
        pass
    raise TypeError(f"{name}() takes ints, or one tuple or list of ints, got {given!r}")


def _a_tensor(name: str, other: Any) -> TensorImpl:
    if not isinstance(other, TensorImpl):
        raise TypeError(f"{name}() needs a mini tensor, got {type(other).__name__}")
    return other
