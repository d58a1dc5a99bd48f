"""Batching rules of views, joins and picks (PyTorch: functorch/BatchRulesViews.cpp, BatchRulesScatterOps.cpp)."""

from typing import Any

from ..aten import ops as at
from ..c10 import layout
from .batch_rules import lined_up, rule, shifted
from .batched_tensor import Arg

# Views


@rule("view")
def view(size: int, self: Arg, shape: tuple[int, ...]) -> Any:
    full = layout.infer_size(shape, layout.numel(self.for_all(size)._shape[1:]))
    return at.view(self.for_all(size), (size, *full))


@rule("_reshape_alias")
def _reshape_alias(size: int, self: Arg, shape: tuple[int, ...], stride: tuple[int, ...]) -> Any:
    return at.reshape(self.for_all(size), (size, *shape))


@rule("_unsafe_view")
def _unsafe_view(size: int, self: Arg, shape: tuple[int, ...]) -> Any:
    return at._unsafe_view(self.for_all(size), (size, *shape))


@rule("expand")
def expand(size: int, self: Arg, shape: tuple[int, ...], implicit: bool) -> Any:
    value = self.in_front()
    for _ in range(len(shape) - self.rank):
        value = at.unsqueeze(value, 1)
    return at.expand(value, (size, *shape), implicit)


@rule("permute")
def permute(size: int, self: Arg, dims: tuple[int, ...]) -> Any:
    return at.permute(self.in_front(), (0, *shifted(dims, self.rank)))


@rule("t")
def t(size: int, self: Arg) -> Any:
    if self.rank > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.rank}D")
    return at.transpose_int(self.in_front(), 1, 2) if self.rank == 2 else at.alias(self.in_front())


@rule("squeeze")
def squeeze(size: int, self: Arg) -> Any:
    value = self.in_front()
    return at.squeeze_dims(value, tuple(dim for dim in range(1, self.rank + 1) if value._shape[dim] == 1))


@rule("unsqueeze")
def unsqueeze(size: int, self: Arg, dim: int) -> Any:
    return at.unsqueeze(self.in_front(), layout.wrap_dim(dim, self.rank + 1) + 1)


@rule("as_strided")
def as_strided(
    size: int, self: Arg, shape: tuple[int, ...], stride: tuple[int, ...], storage_offset: int | None
) -> Any:
    value = self.in_front()
    return at.as_strided(value, (size, *shape), (value._stride[0], *stride), storage_offset)


@rule("alias")
def alias(size: int, self: Arg) -> Any:
    return at.alias(self.in_front())


@rule("detach")
def detach(size: int, self: Arg) -> Any:
    return at.detach(self.in_front())


# Joining and picking


@rule("cat")
def cat(size: int, tensors: list[Arg], dim: int) -> Any:
    return at.cat(tuple(each.for_all(size) for each in tensors), layout.wrap_dim(dim, tensors[0].rank) + 1)


@rule("stack")
def stack(size: int, tensors: list[Arg], dim: int) -> Any:
    return at.stack(tuple(each.for_all(size) for each in tensors), layout.wrap_dim(dim, tensors[0].rank + 1) + 1)


@rule("index_select")
def index_select(size: int, self: Arg, dim: int, index: Arg) -> Any:
    if index.bdim is not None or self.rank == 0:
        return NotImplemented
    return at.index_select(self.in_front(), layout.wrap_dim(dim, self.rank) + 1, index.value)


@rule("embedding")
def embedding(size: int, weight: Arg, indices: Arg, padding_idx: int, scale_grad_by_freq: bool, sparse: bool) -> Any:
    if weight.bdim is not None:
        return NotImplemented
    return at.embedding(weight.value, indices.in_front(), padding_idx, scale_grad_by_freq, sparse)


@rule("masked_fill.Tensor")
def masked_fill(size: int, self: Arg, mask: Arg, value: Arg) -> Any:
    rank = max(self.rank, mask.rank)
    number = at.to_dtype(value.in_front(), self.value._dtype, False, False, None)
    return at.where_self(
        lined_up(mask, rank, None), lined_up(Arg(number, value.bdim and 0), rank, None), lined_up(self, rank, None)
    )


@rule("fill_.Tensor")
def fill_(size: int, self: Arg, value: Arg) -> Any:
    return at.copy_(self.in_front(), lined_up(value, self.rank, None), False)


# Tensors like others


@rule("new_empty")
def new_empty(size: int, self: Arg, shape: tuple[int, ...], dtype: Any, device: Any) -> Any:
    return at.new_empty(self.value, (size, *shape), dtype, device)


@rule("new_zeros")
def new_zeros(size: int, self: Arg, shape: tuple[int, ...], dtype: Any, device: Any) -> Any:
    return at.new_zeros(self.value, (size, *shape), dtype, device)


@rule("new_ones")
def new_ones(size: int, self: Arg, shape: tuple[int, ...], dtype: Any, device: Any) -> Any:
    return at.new_ones(self.value, (size, *shape), dtype, device)


@rule("new_full")
def new_full(size: int, self: Arg, shape: tuple[int, ...], fill_value: Any, dtype: Any, device: Any) -> Any:
    return at.new_full(self.value, (size, *shape), fill_value, dtype, device)
