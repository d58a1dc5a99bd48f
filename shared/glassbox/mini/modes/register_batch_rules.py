"""Which operator has which batching rule, and rules from outside (PyTorch: torch.library.register_vmap)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..aten.core.dispatcher import OperatorHandle, dispatcher
from ..aten.core.library import Library
from ..aten.core.op_overload import OpOverload
from ..c10.dispatch_key import DispatchKey
from . import batch_rules_modules, batch_rules_views, vmap_randomness  # noqa: F401 - they fill RULES
from .batch_rules import RULES, pointwise
from .batched_tensor import Arg, Rule, dynamic_shape, kernel_of, no_rule
from .dynamic_layer import current_layer
from .functional_form import functional_form

# Which operator has which rule

# Not pointwise by tag, but in how they treat their elements.
POINTWISE = frozenset(
    [
        "clone",
        "copy_",
        "_to_copy",
        "fill_.Scalar",
        "zero_",
        "empty_like",
        "zeros_like",
        "ones_like",
        "full_like",
        "masked_fill.Scalar",
        "masked_fill_.Scalar",
        "threshold_backward",
        "softplus_backward",
        "leaky_relu_backward",
        "gelu_backward",
        "isinf",
        "isnan",
        "round",
    ]
)


def rule_of(op: OperatorHandle) -> Rule:
    """The operator's batching rule."""
    schema = op.schema
    own = RULES.get(schema.key)
    if own is not None:
        return own
    if schema.is_out:
        return no_rule
    if schema.key in POINTWISE or "pointwise" in op.tags:
        return pointwise
    if schema.is_inplace:
        functional = functional_form(op)
        if functional is not None and "inplace_view" in op.tags:
            # The tensor then becomes what its view's rule gives.
            view = functional
            rule = rule_of(view)
            return lambda op, size, args: rule(view, size, args)
        if functional is not None and rule_of(functional) is pointwise:
            return pointwise
    if "dynamic_output_shape" in op.tags and not any(a.type.is_list for a in schema.arguments if a.type.is_tensor):
        return dynamic_shape
    return no_rule


def register_all() -> None:
    """A kernel at FuncTorchBatched for every operator with a rule, and for composites one that takes them apart."""
    for op in list(dispatcher.operators.values()):
        composite = op.own_kernel(DispatchKey.CompositeImplicitAutograd)
        if composite is not None:
            dispatcher.register_impl(op, DispatchKey.FuncTorchBatchedDecomposition, composite)
        elif any(argument.type.is_tensor for argument in op.schema.arguments):
            rule = rule_of(op)
            if rule is not no_rule:
                dispatcher.register_impl(op, DispatchKey.FuncTorchBatched, kernel_of(rule))
        vmap_randomness.register(op)
    dispatcher.register_fallback(DispatchKey.FuncTorchBatched, kernel_of(no_rule))


# Rules from outside


@dataclass(frozen=True, slots=True)
class VmapInfo:
    """What a registered rule is told of the vmap."""

    batch_size: int
    randomness: str


def register_vmap(op: str | OpOverload, func: Any = None, /, *, lib: Library | None = None) -> Any:
    """Give an operator a batching rule; also a decorator.

    func(info, in_dims, *args, **kwargs) gets the arguments with all examples in them and says by in_dims
    along which dimension (None for not batched); it returns (result, out_dims), tuples of each where there
    are several results.
    """
    name = op.name() if isinstance(op, OpOverload) else op
    into = Library(name.partition("::")[0], "FRAGMENT") if lib is None else lib

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        def rule(op: OperatorHandle, size: int, args: list[Any]) -> Any:
            layer = current_layer()
            assert layer is not None
            values, keywords = op.unbind(tuple(_mapped_args(args, lambda arg: arg.value)))
            dims = tuple(_mapped_args(args, lambda arg: arg.bdim, None))[: len(values)]
            result, out_dims = function(VmapInfo(size, layer.randomness), dims, *values, **keywords)
            return _batch_first(result, out_dims, size)

        rule.__wrapped__ = function  # type: ignore[attr-defined]
        into._impl(name, lambda op: kernel_of(rule), "FuncTorchBatched", True)
        return function

    return register if func is None else register(func)


def _mapped_args(args: list[Any], function: Callable[[Arg], Any], *otherwise: Any) -> list[Any]:
    found = []
    for arg in args:
        if isinstance(arg, Arg):
            found.append(function(arg))
        elif isinstance(arg, list):
            found.append(tuple(_mapped_args(arg, function, *otherwise)))
        else:
            found.append(otherwise[0] if otherwise else arg)
    return found


def _batch_first(result: Any, out_dims: Any, size: int) -> Any:
    if isinstance(result, tuple | list):
        dims = out_dims if isinstance(out_dims, tuple | list) else (out_dims,) * len(result)
        return tuple(_batch_first(each, dim, size) for each, dim in zip(result, dims, strict=True))
    return Arg(result, out_dims).for_all(size)
