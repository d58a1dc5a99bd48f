"""FLOPs and bytes of one operator call (torch/utils/flop_counter.py, whose formulas are used)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch.utils import flop_counter

from ._torch_internals import profiling, storage_identity

# Make memory and neither read nor write it.
_ALLOCATE = {"empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided", "empty_permuted", "resize_"}
# Overwrite their first argument without reading it.
_OVERWRITE = {"copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_", "set_"}
# Read of their first argument only as much as they give back.
_PICK = {"embedding", "index_select", "gather", "index", "take", "_unsafe_index"}


def tensors_in(value: Any) -> Iterator[Any]:
    """The tensors of a nested structure: lists, tuples, mappings, dataclasses."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from tensors_in(each)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for each in value:
            yield from tensors_in(each)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from tensors_in(getattr(value, field.name, None))


def _packet(op: Any) -> Any:
    return getattr(op, "overloadpacket", op)


def has_formula(op: Any) -> bool:
    return _packet(op) in flop_counter.flop_registry


def known_flops(op: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any) -> int | None:
    """FLOPs of a call by the formulas of torch.utils.flop_counter, those registered by users too; None without one."""
    formula = flop_counter.flop_registry.get(_packet(op))
    if formula is None:
        return None
    return profiling.plain_int(formula(*args, **kwargs, out_val=out))


def traffic(op: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any) -> int:
    """Bytes of the tensors that a call reads and writes, each tensor once.

    A view moves nothing, nor does an allocation; what an expanded tensor repeats counts once. Of a table only the rows
    that are picked count. A kernel may read a value more than once, and caches may spare it a read.
    """
    base = getattr(_packet(op), "__name__", str(op))
    if base in _ALLOCATE:
        return 0
    written = profiling.written_arguments(op)
    targets = [
        (kwargs.get(name, args[nr] if nr < len(args) else None), is_out or (nr == 0 and base in _OVERWRITE))
        for nr, name, is_out in written
    ]
    inputs = {id(each): each for each in tensors_in((args, dict(kwargs)))}
    storages = {storage_of(each) for each in inputs.values()}
    fresh = [each for each in tensors_in(out) if storage_of(each) not in storages]
    changed = [each for value, _ in targets for each in tensors_in(value)]
    if not fresh and not changed:
        return 0
    writes = sum(map(touched, [*fresh, *changed]))
    unread = {id(each) for value, is_out in targets if is_out for each in tensors_in(value)}
    reads = {key: touched(each) for key, each in inputs.items() if key not in unread}
    if base.endswith("_like") or base.startswith("new_"):
        reads = {}
    if base in _PICK and reads:
        first = next(iter(reads))
        reads[first] = min(reads[first], writes)
    return sum(reads.values()) + writes


def touched(tensor: Any) -> int:
    """Bytes of a tensor's elements, those that lie over one another once."""
    try:
        if tensor.layout == torch.strided and not tensor.is_nested:
            count = 1
            for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
                size = profiling.plain_int(size) or 0
                count *= 1 if isinstance(stride, int) and stride == 0 and size else size
        else:
            count = profiling.plain_int(tensor.numel()) or 0
        return count * int(tensor.element_size())
    except (RuntimeError, NotImplementedError):
        return 0


def storage_of(tensor: Any) -> Any:
    """What two tensors have in common exactly when they share memory; the tensor's own id where it has no storage."""
    try:
        return storage_identity(tensor.untyped_storage())
    except (RuntimeError, NotImplementedError):
        return ("no storage", id(tensor))
