"""A call's path in the mini-framework: its Python functions, by the file that they are in (mini/README.md).

Whatever the framework worked out before is forgotten first, so the path is that of a first call: choosing the kernel
and planning the loop are on it. What generates and compiles code at a first call is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from .. import mini
from ..mini.c10.dispatch_key_set import DispatchKeySet
from ..mini.modes.recorder import saved_tensors
from ..records import CallPath, Evidence, Frame
from ._short_files import short_file
from ._which import node_in_words, wanted_operator

_ROOT = str(Path(mini.__file__).parent) + "/"
_GENERATED = "<glassbox.mini: "
# What a first call does that no later one does and PyTorch's generator did before.
_COMPILING = {"ready", "complete", "first_call", "stub", "compile_source"}

# The longest matching beginning decides.
_BY_FILE = {
    "tensor.py": 1,
    "operators.py": 1,
    "factories.py": 1,
    "nn/": 1,
    "python_arg_parser.py": 2,
    "python_variable_indexing.py": 2,
    "aten/core/dispatcher.py": 4,
    "aten/core/dispatch_table.py": 4,
    "aten/core/kernel_function.py": 4,
    "c10/dispatch_key_set.py": 4,
    "c10/dispatch_key.py": 4,
    "modes/": 4,
    "aten/composites.py": 4,
    "autograd/": 5,
    "aten/native/": 6,
    "aten/tensor_factories.py": 6,
    "aten/tensor_iterator.py": 7,
    "aten/loop_layout.py": 7,
    "aten/memory_overlap.py": 7,
    "c10/promotion.py": 7,
    "c10/layout.py": 7,
    "c10/geometry.py": 7,
    "aten/native/loops.py": 8,
    "aten/native/structured.py": 7,
    "c10/tensor_impl.py": 8,
    "c10/storage.py": 8,
    "sim/": 8,
}
# Of these files only the functions that a step is known by; of others those that are nobody's private helper.
_TELLING = {
    "aten/core/dispatcher.py": {"KernelTable.__missing__", "OperatorHandle.winner"},
    "aten/core/dispatch_table.py": {"resolve_kernel"},
    "aten/core/kernel_function.py": set(),
    "aten/core/source.py": set(),
    "c10/dispatch_key_set.py": {"highest_priority_key"},
    "aten/tensor_iterator.py": {
        "build",
        "TensorIterator.compute_shape",
        "TensorIterator.compute_types",
        "TensorIterator.reorder_dimensions",
        "TensorIterator.allocate_outputs",
        "TensorIterator.coalesce_dimensions",
    },
    "aten/loop_layout.py": {"broadcast_shapes", "output_strides", "coalesce_dimensions"},
    "c10/promotion.py": {"common_dtype", "promote_types"},
    "c10/tensor_impl.py": {"adopt"},
    "aten/native/loops.py": {"fresh", "into", "load", "to_storage"},
}
_HIGHER_KEYS = ("VariableType.", "ADInplaceOrView.")


@dataclass
class _Call:
    """A function that was called, and those that it called."""

    code: Any
    line: int
    keys: tuple[str, ...] = ()
    ufunc: str = ""
    node: str = ""
    calls: list[_Call] = field(default_factory=list)

    @property
    def generated(self) -> str:
        """ "add.Tensor.call" for a function that was written from a schema."""
        name = self.code.co_filename
        return name.removeprefix(_GENERATED).removesuffix(">") if name.startswith(_GENERATED) else ""

    @property
    def operator(self) -> str:
        name = self.generated.removesuffix(".call")
        return (
            f"aten.{name if '.' in name else name + '.default'}"
            if self.code.co_name == "call" and self.generated.endswith(".call")
            else ""
        )


def path_in_mini(fn: Callable[..., Any], args: Any, kwargs: Any, op: str, written: str) -> CallPath:
    top = _trace(fn, args, kwargs)
    outermost = list(_operators(top, nested=False))
    chosen = next((each for each in _operators(top, nested=True) if wanted_operator(each.operator, op)), None)
    if chosen is None:
        called = ", ".join(dict.fromkeys(each.operator for each in outermost))
        if not called:
            raise ValueError("call_path: the function called no operator of the mini-framework.")
        raise ValueError(f"call_path: no operator called is {op!r}; those called are {called}.")
    frames: list[Frame] = []
    for each in _leading_to(top, chosen):
        _add(each, chosen, None, 0, frames)
    others = tuple(each.operator for each in outermost if not _contains(each, chosen))
    return CallPath(written, chosen.operator, "the mini-framework", tuple(frames), _evidence(chosen, frames), others)


def _trace(fn: Callable[..., Any], args: Any, kwargs: Any) -> _Call:
    """The functions that were called, as a tree below this one. A profile function of somebody's is set again."""
    top = _Call(_trace.__code__, 0)
    running = [top]

    def seen(frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            call = _Call(frame.f_code, frame.f_lineno, _keys(frame))
            running[-1].calls.append(call)
            running.append(call)
        elif event == "return" and len(running) > 1:
            done = running.pop()
            done.ufunc = _ufunc(frame)
            if done.operator:
                done.node = _node(arg)

    with mini.using():
        mini.dispatcher.forget()
        before = sys.getprofile()
        sys.setprofile(seen)
        try:
            fn(*args, **kwargs)
        finally:
            sys.setprofile(before)
    return top


def _keys(frame: FrameType) -> tuple[str, ...]:
    """The key sets of the tensors that an operator is called with."""
    name = frame.f_code.co_filename
    if not (name.startswith(_GENERATED) and name.endswith(".call>")):
        return ()
    sets = [each._key_set for each in frame.f_locals.values() if isinstance(each, mini.Tensor)]
    return tuple(dict.fromkeys(", ".join(key.name for key in DispatchKeySet(bits)) for bits in sets))


def _ufunc(frame: FrameType) -> str:
    """The function of NumPy's that a kernel is made of."""
    if not frame.f_code.co_filename.startswith(_ROOT + "aten/native/"):
        return ""
    function = frame.f_locals.get("function")
    return f"numpy.{function.__name__}" if isinstance(function, np.ufunc) else ""


def _operators(call: _Call, nested: bool) -> Iterator[_Call]:
    """The operator calls in a tree, in order, with or without those that operators make in turn."""
    if call.operator:
        yield call
        if not nested:
            return
    for each in call.calls:
        yield from _operators(each, nested)


def _contains(call: _Call, wanted: _Call) -> bool:
    return call is wanted or any(_contains(each, wanted) for each in call.calls)


def _leading_to(call: _Call, chosen: _Call) -> list[_Call]:
    """The calls of a function less those that lead to other operators than the chosen one."""
    if not _contains(call, chosen) or call is chosen:
        return call.calls
    return [each for each in call.calls if _contains(each, chosen) or next(_operators(each, False), None) is None]


def _add(call: _Call, chosen: _Call, above: _Call | None, station: int, frames: list[Frame]) -> None:
    """A function and those that it called, each with its station; helpers' second calls are left out."""
    if call.code.co_name in _COMPILING - {"first_call", "stub"}:
        return
    own = bool(call.generated) or call.code.co_filename.startswith(_ROOT)
    here = _station(call, above, station) if own else station
    if _tells(call, here) if own else station == 0:
        frame = _frame(call, here, own)
        if frame not in frames:
            frames.append(frame)
    next_above = call if call.generated and call.generated != "first call" else above
    for each in _leading_to(call, chosen):
        _add(each, chosen, next_above, here, frames)


def _station(call: _Call, above: _Call | None, station: int) -> int:
    """The station of a function, from where it is and from what called it."""
    generated = call.generated
    if generated == "first call":
        return station
    if generated:
        if generated.endswith(".call"):
            return 3
        if generated.startswith(_HIGHER_KEYS):
            return 4
        return 5 if "Backward" in generated else 1
    file = call.code.co_filename.removeprefix(_ROOT)
    best = max((prefix for prefix in _BY_FILE if file.startswith(prefix)), key=len, default="")
    found = _BY_FILE.get(best, station)
    if found == 4 and not best.startswith("modes/") and above is not None and above.generated.startswith(_HIGHER_KEYS):
        return 6
    if station in (7, 8) and found not in (3, 4):
        return max(station, found) if found in (7, 8) else station
    if station in (4, 6) and file.startswith("c10/"):
        return station
    # What a kernel calls in turn is its loop.
    return 8 if found == 6 and station == 6 and best == "aten/native/" else found


def _tells(call: _Call, station: int) -> bool:
    """Whether a function of the framework is a step of the path, and not a helper on the way."""
    name = call.code.co_qualname
    if call.generated:
        return call.generated != "first call"
    file = call.code.co_filename.removeprefix(_ROOT)
    if file in _TELLING:
        return name in _TELLING[file]
    own_name = call.code.co_name
    if own_name.startswith("<") or file.startswith("c10/"):
        return False
    # A kernel itself may be called _mm.
    return station == 6 or not own_name.startswith("_")


def _frame(call: _Call, station: int, own: bool) -> Frame:
    file = call.code.co_filename
    place = f"mini/{file.removeprefix(_ROOT)}" if file.startswith(_ROOT) else short_file(file)
    name = call.code.co_qualname.replace("<locals>.", "")
    if call.generated:
        name = f"{call.generated}" if station != 5 else call.code.co_name
    return Frame(name, call.code.co_qualname, "python", place, call.line, station, known=not own or station > 0)


def _node(result: Any) -> str:
    """What an operator's result says of its node, as soon as it is there."""
    tensor = next((each for each in _flat(result) if isinstance(each, mini.Tensor)), None)
    node = None if tensor is None else tensor.grad_fn
    if node is None:
        return "grad_fn is None"
    saved = [name for name, _ in saved_tensors(node)]
    saved += [slot.removeprefix("field_") for slot in _slots(node) if slot.startswith("field_")]
    return node_in_words(node.name(), node.sequence_nr, saved)


def _evidence(call: _Call, frames: list[Frame]) -> tuple[Evidence, ...]:
    found = []
    if call.keys:
        found.append(Evidence(3, "the tensors", " and ".join(f"{{{keys}}}" for keys in call.keys)))
    found.append(Evidence(5, "the result", call.node))
    stations = {frame.station for frame in frames}
    if 2 not in stations:
        slot = next((frame.name for frame in frames if frame.station == 1), "the call")
        found.append(Evidence(2, "generated code", f"{slot} takes the arguments apart itself"))
    if 7 not in stations:
        found.append(Evidence(7, "the stack", "no iterator was made: the kernel did without"))
    if ufunc := _first_ufunc(call):
        found.append(Evidence(8, "the kernel", f"{ufunc} runs the loop"))
    return tuple(found)


def _slots(node: Any) -> list[str]:
    return [slot for kind in type(node).__mro__ for slot in getattr(kind, "__slots__", ())]


def _first_ufunc(call: _Call) -> str:
    return call.ufunc or next((found for each in call.calls if (found := _first_ufunc(each))), "")


def _flat(value: Any) -> list[Any]:
    return [each for part in value for each in _flat(part)] if isinstance(value, list | tuple) else [value]
