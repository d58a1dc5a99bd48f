"""Looking at a tensor of either framework without importing the one that it does not belong to.

The metadata are read from the tensor itself (c10/core/TensorImpl.h behind torch.Tensor,
mini/c10/tensor_impl.py).
"""

from __future__ import annotations

import sys
from typing import Any

from ..records import StorageView
from . import _torch_internals as internals

VALUES_SHOWN = 64


def is_torch(obj: Any) -> bool:
    """True for a torch.Tensor; never imports torch, since nothing can be one before it is imported."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(obj, getattr(torch, "Tensor", ()))


def is_tensor_type(kind: type) -> bool:
    """True for a tensor class of either framework. Asks the type, so it wakes no proxy object."""
    for name in ("torch", "glassbox.mini"):
        tensor = getattr(sys.modules.get(name), "Tensor", None)
        if isinstance(tensor, type) and issubclass(kind, tensor):
            return True
    return False


def require_tensor(obj: Any, where: str) -> None:
    """TypeError in one sentence for anything but a strided tensor of torch or of the mini-framework."""
    if not is_tensor_type(type(obj)):
        raise TypeError(
            f"{where}: {type(obj).__name__} is not a tensor; pass a torch.Tensor or a glassbox.mini tensor."
        )
    kind = internals.unusual_kind(obj) if is_torch(obj) else ""
    if kind:
        raise TypeError(f"{where}: {kind}; pass a plain strided tensor.")
    try:
        metadata(obj)
    except Exception as error:
        raise TypeError(
            f"{where}: this tensor has no storage to look at ({in_short(error)}); pass a plain strided one."
        ) from None


def in_short(error: Exception) -> str:
    """The first line of torch's message, which may go on for a page."""
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return line if len(line) <= 120 else line[:117] + "..."


def metadata(tensor: Any) -> tuple[Any, ...]:
    """Shape, stride, offset, dtype, itemsize and the storage's bytes; raises whatever torch raises."""
    return (
        tuple(int(n) for n in tensor.shape),
        tuple(int(s) for s in tensor.stride()),
        int(tensor.storage_offset()),
        str(tensor.dtype),
        int(tensor.element_size()),
        int(tensor.untyped_storage().nbytes()),
    )


def identity(tensor: Any) -> int:
    """Equal for two tensors exactly when they lie over one storage, also when it is empty or has no data."""
    storage = tensor.untyped_storage()
    return internals.storage_identity(storage) if is_torch(tensor) else id(storage)


def on_a_terminal(stream: Any) -> bool:
    """Whether somebody reads along. A process without a console has no stream, and one may be closed."""
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False


def announce(words: str) -> None:
    """A line that tells somebody at a terminal what takes a while; anywhere else it would look like a warning."""
    if on_a_terminal(sys.stderr):
        print(words, file=sys.stderr, flush=True)


def has_data(tensor: Any) -> bool:
    """False for meta and fake tensors, whose elements exist nowhere."""
    return getattr(tensor.device, "type", str(tensor.device)) != "meta" and not (
        is_torch(tensor) and internals.is_fake(tensor)
    )


def is_freed(tensor: Any) -> bool:
    """Whether the storage of a torch tensor was cut below what it needs, as sharded training does: do not read it."""
    if str(tensor.layout) != "torch.strided" or tensor.is_nested or not tensor.numel():
        return False
    try:
        last = tensor.storage_offset() + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
        return bool(tensor.untyped_storage().nbytes() < (last + 1) * tensor.element_size())
    except (RuntimeError, NotImplementedError):
        return False


def data_ptr(tensor: Any) -> int:
    return int(tensor.data_ptr()) if has_data(tensor) else 0


def view_of(tensor: Any, name: str = "x", values: int = VALUES_SHOWN) -> StorageView:
    """A tensor's metadata as a record; the storage's elements go with it if there are at most `values`.

    Works for torch and mini tensors and keeps no reference to them. TypeError for anything without a storage.
    """
    require_tensor(tensor, "view_of")
    shape, stride, offset, dtype, itemsize, nbytes = metadata(tensor)
    shown = nbytes // itemsize <= values and has_data(tensor)
    return StorageView(
        name,
        shape,
        stride,
        offset,
        dtype=dtype.rsplit(".", 1)[-1],
        itemsize=itemsize,
        device=str(tensor.device),
        storage=identity(tensor),
        nbytes=nbytes,
        data_ptr=data_ptr(tensor),
        version=internals.version_of(tensor),
        base=internals.is_view(tensor),
        values=_elements(tensor) if shown else None,
    )


def _elements(tensor: Any) -> tuple[Any, ...] | None:
    """The storage's elements; None where torch has no way to list them (quantized, zero tensors)."""
    try:
        return tuple(whole_storage(tensor).tolist())
    except (RuntimeError, NotImplementedError):
        return None


def whole_storage(tensor: Any) -> Any:
    """All of a tensor's storage as a flat tensor of the same dtype; detached, so autograd sees nothing."""
    count = int(tensor.untyped_storage().nbytes()) // int(tensor.element_size())
    return tensor.detach().as_strided((count,), (1,), 0)
