"""Parameter: a tensor that a module counts as its own (PyTorch: torch/nn/parameter.py).

Not a subclass of Tensor: one class for all tensors keeps every attribute look-up in the framework quick. A parameter is a leaf
with a mark, and isinstance(x, Parameter) asks for the mark.
"""

from typing import Any

from ..autograd.view import AutogradMeta, meta_of
from ..c10.tensor_impl import TensorImpl
from ..tensor import Tensor


class _Marked(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, TensorImpl)
            and isinstance(instance._meta, AutogradMeta)
            and instance._meta.is_parameter
        )


class Parameter(metaclass=_Marked):
    """`Parameter(data)`: a leaf over the same elements as `data` that requires grad unless told otherwise."""

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        if data is None:
            from ..aten import ops as at

            data = at.empty_memory_format((0,), None, None, None)
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter() needs a tensor, got {type(data).__name__}")
        made = data.detach()
        meta_of(made).is_parameter = True
        return made.requires_grad_() if requires_grad else made


class Buffer:
    """`Buffer(data)`: a tensor that belongs to a module's state and is not trained."""

    def __init__(self, data: Any, persistent: bool = True) -> None:
        self.data = data
        self.persistent = persistent
