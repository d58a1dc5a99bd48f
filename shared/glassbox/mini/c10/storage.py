"""Storage: the flat buffer of bytes that tensors look at (PyTorch: c10/core/StorageImpl.h)."""

import sys

import numpy as np


class Storage:
    """A flat byte buffer. It knows nothing of shapes or dtypes and lives while anything refers to it.

    `owner` is the C-contiguous NumPy array that owns the bytes. A kernel's fresh result is adopted as it is,
    whatever its dtype, since wrapping it in bytes first would cost as much as a small kernel.
    """

    # No __init__, which would cost a small kernel's result more than its arithmetic: see over and allocate.
    __slots__ = ("owner", "__weakref__")

    owner: np.ndarray

    @staticmethod
    def over(owner: np.ndarray) -> "Storage":
        """A storage that takes an array over; ValueError unless it is C-contiguous."""
        if not owner.flags.c_contiguous:
            raise ValueError("a storage's owner must be C-contiguous: copy the array first")
        storage = Storage()
        storage.owner = owner
        return storage

    @staticmethod
    def allocate(nbytes: int) -> "Storage":
        """A storage of `nbytes` bytes that are not set; RuntimeError where there is no room."""
        if nbytes < 0:
            raise RuntimeError(f"a storage cannot hold {nbytes} bytes")
        return Storage.over(_allocate(nbytes))

    def bytes(self) -> np.ndarray:
        """The buffer as uint8[nbytes]; shares memory with the tensors over it."""
        return self.owner.reshape(-1).view(np.uint8)

    def nbytes(self) -> int:
        """Size in bytes."""
        return self.owner.nbytes

    def size(self) -> int:
        """Size in bytes, as for PyTorch's UntypedStorage."""
        return self.owner.nbytes

    def __len__(self) -> int:
        return self.owner.nbytes

    def data_ptr(self) -> int:
        """Address of the first byte: two storages share it only if they are one; 0 if there is no byte."""
        return self.owner.__array_interface__["data"][0] if self.owner.nbytes else 0

    def use_count(self) -> int:
        """How many references hold this storage: one per tensor over it, and one per name that you gave it.

        So `s = t.untyped_storage(); s.use_count()` is 2 for a lone tensor; PyTorch's count likewise
        includes the Python wrapper that is asked.
        """
        return sys.getrefcount(self) - _ASKING

    def unique(self) -> bool:
        """Whether one reference is all there is."""
        return sys.getrefcount(self) - _ASKING == 1

    def tolist(self) -> list[int]:
        """The bytes as ints 0..255."""
        return self.bytes().tolist()

    def __repr__(self) -> str:
        return f"<mini.Storage of {self.owner.nbytes} bytes at {self.data_ptr():#x}>"


def _allocate(nbytes: int) -> np.ndarray:
    try:
        return np.empty(nbytes, np.uint8)
    except (MemoryError, ValueError, OverflowError):
        problem = RuntimeError(f"can't allocate memory: you tried to allocate {nbytes} bytes")
        problem.nbytes = nbytes  # type: ignore[attr-defined]
        raise problem from None


class _Holder:
    __slots__ = ("storage",)

    def __init__(self) -> None:
        self.storage = Storage.allocate(0)

    def untyped_storage(self) -> Storage:
        return self.storage


def _references_of_asking() -> int:
    holder = _Holder()
    return holder.untyped_storage().use_count() - 1


# The call itself holds references, and how many differs between versions of CPython: measured once.
_ASKING = 0
_ASKING = _references_of_asking()
