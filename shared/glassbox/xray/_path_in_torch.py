"""A call's path in PyTorch: C++ frames from inside a dispatch mode, and what else tells of each station
(torch/csrc/profiler/combined_traceback.cpp).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import torch
import yaml

from ..records import CallPath, Evidence, Frame
from . import _torch_internals as internals
from ._frames import frames_of
from ._kernel_rows import short_place
from ._path_below import frames_below, plain
from ._torch_internals import frames as stacks
from ._torch_internals import graph
from ._which import node_in_words, wanted_operator

_ROW = re.compile(r"registered at (?P<place>.*) \[(?P<kind>[^\]]*)\]$", re.DOTALL)
_symbols_read: list[bool] = []


def path_in_torch(fn: Callable[..., Any], args: Any, kwargs: Any, op: str, written: str, below: bool) -> CallPath:
    cpp = stacks.cpp_frames_work()
    mode = stacks.capturing_mode(lambda func: wanted_operator(str(func), op), plain, cpp)
    result = _call(fn, args, kwargs, mode)
    if mode.captured is None:
        raise ValueError(_nothing(op, mode.seen))
    stack = _symbols(mode.captured)
    frames = frames_of(stack, (__file__, _call.__name__))
    name = str(mode.op)
    key = _backend_key(mode.keys)
    found = [
        *_of_key_set(name, mode.keys),
        *_of_result(result, frames),
        *_of_table(name, key),
        *_of_yaml(name, key),
        *_of_device(result),
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
        print("call_path: reading C++ symbols, which takes a moment the first time ...", file=sys.stderr, flush=True)
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


def _of_result(result: Any, frames: tuple[Frame, ...]) -> list[Evidence]:
    tensor = next((each for each in _flat(result) if isinstance(each, torch.Tensor)), None)
    node = None if tensor is None else tensor.grad_fn
    if node is None:
        ran = any("VariableType" in frame.full_name for frame in frames)
        why = "no gradient is wanted, so the Autograd kernel made no node" if ran else "no Autograd kernel ran"
        return [Evidence(5, "the result", f"grad_fn is None: {why}")]
    return [Evidence(5, "the result", node_in_words(node.name(), internals.sequence_nr(node), _saved(node)))]


def _saved(node: Any) -> list[str]:
    """What a node keeps, by name; no hook that packs and unpacks is called."""
    raw = [(name, saved) for name, saved in graph.raw_saved(node) if saved is not None]
    tensors = [name for name, saved in raw if graph.content(saved)[0] is not None]
    return tensors + [name for name, value in graph.saved_values(node) if value is not None]


def _of_table(name: str, key: str) -> list[Evidence]:
    table = internals.computed_table(_cpp_name(name))
    row = _ROW.search(table.get(key, ""))
    if row is None:
        return []
    return [Evidence(6, "the dispatch table", f"{key}: {short_place(row['place'])} [{row['kind']}]")]


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


def _of_device(result: Any) -> list[Evidence]:
    tensor = next((each for each in _flat(result) if isinstance(each, torch.Tensor)), None)
    if tensor is None:
        return []
    if tensor.device.type == "cpu":
        return [Evidence(8, "the device", "cpu: the calling thread ran the loop before the call returned")]
    return [
        Evidence(8, "the device", f"{tensor.device}: the call may have returned before it ran; a timeline shows it")
    ]


def _yaml_entry(name: str) -> dict[str, Any] | None:
    """The entry of native_functions.yaml for "aten.add.Tensor"; None where it has none. Reads that entry alone."""
    namespace, _, rest = name.partition(".")
    if namespace != "aten":
        return None
    wanted = rest.removesuffix(".default")
    text = internals.native_functions_yaml()
    start = text.find(f"\n- func: {wanted}(")
    if start < 0:
        return None
    end = text.find("\n- func: ", start + 1)
    entries = yaml.safe_load(text[start : end if end > 0 else len(text)])
    return entries[0] if entries else None


def _cpp_name(name: str) -> str:
    namespace, _, rest = name.partition(".")
    return f"{namespace}::{rest.removesuffix('.default')}"


def _flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    return [each for part in value for each in _flat(part)] if isinstance(value, list | tuple) else [value]
