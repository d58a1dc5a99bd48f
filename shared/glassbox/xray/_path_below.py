"""Below the backend's key: the C++ frames of an operator that fails there on purpose (c10/util/Exception.h).

No hook of Python's runs inside of a CPU kernel, so no stack can be captured there. But an error carries the C++ stack
that it was raised in, if TORCH_SHOW_CPP_STACKTRACES was set before the process's first one; so the same operator is
called with shapes that do not fit, in a process of its own.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from typing import Any

import torch

from ..records import Frame
from ._frames import compiled_frame
from ._looking import announce

_SECONDS = 60
_LINE = re.compile(r"^#\d+ (?P<name>.*) from (?P<file>.*?)(?::(?P<line>\d+))?$", re.MULTILINE)
_RAISING = re.compile(r"c10::Error|torchCheckFail|_Function_handler|c10::detail::")
_PROGRAM = """
import json, sys
import torch
namespace, name, overload, given = json.loads(sys.argv[1])
args = [torch.ones(a["shape"], dtype=getattr(torch, a["dtype"])) if isinstance(a, dict) else a for a in given]
try:
    getattr(getattr(getattr(torch.ops, namespace), name), overload)(*args)
except Exception as error:
    print(error)
"""


def frames_below(op: Any, args: Any) -> tuple[tuple[Frame, ...], str]:
    """The frames between the call of the backend's kernel and the error, outermost first, and a sentence on them.

    op     the OpOverload
    args   those that it was called with, tensors as dicts of shape and dtype; see `plain`

    No frames where the operator has less than two tensors or does not fail in C++; the sentence says so.
    """
    shapes: list[list[int]] = []
    given = []
    for arg in args:
        if isinstance(arg, dict) and len(shapes) < 2 and arg["shape"]:
            shapes.append([2 + len(shapes)] * len(arg["shape"]))
            arg = arg | {"shape": shapes[-1]}
        given.append(arg)
    if len(shapes) < 2 or any(arg is ... for arg in given):
        return (), f"Below the backend's key nothing can be shown: {op} takes no two tensors whose shapes could clash."
    said = _error(json.dumps([*str(op).split("."), given]))
    found = [each for each in _LINE.finditer(said) if not _RAISING.search(each["name"])]
    upto = next((nr for nr, each in enumerate(found) if "at::_ops::" in each["name"]), 0)
    if not upto:
        return (), f"Below the backend's key nothing can be shown: {op} did not fail in C++ for shapes that clash."
    frames = [compiled_frame(each["file"], int(each["line"] or 0), each["name"]) for each in reversed(found[:upto])]
    # Whatever a kernel of a backend calls is below it.
    frames = [replace(each, station=8, known=True) if each.station in (0, 4) else each for each in frames]
    return tuple(frames), (
        f"Frames below the backend's key come from another process, where {op} failed on purpose for tensors of "
        f"shapes {tuple(shapes[0])} and {tuple(shapes[1])}: {said.strip().splitlines()[0]}."
    )


@functools.lru_cache(maxsize=64)
def _error(spec: str) -> str:
    environment = {**os.environ, "TORCH_SHOW_CPP_STACKTRACES": "1", "CUDA_VISIBLE_DEVICES": ""}
    announce("call_path: reading C++ symbols in another process, which takes some seconds ...")
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, spec], capture_output=True, text=True, env=environment, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout


def plain(value: Any) -> Any:
    """An argument as JSON can carry it: a tensor as its shape and dtype; ... for what cannot be carried."""
    if isinstance(value, torch.Tensor):
        return {"shape": list(value.shape), "dtype": str(value.dtype).rpartition(".")[2]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(each, bool | int | float) for each in value):
        return list(value)
    return ...
