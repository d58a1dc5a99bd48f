"""Factory operators: new tensors made of empty ones that are filled (PyTorch: ATen/native/TensorFactories.cpp).

CompositeExplicitAutograd kernels: they are called with the Autograd keys still in the thread's reach, so they put
them aside while they fill what nobody has seen yet. That is why a fresh tensor's version is 0.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ..c10 import dtype as dtypes
from ..c10 import geometry
from ..c10.device import CPU
from ..c10.dispatch_key import DispatchKey
from ..c10.dispatch_key_set import AD_INPLACE_OR_VIEW, AUTOGRAD, full_after
from ..c10.local_dispatch_key_set import KeysGuard
from . import ops as at

Ints = tuple[int, ...]
BELOW_BACKEND_SELECT = full_after(DispatchKey.BackendSelect)
F = TypeVar("F", bound=Callable[..., Any])


def below_autograd(kernel: F) -> F:
    """The kernel with the Autograd and ADInplaceOrView keys excluded while it calls operators."""

    @functools.wraps(kernel)
    def guarded(ks: int, *arguments: Any) -> Any:
        with KeysGuard(exclude=AUTOGRAD | AD_INPLACE_OR_VIEW):
            return kernel(ks, *arguments)

    return guarded  # type: ignore[return-value]


@below_autograd
def zeros(ks: int, size: Ints, dtype: Any, device: Any) -> Any:
    return at.zero_(at.empty_memory_format(size, dtype, device, None))


@below_autograd
def ones(ks: int, size: Ints, dtype: Any, device: Any) -> Any:
    return at.fill__Scalar(at.empty_memory_format(size, dtype, device, None), 1)


@below_autograd
def full(ks: int, size: Ints, fill_value: Any, dtype: Any, device: Any) -> Any:
    """The fill value's own type gives the dtype where none is given."""
    dtype = dtypes.of_scalar(fill_value) if dtype is None else dtype
    if dtype is dtypes.bfloat16 and abs(fill_value) > dtypes.FLOAT32_MAX:
        # PyTorch fills by way of a float64 here, which rounds where fill_ refuses.
        fill_value = float("inf") if fill_value > 0 else float("-inf")
    return at.fill__Scalar(at.empty_memory_format(size, dtype, device, None), fill_value)


@below_autograd
def scalar_tensor(ks: int, s: Any, dtype: Any, device: Any) -> Any:
    return at.fill__Scalar(at.empty_memory_format((), dtype, device, None), s)


def _filled_like(self: Any, value: int, dtype: Any, device: Any, memory_format: Any) -> Any:
    """A tensor like self full of one small number, at once where nothing has to be worked out."""
    plain = dtype is device is memory_format is None and self._device is CPU
    if plain and self._dtype is not dtypes.bfloat16 and self._stride == geometry.contiguous_strides(self._shape):
        array = np.empty(self._shape, self._dtype.numpy)
        array.fill(value)
        return self.adopt(array, self._dtype, CPU)
    return full_like(0, self, value, dtype, device, memory_format)


def zeros_like(ks: int, self: Any, dtype: Any, device: Any, memory_format: Any) -> Any:
    return _filled_like(self, 0, dtype, device, memory_format)


def ones_like(ks: int, self: Any, dtype: Any, device: Any, memory_format: Any) -> Any:
    return _filled_like(self, 1, dtype, device, memory_format)


@below_autograd
def full_like(ks: int, self: Any, fill_value: Any, dtype: Any, device: Any, memory_format: Any) -> Any:
    return at.fill__Scalar(at.empty_like(self, dtype, device, memory_format), fill_value)


@below_autograd
def rand(ks: int, size: Ints, dtype: Any, device: Any) -> Any:
    return at.uniform_(at.empty_memory_format(size, dtype, device, None), 0.0, 1.0, None)


@below_autograd
def rand_generator(ks: int, size: Ints, generator: Any, dtype: Any, device: Any) -> Any:
    return at.uniform_(at.empty_memory_format(size, dtype, device, None), 0.0, 1.0, generator)


@below_autograd
def randn(ks: int, size: Ints, dtype: Any, device: Any) -> Any:
    return at.normal_(at.empty_memory_format(size, dtype, device, None), 0.0, 1.0, None)


@below_autograd
def randn_generator(ks: int, size: Ints, generator: Any, dtype: Any, device: Any) -> Any:
    return at.normal_(at.empty_memory_format(size, dtype, device, None), 0.0, 1.0, generator)


@below_autograd
def rand_like(ks: int, self: Any, dtype: Any, device: Any, memory_format: Any) -> Any:
    return at.uniform_(at.empty_like(self, dtype, device, memory_format), 0.0, 1.0, None)


