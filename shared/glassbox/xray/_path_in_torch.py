"""A call's path in PyTorch: C++ frames from inside a dispatch mode, and what else tells of each station
(torch/csrc/profiler/combined_traceback.cpp).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ..records import CallPath, Evidence, Frame
from . import _torch_internals as internals
from ._frames import frames_of
from ._looking import announce
from ._node_of_call import NodeOfCall
from ._path_below import frames_below, plain
from ._torch_internals import frames as stacks
from ._which import wanted_operator
from ._yaml_sources import of_torch, parse
from .dispatch_tables import parse_row

_AUTOGRAD = ("VariableType", "utogradNotImplemented", "autograd_fallback")
_symbols_read: list[bool] = []


def path_in_torch(fn: Callable[..., Any], args: Any, kwargs: Any, op: str, written: str, below: bool) -> CallPath:
    cpp = stacks.cpp_frames_work()
    node = NodeOfCall()
    mode = stacks.capturing_mode(lambda func: wanted_operator(str(func), op), plain, node, cpp)
    result = _call(fn, args, kwargs, mode)
    node_words, made = node.in_words()
    # What the program returned had to live until here, for its nodes, and no longer.
    del result
    if mode.captured is None:
        raise ValueError(_nothing(op, mode.seen))
    stack = _symbols(mode.captured)
    frames = frames_of(stack, (__file__, _call.__name__))
    name = str(mode.op)
    key = _backend_key(mode.keys)
    found = [
        *_of_key_set(name, mode.keys),
        *_of_node(node_words, made, _autograd_ran(frames, mode.keys, cpp)),
        *_of_table(name, key),
        *_of_yaml(name, key),
        *_of_device(mode),
    ]
    notes = [] if cpp else [f"C++ frames cannot be read on {sys.platform}, only on Linux; Python's are shown."]
    if below and cpp:
        more, note = frames_below(mode.op, mode.args)
        frames += more
        notes += [note]
    others = list(mode.seen)
    others.remove(name)
    version = f"PyTorch {internals.version().partition('+')[0]}"
    return CallPath(written, name, version, frames, tuple(found), tuple(others), " ".join(notes))


def _call(fn: Callable[..., Any], args: Any, kwargs: Any, mode: Any) -> Any:
    """The frame that a path begins after."""
    with mode:
        return fn(*args, **kwargs)


def _nothing(op: str, seen: list[str]) -> str:
    if not seen:
        return "call_path: the function called no operator of PyTorch; pass one that does, such as lambda: a + b."
    return f"call_path: no operator called is {op!r}; those called are {', '.join(dict.fromkeys(seen))}."


def _symbols(captured: Any) -> list[tuple[str, int, str]]:
    if not _symbols_read:
        announce("call_path: reading C++ symbols, which takes a moment the first time ...")
    found = stacks.symbolized(captured)
    _symbols_read[:] = [True]
    return found


# What tells of stations that frames do not show


def _backend_key(sets: list[int]) -> str:
    """The lowest key of the first tensor, which is its backend's: "CPU", "SparseCUDA"."""
    return next((names[0] for bits in sets if (names := internals.key_names(bits))), "CPU")


def _of_key_set(name: str, sets: list[int]) -> list[Evidence]:
    if not sets:
        return []
    each = dict.fromkeys(", ".join(internals.key_names(bits)) for bits in sets)
    return [Evidence(3, "the tensors", " and ".join(f"{{{keys}}}" for keys in each))]


def _autograd_ran(frames: tuple[Frame, ...], sets: list[int], cpp: bool) -> bool:
    """Whether a kernel of Autograd's led here: by the frames, and without any by the keys of the tensors."""
    if cpp:
        return any(part in frame.full_name for frame in frames for part in _AUTOGRAD)
    return any(name.startswith("Autograd") for bits in sets for name in internals.key_names(bits))


def _of_node(words: str, made: bool, autograd_ran: bool) -> list[Evidence]:
    if made:
        return [Evidence(5, "the result", words)]
    return [Evidence(5, "the result", f"no node was made: {words if autograd_ran else 'no Autograd kernel ran'}")]


def _of_table(name: str, key: str) -> list[Evidence]:
    table = internals.computed_table(_cpp_name(name))
    row = parse_row(table.get(key, ""))
    if row is None or row.fallthrough:
        return []
    return [Evidence(6, "the dispatch table", f"{key}: {row.place} [{row.kind}]")]


def _of_yaml(name: str, key: str) -> list[Evidence]:
    entry = _yaml_entry(name)
    if entry is None:
        return [Evidence(7, "native_functions.yaml", f"{name} has no entry")]
    said = []
    if delegate := entry.get("structured_delegate"):
        entry = _yaml_entry(f"aten.{delegate}") or entry
        said.append(f"structured_delegate: {delegate}")
    inherits = entry.get("structured_inherits")
    if inherits:
        said.append(f"structured_inherits: {inherits}")
    elif said or entry.get("structured"):
        said.append("structured without TensorIterator")
    else:
        said.append("not structured, so the yaml does not say whether the kernel uses TensorIterator")
    found = [Evidence(7, "native_functions.yaml", "; ".join(said))]
    if loop := entry.get("ufunc_inner_loop"):
        loops = ", ".join(f"{kind}: {text}" for kind, text in _loops(loop).items())
        found.append(Evidence(8, "native_functions.yaml", f"ufunc_inner_loop {loops}"))
    else:
        kernels = {part.strip(): f for names, f in entry.get("dispatch", {}).items() for part in names.split(",")}
        if key in kernels:
            found.append(Evidence(8, "native_functions.yaml", f"dispatch: {key}: {kernels[key]}"))
    return found


def _loops(loop: Any) -> dict[str, str]:
    return {str(kind): str(text) for kind, text in loop.items()} if isinstance(loop, dict) else {"Generic": str(loop)}


def _of_device(mode: Any) -> list[Evidence]:
    device = mode.device
    if not device:
        return []
    if mode.is_view:
        words = "no loop runs: the result is a view of an argument"
    elif not mode.has_data:
        words = "no loop runs: there is no data"
    elif device == "cpu":
        words = "the work was done when the call returned"
    else:
        words = "the call may have returned before it ran; a timeline shows it"
    return [Evidence(8, "the device", f"{device}: {words}")]


def _yaml_entry(name: str) -> dict[str, Any] | None:
    """The entry of native_functions.yaml for "aten.add.Tensor"; None where it has none."""
    namespace, _, rest = name.partition(".")
    entry = of_torch().native.get(rest.removesuffix(".default")) if namespace == "aten" else None
    return None if entry is None else parse(entry)


def _cpp_name(name: str) -> str:
    namespace, _, rest = name.partition(".")
    return f"{namespace}::{rest.removesuffix('.default')}"
