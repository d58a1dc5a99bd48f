"""Tensor: the Python skin over TensorImpl (PyTorch: torch/_tensor.py, torch/csrc/autograd/python_variable.cpp).

What has no operator behind it stands here: properties, Python's own protocols, the slots of the operators. Every other
method is made from native_functions.yaml (see gen_python_functions.py) and added by `add_methods`.
"""

import copy
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import python_variable_indexing as indexing
from .aten import compare
from .aten import copy as copies
from .aten import ops as at
from .autograd import hooks as autograd_hooks
from .autograd import python_engine
from .autograd import view as autograd_view
from .autograd.hooks import RemovableHandle
from .autograd.node import Node
from .autograd.variable import accumulator, refresh_view, requires_grad
from .c10 import geometry, layout
from .c10.device import device as Device  # noqa: N812
from .c10.dtype import bfloat16, bool_, float32, float64, int8, int16, int32, int64, named, uint8
from .c10.dtype import dtype as DType  # noqa: N812
from .c10.grad_mode import grad_enabled
from .c10.size import Size
from .c10.storage import Storage
from .c10.tensor_impl import TensorImpl, set_tensor_class
from .python_arg_parser import wrapped_number
from .sim.memory import record_stream
from .tensor_str import tensor_str

_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)


class _TensorMeta(type):
    """Makes isinstance(x, Parameter) a question about x, not about its class: see nn.parameter."""


