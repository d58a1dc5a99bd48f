"""Batching rules: operators on all examples of a vmap at once (PyTorch: aten/src/ATen/functorch/BatchRules*.cpp).

Most rules come in a few kinds. Pointwise operators only need the dimensions lined up, operators along a
dimension need its number counted past the batch dimension, views and products a word each. What is in no
table here is called once per example.
"""

from collections.abc import Callable
from typing import Any

from ..aten import ops as at
from ..aten.core.dispatcher import OperatorHandle
from ..c10 import layout
from ..c10.promotion import NUMBER, TENSOR, ZERO_DIM, common_dtype
from ..c10.tensor_impl import WRAPPED_NUMBER
from .batched_tensor import Arg, Rule

RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The decorated function is the rule of the operators: it gets the batch size and the operator's arguments."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        def with_arguments(op: OperatorHandle, size: int, args: list[Any]) -> Any:
            return function(size, *args)

        with_arguments.__wrapped__ = function  # type: ignore[attr-defined]
        RULES.update(dict.fromkeys(names, with_arguments))
        return function

    return register


# Pointwise


def pointwise(op: OperatorHandle, size: int, args: list[Any]) -> Any:
    """Dimensions broadcast from the right, so the batch dimension goes in front of the longest row of them."""
    tensors = [arg for arg in args if isinstance(arg, Arg)]
    rank = max(arg.rank for arg in tensors)
    common = _common_dtype(tensors)
    values = [lined_up(arg, rank, common) if isinstance(arg, Arg) else arg for arg in args]
    return op.call(*values)


def lined_up(arg: Arg, rank: int, common: Any) -> Any:
    value = arg.in_front()
    if arg.bdim is None:
        return value
    if common is not None and arg.rank == 0 and value._dtype is not common:
        value = at.to_dtype(value, common, False, False, None)
    for _ in range(rank - arg.rank):
        value = at.unsqueeze(value, 1)
    return value


def _common_dtype(tensors: list[Arg]) -> Any:
    """The dtype that one example is computed in, where giving 0-d tensors a dimension might change it; else None."""
    if len(tensors) < 2 or all(arg.rank for arg in tensors) or not any(arg.rank for arg in tensors):
        return None
    return common_dtype(tuple((arg.value._dtype.name, _category(arg)) for arg in tensors))


def _category(arg: Arg) -> str:
    if arg.value._meta is WRAPPED_NUMBER:
        return NUMBER
    return TENSOR if arg.rank else ZERO_DIM


# Along dimensions


def along(*names: str, whole: bool = False) -> Rule:
    """An operator that works along the dimensions given by these arguments.

    whole: no dimension given means all of them.
    """

    def rule(op: OperatorHandle, size: int, args: list[Any]) -> Any:
        tensors = [arg for arg in args if isinstance(arg, Arg)]
        rank = tensors[0].rank
        if rank == 0 or any(arg.rank != rank for arg in tensors):
            return NotImplemented
        values = [arg.for_all(size) if isinstance(arg, Arg) else arg for arg in args]
        for nr, argument in enumerate(op.schema.arguments):
            if argument.name in names:
                if whole and not args[nr] and args[nr] != 0:
                    values[nr] = tuple(range(1, rank + 1))
                else:
                    values[nr] = shifted(args[nr], rank)
        return op.call(*values)

    return rule


def shifted(dim: Any, rank: int) -> Any:
    if isinstance(dim, tuple | list):
        return tuple(shifted(each, rank) for each in dim)
    return None if dim is None else layout.wrap_dim(dim, rank) + 1


_DIM = along("dim")
_DIMS = along("dim", whole=True)
RULES |= dict.fromkeys(
    [
        "max.dim",
        "min.dim",
        "argsort",
        "cumsum",
        "cumprod",
        "prod.dim_int",
        "any.dim",
        "all.dim",
        "sort",
        "sort.stable",
        "topk",
        "_softmax",
        "_log_softmax",
        "_softmax_backward_data",
        "_log_softmax_backward_data",
        "gather",
        "scatter.src",
        "scatter.value",
        "scatter_add",
        "scatter_.src",
        "scatter_.value",
        "scatter_add_",
        "unbind.int",
        "split.Tensor",
        "split_with_sizes",
        "select.int",
        "slice.Tensor",
        "squeeze.dim",
        "squeeze.dims",
    ],
    _DIM,
)
RULES |= dict.fromkeys(
    [
        "sum.dim_IntList",
        "mean.dim",
        "amax",
        "amin",
        "logsumexp",
        "var.correction",
        "std.correction",
        "linalg_vector_norm",
        "any.dims",
        "all.dims",
    ],
    _DIMS,
)
RULES |= {"flip": along("dims"), "transpose.int": along("dim0", "dim1")}


def _of_all(function: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction of all elements as one along all dimensions but the batch's."""

    def rule(size: int, self: Arg, *rest: Any) -> Any:
        value = self.for_all(size) if self.rank else at.unsqueeze(self.in_front(), 1)
        return function(value, tuple(range(1, max(self.rank, 1) + 1)), *rest)

    return rule


_OF_ALL: dict[str, Callable[..., Any]] = {
    "sum": lambda x, dims, dtype: at.sum_dim_IntList(x, dims, False, dtype),
    "mean": lambda x, dims, dtype: at.mean_dim(x, dims, False, dtype),
    "prod": lambda x, dims, dtype: at.prod_dim_int(at.flatten_using_ints(x, 1, -1), 1, False, dtype),
    "max": lambda x, dims: at.amax(x, dims, False),
    "min": lambda x, dims: at.amin(x, dims, False),
    "any": lambda x, dims: at.any_dims(x, dims, False),
    "all": lambda x, dims: at.all_dims(x, dims, False),
}
for _name, _reduction in _OF_ALL.items():
    rule(_name)(_of_all(_reduction))


@rule("argmax")
def argmax(size: int, self: Arg, dim: int | None, keepdim: bool) -> Any:
    return _arg(at.argmax, size, self, dim, keepdim)


@rule("argmin")
def argmin(size: int, self: Arg, dim: int | None, keepdim: bool) -> Any:
    return _arg(at.argmin, size, self, dim, keepdim)


def _arg(function: Callable[..., Any], size: int, self: Arg, dim: int | None, keepdim: bool) -> Any:
    x = self.for_all(size)
    if self.rank == 0 or dim is None and keepdim:
        return NotImplemented
    if dim is None:
        return function(at.reshape(x, (size, -1)), 1, False)
    return function(x, layout.wrap_dim(dim, self.rank) + 1, keepdim)
