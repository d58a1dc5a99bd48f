"""BatchedTensor: one name for many examples, and what a call on it does (PyTorch: functorch/BatchedTensorImpl.h).

Inside vmap a tensor looks like one example; its value holds all of them, along a dimension that the program
does not see. The kernel at FuncTorchBatched takes the values out, lets the operator's batching rule compute
on all examples together, and wraps the results again. An operator without a rule is called once per
example.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..aten import ops as at
from ..aten.core.dispatcher import OperatorHandle
from ..aten.core.kernel_function import KernelFunction, place_of
from ..c10.dispatch_key import DispatchKey
from ..c10.dispatch_key_set import bits
from ..c10.local_dispatch_key_set import KeysGuard
from ..c10.tensor_impl import TensorImpl
from .dynamic_layer import current_layer
from .wrapper_tensor import WrapperTensor

BATCHED = bits(DispatchKey.FuncTorchBatched)
VMAP_MODE = bits(DispatchKey.FuncTorchVmapMode)


class BatchedTensor(WrapperTensor):
    """What stands for one example inside vmap.

    value   the tensor with all examples, itself batched in an outer vmap's
    bdim    the dimension along which they lie
    level   which vmap it belongs to, 1 for the outermost
    """

    __slots__ = ("value", "bdim", "level")

    value: Any
    bdim: int
    level: int

    def become(self, value: Any, bdim: int) -> None:
        """Stand for other examples from now on."""
        self.value = value
        self.bdim = bdim
        keep = [dim for dim in range(len(value._shape)) if dim != bdim]
        self._shape = tuple(value._shape[dim] for dim in keep)
        self._stride = tuple(value._stride[dim] for dim in keep)

    def __repr__(self) -> str:
        value = repr(self.value).replace("\n", "\n    ")
        return f"BatchedTensor(lvl={self.level}, bdim={self.bdim}, value=\n    {value}\n)"


def make_batched(value: Any, bdim: int, level: int) -> BatchedTensor:
    """The examples of `value` along `bdim` as one tensor of vmap's level."""
    self: BatchedTensor = BatchedTensor.over(value, BATCHED)
    self.level = level
    self.become(value, bdim)
    return self


@dataclass(frozen=True, slots=True, eq=False)
class Arg:
    """A tensor argument as a batching rule gets it: its value, and where its batch dimension is (None without one)."""

    value: Any
    bdim: int | None

    @property
    def rank(self) -> int:
        """Dimensions that the program sees."""
        return len(self.value._shape) - (self.bdim is not None)

    def in_front(self) -> Any:
        """The value with its batch dimension, if it has one, as the first."""
        return self.value if not self.bdim else at.movedim_int(self.value, self.bdim, 0)

    def for_all(self, size: int) -> Any:
        """The value with the batch dimension as the first, the same for every example where it had none."""
        if self.bdim is not None:
            return self.in_front()
        return at.expand(self.value, (size, *self.value._shape), False)

    def example(self, nr: int) -> Any:
        return self.value if self.bdim is None else at.select_int(self.value, self.bdim, nr)


# A batching rule: rule(op, batch size, arguments) with an Arg for each tensor, and lists of them for lists.
# It returns the result with the batch dimension in front in every tensor. NotImplemented sends the call to
# the fallback.
Rule = Callable[[OperatorHandle, int, list[Any]], Any]


def kernel_of(rule: Rule) -> KernelFunction:
    """The FuncTorchBatched kernel that runs a batching rule."""

    def batched(op: OperatorHandle, key_set: int, arguments: tuple[Any, ...]) -> Any:
        layer = current_layer()
        if layer is None:
            raise RuntimeError(
                f"{op.name} was called with a tensor that escaped from inside a function being vmapped over: use "
                "what vmap "
                f"returns instead"
            )
        args = [_opened(argument, layer.level) for argument in arguments]
        found = [arg for arg in _args(args) if arg.bdim is not None]
        with KeysGuard(exclude=BATCHED | VMAP_MODE):
            if not found:
                return op.call(*arguments)
            _refuse_hidden_writes(op, args)
            size = found[0].value._shape[found[0].bdim]
            result = rule(op, size, args)
            if result is NotImplemented:
                result = example_by_example(op, size, args)
            if "inplace_view" in op.tags:
                arguments[0].become(result, 0)
        if op.schema.is_inplace:
            return arguments[0]
        return _wrapped(result, layer.level)

    return KernelFunction(batched, place_of(rule), boxed=True)


