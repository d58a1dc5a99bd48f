"""Batching rules: operators on all examples of a vmap at once (PyTorch: aten/src/ATen/functorch/BatchRules*.cpp).

Most rules come in a few kinds. Pointwise operators only need the dimensions lined up, operators along a dimension need its
number counted past the batch dimension, views and products a word each. What is in no table here is called once per example.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..aten import ops as at
from ..aten.core.dispatcher import OperatorHandle, dispatcher
from ..aten.core.library import Library
from ..aten.core.op_overload import OpOverload
from ..c10 import layout
from ..c10.dispatch_key import DispatchKey
from ..c10.promotion import NUMBER, TENSOR, ZERO_DIM, common_dtype
from ..c10.tensor_impl import WRAPPED_NUMBER
from . import vmap_randomness
from .batched_tensor import Arg, Rule, dynamic_shape, kernel_of, no_rule
from .dynamic_layer import current_layer
from .functional_form import functional_form

RULES: dict[str, Rule] = {}


def _rule(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The decorated function is the rule of the operators: it gets the batch size and the operator's arguments."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        def rule(op: OperatorHandle, size: int, args: list[Any]) -> Any:
            return function(size, *args)

        rule.__wrapped__ = function  # type: ignore[attr-defined]
        RULES.update(dict.fromkeys(names, rule))
        return function

    return register


# Pointwise


def pointwise(op: OperatorHandle, size: int, args: list[Any]) -> Any:
    """Dimensions broadcast from the right, so the batch dimension goes in front of the longest row of them."""
    tensors = [arg for arg in args if isinstance(arg, Arg)]
    rank = max(arg.rank for arg in tensors)
    common = _common_dtype(tensors)
    values = [_lined_up(arg, rank, common) if isinstance(arg, Arg) else arg for arg in args]
    return op.call(*values)


def _lined_up(arg: Arg, rank: int, common: Any) -> Any:
    value = arg.in_front()
    if arg.bdim is None:
        return value
    if common is not None and arg.rank == 0 and value._dtype is not common:
        value = at.to_dtype(value, common, False, False, None)
    for _ in range(rank - arg.rank):
        value = at.unsqueeze(value, 1)
    return value


def _common_dtype(tensors: list[Arg]) -> Any:
    """The dtype that one example would be computed in, where giving 0-d tensors a dimension would change it; else None."""
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
                    values[nr] = _shifted(args[nr], rank)
        return op.call(*values)

    return rule


def _shifted(dim: Any, rank: int) -> Any:
    if isinstance(dim, tuple | list):
        return tuple(_shifted(each, rank) for each in dim)
    return None if dim is None else layout.wrap_dim(dim, rank) + 1


_DIM = along("dim")
_DIMS = along("dim", whole=True)
RULES |= dict.fromkeys(
    (
        "max.dim min.dim argsort cumsum cumprod prod.dim_int any.dim all.dim sort sort.stable topk _softmax _log_softmax "
        "_softmax_backward_data _log_softmax_backward_data gather scatter.src scatter.value scatter_add scatter_.src "
        "scatter_.value scatter_add_ unbind.int split.Tensor split_with_sizes select.int slice.Tensor squeeze.dim squeeze.dims"
    ).split(),
    _DIM,
)
RULES |= dict.fromkeys(
    "sum.dim_IntList mean.dim amax amin logsumexp var.correction std.correction linalg_vector_norm any.dims all.dims".split(),
    _DIMS,
)
RULES |= {"flip": along("dims"), "transpose.int": along("dim0", "dim1")}


def _of_all(function: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction of all elements as one along all dimensions but the batch's."""

    def rule(size: int, self: Arg, *rest: Any) -> Any:
        value = self.for_all(size) if self.rank else at.unsqueeze(self.in_front(), 1)
        return function(value, tuple(range(1, max(self.rank, 1) + 1)), *rest)

    return rule


for _name, _reduction in {
    "sum": lambda x, dims, dtype: at.sum_dim_IntList(x, dims, False, dtype),
    "mean": lambda x, dims, dtype: at.mean_dim(x, dims, False, dtype),
    "prod": lambda x, dims, dtype: at.prod_dim_int(at.flatten_using_ints(x, 1, -1), 1, False, dtype),
    "max": lambda x, dims: at.amax(x, dims, False),
    "min": lambda x, dims: at.amin(x, dims, False),
    "any": lambda x, dims: at.any_dims(x, dims, False),
    "all": lambda x, dims: at.all_dims(x, dims, False),
}.items():
    _rule(_name)(_of_all(_reduction))


@_rule("argmax")
def argmax(size: int, self: Arg, dim: int | None, keepdim: bool) -> Any:
    return _arg(at.argmax, size, self, dim, keepdim)


