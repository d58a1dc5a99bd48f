"""The backward graph from inside: what nodes keep, their metadata, hooks (torch/csrc/autograd/python_cpp_function.cpp).

Nothing here unpacks what a user's hook has packed: PyTorch's SavedTensor gives its content raw.
"""

from __future__ import annotations

import functools
import re
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from .access import missing, private

_RAW = "_raw_saved_"
_SAVED = "_saved_"
# No node of these names is an operator's, so no schema is looked for.
_OPERATOR = re.compile(r"(\w+?)Backward\d*$")


@contextmanager
def unobserved() -> Iterator[None]:
    """In the block no mode and no subclass sees what is asked of tensors; as before afterwards."""
    with ExitStack() as stack:
        stack.enter_context(private("torch._C.DisableTorchFunction")())
        stack.enter_context(private("torch._C._DisableTorchDispatch")())
        yield


# Of a class of nodes the attributes that hold saved tensors, and those that hold other saved values. Weakly, since each
# autograd.Function has one of its own.
_attributes: weakref.WeakKeyDictionary[Any, tuple[tuple[str, ...], tuple[str, ...]]] = weakref.WeakKeyDictionary()


def _names_of(kind: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    known = _attributes.get(kind)
    if known is None:
        raw = tuple(name for name in dir(kind) if name.startswith(_RAW))
        plain = {name for name in dir(kind) if name.startswith(_SAVED)}
        known = _attributes[kind] = raw, tuple(sorted(plain - {name.replace(_RAW, _SAVED) for name in raw}))
    return known


def raw_saved(node: Any) -> list[tuple[str, Any]]:
    """What a node keeps, as (name, SavedTensor), an element of a list as "tensors[1]".

    None in a SavedTensor's place where the list that it stood in is freed.
    """
    found: list[tuple[str, Any]] = []
    for attribute in _names_of(type(node))[0]:
        name = attribute.removeprefix(_RAW)
        try:
            saved = getattr(node, attribute)
        except RuntimeError:
            found.append((name, None))
            continue
        if isinstance(saved, (tuple, list)):
            found += [(f"{name}[{nr}]", each) for nr, each in enumerate(saved)]
        elif saved is not None:
            found.append((name, saved))
    return found


def saved_values(node: Any) -> list[tuple[str, Any]]:
    """What a node keeps besides tensors: numbers, shapes, flags; AddBackward0's alpha."""
    found = []
    for attribute in _names_of(type(node))[1]:
        try:
            found.append((attribute.removeprefix(_SAVED), getattr(node, attribute)))
        except (RuntimeError, AttributeError, NotImplementedError):
            continue
    return found


def content(saved: Any) -> tuple[Any, bool]:
    """What a SavedTensor holds, and whether it is what a pack hook gave; no hook is called.

    (None, False) where it holds nothing: freed, or nothing was saved.
    """
    try:
        return saved.data, saved.unpack_hook is not None
    except AttributeError:
        raise missing("torch._C._autograd.SavedTensor.data") from None


def complaint(saved: Any) -> str:
    """What PyTorch says against using a SavedTensor that no hook has packed; "" where it may be used."""
    try:
        saved.unpack()
    except RuntimeError as error:
        return str(error)
    except AttributeError:
        raise missing("torch._C._autograd.SavedTensor.unpack") from None
    return ""


def complaint_about(node: Any, name: str) -> str:
    """What PyTorch says against handing a node's own saved result out through the node; "" where that is fine, or
    where it would call a hook.
    """
    try:
        if hasattr(node, f"_saved_{name}"):
            return ""
        saved = getattr(node, "_raw_saved_tensors", ())
        if not any(content(each)[1] for each in saved):
            _ = node.saved_tensors
    except RuntimeError as error:
        return str(error)
    except AttributeError:
        return ""
    return ""


def wrapped_node(node: Any) -> Any:
    """The node of the operator that wrote into a view, for a CopySlices; None elsewhere and once it is freed."""
    try:
        return getattr(node, "_wrapped_node", None)
    except RuntimeError:
        return None


def input_metadata(node: Any) -> list[tuple[tuple[int, ...], str, str]]:
    """(shape, dtype, device) of each output of a node's forward call: what its input gradients look like."""
    try:
        entries = node._input_metadata
    except AttributeError:
        raise missing("Node._input_metadata") from None
    found = []
    for entry in entries:
        try:
            shape = tuple(entry.shape)
        except RuntimeError:
            # A nested tensor has no one shape.
            shape = ()
        found.append((shape, str(entry.dtype).rsplit(".", 1)[-1], str(entry.device)))
    return found


def hooks_on(tensor: Any) -> list[str]:
    """The gradient hooks that a tensor carries, in words."""
    try:
        before, after = tensor._backward_hooks, getattr(tensor, "_post_accumulate_grad_hooks", None)
    except AttributeError:
        raise missing("Tensor._backward_hooks") from None
    found = []
    if before:
        found.append(f"{len(before)} gradient hook{'s' * (len(before) != 1)}")
    if after:
        found.append(f"{len(after)} hook{'s' * (len(after) != 1)} after accumulation")
    if not tensor.is_leaf and tensor.retains_grad:
        found.append("retains its gradient")
    return found


def sparse_nbytes(tensor: Any) -> int:
    """Bytes of a sparse tensor's values and indices, without touching either."""
    count = int(tensor._nnz())
    if str(tensor.layout) == "torch.sparse_coo":
        dense = 1
        for size in tensor.shape[tensor.sparse_dim() :]:
            dense *= int(size)
        return count * (8 * int(tensor.sparse_dim()) + dense * int(tensor.element_size()))
    compressed = tensor.shape[-2] if str(tensor.layout).endswith(("csr", "bsr")) else tensor.shape[-1]
    return count * (8 + int(tensor.element_size())) + 8 * (int(compressed) + 1)


@functools.lru_cache(4096)
def gives_view(name: str) -> bool:
    """Whether a backward node of this name stands for an operator whose result is a view ("TBackward0": t)."""
    match = _OPERATOR.match(name)
    return match is not None and _is_view_operator(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", match.group(1)).lower())


@functools.cache
def _is_view_operator(name: str) -> bool:
    aten = private("torch.ops").aten
    packet = getattr(aten, name, None) or getattr(aten, f"_{name}", None)
    if packet is None:
        return False
    for overload in packet.overloads():
        try:
            returns = getattr(packet, overload)._schema.returns
        except AttributeError:
            raise missing("OpOverload._schema") from None
        if any(each.alias_info is not None and not each.alias_info.is_write for each in returns):
            return True
    return False
