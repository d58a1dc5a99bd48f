"""Parameter and Buffer: tensors that a module counts as its own (PyTorch: torch/nn/parameter.py).

Not subclasses of Tensor: one class for all tensors keeps every attribute look-up in the framework quick. Both are
tensors with a mark, isinstance asks for the mark, and what is computed from them (detach and clone too) is a plain
tensor.
"""

from typing import Any

from ..autograd.view import AutogradMeta, meta_of
from ..c10.tensor_impl import TensorImpl


class _Marked(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        meta = instance._meta if isinstance(instance, TensorImpl) else None
        return isinstance(meta, AutogradMeta) and cls._has_mark(meta)

    def _has_mark(cls, meta: AutogradMeta) -> bool:
        raise NotImplementedError


class _ParameterMark(_Marked):
    def _has_mark(cls, meta: AutogradMeta) -> bool:
        return meta.is_parameter


class _BufferMark(_Marked):
    def _has_mark(cls, meta: AutogradMeta) -> bool:
        return meta.attributes is not None and "persistent" in meta.attributes


class Parameter(metaclass=_ParameterMark):
    """`Parameter(data)`: a leaf over the same elements as `data` that requires grad unless told otherwise.

    Without data an empty one. AttributeError for what is no tensor, RuntimeError for a dtype that has no gradients.
    """

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        made = _detached(data)
        meta_of(made).is_parameter = True
        return made.requires_grad_() if requires_grad else made


class Buffer(metaclass=_BufferMark):
    """`Buffer(data)`: a tensor that, assigned to a module's attribute, belongs to its state and is not trained.

    persistent: whether it is in the module's state_dict.
    """

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        made = _detached(data)
        meta_of(made).attributes = {"persistent": persistent}
        return made.requires_grad_() if data is not None and data.requires_grad else made


def is_persistent(buffer: Any) -> bool:
    """Whether a Buffer is to be in the state_dict."""
    return buffer._meta.attributes["persistent"]


def _detached(data: Any) -> Any:
    if data is None:
        from ..aten import ops as at

        return at.empty_memory_format((0,), None, None, None)
    if not isinstance(data, TensorImpl):
        raise AttributeError(f"a parameter or buffer is made of a tensor, not of {type(data).__name__!r}")
    return data.detach()  # type: ignore[attr-defined]