@_rule("argmin")
def argmin(size: int, self: Arg, dim: int | None, keepdim: bool) -> Any:
    return _arg(at.argmin, size, self, dim, keepdim)


def _arg(function: Callable[..., Any], size: int, self: Arg, dim: int | None, keepdim: bool) -> Any:
    x = self.for_all(size)
    if self.rank == 0 or dim is None and keepdim:
        return NotImplemented
    if dim is None:
        return function(at.reshape(x, (size, -1)), 1, False)
    return function(x, layout.wrap_dim(dim, self.rank) + 1, keepdim)


# Views


@_rule("view")
def view(size: int, self: Arg, shape: tuple[int, ...]) -> Any:
    full = layout.infer_size(shape, layout.numel(self.for_all(size)._shape[1:]))
    return at.view(self.for_all(size), (size, *full))


@_rule("_reshape_alias")
def _reshape_alias(size: int, self: Arg, shape: tuple[int, ...], stride: tuple[int, ...]) -> Any:
    return at.reshape(self.for_all(size), (size, *shape))


@_rule("_unsafe_view")
def _unsafe_view(size: int, self: Arg, shape: tuple[int, ...]) -> Any:
    return at._unsafe_view(self.for_all(size), (size, *shape))


@_rule("expand")
def expand(size: int, self: Arg, shape: tuple[int, ...], implicit: bool) -> Any:
    value = self.in_front()
    for _ in range(len(shape) - self.rank):
        value = at.unsqueeze(value, 1)
    return at.expand(value, (size, *shape), implicit)


@_rule("permute")
def permute(size: int, self: Arg, dims: tuple[int, ...]) -> Any:
    return at.permute(self.in_front(), (0, *_shifted(dims, self.rank)))


@_rule("t")
def t(size: int, self: Arg) -> Any:
    if self.rank > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.rank}D")
    return at.transpose_int(self.in_front(), 1, 2) if self.rank == 2 else at.alias(self.in_front())


@_rule("squeeze")
def squeeze(size: int, self: Arg) -> Any:
    value = self.in_front()
    return at.squeeze_dims(value, tuple(dim for dim in range(1, self.rank + 1) if value._shape[dim] == 1))


@_rule("unsqueeze")
def unsqueeze(size: int, self: Arg, dim: int) -> Any:
    return at.unsqueeze(self.in_front(), layout.wrap_dim(dim, self.rank + 1) + 1)


@_rule("as_strided")
def as_strided(
    size: int, self: Arg, shape: tuple[int, ...], stride: tuple[int, ...], storage_offset: int | None
) -> Any:
    value = self.in_front()
    return at.as_strided(value, (size, *shape), (value._stride[0], *stride), storage_offset)


@_rule("alias")
def alias(size: int, self: Arg) -> Any:
    return at.alias(self.in_front())


@_rule("detach")
def detach(size: int, self: Arg) -> Any:
    return at.detach(self.in_front())


# Products: matmul broadcasts what comes before the last two dimensions


@_rule("mm", "bmm")
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


@_rule("mv")
def mv(size: int, self: Arg, vec: Arg) -> Any:
    return at.squeeze_dim(at.matmul(self.in_front(), at.unsqueeze(vec.in_front(), -1)), -1)


@_rule("dot")
def dot(size: int, self: Arg, tensor: Arg) -> Any:
    product = at.matmul(at.unsqueeze(self.in_front(), -2), at.unsqueeze(tensor.in_front(), -1))
    return at.squeeze_dims(product, (-2, -1))


@_rule("addmm", "baddbmm")
def addmm(size: int, self: Arg, left: Arg, right: Arg, beta: Any, alpha: Any) -> Any:
    product = mm(size, left, right) if left.bdim is not None or right.bdim is not None else at.matmul(left.value, right.value)
    if alpha != 1:
        product = at.mul_Tensor(product, at.scalar_tensor(alpha, product._dtype, None))
    if beta == 0:
        return product if left.bdim is not None or right.bdim is not None else at.expand(product, (size, *product._shape), False)
    bias = _lined_up(self, left.rank, None)
    if beta != 1:
        bias = at.mul_Tensor(bias, at.scalar_tensor(beta, bias._dtype, None))
    return at.add_Tensor(product, bias, 1)


# Joining and picking


@_rule("cat")
def cat(size: int, tensors: list[Arg], dim: int) -> Any:
    return at.cat(tuple(each.for_all(size) for each in tensors), layout.wrap_dim(dim, tensors[0].rank) + 1)


@_rule("stack")
def stack(size: int, tensors: list[Arg], dim: int) -> Any:
    return at.stack(tuple(each.for_all(size) for each in tensors), layout.wrap_dim(dim, tensors[0].rank + 1) + 1)


