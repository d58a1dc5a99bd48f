"""Effects: which tensors a call reads, writes and makes, as it shows (PyTorch: the schema's alias notes).

An argument that comes back was written; another tensor over an argument's storage is a view; anything else
is new memory. A number as the result means that the host has looked at the elements.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from ..c10.tensor_impl import TensorImpl

# Ops that only take memory or change metadata in place.
NO_KERNEL = frozenset(
    ["empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize_", "set_", "detach_"]
    + ["as_strided_", "squeeze_", "unsqueeze_", "t_", "transpose_"]
)
# In-place ops that never look at what was there.
WRITE_ONLY = frozenset(
    ["fill_", "zero_", "copy_", "uniform_", "normal_", "random_", "bernoulli_", "exponential_"]
)
# The sizes of their results depend on the elements, so the host has to wait for them; of indexing, where it
# is by a mask.
SIZES_ON_DEVICE = frozenset(["nonzero", "masked_select", "unique", "unique_consecutive", "_unique2"])
INDEXING = frozenset(["index", "index_put", "index_put_"])


class Effects(NamedTuple):
    """What one call did to tensors.

    read, written, fresh: the tensors; fresh ones are among the written. has_kernel: the device has work to
    do. host_looks: the host needs something that only the device knows.
    """

    read: list[TensorImpl]
    written: list[TensorImpl]
    fresh: list[TensorImpl]
    has_kernel: bool
    host_looks: bool


def effects(base: str, args: tuple[Any, ...], result: Any) -> Effects:
    """The effects of a call of the op with this base name ("add_" of "add_.Tensor")."""
    inputs, outputs = tensors(args), tensors((result,))
    given_back = [each for each in outputs if _is_among(each, inputs)]
    storages = {id(each._storage) for each in inputs}
    fresh = [each for each in outputs if id(each._storage) not in storages]
    if base in WRITE_ONLY:
        read = [each for each in inputs if not _is_among(each, given_back)]
    elif base.endswith("_") or not given_back:
        read = inputs
    else:
        # Of an out= form: outs come last and are not read.
        read = inputs[: -len(given_back)]
    written = [*given_back, *_also_written(base, args), *fresh]
    looks = not outputs and isinstance(result, bool | int | float) and any(map(on_sim, inputs))
    looks = looks or base in SIZES_ON_DEVICE or base in INDEXING and _has_mask(args)
    works = looks or any(0 not in each._shape for each in written)
    return Effects(read, written, fresh, works and base not in NO_KERNEL, looks)


def _also_written(base: str, args: tuple[Any, ...]) -> list[TensorImpl]:
    # The running statistics in training: changed, but not given back.
    return tensors(args[3:5]) if base == "native_batch_norm" and args[5] else []


def _has_mask(args: tuple[Any, ...]) -> bool:
    return any(index._dtype.name in ("bool", "uint8") for index in tensors(args[1:2]))


def _is_among(tensor: TensorImpl, others: list[TensorImpl]) -> bool:
    return any(tensor is other for other in others)


def on_sim(tensor: TensorImpl) -> bool:
    return tensor._device.type == "sim"


def tensors(values: Iterable[Any]) -> list[TensorImpl]:
    """The tensors among arguments or results, and in lists among them."""
    found = []
    for value in values:
        if isinstance(value, TensorImpl):
            found.append(value)
        elif isinstance(value, tuple | list):
            found += [each for each in value if isinstance(each, TensorImpl)]
    return found
