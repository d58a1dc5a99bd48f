"""Batching rules of matrix products and networks (PyTorch: functorch/BatchRulesLinearAlgebra.cpp, -Modules.cpp)."""

from typing import Any

from ..aten import ops as at
from ..aten.core.dispatcher import OperatorHandle
from .batch_rules import RULES, lined_up, rule
from .batched_tensor import Arg

# Products: matmul broadcasts what comes before the last two dimensions


@rule("mm", "bmm")
def mm(size: int, self: Arg, other: Arg) -> Any:
    left, right = self.in_front(), other.in_front()
    if self.rank == 3:
        # Where only one of them is batched, the other's own batch must not meet it.
        left, right = self.for_all(size), other.for_all(size)
    _check_product(self, other)
    return at.matmul(left, right)


def _check_product(self: Arg, other: Arg) -> None:
    if self.rank != other.rank:
        raise RuntimeError(f"the factors of a matrix product have {self.rank} and {other.rank} dimensions")


@rule("mv")
def mv(size: int, self: Arg, vec: Arg) -> Any:
    return at.squeeze_dim(at.matmul(self.in_front(), at.unsqueeze(vec.in_front(), -1)), -1)


@rule("dot")
def dot(size: int, self: Arg, tensor: Arg) -> Any:
    product = at.matmul(at.unsqueeze(self.in_front(), -2), at.unsqueeze(tensor.in_front(), -1))
    return at.squeeze_dims(product, (-2, -1))


@rule("addmm", "baddbmm")
def addmm(size: int, self: Arg, left: Arg, right: Arg, beta: Any, alpha: Any) -> Any:
    product = (
        mm(size, left, right) if left.bdim is not None or right.bdim is not None else at.matmul(left.value, right.value)
    )
    if alpha != 1:
        product = at.mul_Tensor(product, at.scalar_tensor(alpha, product._dtype, None))
    if beta == 0:
        return (
            product
            if left.bdim is not None or right.bdim is not None
            else at.expand(product, (size, *product._shape), False)
        )
    bias = lined_up(self, left.rank, None)
    if beta != 1:
        bias = at.mul_Tensor(bias, at.scalar_tensor(beta, bias._dtype, None))
    return at.add_Tensor(product, bias, 1)


# Neural networks: examples of an example join into one long row of them


def _joined(self: Arg) -> tuple[Any, tuple[int, int] | None]:
    """The pictures (N, C, H, W) of all examples as one batch, and how to part it; (C, H, W) needs no joining."""
    value = self.in_front()
    if self.rank == 3:
        return value, None
    size, count = value._shape[:2]
    return at.reshape(value, (size * count, *value._shape[2:])), (size, count)


def _parted(result: Any, parts: tuple[int, int] | None) -> Any:
    if isinstance(result, tuple | list):
        return tuple(_parted(each, parts) for each in result)
    return result if parts is None else at.reshape(result, (*parts, *result._shape[1:]))


def picture_wise(op: OperatorHandle, size: int, args: list[Any]) -> Any:
    """An operator that treats every picture of a batch alike."""
    if args[0].rank not in (3, 4) or any(isinstance(arg, Arg) for arg in args[1:]):
        return NotImplemented
    value, parts = _joined(args[0])
    return _parted(op.call(value, *args[1:]), parts)


RULES |= dict.fromkeys(("max_pool2d_with_indices", "avg_pool2d", "_adaptive_avg_pool2d"), picture_wise)


@rule("convolution")
def convolution(size: int, input: Arg, weight: Arg, bias: Arg | None, *rest: Any) -> Any:  # noqa: A002
    if weight.bdim is not None or bias is not None and bias.bdim is not None:
        return NotImplemented
    value = input.in_front()
    joined = at.reshape(value, (size * value._shape[1], *value._shape[2:]))
    result = at.convolution(joined, weight.value, None if bias is None else bias.value, *rest)
    return at.reshape(result, (size, value._shape[1], *result._shape[1:]))


@rule("native_batch_norm")
def native_batch_norm(
    size: int,
    input: Arg,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    *rest: Any,  # noqa: A002
) -> Any:
    if training and any(stat is not None and stat.bdim is None for stat in (running_mean, running_var)):
        raise RuntimeError(
            "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in "
            "place, were not batched. Use a batch norm that does not keep running statistics, or eval()"
        )
    return NotImplemented


@rule("native_layer_norm")
def native_layer_norm(size: int, input: Arg, shape: Any, weight: Any, bias: Any, eps: float) -> Any:  # noqa: A002
    if input.bdim is None or any(each is not None and each.bdim is not None for each in (weight, bias)):
        return NotImplemented
    values = [None if each is None else each.value for each in (weight, bias)]
    return at.native_layer_norm(input.in_front(), shape, *values, eps)
