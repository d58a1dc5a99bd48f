"""AccumulateGrad: the end of the graph at a leaf (PyTorch: torch/csrc/autograd/functions/accumulate_grad.h).

The first gradient of a leaf becomes its .grad: the very tensor where nobody else holds it and it lies in memory as
the leaf does, else a copy that does. Later ones are added to it in place.
"""

import sys
from typing import Any

from ..aten.core.dispatcher import watchers
from ..c10 import geometry, layout
from ..c10.dispatch_key_set import PYTHON
from ..c10.grad_mode import grad_enabled
from ..c10.local_dispatch_key_set import local_keys
from ..c10.pieces import cached
from ..c10.tensor_impl import TensorImpl
from . import engine
from .node import LEAF_FIRST, InputMetadata, Node


class AccumulateGrad(Node):
    """Adds the gradient to the leaf's .grad."""

    __slots__ = ("variable",)

    variable: Any
    # Of the class, since they are the same for all: a leaf's node is made anew whenever no graph holds one.
    next_edges = ()
    sequence_nr = LEAF_FIRST
    saves = False

    @property
    def input_metadata(self) -> tuple[InputMetadata, ...]:
        variable = self.variable
        return ((variable._shape, variable._dtype, variable._device),)

    def apply(self, grad: Any) -> tuple[Any, ...]:
        variable = self.variable
        if grad is None or not variable._requires_grad:
            return ()
        if variable._grad_fn is not None:
            raise RuntimeError("leaf variable has been moved into the graph interior")
        old = variable._grad
        if old is not None:
            if grad_enabled.get():
                variable._grad = old + grad
            else:
                old.add_(grad)
        elif (
            sys.getrefcount(grad) <= _OWN
            and not grad_enabled.get()
            and obeys_layout_contract(grad._shape, grad._stride, variable._stride)
        ):
            # Nobody else holds it, so it need not be copied. The detach is what others see of that.
            if watchers or local_keys.get()[0] & PYTHON:
                variable._grad = grad.detach()
            elif grad._base is not None or grad._requires_grad:
                variable._grad = grad.shallow_copy(grad._version_counter)
            else:
                variable._grad = grad
        else:
            variable._grad = clone_obeying_contract(grad, variable)
        hooks = self.hooks
        if hooks is not None:
            for hook in list(hooks.after_accumulate.values()):
                hook(variable)
        return ()


@cached
def obeys_layout_contract(shape: tuple[int, ...], stride: tuple[int, ...], variable_stride: tuple[int, ...]) -> bool:
    """Whether a gradient lies in memory as its leaf does, or, if the leaf has gaps or overlaps, contiguously."""
    if layout.is_dense(shape, variable_stride):
        return all(n == 1 or a == b for n, a, b in zip(shape, stride, variable_stride, strict=True))
    return geometry.is_contiguous(shape, stride)


def clone_obeying_contract(grad: Any, variable: TensorImpl) -> Any:
    """A copy of the gradient laid out as the leaf is; part of the graph where grad mode is on."""
    if layout.is_dense(variable._shape, variable._stride):
        return grad.new_empty_strided(variable._shape, variable._stride, dtype=grad._dtype).copy_(grad)
    return grad.clone(memory_format="contiguous_format")


class _Seen(Node):
    """Counts the references that a gradient has in apply when the engine alone holds it."""

    __slots__ = ("count",)

    def apply(self, grad: Any) -> tuple[Any, ...]:
        self.count = sys.getrefcount(grad)
        return ()


class _Source(Node):
    __slots__ = ()

    def apply(self, grad: Any) -> tuple[Any, ...]:
        return (_Stub(),)


class _Stub:
    _shape: tuple[int, ...] = ()
    _dtype = None


def _references_of_running() -> int:
    source, seen = _Source(), _Seen()
    source.begin()
    seen.begin()
    source.next_edges, seen.next_edges = ((seen, 0),), ()
    source.input_metadata = seen.input_metadata = (((), None, None),)
    engine.execute([(source, 0)], [_Stub()], keep_graph=False, create_graph=False)
    return seen.count


# The engine's frame and the call hold references, and how many differs between versions of CPython: measured once.
_OWN = _references_of_running()
