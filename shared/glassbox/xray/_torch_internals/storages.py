"""Storages and views: identities, use counts, versions, bases (c10/core/StorageImpl.h, TensorImpl.h)."""

from __future__ import annotations

import sys
from typing import Any

from .access import missing, private


def storage_identity(storage: Any) -> int:
    """The address of the StorageImpl behind a torch.UntypedStorage: equal exactly for the same storage.

    Unlike data_ptr() it also tells empty, meta and fake storages apart.
    """
    try:
        return int(storage._cdata)
    except AttributeError:
        raise missing("UntypedStorage._cdata") from None


def storage_use_count(storage: Any) -> int:
    """The StorageImpl's own reference count, which counts the wrapper that was passed in as well."""
    return int(private("torch._C._storage_Use_Count")(storage_identity(storage)))


def is_fake(tensor: Any) -> bool:
    """True for a FakeTensor, which has metadata and no data; asking it for a data pointer only warns."""
    module = sys.modules.get("torch._subclasses.fake_tensor")
    if module is None:
        return False
    try:
        return isinstance(tensor, module.FakeTensor)
    except AttributeError:
        raise missing("torch._subclasses.fake_tensor.FakeTensor") from None


def unusual_kind(tensor: Any) -> str:
    """What is special about a torch tensor that has no strides over one storage; "" for one that has."""
    from torch.nn.parameter import is_lazy

    if is_lazy(tensor):
        return "an uninitialized parameter has no shape yet"
    if tensor.is_nested:
        return "a nested tensor holds tensors of several shapes, not one"
    layout = str(tensor.layout)
    return "" if layout == "torch.strided" else f"a {layout} tensor has no storage to look at"


def version_of(tensor: Any) -> int | None:
    """The version counter; None for an inference tensor, which has none."""
    try:
        return int(tensor._version)
    except RuntimeError:
        return None
    except AttributeError:
        raise missing("Tensor._version") from None


def base_of(tensor: Any) -> Any:
    """The tensor that this one is a view of, or None."""
    try:
        return tensor._base
    except AttributeError:
        raise missing("Tensor._base") from None


def is_view(tensor: Any) -> bool:
    """Whether the tensor is a view of another one, without making a Python object for that other one."""
    try:
        return bool(tensor._is_view())
    except AttributeError:
        raise missing("Tensor._is_view") from None
