"""WrapperTensor: a tensor without elements that stands for another (PyTorch: FunctionalTensorWrapper.h and its kin).

Its shape, dtype and device are what a program shall see; its one key more leads every call to the kernel
that knows what it stands for.
"""

from typing import Any

from ..c10.tensor_impl import TensorImpl
from ..tensor import Tensor


class WrapperTensor(Tensor):
    """Metadata over another tensor."""

    __slots__ = ()

    @classmethod
    def over(cls, value: TensorImpl, key: int) -> Any:
        """A wrapper with the value's layout, the keys of an ordinary tensor of its device, and `key`."""
        model = value.alias(value._shape, value._stride, value._offset)
        self = cls.__new__(cls)
        for slot in TensorImpl.__slots__:
            if slot != "__weakref__":
                setattr(self, slot, getattr(model, slot))
        self._key_set = value._device.keys | key
        self._version_counter = [0]
        return self

    def strided_array(self) -> Any:
        raise RuntimeError(f"the elements of {self!r} cannot be looked at from here: it only stands for other tensors")
