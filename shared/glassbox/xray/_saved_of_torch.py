"""Saved memory of PyTorch's models: one run with hooks around each saved tensor (torch/csrc/autograd/saved_variable.h).

Hooks (torch.autograd.graph.saved_tensors_hooks) tell when a SavedVariable is made and when it is released, and the
graph itself which node it belongs to.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from ..records import KeptCall, KeptValue, SavedMemory
from . import _torch_internals as internals
from ._births import Births
from ._flops import tensors_in, touched
from ._modules import ModuleTracker
from ._python_lines import caller, place_of
from ._runs import Program, mode_of, name_of
from ._torch_internals import graph as inside
from ._torch_internals import profiling
from ._torch_internals.modes import forget_hook
from ._untouched import Untouched

_POINTS = 2000


def saved_memory_of_torch(
    fn: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    loss: Callable[[Any], Any] | None,
    backward: bool | None,
) -> SavedMemory:
    """As xray.saved_memory says."""
    target = profiling.uncompiled(fn)
    program = Program("saved_memory", target, args, kwargs, loss, backward, by_default=True)
    with program.untouched() as kept, ModuleTracker(program.module) as tracker:
        watch = _Watch(tracker, kept)
        for each in tensors_in((program.args, dict(program.kwargs))):
            watch.know(each, "input")
        output = program.run(kept, watch.mark, watch, watch.ready)
        del output
        notes = kept.written_parameters()
    devices = tuple(watch.devices)
    if target is not fn or (program.module is not None and profiling.is_compiled(target)):
        notes.append("It is compiled; shown is what its eager run keeps.")
    if watch.foreign:
        notes.append(
            f"{watch.foreign} value{'s' * (watch.foreign != 1)} more that hooks of the program pack (save_on_cpu, "
            "checkpoint, ...) are not in the bytes."
        )
    if not watch.anything:
        notes.append("Nothing that came out requires a gradient, so there is no graph to keep anything.")
    return SavedMemory(
        f"{name_of(target)}, {mode_of(program.module, devices)}",
        tuple(watch.values),
        tuple(watch.calls),
        watch.points(),
        watch.peak_at,
        tuple(notes),
    )


@dataclass(slots=True)
class _Note:
    """What is known of one saved tensor, without the tensor."""

    number: int
    storage: int
    nbytes: int
    shape: tuple[int, ...]
    dtype: str
    kind: str
    module: str
    place: str
    calls: tuple[int, ...]
    from_checkpoint: bool
    node: str = ""
    slot: str = ""


class _Held:
    """A saved tensor on its way through the hooks; its end is the SavedVariable's."""

    __slots__ = ("note", "tensor", "version", "watch")

    def __init__(self, watch: _Watch, tensor: Any, version: int | None, note: _Note) -> None:
        self.watch, self.tensor, self.version, self.note = watch, tensor, version, note

    def __del__(self) -> None:
        self.watch.released(self)