class Tensor(TensorImpl, metaclass=_TensorMeta):
    """A strided tensor. Make one with mini.tensor, zeros, arange, ...; methods behave as torch.Tensor's."""

    __slots__ = ()

    # Made with the other methods; named here since this file uses it.
    detach: Callable[..., Any]

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

    ndimension = dim

    @property
    def ndim(self) -> int:
        return len(self._shape)

    def numel(self) -> int:
        return layout.numel(self._shape)

    nelement = numel

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def device(self) -> Device:
        return self._device

    def get_device(self) -> int:
        return -1 if self._device.type == "cpu" else self._device.index or 0

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
        if self._version_counter is None:
            raise RuntimeError("Inference tensors do not track version counter.")
        return self._version_counter[0]

    # Autograd

    @property
    def requires_grad(self) -> bool:
        return requires_grad(self)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> "Tensor":
        """Say whether gradients of this leaf are wanted; RuntimeError for what cannot have one or is no leaf."""
        if requires_grad and not self._dtype.is_floating_point:
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        if not requires_grad and self._grad_fn is not None:
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in "
                "a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
            )
        if self._version_counter is None and requires_grad:
            from .c10 import inference_mode

            if not inference_mode.is_enabled():
                raise RuntimeError(
                    "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
                )
        self._requires_grad = bool(requires_grad) or self._grad_fn is not None
        return self

    @property
    def grad_fn(self) -> Node | None:
        if self._base is not None:
            refresh_view(self)
        return self._grad_fn

    @property
    def is_leaf(self) -> bool:
        return self.grad_fn is None

    @property
    def output_nr(self) -> int:
        return self._output_nr

    @property
    def grad(self) -> "Tensor | None":
        if self._grad is None and not self._requires_grad:
            return None
        if self._grad is None and self._grad_fn is not None and not self.retains_grad:
            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute "
                "won't be populated during autograd.backward(). Call .retain_grad() on it if you want it to be.",
                UserWarning,
                stacklevel=2,
            )
        return self._grad

    @grad.setter
    def grad(self, value: "Tensor | None") -> None:
        if value is None:
            self._grad = None
            return
        if not isinstance(value, Tensor):
            raise TypeError(
                f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}"
            )
        if value is self:
            raise RuntimeError("can't assign Variable as its own grad")
        if value._dtype is not self._dtype:
            raise RuntimeError(
                f"assigned grad has data of a different type: {value._dtype.name} for a tensor of {self._dtype.name}"
            )
        if value._device is not self._device:
            raise RuntimeError(
                f"assigned grad has data located on a different device: {value._device} for a tensor on {self._device}"
            )
        if value._shape != self._shape:
            raise RuntimeError("assigned grad has data of a different size")
        self._grad = value

    def backward(
        self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
    ) -> None:
        """Add the gradients of this tensor to the .grad of the leaves that it was made of."""
        python_engine.backward((self,), (gradient,), retain_graph, create_graph, inputs)

    @property
    def retains_grad(self) -> bool:
        hooks = self._grad_fn.hooks if self._grad_fn is not None else None
        weak = hooks.retains.get(self._output_nr) if hooks is not None else None
        return weak is not None and weak() is self

    def retain_grad(self) -> None:
        """Keep the gradient of a tensor that is no leaf in its .grad."""
        if not self.requires_grad:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        # As PyTorch, by the grad_fn as it was last seen: a view that has none yet counts as a leaf.
        node = self.grad_fn if self._grad_fn is not None else None
        if node is not None:
            autograd_hooks.NodeHooks.of(node).retains[self._output_nr] = weakref.ref(self)

    def register_hook(self, hook: Callable[[Any], Any]) -> RemovableHandle:
        """hook(grad) runs when the tensor's gradient is there and may return another; `.remove()` takes it away."""
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        node = self.grad_fn
        if node is not None:
            hooks = autograd_hooks.NodeHooks.of(node).tensor_pre.setdefault(self._output_nr, {})
            return RemovableHandle(hooks, hook)
        return self._register_on_leaf(autograd_view.meta_of(self).tensor_pre, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Any], None]) -> RemovableHandle:
        """hook(tensor) runs after a gradient was added to this leaf's .grad."""
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self.grad_fn is not None:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        return self._register_on_leaf(autograd_view.meta_of(self).after_accumulate, hook)

    def _register_on_leaf(self, hooks: dict[Any, Any], hook: Callable[..., Any]) -> RemovableHandle:
        handle = RemovableHandle(hooks, hook)
        # A graph may hold the leaf's AccumulateGrad already.
        autograd_view.meta_of(self).attach(accumulator(self))
        return handle

    # The same storage in another wrapping

    @property
    def data(self) -> "Tensor":
        """The same elements with a version counter of their own: changes go unnoticed."""
        return self.shallow_copy([0])

    @data.setter
    def data(self, value: "Tensor") -> None:
        if not isinstance(value, TensorImpl):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if self._requires_grad and not value._dtype.is_floating_point:
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        if value._dtype is not self._dtype or value._device is not self._device:
            self._dtype, self._device, self._key_set = value._dtype, value._device, value._key_set
            # The leaf's node may be held by a graph that expects gradients as they were.
            self._grad_accumulator = None
        self._storage, self._shape, self._stride = value._storage, value._shape, value._stride
        self._offset, self._array = value._offset, None

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """A NumPy array over the same bytes; TypeError for bfloat16, which NumPy lacks, and for another device."""
        if force:
            return self.detach().cpu().numpy()
        if self.requires_grad and grad_enabled.get():
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        if self._device.type != "cpu":
            raise TypeError(
                f"can't convert {self._device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to "
                f"host memory first."
            )
        if self._dtype is bfloat16:
            raise TypeError("NumPy has no bfloat16: convert with .to(mini.float32) first")
        return self.strided_array().view()

    # NumPy's own operators leave a pair with a tensor to the tensor, and what NumPy makes of one is a tensor again.
    __array_priority__ = 1000

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: Any = False) -> "Tensor":
        from .factories import from_numpy

        array = np.asarray(array)
        return from_numpy(array.astype(np.uint8) if array.dtype == np.bool_ else array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    # Views by property

    @property
    def T(self) -> "Tensor":  # noqa: N802
        if len(self._shape) != 2:
            warnings.warn(
                ".T of a tensor that is not a matrix is deprecated: use permute, or mT for a batch of them",
                UserWarning,
                stacklevel=2,
            )
        return at.numpy_T(self)

    @property
    def mT(self) -> "Tensor":  # noqa: N802
        return at.mT(self)

    # Conversions

    def to(
        self,
        *args: Any,
        dtype: Any = None,
        device: Any = None,
        non_blocking: bool = False,
        copy: bool = False,
        memory_format: Any = None,
    ) -> "Tensor":
        """To a dtype, a device, both, or those of a tensor: `self` if nothing has to change, else a copy."""
        flags = [arg for arg in args if isinstance(arg, bool)]
        if flags:
            non_blocking, copy = (flags + [copy])[:2]
        for arg in args:
            if isinstance(arg, TensorImpl):
                dtype, device = arg._dtype, arg._device
            elif isinstance(arg, DType) or isinstance(arg, type) and arg in (float, int, bool):
                dtype = arg
            elif isinstance(arg, str | Device):
                device = arg
            elif not isinstance(arg, bool):
                raise TypeError(f"to() takes a dtype, a device or a tensor, got {type(arg).__name__}")
        dtype = None if dtype is None else named(dtype, "to")
        if device is None:
            if dtype is None:
                return at.to_dtype(self, self._dtype, non_blocking, copy, memory_format)
            return at.to_dtype(self, dtype, non_blocking, copy, memory_format)
        where = Device(device).without_index()
        return at.to_dtype_layout(self, dtype, where, non_blocking, copy, memory_format)

    def cpu(self) -> "Tensor":
        return self.to("cpu")

    def sim(self, non_blocking: bool = False) -> "Tensor":
        return self.to("sim", non_blocking=non_blocking)

    def record_stream(self, stream: Any) -> None:
        """Say that a stream of sim uses this memory: once freed, it is reused only after the stream is done."""
        record_stream(self, stream)

    def float(self, memory_format: Any = None) -> "Tensor":
        return self.to(float32, memory_format=memory_format)

    def double(self, memory_format: Any = None) -> "Tensor":
        return self.to(float64, memory_format=memory_format)

    def bfloat16(self, memory_format: Any = None) -> "Tensor":
        return self.to(bfloat16, memory_format=memory_format)

    def long(self, memory_format: Any = None) -> "Tensor":
        return self.to(int64, memory_format=memory_format)

    def int(self, memory_format: Any = None) -> "Tensor":
        return self.to(int32, memory_format=memory_format)

    def byte(self, memory_format: Any = None) -> "Tensor":
        return self.to(uint8, memory_format=memory_format)

    def char(self, memory_format: Any = None) -> "Tensor":
        return self.to(int8, memory_format=memory_format)

    def short(self, memory_format: Any = None) -> "Tensor":
        return self.to(int16, memory_format=memory_format)

    def bool(self, memory_format: Any = None) -> "Tensor":
        return self.to(bool_, memory_format=memory_format)

    def nonzero(self, *, as_tuple: Any = False) -> Any:
        """Indices of the elements that are not 0: (number of them, dimensions), or per dimension one tensor of them."""
        return (
            at.unbind_int(at.nonzero(at.unsqueeze(self, 0) if not self._shape else self), 1)
            if as_tuple
            else at.nonzero(self)
        )

    def item(self) -> Any:
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return at._local_scalar_dense(self)

    def tolist(self) -> Any:
        return (self if self._device.type == "cpu" else self.cpu()).values().tolist()

    # Indexing

    def __getitem__(self, key: Any) -> "Tensor":
        kind = type(key)
        if kind is slice:
            start, stop, step = key.start, key.stop, key.step
            if self._shape and (step is None or type(step) is _int and step > 0) and _plain(start) and _plain(stop):
                return at.slice_Tensor(self, 0, start or 0, END if stop is None else stop, 1 if step is None else step)
        elif kind is _int and self._shape:
            return at.select_int(self, 0, key)
        return indexing.getitem(self, key, _as_tensor)

    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(value, TensorImpl):
            if not isinstance(value, _NUMBERS):
                raise TypeError(f"can't assign a {type(value).__name__} to a tensor: make it one with mini.tensor(...)")
            value = copies.scalar_tensor(self, value, self._dtype)
        indexing.setitem(self, key, value, _as_tensor)

    def __iter__(self) -> Iterator["Tensor"]:
        if not self._shape:
            raise TypeError("iteration over a 0-d tensor")
        return iter(at.unbind_int(self, 0))

    # As a Python object

    def copy_(self, src: Any, non_blocking: Any = False) -> "Tensor":
        """Write the elements of `src`, broadcast to this shape and converted to this dtype; a number does as well."""
        if not isinstance(src, TensorImpl):
            src = wrapped_number(src)
        return at.copy_(self, src, non_blocking)

    def __contains__(self, element: Any) -> Any:
        return compare.contains(self, element)

    __hash__ = object.__hash__

    def __len__(self) -> Any:
        if not self._shape:
            raise TypeError("len() of a 0-d tensor")
        return self._shape[0]

    def __bool__(self) -> Any:
        if self.numel() != 1:
            amount = "more than one value" if self.numel() else "no values"
            raise RuntimeError(f"Boolean value of Tensor with {amount} is ambiguous")
        return bool(self.item())

    def __float__(self) -> Any:
        return float(self._only_element())

    def __int__(self) -> Any:
        return int(self._only_element())

    def __index__(self) -> Any:
        if self.numel() != 1 or self._dtype.is_floating_point:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def _only_element(self) -> Any:
        if self.numel() != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return self.item()

    def __repr__(self) -> str:
        return f"Parameter containing:\n{tensor_str(self)}" if _is_parameter(self) else tensor_str(self)

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec) if self._shape else format(self.item(), spec)

    def __deepcopy__(self, memo: dict[Any, Any]) -> "Tensor":
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                "moment."
            )
        found = memo.get(id(self))
        if found is None:
            found = _rebuild(copy.deepcopy(self._storage, memo), *_metadata(self))
            memo[id(self)] = found
            if self._grad is not None and not _is_parameter(self):
                found._grad = copy.deepcopy(self._grad, memo)
        return found

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """For pickle and copy.copy; tensors that share a storage share it afterwards too."""
        return _rebuild, (self._storage, *_metadata(self))


