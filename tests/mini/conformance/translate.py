"""Translation: a call's arguments as fresh tensors for either side, over copies of the same bytes in the same
layout.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from glassbox import mini
from glassbox.mini.c10.device import CPU
from glassbox.mini.c10.storage import Storage
from glassbox.mini.c10.tensor_impl import TensorImpl

DTYPES: dict[torch.dtype, Any] = {
    torch.float64: mini.float64,
    torch.float32: mini.float32,
    torch.bfloat16: mini.bfloat16,
    torch.int64: mini.int64,
    torch.int32: mini.int32,
    torch.int16: mini.int16,
    torch.int8: mini.int8,
    torch.uint8: mini.uint8,
    torch.bool: mini.bool,
}


class Unsupported(Exception):  # noqa: N818 - no error: a reason to leave a sample out
    """An argument that mini has no counterpart for; its text is the reason."""


class _Copies:
    """Copies of tensors; what shared a storage still shares one."""

    def __init__(self) -> None:
        self.tensors: dict[int, Any] = {}
        self.storages: dict[int, Any] = {}


class _TorchCopies(_Copies):
    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        found = self.tensors.get(id(tensor))
        if found is None:
            source = tensor.untyped_storage()
            key = source._cdata
            if key not in self.storages:
                self.storages[key] = (source.clone(), source)
            found = torch.empty(0, dtype=tensor.dtype).set_(
                self.storages[key][0], tensor.storage_offset(), tensor.shape, tensor.stride()
            )
            self.tensors[id(tensor)] = found.requires_grad_(tensor.requires_grad)
        return found


class _MiniCopies(_Copies):
    def __call__(self, tensor: torch.Tensor) -> Any:
        found = self.tensors.get(id(tensor))
        if found is None:
            dtype = mini_dtype(tensor.dtype)
            if tensor.layout is not torch.strided or tensor.device.type != "cpu":
                raise Unsupported(f"a tensor on {tensor.device}, {tensor.layout}")
            source = tensor.untyped_storage()
            key = source._cdata
            if key not in self.storages:
                self.storages[key] = (Storage.over(storage_bytes(source)), source)
            found = TensorImpl.fresh(self.storages[key][0], tuple(tensor.shape), tuple(tensor.stride()), dtype, CPU)
            found._offset = tensor.storage_offset()
            self.tensors[id(tensor)] = found.requires_grad_(tensor.requires_grad)
        return found


def storage_bytes(storage: Any) -> np.ndarray:
    """A copy of a storage's bytes."""
    if storage.nbytes() == 0:
        return np.empty(0, np.uint8)
    return torch.empty(0, dtype=torch.uint8).set_(storage).numpy().copy()


def mini_dtype(dtype: torch.dtype) -> Any:
    """The counterpart of a dtype; Unsupported where there is none."""
    if dtype not in DTYPES:
        raise Unsupported(f"dtype {str(dtype).removeprefix('torch.')}")
    return DTYPES[dtype]


def for_torch(tree: Any) -> Any:
    """The arguments with each tensor copied."""
    return mapped(tree, torch.Tensor, _TorchCopies(), lambda leaf: leaf)


def for_mini(tree: Any) -> Any:
    """The arguments in mini's terms; Unsupported where it has none."""
    return mapped(tree, torch.Tensor, _MiniCopies(), _mini_leaf)


def mapped(tree: Any, kind: type, one: Callable[[Any], Any], other: Callable[[Any], Any]) -> Any:
    """A tree of tuples, lists, dicts and slices with `one` called on leaves of the kind and `other` on the rest."""
    if isinstance(tree, kind):
        return one(tree)
    if isinstance(tree, dict):
        return {key: mapped(value, kind, one, other) for key, value in tree.items()}
    if isinstance(tree, list):
        return [mapped(value, kind, one, other) for value in tree]
    if isinstance(tree, tuple) and not isinstance(tree, torch.Size):
        return tuple(mapped(value, kind, one, other) for value in tree)
    return other(tree)


def _mini_leaf(leaf: Any) -> Any:
    if leaf is None or leaf is Ellipsis or isinstance(leaf, bool | int | float | str | slice | np.generic | np.ndarray):
        return leaf
    if isinstance(leaf, torch.Size):
        return tuple(leaf)
    if isinstance(leaf, torch.dtype):
        return mini_dtype(leaf)
    if isinstance(leaf, torch.device):
        return str(leaf)
    if isinstance(leaf, torch.memory_format):
        name = str(leaf).removeprefix("torch.")
        if name not in ("contiguous_format", "preserve_format"):
            raise Unsupported(f"memory_format={name}")
        return name
    if isinstance(leaf, torch.layout):
        raise Unsupported("a layout argument")
    raise Unsupported(f"an argument of type {type(leaf).__name__}")


def leaves(tree: Any, kind: type) -> Iterator[Any]:
    """The leaves of one type, in order, each once."""
    found: dict[int, Any] = {}
    mapped(tree, kind, lambda leaf: found.setdefault(id(leaf), leaf), lambda leaf: leaf)
    yield from found.values()


def elements(tensor: Any) -> np.ndarray:
    """The elements of either side's tensor as NumPy has them: bfloat16 as its bits."""
    if isinstance(tensor, torch.Tensor):
        tensor = tensor.detach()
        if torch._is_zerotensor(tensor):
            return np.zeros(tensor.shape)
        if tensor.dtype is torch.bfloat16:
            return tensor.view(torch.int16).numpy().view(np.uint16)
        return tensor.numpy()
    return tensor.strided_array()
