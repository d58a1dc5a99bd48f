"""functionalize: a program that writes to tensors turned into one that does not (PyTorch: FunctionalTensorWrapper.cpp).

The program runs on wrappers. The kernel at Functionalize calls add where the program calls add_ and puts
the result into the wrapper. A view remembers how it was made from its base: a write through it becomes a
new value of the base (select_scatter for a write through select), and it and every other view are made anew
from that when they are next used.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..aten import ops as at
from ..aten.core.dispatcher import OperatorHandle, dispatcher
from ..aten.core.kernel_function import KernelFunction, place_of
from ..c10 import layout, promotion
from ..c10.dispatch_key import DispatchKey
from ..c10.dispatch_key_set import bits
from ..c10.local_dispatch_key_set import KeysGuard
from ..c10.tensor_impl import TensorImpl
from . import pytree
from .dynamic_layer import depth, layer
from .functional_form import functional_form
from .wrapper_tensor import WrapperTensor

FUNCTIONALIZE = bits(DispatchKey.Functionalize)


class FunctionalStorage:
    """What a base and all its views share: the base's newest value, and how often it was replaced."""

    __slots__ = ("base", "generation")

    def __init__(self, base: Any) -> None:
        self.base = base
        self.generation = 0


@dataclass(frozen=True, slots=True)
class ViewMeta:
    """How a view was made: the operator, its arguments after the tensor, and which of several results it is."""

    op: OperatorHandle
    rest: tuple[Any, ...]
    nr: int | None = None

    def forward(self, base: Any) -> Any:
        """The view of a base."""
        views = self.op.call(base, *self.rest)
        return views if self.nr is None else views[self.nr]

    def reverse(self, base: Any, view: Any) -> Any:
        """The base that has `view` where this view lies in it."""
        inverse = _INVERSES.get(self.op.schema.key)
        if inverse is None:
            raise RuntimeError(f"functionalize: a write through {self.op.name} cannot be undone here")
        return inverse(base, view, self.nr, *self.rest)


class FunctionalTensor(WrapperTensor):
    """What a functionalized program sees as a tensor that can be written to.

    value        its newest elements, if `generation` is that of the storage
    storage      shared by all tensors that would share memory
    views        how it is made from the storage's base, outermost view last
    level        which functionalize it belongs to
    """

    __slots__ = ("value", "storage", "views", "generation", "level")

    value: Any
    storage: FunctionalStorage
    views: tuple[ViewMeta, ...]
    generation: int
    level: int

    def __repr__(self) -> str:
        return f"FunctionalTensor(lvl={self.level}, value={self.value!r})"

    def current(self) -> Any:
        """The value, made anew from the base where that was replaced since."""
        if self.generation != self.storage.generation:
            self._regenerate()
        return self.value

    def replace(self, value: Any) -> None:
        """What a write does: this tensor, and what shares memory with it, has other elements."""
        self.storage.base = _put(self.storage.base, self.views, value)
        self.storage.generation += 1
        self._regenerate()

    def _regenerate(self) -> None:
        value = self.storage.base
        for view in self.views:
            value = view.forward(value)
        self.value = value
        self.generation = self.storage.generation


def _put(base: Any, views: tuple[ViewMeta, ...], value: Any) -> Any:
    if not views:
        return value
    first, rest = views[0], views[1:]
    return first.reverse(base, _put(first.forward(base), rest, value) if rest else value)


def wrap(value: Any, storage: FunctionalStorage, views: tuple[ViewMeta, ...], level: int) -> FunctionalTensor:
    self: FunctionalTensor = FunctionalTensor.over(value, FUNCTIONALIZE)
    self.value = value
    self.storage = storage
    self.views = views
    # A view made after a write is made anew once more before it is used, as PyTorch's is.
    self.generation = 0
    self.level = level
    return self


def wrap_fresh(value: Any, level: int) -> Any:
    """A result that shares memory with nothing; no tensor, or a list, as it is or item by item."""
    if isinstance(value, tuple | list):
        return tuple(wrap_fresh(each, level) for each in value)
    return wrap(value, FunctionalStorage(value), (), level) if isinstance(value, TensorImpl) else value