set_tensor_class(Tensor)
_int = int
END = indexing.END


def _plain(bound: Any) -> bool:
    return bound is None or type(bound) is int


def _is_parameter(self: Tensor) -> bool:
    meta = self._meta
    return isinstance(meta, autograd_view.AutogradMeta) and meta.is_parameter


def _metadata(self: Tensor) -> tuple[Any, ...]:
    """What makes a tensor of a storage: layout, dtype, device, and what it is to a module; its hooks are left out."""
    meta = self._meta if isinstance(self._meta, autograd_view.AutogradMeta) else None
    marks = (False, None) if meta is None else (meta.is_parameter, meta.attributes)
    return self._dtype, self._shape, self._stride, self._offset, self._device, self.requires_grad, marks


def _rebuild(
    storage: Storage,
    dtype: DType,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    device: Device,
    requires_grad: bool,
    marks: tuple[bool, dict[str, Any] | None],
) -> Tensor:
    made = TensorImpl.fresh(storage, shape, stride, dtype, device)
    made._offset = offset
    if marks != (False, None):
        meta = autograd_view.meta_of(made)
        meta.is_parameter, meta.attributes = marks[0], None if marks[1] is None else dict(marks[1])
    return made.requires_grad_(requires_grad)


def _as_tensor(data: Any) -> Tensor:
    from .factories import tensor

    return tensor(data)


def _existing(dim: int, shape: tuple[int, ...]) -> int:
    if not shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return layout.wrap_dim(dim, len(shape))
