"""Random operators inside vmap: an error, the same or different numbers (PyTorch: BatchRulesRandomness.cpp)."""

from typing import Any

from ..aten import ops as at
from ..aten.core.dispatcher import OperatorHandle, dispatcher
from ..aten.core.kernel_function import KernelFunction, place_of
from ..c10.dispatch_key import DispatchKey
from ..c10.local_dispatch_key_set import KeysGuard
from ..c10.tensor_impl import TensorImpl
from .batched_tensor import BATCHED, VMAP_MODE, BatchedTensor, make_batched
from .dynamic_layer import DynamicLayer, current_layer

CHOICES = ("error", "same", "different")
_RANDOM = frozenset(("rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "randperm", "bernoulli"))


def is_random(op: OperatorHandle) -> bool:
    """Whether two calls with the same arguments may give different results."""
    return "nondeterministic_seeded" in op.tags or op.schema.base in _RANDOM


def random_kernel(op: OperatorHandle, key_set: int, arguments: tuple[Any, ...]) -> Any:
    """The FuncTorchVmapMode kernel of a random operator."""
    layer = current_layer()
    assert layer is not None, "FuncTorchVmapMode is only included inside a transform"
    if layer.randomness == "error":
        raise RuntimeError(
            f"vmap: called random operation {op.name} while in randomness error mode. Please either use the 'same' or "
            f"'different' randomness flags on vmap or perform the randomness operation out of vmap"
        )
    with KeysGuard(exclude=VMAP_MODE | BATCHED):
        tensors = [each for each in arguments if isinstance(each, TensorImpl)]
        if not tensors:
            return _factory(op, layer, arguments)
        return _like(op, layer, arguments)


def _factory(op: OperatorHandle, layer: DynamicLayer, arguments: tuple[Any, ...]) -> Any:
    if layer.randomness == "same":
        return op.call(*arguments)
    size = next((nr for nr, a in enumerate(op.schema.arguments) if a.name == "size" and a.type.is_list), None)
    if size is None:
        drawn = at.stack(tuple(op.call(*arguments) for _ in range(layer.batch_size)), 0)
    else:
        drawn = op.call(*arguments[:size], (layer.batch_size, *arguments[size]), *arguments[size + 1 :])
    return make_batched(drawn, 0, layer.level)


def _like(op: OperatorHandle, layer: DynamicLayer, arguments: tuple[Any, ...]) -> Any:
    """A random operator of tensors: on all examples in one call, or on one of them for all."""
    self = arguments[0]
    inplace = op.schema.is_inplace
    batched = [each for each in arguments if _is_batched(each, layer)]
    if layer.randomness == "different":
        if inplace and not _is_batched(self, layer):
            raise RuntimeError(
                f"vmap: Cannot ask for different inplace randomness on an unbatched tensor: {op.name} has one place "
                "for the "
                f"numbers of all examples"
            )
        result = op.call(*[_of_all(each, layer) if isinstance(each, TensorImpl) else each for each in arguments])
        return self if inplace else _wrapped(result, layer.level)
    if not batched:
        return op.call(*arguments)
    if len(batched) == 1 and batched[0] is self:
        one = at.empty_memory_format(self._shape, self._dtype, self._device, None)
        if inplace:
            at.copy_(_of_all(self, layer), op.call(one, *arguments[1:]), False)
            return self
        if op.schema.base.endswith("_like"):
            return op.call(one, *arguments[1:])
        if op.schema.base == "native_dropout":
            scale, mask = op.call(at.fill__Scalar(one, 1), *arguments[1:])
            return make_batched(at.mul_Tensor(_of_all(self, layer), scale), 0, layer.level), mask
    raise RuntimeError(
        f"Vmap does not currently support same randomness with a batched tensor input: {op.name} would have to draw "
        "the same "
        f"numbers for examples that differ"
    )


def _is_batched(value: Any, layer: DynamicLayer) -> bool:
    return isinstance(value, BatchedTensor) and value.level == layer.level


def _of_all(value: Any, layer: DynamicLayer) -> Any:
    """The tensor of all examples, the batch dimension in front."""
    if _is_batched(value, layer):
        return at.movedim_int(value.value, value.bdim, 0) if value.bdim else value.value
    return at.expand(value, (layer.batch_size, *value._shape), False)


def _wrapped(result: Any, level: int) -> Any:
    if isinstance(result, tuple):
        return tuple(make_batched(each, 0, level) for each in result)
    return make_batched(result, 0, level)


def register(op: OperatorHandle) -> None:
    """A kernel at FuncTorchVmapMode, if the operator is random and no composite."""
    if is_random(op) and op.own_kernel(DispatchKey.CompositeImplicitAutograd) is None:
        kernel = KernelFunction(random_kernel, place_of(random_kernel), boxed=True)
        dispatcher.register_impl(op, DispatchKey.FuncTorchVmapMode, kernel)