@below_autograd
def randn_like(ks: int, self: Any, dtype: Any, device: Any, memory_format: Any) -> Any:
    return at.normal_(at.empty_like(self, dtype, device, memory_format), 0.0, 1.0, None)


@below_autograd
def randint(ks: int, high: int, size: Ints, dtype: Any, device: Any) -> Any:
    return _random(0, high, size, None, dtype, device)


@below_autograd
def randint_generator(ks: int, high: int, size: Ints, generator: Any, dtype: Any, device: Any) -> Any:
    return _random(0, high, size, generator, dtype, device)


@below_autograd
def randint_low(ks: int, low: int, high: int, size: Ints, dtype: Any, device: Any) -> Any:
    return _random(low, high, size, None, dtype, device)


@below_autograd
def randint_low_generator(
    ks: int, low: int, high: int, size: Ints, generator: Any, dtype: Any, device: Any
) -> Any:
    return _random(low, high, size, generator, dtype, device)


def _random(low: int, high: int, size: Ints, generator: Any, dtype: Any, device: Any) -> Any:
    dtype = dtypes.int64 if dtype in (None, "long") else dtype
    return at.random__from(at.empty_memory_format(size, dtype, device, None), low, high, generator)


@below_autograd
def bernoulli(ks: int, self: Any, generator: Any) -> Any:
    return at.bernoulli__Tensor(at.empty_like(self, None, None, None), self, generator)


@below_autograd
def empty_like(ks: int, self: Any, dtype: Any, device: Any, memory_format: Any) -> Any:
    """Not set; the shape, and unless another memory format is asked for the order of dimensions, of self."""
    dtype = self._dtype if dtype is None else dtype
    device = self._device if device is None else device
    if memory_format == "contiguous_format":
        return at.empty_memory_format(self._shape, dtype, device, None)
    stride = geometry.dense_strides(self._shape, self._stride)
    return at.empty_strided(self._shape, stride, dtype, device)


@below_autograd
def new_empty(ks: int, self: Any, size: Ints, dtype: Any, device: Any) -> Any:
    return at.empty_memory_format(size, dtype or self._dtype, device or self._device, None)


@below_autograd
def new_empty_strided(ks: int, self: Any, size: Ints, stride: Ints, dtype: Any, device: Any) -> Any:
    return at.empty_strided(size, stride, dtype or self._dtype, device or self._device)


@below_autograd
def new_zeros(ks: int, self: Any, size: Ints, dtype: Any, device: Any) -> Any:
    return at.zero_(at.empty_memory_format(size, dtype or self._dtype, device or self._device, None))


@below_autograd
def new_ones(ks: int, self: Any, size: Ints, dtype: Any, device: Any) -> Any:
    return at.fill__Scalar(at.empty_memory_format(size, dtype or self._dtype, device or self._device, None), 1)


@below_autograd
def new_full(ks: int, self: Any, size: Ints, fill_value: Any, dtype: Any, device: Any) -> Any:
    return at.fill__Scalar(
        at.empty_memory_format(size, dtype or self._dtype, device or self._device, None), fill_value
    )


def arange(ks: int, end: Any, dtype: Any, device: Any) -> Any:
    return at.arange_start_step(0, end, 1, dtype, device)


def arange_start(ks: int, start: Any, end: Any, dtype: Any, device: Any) -> Any:
    return at.arange_start_step(start, end, 1, dtype, device)


def needs_backend_select(op: Any) -> bool:
    """Whether an op takes a dtype and a device for a result that lies where they say, which no tensor tells."""
    schema = op.schema
    keyword_only = {argument.type.base for argument in schema.arguments if argument.kwarg_only}
    if not {"ScalarType", "Device"} <= keyword_only or schema.is_out:
        return False
    return not (schema.base.endswith("_like") or schema.base.startswith("new_"))


def select_backend(op: Any) -> Callable[..., Any]:
    """The BackendSelect kernel of such an op: adds the backend of its device argument to the call's keys.

    PyTorch: torchgen's RegisterBackendSelect.cpp.
    """
    place = next(nr for nr, argument in enumerate(op.schema.arguments) if argument.type.base == "Device")
    kernels = op.kernels
    tensors = [nr for nr, argument in enumerate(op.schema.arguments) if argument.type.is_tensor]
    if tensors:
        first = tensors[0]

        def of_tensor(key_set: int, *arguments: Any) -> Any:
            device = arguments[place]
            keys = arguments[first]._key_set | (0 if device is None else device.backend_keys)
            keys &= BELOW_BACKEND_SELECT
            return kernels[keys](keys, *arguments)

        return of_tensor

    def kernel(key_set: int, *arguments: Any) -> Any:
        device = arguments[place] or CPU
        keys = device.backend_keys
        return kernels[keys](keys, *arguments)

    return kernel
