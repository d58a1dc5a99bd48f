"""Frames of PyTorch: a captured stack as the frames of one call (torch/csrc/profiler/combined_traceback.cpp)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ..records import Frame
from ._short_files import short_file
from ._stations import BOXING, evaluates_python, is_cpython, is_observer, short_name, station_of
from .dispatch_tables import short_place

_CPYTHON_TREE = re.compile(r"^.*/[Pp]ython-?3[\w.+-]*/(?:\./)?(?=(?:Python|Objects|Modules|Include|Parser)/)")
Symbol = tuple[str, int, str]


def frames_of(stack: Sequence[Symbol], begin: tuple[str, str]) -> tuple[Frame, ...]:
    """The frames of a call from a symbolized stack, outermost first.

    begin   file and name of the Python function that made the call; it and what is around it are left out

    Of the interpreter's own functions those stay that lead from bytecode into C++; so does every other function.
    """
    inside = _after(stack, begin)
    ends = [nr for nr, (_, _, name) in enumerate(inside) if re.search(r"\bpythonFallback\b", name)]
    mode = _mode(inside)
    watched_from = ends[-1] if ends else mode
    found: list[Frame] = []
    glue: list[Frame] = []
    for nr, (file, line, name) in enumerate(inside):
        watching = nr >= watched_from
        if _is_python(file):
            glue = []
            found.append(_python(file, line, name, observer=watching))
            if watching and name == "__torch_dispatch__":
                break
        elif is_cpython(name):
            glue = [] if evaluates_python(name) else [*glue, compiled_frame(file, line, name)]
        else:
            # A mode of the program's own is no observer, and then it is not us that the state is kept for.
            observer = watching or (is_observer(name) and len(ends) == 1)
            found += [] if watching else glue
            glue = []
            frame = compiled_frame(file, line, name)
            found.append(replace(frame, observer=observer, known=observer or frame.known))
    return _with_adapters(found)


def _mode(stack: Sequence[Symbol]) -> int:
    """Where the mode that looks begins, with what torch puts around it, among Python's frames alone."""
    last = max((nr for nr, (_, _, name) in enumerate(stack) if name == "__torch_dispatch__"), default=len(stack))
    while last and stack[last - 1][0].endswith(("torch/_compile.py", "torch/_dynamo/eval_frame.py")):
        last -= 1
    return last


def _after(stack: Sequence[Symbol], begin: tuple[str, str]) -> list[Symbol]:
    """What was called from `begin` on."""
    start = max((nr for nr, (file, _, name) in enumerate(stack) if (file, name) == begin), default=-1)
    return list(stack[start + 1 :])


def _is_python(file: str) -> bool:
    return file.endswith(".py") or file.startswith("<") or "ipykernel" in file


def _python(file: str, line: int, name: str, observer: bool) -> Frame:
    of_torch = "/site-packages/torch/" in file
    return Frame(name, name, "python", short_file(file), line, 1 if of_torch and not observer else 0, observer)


def compiled_frame(file: str, line: int, name: str) -> Frame:
    """A function in C or C++ by its full name, with the station that the name tells."""
    station = station_of(name)
    place = "" if file in ("??", "") else _CPYTHON_TREE.sub("CPython: ", short_place(file))
    return Frame(short_name(name), name, "c++", place, line, station, known=station > 0)


def _with_adapters(frames: list[Frame]) -> tuple[Frame, ...]:
    """Adapters beside a frame of the observer's are there because of it."""
    result = list(frames)
    for nr, frame in enumerate(frames):
        if not BOXING.search(frame.full_name) or frame.observer:
            continue
        before = nr > 0 and result[nr - 1].observer
        after = nr + 1 < len(frames) and is_observer(frames[nr + 1].full_name) and frames[nr + 1].observer
        if before or after:
            result[nr] = replace(frame, observer=True)
    return tuple(result)