# How a base is made from a view of it that was written to: inverse(base, view, nr, *the view op's arguments)


def _same(base: Any, view: Any, nr: int | None, *rest: Any) -> Any:
    return view


def _reshaped(base: Any, view: Any, nr: int | None, *rest: Any) -> Any:
    return at.reshape(view, base._shape)


def _permute(base: Any, view: Any, nr: int | None, dims: tuple[int, ...]) -> Any:
    back = [0] * len(dims)
    for place, dim in enumerate(dims):
        back[layout.wrap_dim(dim, len(dims))] = place
    return at.permute(view, tuple(back))


def _squeeze_dim(base: Any, view: Any, nr: int | None, dim: int) -> Any:
    if len(view._shape) == len(base._shape):
        return view
    return at.unsqueeze(view, layout.wrap_dim(dim, len(base._shape)))


def _split(base: Any, view: Any, nr: int | None, size: Any, dim: int) -> Any:
    assert nr is not None
    sizes = size if isinstance(size, tuple) else (size,) * (nr + 1)
    start = sum(sizes[:nr])
    end = min(start + sizes[nr], base._shape[dim])
    return at.slice_scatter(base, view, dim, start, end, 1)


_INVERSES: dict[str, Callable[..., Any]] = {
    "alias": _same,
    "detach": _same,
    "view": lambda base, view, nr, size: at.view(view, base._shape),
    "_reshape_alias": _reshaped,
    "t": lambda base, view, nr: at.t(view),
    "transpose.int": lambda base, view, nr, dim0, dim1: at.transpose_int(view, dim0, dim1),
    "permute": _permute,
    "unsqueeze": lambda base, view, nr, dim: at.squeeze_dim(view, dim),
    "squeeze": _reshaped,
    "squeeze.dim": _squeeze_dim,
    "squeeze.dims": _reshaped,
    "select.int": lambda base, view, nr, dim, index: at.select_scatter(base, view, dim, index),
    "slice.Tensor": lambda base, view, nr, dim, start, end, step: at.slice_scatter(base, view, dim, start, end, step),
    "as_strided": lambda base, view, nr, size, stride, offset: at.as_strided_scatter(base, view, size, stride, offset),
    "split.Tensor": _split,
    "split_with_sizes": _split,
    "unbind.int": lambda base, view, nr, dim: at.select_scatter(base, view, dim, nr),
}


# The kernel


def functionalize_fallback(op: OperatorHandle, key_set: int, arguments: tuple[Any, ...]) -> Any:
    """The kernel of every operator at Functionalize."""
    schema, level = op.schema, depth()
    composite = op.own_kernel(DispatchKey.CompositeImplicitAutograd)
    if composite is not None:
        # Whether its result shares memory is for the operators to say that it is made of.
        return composite.bound_to(op, key_set)(key_set, *arguments)
    with KeysGuard(exclude=FUNCTIONALIZE):
        if "inplace_view" in op.tags and isinstance(arguments[0], FunctionalTensor):
            return _view_in_place(op, arguments[0], arguments[1:])
        if schema.is_mutable:
            return _write(op, arguments)
        values = tuple(_unwrapped(argument) for argument in arguments)
        if schema.is_view and isinstance(arguments[0], FunctionalTensor):
            return _view(op, arguments[0], values[1:], level)
        return wrap_fresh(op.call(*values), level)


def _view(op: OperatorHandle, base: FunctionalTensor, rest: tuple[Any, ...], level: int) -> Any:
    views = op.call(base.current(), *rest)
    if isinstance(views, tuple | list):
        return tuple(
            wrap(view, base.storage, (*base.views, ViewMeta(op, rest, nr)), level) for nr, view in enumerate(views)
        )
    return wrap(views, base.storage, (*base.views, ViewMeta(op, rest)), level)


