"""Hidden copies: which line made PyTorch copy memory that nobody asked to copy (aten/src/ATen/native/Copy.cpp).

Two looks are put together. A dispatch mode knows the operator, the module and the line that are at work; a hook at
aten::copy_ knows each copy that is really made, also within a kernel, with the strides and dtypes of both ends. A copy
whose memory is the operator's own result is the operator's work, unless the operator does nothing but copy; any other
was needed on the way.
"""

from __future__ import annotations

import math
import sys
import threading
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

import torch

from ..records import COPYING, DTYPE_LETTERS, CopySite, HiddenCopies, human_bytes
from ._looking import is_tensor_type
from ._modules import ModuleTracker, starts_backward
from ._python_lines import Line, callers, line_of
from ._runs import name_of
from ._torch_internals import node_getter, sequence_counter, sequence_nr
from ._torch_internals.copying import copies_seen_by
from ._torch_internals.modes import Looker
from ._torch_internals.profiling import uncompiled, was_compiled
from ._torch_internals.seeing import Eyes

# What a line calls when it wants a copy, or may well get one: whoever writes it knows.
ASKING = frozenset(
    {
        *("clone", "contiguous", "copy", "copy_", "deepcopy", "detach_copy", "[]=", "load_state_dict", "tensor"),
        *("to", "type", "type_as", "cpu", "cuda", "xpu", "mps", "to_dense", "to_sparse", "to_empty", "pin_memory"),
        *("float", "double", "half", "bfloat16", "int", "long", "short", "char", "byte", "bool", "cfloat", "cdouble"),
        *("resolve_conj", "resolve_neg", "numpy", "tolist", "asarray", "as_tensor", "from_numpy"),
    }
)
_AS_IT_IS = "aten.copy_.default"


@dataclass(slots=True)
class _Copy:
    """One copy: what was written, what was read, and where in the program that was."""

    line: Line | None
    within: Line | None
    shape: tuple[int, ...]
    strides: tuple[tuple[int, ...], tuple[int, ...]]
    dtypes: tuple[str, str]
    devices: tuple[str, str]
    nbytes: int
    storage: int
    autocast: bool


@dataclass(slots=True)
class _Running:
    """An operator call that is at work, and the copies made meanwhile.

    number   of the backward node that calls it; -1 where a line of Python does, as it may in backward too
    """

    name: str
    args: Any
    module: str
    number: int
    node: str
    backward: bool
    copies: list[_Copy] = field(default_factory=list)


