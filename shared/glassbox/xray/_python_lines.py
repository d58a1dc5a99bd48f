"""Python lines: where in the program a call was made, and what it called (torch/utils/_traceback.py tells C++ too).

The frames of PyTorch, of the standard library and of this package are stepped over. What the line called is read from
the bytecode's own positions, so that no source is needed: in `x.t().reshape(6)` the call that is running covers all of
it, and the last name that begins where it begins is `reshape`.
"""

from __future__ import annotations

import dis
import functools
import inspect
import linecache
import os
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType

import torch

from ._short_files import INSTALLED, short_file

_TORCH = f"{Path(inspect.getfile(torch)).parent}{os.sep}"
_OWN = f"{Path(__file__).parent.parent}{os.sep}"
_STANDARD = f"{sysconfig.get_path('stdlib')}{os.sep}"
# Python code of PyTorch through which every call of a mode goes; it asks for nothing by itself.
_MACHINERY = tuple(
    f"{_TORCH}{name}".replace("/", os.sep)
    for name in ("utils/_python_dispatch.py", "utils/_contextlib.py", "_ops.py", "_compile.py", "_library/", "_dynamo/")
)
_NAMES = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_FAST", "LOAD_DEREF", "LOAD_CLASSDEREF")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of Python, and what the part of it that was running called: "reshape", "@", "[]"; "" where unknown."""

    file: str
    number: int
    called: str

    @property
    def place(self) -> str:
        """ "models/net.py:12"; "In[3]:2" in a notebook."""
        return f"{short_file(self.file)}:{self.number}"

    @property
    def source(self) -> str:
        """The line's text; "" where there is none to be found."""
        return linecache.getline(self.file, self.number).strip()


def callers(frame: FrameType | None) -> tuple[FrameType | None, FrameType | None]:
    """(the program's innermost frame, the innermost one at all), from `frame` outwards.

    The first is outside of PyTorch and of this package; the second may be inside of PyTorch, but not in its machinery.
    """
    innermost = None
    while frame is not None:
        kind = _kind(frame.f_code)
        if kind == "program":
            return frame, innermost or frame
        if kind == "torch" and innermost is None:
            innermost = frame
        frame = frame.f_back
    return None, innermost


def caller(depth: int = 1) -> tuple[str, int] | None:
    """(file, line) of the program's innermost frame; None where there is none, as in a thread of C++."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        if _kind(frame.f_code) == "program":
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None


def line_of(frame: FrameType) -> Line:
    return Line(frame.f_code.co_filename, frame.f_lineno, called_at(frame.f_code, frame.f_lasti))


def place_of(file: str, number: int) -> str:
    return Line(file, number, "").place


@functools.lru_cache(maxsize=4096)
def _kind(code: CodeType) -> str:
    name = code.co_filename
    if name.startswith(_OWN):
        return "own"
    if name.startswith(_MACHINERY) or name.startswith(_STANDARD) and not any(each in name for each in INSTALLED):
        return "machinery"
    # Generated code has a name of its own, such as <string>; in torch's files there is no program.
    return "torch" if name.startswith(_TORCH) or name.startswith("<eval_with_key>") else "program"


@functools.lru_cache(maxsize=4096)
def called_at(code: CodeType, at: int) -> str:
    """What the instruction at the byte offset `at` calls: a function's name, an operator, "[]" or "[]="."""
    steps = list(dis.get_instructions(code))
    # While a function of Python runs, its caller's offset is that of the call's last cache entry.
    running = max((step for step in steps if step.offset <= at), key=lambda step: step.offset, default=None)
    if running is None:
        return ""
    if running.opname.startswith("BINARY_OP"):
        return running.argrepr
    if running.opname in ("BINARY_SUBSCR", "BINARY_SLICE"):
        return "[]"
    if running.opname in ("STORE_SUBSCR", "STORE_SLICE"):
        return "[]="
    if running.opname == "UNARY_NEGATIVE":
        return "-"
    if running.opname == "COMPARE_OP":
        return running.argrepr
    if running.opname in ("LOAD_ATTR", "STORE_ATTR"):
        return str(running.argval)
    place = running.positions
    if place is None or place.lineno is None or not running.opname.startswith("CALL"):
        return ""
    begins = (place.lineno, place.col_offset)
    found, furthest = "", (0, -1)
    for step in steps:
        where = step.positions
        if step.offset >= running.offset or where is None or step.opname not in _NAMES or where.end_lineno is None:
            continue
        ends = (where.end_lineno, where.end_col_offset or 0)
        if (where.lineno, where.col_offset) == begins and ends >= furthest:
            found, furthest = str(step.argval), ends
    return found