def _view_in_place(op: OperatorHandle, self: FunctionalTensor, rest: tuple[Any, ...]) -> Any:
    """squeeze_ and its kin: the tensor becomes a view of what it was."""
    functional = functional_form(op)
    if functional is None:
        raise RuntimeError(f"functionalize: {op.name} has no functional form")
    self.value = functional.call(self.current(), *rest)
    self.views = (*self.views, ViewMeta(functional, rest))
    self._shape, self._stride = self.value._shape, self.value._stride
    return self


def _write(op: OperatorHandle, arguments: tuple[Any, ...]) -> Any:
    schema = op.schema
    targets = [
        value for a, value in zip(schema.arguments, arguments, strict=True) if a.type.is_write and value is not None
    ]
    if not any(isinstance(target, FunctionalTensor) for target in targets):
        if any(isinstance(each, FunctionalTensor) for each in arguments):
            raise RuntimeError(
                f"functionalize: {op.name} would write what the program computed into a tensor from outside of it; "
                "make that "
                f"tensor an argument"
            )
        return op.call(*arguments)
    values = tuple(_unwrapped(argument) for argument in arguments)
    results = _functional_result(op, values)
    for target, result in zip(targets, results, strict=True):
        if isinstance(target, FunctionalTensor):
            target.replace(_fitting(op, target, result))
    if schema.is_out:
        return tuple(targets) if len(targets) > 1 else targets[0]
    return arguments[0]


def _functional_result(op: OperatorHandle, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """What the op would write, computed by its functional form; one without such a form writes into a copy."""
    schema = op.schema
    functional = functional_form(op)
    if functional is None:
        if not schema.is_inplace:
            raise RuntimeError(f"functionalize: {op.name} has no functional form")
        return (op.call(at.clone(values[0], None), *values[1:]),)
    kept = values[: len(values) - len(schema.out_arguments)]
    result = functional.call(*kept)
    return tuple(result) if isinstance(result, tuple | list) else (result,)


def _fitting(op: OperatorHandle, target: FunctionalTensor, result: Any) -> Any:
    if result._shape != target._shape:
        raise RuntimeError(
            f"output with shape {list(target._shape)} doesn't match the broadcast shape {list(result._shape)}"
        )
    if result._dtype is target._dtype:
        return result
    if not promotion.can_cast(result._dtype, target._dtype):
        raise RuntimeError(
            f"result type {result._dtype.name} can't be cast to the desired output type {target._dtype.name}"
        )
    return at.to_dtype(result, target._dtype, False, False, None)


def _unwrapped(argument: Any) -> Any:
    if isinstance(argument, FunctionalTensor):
        return argument.current()
    return tuple(_unwrapped(each) for each in argument) if type(argument) is tuple else argument


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """A function with the same results as `func` that calls no operator which writes into a tensor.

    Only where func writes into its arguments, each of those is written to once, by copy_ at the end.
    remove: "mutations", the only thing that is removed here; RuntimeError for anything else.
    """
    if remove != "mutations":
        raise RuntimeError(f"functionalize(..., remove={remove!r}): only 'mutations' can be removed here")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        inputs = [leaf for leaf in pytree.leaves((args, kwargs)) if isinstance(leaf, TensorImpl)]
        with layer(FUNCTIONALIZE, FUNCTIONALIZE) as top:
            made = {id(tensor): wrap_fresh(tensor, top.level) for tensor in inputs}
            args, kwargs = pytree.mapped(lambda leaf: made.get(id(leaf), leaf), (args, kwargs))
            outputs = func(*args, **kwargs)
            with KeysGuard(exclude=FUNCTIONALIZE):
                results = pytree.mapped(_unwrapped, outputs)
        for tensor in inputs:
            storage = made[id(tensor)].storage
            if storage.generation:
                at.copy_(tensor, storage.base, False)
        return results

    return wrapped


def register_all() -> None:
    """The fallback of the Functionalize key."""
    kernel = KernelFunction(functionalize_fallback, place_of(functionalize_fallback), boxed=True)
    dispatcher.register_fallback(DispatchKey.Functionalize, kernel)