class _Watch(Looker):
    """The mode, and what the hook reports to."""

    def __init__(self, root: Any, caller: FrameType | None, name: str) -> None:
        super().__init__("hidden_copies")
        self._caller = caller
        self._name = name
        self.found: list[tuple[_Running, _Copy]] = []
        self._eyes = Eyes()
        self._tracker = ModuleTracker(root)
        # Per thread.
        self._running: dict[int, list[_Running]] = {}
        self._made_at: list[int] = []
        self._made_by: list[Line | None] = []
        self._current_node = node_getter()
        self._next_nr = sequence_counter()

    def __enter__(self) -> _Watch:
        super().__enter__()
        self._tracker.__enter__()
        self._made_at, self._made_by = [self._next_nr() - 1], [None]
        return self

    def __exit__(self, *error: Any) -> None:
        try:
            super().__exit__(*error)
        finally:
            self._tracker.__exit__(*error)
            self._eyes.close()

    def begins(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> _Running:
        node = self._current_node()
        stack = self._tracker.running()
        if node is None or stack and stack[-1][2]:
            made = self._next_nr() - 1
            if self._made_at[-1] < made:
                frame, _ = callers(sys._getframe(1))
                self._made_at.append(made)
                self._made_by.append(self._line(frame))
            backward = node is not None or starts_backward()
            call = _Running(str(func), (args, kwargs), stack[-1][1] if stack else "", -1, "", backward)
        else:
            path = self._tracker.path_of_node(node)
            number, name = sequence_nr(node), node.name().rpartition("::")[2]
            call = _Running(str(func), (args, kwargs), path, number, name, True)
        self._running.setdefault(threading.get_ident(), []).append(call)
        return call

    def ends(self, begun: _Running, result: Any) -> None:
        self._pop(begun)
        if not begun.copies:
            return
        whole = begun.name.rpartition(".")[0] in COPYING or begun.name == _AS_IT_IS
        if whole:
            self.found += [(begun, copy) for copy in begun.copies]
        else:
            own = {self._eyes.storage_of(each) for each in _tensors((begun.args, result))}
            # A number among the operands becomes a tensor without dimensions.
            self.found += [(begun, copy) for copy in begun.copies if copy.shape and copy.storage not in own]
        begun.args = None

    def fails(self, begun: _Running) -> None:
        self._pop(begun)

    def _pop(self, begun: _Running) -> None:
        calls = self._running[threading.get_ident()]
        while calls and calls.pop() is not begun:
            pass

    def copying(self, destination: Any, source: Any) -> None:
        calls = self._running.get(threading.get_ident())
        if not calls or not destination.numel():
            return
        line, within = self._lines(calls[-1], sys._getframe(1))
        calls[-1].copies.append(
            _Copy(
                line,
                within,
                tuple(destination.shape),
                (_spread(source, destination), tuple(destination.stride())),
                (_letters(source.dtype), _letters(destination.dtype)),
                (str(source.device), str(destination.device)),
                destination.numel() * destination.element_size(),
                self._eyes.storage_of(destination),
                _in_autocast(),
            )
        )

    def _lines(self, call: _Running, frame: FrameType) -> tuple[Line | None, Line | None]:
        if call.number >= 0:
            at = bisect_left(self._made_at, call.number)
            return self._made_by[at] if at < len(self._made_by) else None, None
        outer, inner = callers(frame)
        return self._line(outer), line_of(inner) if inner is not None and inner is not outer else None

    def _line(self, frame: FrameType | None) -> Line | None:
        """A frame's line. What runs without Python, such as a script, is called by the line that asked for the look."""
        if frame is None:
            return None
        return replace(line_of(frame), called=self._name) if frame is self._caller else line_of(frame)


def hidden_copies(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> HiddenCopies:
    """Runs fn(*args, **kwargs) once and lists each copy of memory that the code did not ask for, line by line.

    fn may be a model, or a function that goes backward too. What is found, in any of grad, no_grad and inference_mode:
    the copy of a reshape (flatten, einsum, matmul) whose strides fit no view, of an expanded tensor made real, of casts
    under autocast or for operands of two dtypes, of a kernel that wants contiguous input, of gradients in backward
    (with the line of the forward call). Each with its bytes, the line, the module, and the line of PyTorch's own Python
    behind it.

    A line that itself calls clone, contiguous, to, float, copy_ and the like asked for its copy: those are in the
    record's `asked`, counted and not listed. A module of another package counts as code that asks for itself.

    Not seen: what a library below PyTorch rearranges for itself (oneDNN, cuDNN), and what an operator writes into its
    own result (cat, stack, pad). A function of torch.compile runs uncompiled meanwhile, which the record's `notes`
    say. Results stay what they are. The hook at aten::copy_ is there for the whole process until fn returns or raises;
    other threads' copies pass through it unlisted.

    TypeError where fn cannot be called, or is given tensors of the mini-framework.
    """
    if not callable(fn):
        raise TypeError(f"hidden_copies: {type(fn).__name__} cannot be called; give a function or a model.")
    if any(is_tensor_type(type(arg)) and not isinstance(arg, torch.Tensor) for arg in (*args, *kwargs.values())):
        raise TypeError("hidden_copies: looks at torch only; mini.record() shows the copies of the mini-framework.")
    eager = uncompiled(fn)
    compiled = was_compiled(fn)
    watch = _Watch(
        fn if isinstance(fn, torch.nn.Module) else None, callers(sys._getframe(1))[0], _name_of_program(eager)
    )
    with copies_seen_by(watch.copying), watch:
        fn(*args, **kwargs)
    sites: dict[tuple[Any, ...], list[tuple[_Running, _Copy]]] = {}
    for call, copy in watch.found:
        key = copy.line, copy.within, call.name, call.module, call.node, call.backward
        sites.setdefault(key, []).append((call, copy))
    hidden: list[CopySite] = []
    asked: list[CopySite] = []
    for found in sites.values():
        (asked if _is_asked(*found[0]) else hidden).append(_site(found))
    notes = ("It is compiled; shown are the copies of its eager run.",) if compiled else ()
    return HiddenCopies(_sorted(hidden), _sorted(asked), notes)


def _name_of_program(fn: Any) -> str:
    """A script has the name of what it was made from."""
    for attribute in ("original_name", "name"):
        if isinstance(fn, (torch.jit.ScriptModule, torch.jit.ScriptFunction)) and hasattr(fn, attribute):
            return str(getattr(fn, attribute))
    return name_of(fn)


def _is_asked(call: _Running, copy: _Copy) -> bool:
    return call.number < 0 and copy.line is not None and copy.line.called in ASKING


def _site(found: list[tuple[_Running, _Copy]]) -> CopySite:
    call, largest = max(found, key=lambda pair: pair[1].nbytes)
    line, within = largest.line, largest.within
    return CopySite(
        line.place if line else "",
        line.source if line else "",
        call.node or (line.called if line else ""),
        f"{within.place} {within.called}".strip() if within else "",
        call.name,
        _why(largest),
        call.module,
        "backward" if call.backward else "forward",
        len(found),
        sum(copy.nbytes for _, copy in found),
        tuple(dict.fromkeys(f"{copy.dtypes[1]}{list(copy.shape)}" for _, copy in found)),
    )


def _sorted(sites: list[CopySite]) -> tuple[CopySite, ...]:
    return tuple(sorted(sites, key=lambda site: -site.nbytes))


def _why(copy: _Copy) -> str:
    (read, written), reasons = copy.strides, []
    if copy.devices[0] != copy.devices[1]:
        reasons.append(f"{copy.devices[0]} to {copy.devices[1]}")
    if copy.dtypes[0] != copy.dtypes[1]:
        reasons.append(f"{copy.dtypes[0]} to {copy.dtypes[1]}{' under autocast' * copy.autocast}")
    times = math.prod(n for n, stride in zip(copy.shape, read, strict=True) if stride == 0)
    if times > 1:
        reasons.append(f"{human_bytes(copy.nbytes // times)} expanded, repeated {times} times")
    elif _steps(copy.shape, read) != _steps(copy.shape, written):
        reasons.append(f"strides {list(read)} to {list(written)}")
    return ", ".join(reasons) or "same strides and dtype"


def _in_autocast() -> bool:
    """Whether there is an autocast block around the call. A mode's handler runs with autocast itself switched off."""
    torch.autocast_increment_nesting()
    return bool(torch.autocast_decrement_nesting() > 0)


def _steps(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    return [stride for n, stride in zip(shape, strides, strict=True) if n > 1]


def _spread(source: Any, destination: Any) -> tuple[int, ...]:
    """The strides with which the source is read for the destination's shape, which it may be broadcast to."""
    lead = destination.dim() - source.dim()
    pairs = zip(source.shape, source.stride(), destination.shape[lead:], strict=True)
    return (0,) * lead + tuple(0 if n == 1 and m > 1 else stride for n, stride, m in pairs)


def _letters(dtype: torch.dtype) -> str:
    name = str(dtype).removeprefix("torch.")
    return DTYPE_LETTERS.get(name, name)


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [found for each in value for found in _tensors(each)]
    return []