@_rule("index_select")
def index_select(size: int, self: Arg, dim: int, index: Arg) -> Any:
    if index.bdim is not None or self.rank == 0:
        return NotImplemented
    return at.index_select(self.in_front(), layout.wrap_dim(dim, self.rank) + 1, index.value)


@_rule("embedding")
def embedding(size: int, weight: Arg, indices: Arg, padding_idx: int, scale_grad_by_freq: bool, sparse: bool) -> Any:
    if weight.bdim is not None:
        return NotImplemented
    return at.embedding(weight.value, indices.in_front(), padding_idx, scale_grad_by_freq, sparse)


@_rule("masked_fill.Tensor")
def masked_fill(size: int, self: Arg, mask: Arg, value: Arg) -> Any:
    rank = max(self.rank, mask.rank)
    number = at.to_dtype(value.in_front(), self.value._dtype, False, False, None)
    return at.where_self(
        _lined_up(mask, rank, None), _lined_up(Arg(number, value.bdim and 0), rank, None), _lined_up(self, rank, None)
    )


@_rule("fill_.Tensor")
def fill_(size: int, self: Arg, value: Arg) -> Any:
    return at.copy_(self.in_front(), _lined_up(value, self.rank, None), False)


# Tensors like others


@_rule("new_empty")
def new_empty(size: int, self: Arg, shape: tuple[int, ...], dtype: Any, device: Any) -> Any:
    return at.new_empty(self.value, (size, *shape), dtype, device)


@_rule("new_zeros")
def new_zeros(size: int, self: Arg, shape: tuple[int, ...], dtype: Any, device: Any) -> Any:
    return at.new_zeros(self.value, (size, *shape), dtype, device)


@_rule("new_ones")
def new_ones(size: int, self: Arg, shape: tuple[int, ...], dtype: Any, device: Any) -> Any:
    return at.new_ones(self.value, (size, *shape), dtype, device)


@_rule("new_full")
def new_full(size: int, self: Arg, shape: tuple[int, ...], fill_value: Any, dtype: Any, device: Any) -> Any:
    return at.new_full(self.value, (size, *shape), fill_value, dtype, device)


# Neural networks: examples of an example join into one long row of them


def _joined(self: Arg) -> tuple[Any, tuple[int, int] | None]:
    """Pictures (N, C, H, W) of every example as one batch, and how to part it again; one of each (C, H, W) is one already."""
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


@_rule("convolution")
def convolution(size: int, input: Arg, weight: Arg, bias: Arg | None, *rest: Any) -> Any:  # noqa: A002
    if weight.bdim is not None or bias is not None and bias.bdim is not None:
        return NotImplemented
    value = input.in_front()
    joined = at.reshape(value, (size * value._shape[1], *value._shape[2:]))
    result = at.convolution(joined, weight.value, None if bias is None else bias.value, *rest)
    return at.reshape(result, (size, value._shape[1], *result._shape[1:]))


@_rule("native_batch_norm")
def native_batch_norm(
    size: int, input: Arg, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, *rest: Any  # noqa: A002
) -> Any:
    if training and any(stat is not None and stat.bdim is None for stat in (running_mean, running_var)):
        raise RuntimeError(
            "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in "
            "place, were not batched. Use a batch norm that does not keep running statistics, or eval()"
        )
    return NotImplemented


@_rule("native_layer_norm")
def native_layer_norm(size: int, input: Arg, shape: Any, weight: Any, bias: Any, eps: float) -> Any:  # noqa: A002
    if input.bdim is None or any(each is not None and each.bdim is not None for each in (weight, bias)):
        return NotImplemented
    values = [None if each is None else each.value for each in (weight, bias)]
    return at.native_layer_norm(input.in_front(), shape, *values, eps)


# Rules from outside


@dataclass(frozen=True, slots=True)
class VmapInfo:
    """What a registered rule is told of the vmap."""

    batch_size: int
    randomness: str


def register_vmap(op: str | OpOverload, func: Any = None, /, *, lib: Library | None = None) -> Any:
    """Give an operator a batching rule; also a decorator.

    func(info, in_dims, *args, **kwargs) gets the arguments with all examples in them and says by in_dims along which
    dimension (None for not batched); it returns (result, out_dims), tuples of each where there are several results.
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


# Which operator has which rule

# Not pointwise by tag, but in how they treat their elements.
POINTWISE = frozenset(
    (
        "clone copy_ _to_copy fill_.Scalar zero_ empty_like zeros_like ones_like full_like masked_fill.Scalar masked_fill_.Scalar "
        "threshold_backward softplus_backward leaky_relu_backward gelu_backward isinf isnan round"
    ).split()
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
    """A kernel at FuncTorchBatched for every operator that has tensors, and one for composites that takes them apart."""
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
