"""The kernels of autograd put into the dispatcher (PyTorch: TORCH_LIBRARY_IMPL(aten, Autograd, m) of VariableType)."""

import warnings
from collections.abc import Callable
from typing import Any

from ..aten.core.dispatcher import OperatorHandle, dispatcher
from ..aten.core.kernel_function import KernelFunction
from ..c10.dispatch_key import DispatchKey, parse
from ..c10.dispatch_key_set import AFTER_AUTOGRAD
from ..c10.grad_mode import grad_enabled
from . import gen_inplace_or_view, gen_variable_type
from .load_derivatives import FILE, DifferentiabilityInfo, differentiability_infos
from .node import NotImplementedNode
from .variable import any_requires_grad, gradient_edge, requires_grad, set_histories

# The Autograd keys that have a fallback, of each backend with tensors in PyTorch's tree.
FALLBACKS = ("Other", "CPU", "CUDA", "XLA", "MPS", "XPU", "HPU", "Lazy", "MTIA", "MAIA", "PrivateUse1", "Meta")


def register_all() -> None:
    """Autograd and ADInplaceOrView kernels for every operator that there is now, and the fallback for later ones."""
    infos = differentiability_infos()
    for op in list(dispatcher.operators.values()):
        register(op, infos)
    fallback = KernelFunction(_not_implemented_fallback, "glassbox/mini/autograd/register.py", boxed=True)
    for name in FALLBACKS:
        dispatcher.register_fallback(parse("Autograd" + name), fallback)


def register(op: OperatorHandle, infos: dict[str, DifferentiabilityInfo]) -> None:
    """One operator's kernels; none where it is a composite or has no tensors."""
    schema = op.schema
    if op.has_kernel_for_dispatch_key("CompositeImplicitAutograd"):
        return
    if gen_inplace_or_view.needs_kernel(schema):
        _impl(op, DispatchKey.ADInplaceOrView, gen_inplace_or_view.make_kernel(op), "gen_inplace_or_view.py")
    if not any(argument.type.is_tensor for argument in schema.arguments):
        return
    if not any(result.type.is_tensor for result in schema.returns):
        return
    if schema.key in MANUAL:
        _impl(op, DispatchKey.Autograd, MANUAL[schema.key](op), "register.py")
        return
    info = info_for(op, infos)
    where = FILE.name if info is not None else "gen_variable_type.py"
    _impl(op, DispatchKey.Autograd, gen_variable_type.make_kernel(op, info), where)


def info_for(op: OperatorHandle, infos: dict[str, DifferentiabilityInfo]) -> DifferentiabilityInfo | None:
    """The op's formulas; an in-place op's are those of the op it is the in-place form of, if it has none of its own."""
    schema = op.schema
    found = infos.get(schema.key)
    if found is None and schema.is_inplace:
        arguments = [(each.name, each.type.base, each.type.is_list) for each in schema.arguments]
        for info in infos.values():
            if info.schema.base == schema.base[:-1] and arguments == [
                (each.name, each.type.base, each.type.is_list) for each in info.schema.arguments
            ]:
                return info
    return found


def _resize_(op: OperatorHandle) -> Callable[..., Any]:
    kernels = op.kernels

    def resize_(key_set: int, self: Any, *arguments: Any) -> Any:
        if requires_grad(self):
            raise RuntimeError("cannot resize variables that require grad")
        below = key_set & AFTER_AUTOGRAD
        return kernels[below](below, self, *arguments)

    return resize_


def _detach_(op: OperatorHandle) -> Callable[..., Any]:
    kernels = op.kernels

    def detach_(key_set: int, self: Any) -> Any:
        if self._base is not None:
            raise RuntimeError("Can't detach views in-place. Use detach() instead.")
        self._grad_fn, self._requires_grad, self._output_nr = None, False, 0
        below = key_set & AFTER_AUTOGRAD
        return kernels[below](below, self)

    return detach_


# Ops whose Autograd kernel no schema tells (PyTorch: VariableTypeManual.cpp).
MANUAL = {"resize_": _resize_, "detach_": _detach_}


def _impl(op: OperatorHandle, key: DispatchKey, kernel: Callable[..., Any], where: str) -> None:
    place = f"glassbox/mini/autograd/{where}: {op.schema.key}"
    dispatcher.register_impl(op, key, KernelFunction(kernel, place))


class WarnNotImplemented(NotImplementedNode):
    """The node of an op from outside that has no derivative: it warns, and sends no gradient on."""

    __slots__ = ()
    n_outputs = -1

    def name(self) -> str:
        return type(self).__name__

    def apply(self, *grads: Any) -> tuple[Any, ...]:
        warnings.warn(
            f"{self.op_name}: an autograd kernel was not registered to the Autograd key(s) but we are trying to "
            f"backprop through it. This may lead to silently incorrect behavior: give the operator a derivative with "
            f"mini.library.register_autograd",
            UserWarning,
            stacklevel=2,
        )
        return (None,) * len(self.next_edges)


def _not_implemented_fallback(op: OperatorHandle, key_set: int, arguments: tuple[Any, ...]) -> Any:
    """For an op from outside that has no Autograd kernel.

    What its kernel makes of operators has their history; any other result has a node that can only warn.
    """
    tensors = list(_tensors(arguments))
    edges = None
    if grad_enabled.get() and any_requires_grad(tensors):
        edges = tuple(gradient_edge(tensor) for tensor in tensors)
    result = op.redispatch(key_set & AFTER_AUTOGRAD, *arguments)
    if edges is not None:
        node = WarnNotImplemented(op.name)
        node.next_edges = edges
        results = result if isinstance(result, tuple | list) else (result,)
        # One place per result, so that each gradient is known by its own; None where a result has its history.
        set_histories(
            [each if hasattr(each, "_key_set") and not requires_grad(each) else None for each in results], node
        )
    return result


def _tensors(arguments: Any) -> Any:
    for argument in arguments:
        if isinstance(argument, tuple | list):
            yield from _tensors(argument)
        elif hasattr(argument, "_key_set"):
            yield argument
