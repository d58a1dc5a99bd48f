"""Saved: what the nodes of PyTorch's backward graph keep, told apart and never unpacked by a hook
(torch/csrc/autograd/saved_variable.h).

Each node's own saved tensors are listed one by one, also where several nodes keep the same. Whose a tensor is follows
from what it still knows of itself: another node's output has its grad_fn, a node's own result was kept without one,
and PyTorch complains of just that when it is asked for without its node.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from torch import Tensor
from torch.nn import Parameter

from ..records import SavedTensor
from . import _torch_internals as internals
from ._looking import identity
from ._torch_internals import graph as inside
from ._variables import Names

_VERSIONS = re.compile(r"is at version (\d+); expected version (\d+)")
_OWN_RESULT = "detached in-place"
_FREED = "a second time"
_SHORT = 60


class SavedReader:
    """Reads what nodes keep into records.

    place   node -> its id in the graph; leaves: id of a leaf tensor -> the id of its AccumulateGrad
    """

    def __init__(self, names: Names, place: Mapping[Any, int], leaves: Mapping[int, int]) -> None:
        self._names = names
        self._place = place
        self._leaves = leaves

    def of(self, node: Any) -> tuple[SavedTensor, ...]:
        """Everything that a node keeps, also what a CopySlices' inner node does and what an autograd.Function's
        forward put on its ctx.
        """
        found = [self._read(name, saved, node) for name, saved in inside.raw_saved(node)]
        inner = inside.wrapped_node(node)
        if inner is not None:
            found += [self._read(f"{inner.name()}.{name}", saved, inner) for name, saved in inside.raw_saved(inner)]
        found += [self._attribute(f"ctx.{name}", value) for name, value in _attributes(node)]
        return tuple(each for each in found if each is not None)

    def _read(self, name: str, saved: Any, node: Any) -> SavedTensor | None:
        if saved is None:
            return SavedTensor(name, (), "", 0, state="freed")
        value, packed = inside.content(saved)
        if packed:
            return SavedTensor(name, (), "", _nbytes_in(value), state="packed", packed=_in_words(value))
        if value is None:
            # Of an argument that was None or is not needed there is nothing; of what was freed PyTorch says so.
            return SavedTensor(name, (), "", 0, state="freed") if _FREED in inside.complaint(saved) else None
        complaint = inside.complaint(saved)
        if _OWN_RESULT in complaint and internals.version_of(value):
            # Only with its node at hand does PyTorch go on to compare versions.
            complaint += inside.complaint_about(node, name)
        return self._tensor(name, value, complaint, node)

    def _tensor(self, name: str, tensor: Tensor, complaint: str, node: Any) -> SavedTensor:
        now = internals.version_of(tensor)
        version, state, kind = now, "kept", ""
        origin: tuple[int, int] | None = None
        variable = self._names.of(tensor)
        versions = _VERSIONS.search(complaint)
        if versions:
            now, version, state = int(versions[1]), int(versions[2]), "changed"
        if _OWN_RESULT in complaint:
            kind = "result"
            nr = _output_of(name, tensor, node)
            origin = (self._place[node], nr) if node in self._place else None
            variable = dict(self._names.of_outputs(node)).get(nr, "")
        elif not tensor.requires_grad:
            kind = "constant"
        elif versions:
            # It may have another history by now.
            kind = "inner"
        elif tensor.is_leaf:
            kind = "parameter" if isinstance(tensor, Parameter) else "leaf"
            origin = (self._leaves[id(tensor)], 0) if id(tensor) in self._leaves else None
        else:
            kind = "inner"
            nr, fn = int(tensor.output_nr), tensor.grad_fn
            origin = (self._place[fn], nr) if fn in self._place else None
            variable = variable or dict(self._names.of_outputs(fn)).get(nr, "")
        return _record(name, tensor, version, kind, variable, origin, state, now)

    def _attribute(self, name: str, tensor: Tensor) -> SavedTensor:
        version = internals.version_of(tensor)
        return _record(name, tensor, version, "attribute", self._names.of(tensor), None, "kept", version)


def _record(
    name: str,
    tensor: Tensor,
    version: int | None,
    kind: str,
    variable: str,
    origin: tuple[int, int] | None,
    state: str,
    now: int | None,
) -> SavedTensor:
    try:
        storage, nbytes = identity(tensor), int(tensor.numel()) * int(tensor.element_size())
    except (RuntimeError, NotImplementedError):
        storage, nbytes = 0, _sparse(tensor)
    return SavedTensor(
        name=name,
        shape=shape_of(tensor),
        dtype=str(tensor.dtype).rsplit(".", 1)[-1],
        nbytes=nbytes,
        storage=storage,
        version=version,
        kind=kind,
        variable=variable,
        origin=origin,
        view=internals.is_view(tensor),
        state=state,
        now=now,
    )


def shape_of(tensor: Tensor) -> tuple[int, ...]:
    """The shape; () for a nested tensor, which has several."""
    try:
        return tuple(tensor.shape)
    except RuntimeError:
        return ()


def values_of(node: Any) -> tuple[tuple[str, str], ...]:
    """What a node keeps besides tensors, as text, long texts cut."""
    found = []
    for name, value in inside.saved_values(node):
        if not isinstance(value, Tensor):
            text = str(value)
            found.append((name, text if len(text) <= _SHORT else text[: _SHORT - 3] + "..."))
    return tuple(found)


def _output_of(name: str, tensor: Tensor, node: Any) -> int:
    """Which output of its own node a saved result is: the name says it ("result1"), else the one of its shape."""
    match = re.search(r"(?:result|output)(\d+)$", name)
    if match:
        return int(match[1])
    shapes = [shape for shape, _, _ in inside.input_metadata(node)]
    return shapes.index(shape_of(tensor)) if shape_of(tensor) in shapes else 0


def _attributes(node: Any) -> list[tuple[str, Tensor]]:
    """Tensors that an autograd.Function's forward set on its ctx: they live as long as the graph, freed by nobody."""
    try:
        attributes = object.__getattribute__(node, "__dict__")
    except AttributeError:
        return []
    found: list[tuple[str, Tensor]] = []
    for name, value in list(attributes.items()):
        if isinstance(value, Tensor):
            found.append((name, value))
        elif type(value) in (list, tuple):
            found += [(f"{name}[{nr}]", each) for nr, each in enumerate(value) if isinstance(each, Tensor)]
    return found


def _in_words(packed: Any) -> str:
    kind = type(packed)
    if isinstance(packed, Tensor):
        return f"{str(packed.dtype).rsplit('.', 1)[-1]}{list(shape_of(packed))} on {packed.device}"
    if kind in (tuple, list):
        return f"{kind.__name__} of {', '.join(type(each).__name__ for each in packed[:4])}"
    return kind.__name__


def _nbytes_in(packed: Any) -> int:
    parts = packed if type(packed) in (tuple, list) else (packed,)
    return sum(int(part.nbytes) for part in parts if hasattr(part, "nbytes") and not callable(part.nbytes))


def _sparse(tensor: Tensor) -> int:
    try:
        return inside.sparse_nbytes(tensor)
    except (RuntimeError, NotImplementedError, AttributeError):
        return 0