class _Watch:
    """One run under hooks: what is packed, when it is released, and by whom."""

    def __init__(self, tracker: ModuleTracker, kept: Untouched) -> None:
        self.tracker, self.kept = tracker, kept
        self.births = Births()
        self.eyes = self.births.eyes
        self.values: list[KeptValue] = []
        self.calls: list[KeptCall] = []
        self.foreign = 0
        self.devices: dict[str, None] = {}
        self.anything = False
        self.curve: list[tuple[str, int]] = []
        self.peak_at = ""
        self._known: dict[int, str] = {}
        self._phase = "forward"
        self._alive: dict[int, _Note] = {}
        self._uses: dict[int, int] = {}
        self._total = self._peak = 0
        self._running: list[tuple[Any, int]] = []
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)
        self._handles: list[Any] = []
        self._open = False

    def __enter__(self) -> _Watch:
        self._handles = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, with_kwargs=True, always_call=True),
        ]
        self.births.__enter__()
        self._hooks.__enter__()
        self._open = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False
        self._hooks.__exit__(kind, error, trace)
        self.births.__exit__(kind, error, trace)
        for handle in self._handles:
            forget_hook(handle)
        self._alive.clear()

    def know(self, tensor: Any, kind: str) -> None:
        """Say what a tensor's storage is; the first word about it holds."""
        self._known.setdefault(self.eyes.storage_of(tensor), kind)

    def mark(self, stage: str) -> None:
        if stage == "backward":
            self._phase = "backward"

    def ready(self, roots: Sequence[Any]) -> None:
        """The forward pass is done: write down what it keeps."""
        self.anything = bool(roots)
        for module in self.kept.modules():
            for parameter in module.parameters(recurse=False):
                self.know(parameter, "parameter")
            for buffer in module.buffers(recurse=False):
                self.know(buffer, "buffer")
        self._name_nodes(roots)
        self.values = [self._value(note) for note in self._alive.values()]

    def points(self) -> tuple[tuple[str, int], ...]:
        """The curve, thinned to what a figure can show; of each part the largest point stays, and the very last."""
        step = -(-len(self.curve) // _POINTS) or 1
        parts = [self.curve[at : at + step] for at in range(0, len(self.curve), step)]
        highest = [max(part, key=lambda point: point[1]) for part in parts]
        return tuple(highest if step == 1 else [*highest, self.curve[-1]])

    # Hooks

    def _pack(self, tensor: Any) -> _Held:
        storage = self.eyes.storage_of(tensor) or -1 - len(self._uses)
        self.devices.setdefault(str(tensor.device))
        found = caller()
        note = _Note(
            internals.next_sequence_nr() - 1,
            storage,
            _bytes_of(tensor),
            () if tensor.is_nested else tuple(profiling.plain_int(n) or 0 for n in tensor.shape),
            str(tensor.dtype).rsplit(".", 1)[-1],
            self._kind(tensor, storage),
            self.tracker.path(),
            place_of(*found) if found else "",
            tuple(number for _, number in self._running if number >= 0),
            sys._getframe(1).f_code.co_filename.endswith("checkpoint.py"),
        )
        # Without its grad_fn: a result that knew its own node would keep it alive for ever.
        with inside.unobserved() if type(tensor) in (torch.Tensor, torch.nn.Parameter) else nullcontext():
            plain = tensor.detach()
        held = _Held(self, plain, internals.version_of(tensor), note)
        self._alive[id(held)] = note
        if note.kind == "activation":
            uses = self._uses.get(storage, 0)
            self._uses[storage] = uses + 1
            if not uses:
                self._change(note.nbytes)
                if self._total > self._peak:
                    self._peak = self._total
                    self.peak_at = ", ".join(part for part in (self._phase, note.module, note.place) if part)
        return held

    def _kind(self, tensor: Any, storage: int) -> str:
        if storage in self.births.born:
            return "activation"
        return "parameter" if tensor.is_leaf and tensor.requires_grad else "other"

    def _unpack(self, held: _Held) -> Any:
        if self._open and internals.version_of(held.tensor) != held.version:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: a "
                f"{held.note.dtype} tensor of shape {list(held.note.shape)}, saved at version {held.version}, is at "
                f"version {internals.version_of(held.tensor)}."
            )
        return held.tensor

    def released(self, held: _Held) -> None:
        """A SavedVariable is gone."""
        note = self._alive.pop(id(held), None)
        if note is None or note.kind != "activation":
            return
        self._uses[note.storage] -= 1
        if not self._uses[note.storage] and self._open:
            self._change(-note.nbytes)

    def _change(self, nbytes: int) -> None:
        self._total += nbytes
        self.curve.append((self._phase, self._total))

    # Modules

    def _enter(self, module: Any, _inputs: Any) -> None:
        number = -1
        if self._phase == "forward":
            number = len(self.calls)
            outer = tuple(each for _, each in self._running if each >= 0)
            self.calls.append(KeptCall(number, self.tracker.path(), type(module).__name__, outer))
        self._running.append((module, number))

    def _leave(self, module: Any, *given: Any) -> None:
        # args, kwargs and output; where forward raised, PyTorch leaves out the kwargs.
        args, kwargs = given[0], given[1] if len(given) == 3 else {}
        for at in range(len(self._running) - 1, -1, -1):
            if self._running[at][0] is module:
                number = self._running[at][1]
                del self._running[at:]
                break
        else:
            return
        if number >= 0:
            found = {}
            for each in tensors_in((args, kwargs)):
                storage = self.eyes.storage_of(each)
                if storage in self.births.born:
                    found[storage] = _bytes_of(each)
            self.calls[number] = replace(self.calls[number], inputs=tuple(found.items()))

    # Reading

    def _name_nodes(self, roots: Sequence[Any]) -> None:
        waiting = [root.grad_fn for root in roots if root.grad_fn is not None]
        seen = set(waiting)
        while waiting:
            node = waiting.pop()
            inner = inside.wrapped_node(node)
            for each in (node, inner) if inner is not None else (node,):
                for slot, saved in inside.raw_saved(each):
                    self._name(each, slot, saved)
            for each, _ in node.next_functions:
                if each is not None and each not in seen:
                    seen.add(each)
                    waiting.append(each)

    def _name(self, node: Any, slot: str, saved: Any) -> None:
        held, packed = inside.content(saved) if saved is not None else (None, False)
        if isinstance(held, _Held) and held.watch is self:
            held.note.node, held.note.slot = node.name(), slot
        elif packed:
            self.foreign += 1

    def _value(self, note: _Note) -> KeptValue:
        node = note.node or ("checkpoint" if note.from_checkpoint else self.births.op_of.get(note.number, "?"))
        kind = self._known.get(note.storage, note.kind)
        where = (note.module, note.place, note.shape, note.dtype, note.storage, note.nbytes)
        return KeptValue(node, note.slot, *where, kind, note.calls)


def _bytes_of(tensor: Any) -> int:
    """Bytes of a tensor's whole storage; of its elements where it has none."""
    try:
        return profiling.plain_int(tensor.untyped_storage().nbytes()) or 0
    except (RuntimeError, NotImplementedError):
        return touched(tensor)