def _opened(argument: Any, level: int) -> Any:
    if isinstance(argument, TensorImpl):
        if isinstance(argument, BatchedTensor) and argument.level == level:
            return Arg(argument.value, argument.bdim)
        return Arg(argument, None)
    if type(argument) is tuple:
        return [_opened(each, level) for each in argument]
    return argument


def _args(args: Any) -> list[Arg]:
    found: list[Arg] = []
    for arg in args:
        if isinstance(arg, Arg):
            found.append(arg)
        elif isinstance(arg, list):
            found += _args(arg)
    return found


def _wrapped(result: Any, level: int) -> Any:
    if isinstance(result, tuple | list):
        return tuple(_wrapped(each, level) for each in result)
    return make_batched(result, 0, level) if isinstance(result, TensorImpl) else result


def _refuse_hidden_writes(op: OperatorHandle, args: list[Any]) -> None:
    """Many results cannot be written into a tensor that is one and the same for all examples."""
    for argument, arg in zip(op.schema.arguments, args, strict=True):
        if argument.type.is_write and isinstance(arg, Arg) and arg.bdim is None:
            raise RuntimeError(
                f"vmap: {op.name}({argument.name}, *extra_args) is not possible because {argument.name} is not "
                "being vmapped "
                "over while another argument is, so there are more results than it can hold. Please use an "
                "out-of-place "
                f"operator instead"
            )


_DATA_DEPENDENT = (
    "vmap: It looks like you're calling .item() on a Tensor, or attempting to use one in some data-dependent "
    "control flow "
    "({name}). Every example could decide otherwise, so that is not possible inside vmap: compute both and choose "
    "with where"
)
_DYNAMIC_SHAPE = (
    "vmap: We do not support batching operators that can output dynamic shape, and {name} gives each example a "
    "shape of its "
    "own"
)


def example_by_example(op: OperatorHandle, size: int, args: list[Any]) -> Any:
    """The rule for an operator that has none: one call per example, the results stacked."""
    if "data_dependent_output" in op.tags:
        raise RuntimeError(_DATA_DEPENDENT.format(name=op.name))
    if op.schema.is_out:
        raise RuntimeError(f"vmap: {op.name} writes into out= and has no batching rule: leave out= away")
    if size == 0:
        raise RuntimeError(f"vmap: {op.name} has no batching rule, and there is no example to call it with")
    warnings.warn(
        f"There is a performance drop because there is no batching rule for {op.name}: it is called once per example",
        UserWarning,
        stacklevel=2,
    )
    results = [op.call(*[_example(arg, nr) for arg in args]) for nr in range(size)]
    return None if op.schema.is_inplace else _stacked(op, results)


def _example(arg: Any, nr: int) -> Any:
    if isinstance(arg, Arg):
        return arg.example(nr)
    return tuple(_example(each, nr) for each in arg) if isinstance(arg, list) else arg


def _stacked(op: OperatorHandle, results: list[Any]) -> Any:
    first = results[0]
    if isinstance(first, tuple | list):
        return tuple(_stacked(op, list(each)) for each in zip(*results, strict=True))
    if not isinstance(first, TensorImpl):
        raise RuntimeError(_DATA_DEPENDENT.format(name=op.name))
    if any(result._shape != first._shape for result in results):
        raise RuntimeError(_DYNAMIC_SHAPE.format(name=op.name))
    return at.stack(tuple(results), 0)


def no_rule(op: OperatorHandle, size: int, args: list[Any]) -> Any:
    """For every operator without a rule of its own."""
    return NotImplemented


def dynamic_shape(op: OperatorHandle, size: int, args: list[Any]) -> Any:
    """For operators whose result's shape hangs on the elements."""
    raise RuntimeError(_DYNAMIC_SHAPE.format(name=op.name))
