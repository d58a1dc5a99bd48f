"""Variants: a sample with its tensors laid out otherwise, their shapes kept."""

from collections.abc import Callable
from typing import Any

import torch

from .translate import mapped


def _permuted(tensor: torch.Tensor) -> torch.Tensor:
    """The same values in a transposed copy: the first dimension lies innermost."""
    order = tuple(reversed(range(tensor.dim())))
    return tensor.permute(order).contiguous().permute(order)


def _sliced(tensor: torch.Tensor) -> torch.Tensor:
    """The same values, every other element of the last dimension of a larger buffer."""
    if tensor.dim() == 0:
        return _offset(tensor)
    buffer = torch.zeros((*tensor.shape[:-1], 2 * tensor.shape[-1] + 3), dtype=tensor.dtype)
    part = buffer[..., 1 : 1 + 2 * tensor.shape[-1] : 2]
    return part.copy_(tensor)


def _offset(tensor: torch.Tensor) -> torch.Tensor:
    """The same values and contiguous, three elements into a larger buffer."""
    buffer = torch.zeros(tensor.numel() + 5, dtype=tensor.dtype)
    return buffer[3 : 3 + tensor.numel()].view(tensor.shape).copy_(tensor)


def _expanded(tensor: torch.Tensor) -> torch.Tensor:
    """The first row repeated over the first dimension that has several, with stride 0."""
    for dim, size in enumerate(tensor.shape):
        if size > 1:
            return tensor.narrow(dim, 0, 1).clone().expand(tensor.shape)
    return tensor.clone(memory_format=torch.preserve_format)


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "permuted": _permuted,
    "sliced": _sliced,
    "offset": _offset,
    "expanded": _expanded,
}


def variant(tree: Any, name: str) -> Any:
    """The arguments with every tensor in the layout `name`; "plain" leaves them as they are.

    A tensor that stands there twice stays one.
    """
    if name == "plain":
        return tree
    made: dict[int, torch.Tensor] = {}

    def one(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.layout is not torch.strided or tensor.dtype.is_complex:
            return tensor
        if id(tensor) not in made:
            laid_out = LAYOUTS[name](tensor.detach())
            made[id(tensor)] = laid_out.requires_grad_(tensor.requires_grad)
        return made[id(tensor)]

    return mapped(tree, torch.Tensor, one, lambda leaf: leaf)
