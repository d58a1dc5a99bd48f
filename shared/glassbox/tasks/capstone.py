"""The capstone: the mini-framework on every piece that a learner has written so far, in this lab and in earlier ones.

The pieces of earlier labs are taken out of the notebooks that lie beside this one's folder. Only what passes its
open check is plugged in.
"""

from __future__ import annotations

import contextlib
import html
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..mini import pieces
from ..mini.c10.pieces import reference
from ..records import Rows, html_table, text_table
from . import catalogue
from .check import try_out
from .lab3.plugging import PLUGS
from .model import Task

Function = Callable[..., Any]
Plug = Callable[[Function], dict[str, Function]]

FOLDERS = ("lab1_storage", "lab2_dispatcher", "lab3_autograd", "lab4_call_path")
FRAMEWORKS = "the framework's"


def _from_key_set(mine: Function) -> dict[str, Function]:
    return {"key_bits": lambda functionality, backend: mine(((functionality, backend),))}


def _from_result_type(mine: Function) -> dict[str, Function]:
    return {"result_type": mine, "promote_types": lambda a, b: mine(((a, "tensor"), (b, "tensor")))}


def _from_run_streams(mine: Function) -> dict[str, Function]:
    """Each of the device's questions is a program of a step or two."""
    return {
        "kernel_ready": lambda end, launched, gap: mine((("launch", 0, 0),), launched, (end,), 0, 0, gap)[0],
        "event_time": lambda end, now: mine((("record", 0, 0),), now, (end,), 0, 0, 0)[0],
        "stream_after_wait": lambda end, event: mine((("record", 0, 1), ("wait", 0, 0)), 0, (end, event), 0, 0, 0)[1],
        "host_after_wait": lambda now, awaited: mine((("synchronize stream", 0),), now, (awaited,), 0, 0, 0)[0],
    }


ADAPTED: dict[str, Plug] = {
    "key_set": _from_key_set,
    "result_type": _from_result_type,
    "run_streams": _from_run_streams,
    **PLUGS,
}
"""Functions whose arguments are not those of a piece, or that are several pieces at once."""


def as_pieces(*functions: Function) -> dict[str, Function]:
    """The pieces of the framework that a learner's functions are, known by the functions' names.

    ValueError for a function that is none.
    """
    found: dict[str, Function] = {}
    for function in functions:
        name = function.__name__
        if name not in ADAPTED and name not in pieces():
            raise ValueError(f"{name} is no piece of the mini-framework")
        found |= ADAPTED.get(name, lambda mine: {mine.__name__: mine})(function)
    return found


class Gathered:
    """Who wrote each piece, and how often it was called: prints and shows as a table.

    `pieces` is for `running_on`: every piece of the framework, the learner's where there is one, each counted.
    """

    def __init__(self, mine: Mapping[str, tuple[str, Function]], notes: list[str]) -> None:
        self.whose = {name: mine[name][0] if name in mine else FRAMEWORKS for name in pieces()}
        self.calls = dict.fromkeys(self.whose, 0)
        self.notes = notes
        self.pieces = {
            name: self._counted(name, mine[name][1] if name in mine else reference(name)) for name in pieces()
        }

    def _counted(self, name: str, function: Function) -> Function:
        def counted(*args: Any) -> Any:
            self.calls[name] += 1
            return function(*args)

        return counted

    @property
    def yours(self) -> list[str]:
        """The names of the pieces that are the learner's."""
        return [name for name, whose in self.whose.items() if whose != FRAMEWORKS]

    def rows(self) -> Rows:
        """A row a piece: name, whose, calls. The learner's stand first, then what was called most often."""
        order = sorted(self.whose, key=lambda name: (self.whose[name] == FRAMEWORKS, -self.calls[name]))
        shown = [name for name in order if self.calls[name] or name in self.yours]
        return [{"piece": name, "whose": self.whose[name], "calls": f"{self.calls[name]:,}"} for name in shown]

    @property
    def heading(self) -> str:
        """How many of the pieces that were called are the learner's."""
        called = [name for name, count in self.calls.items() if count]
        yours = sum(name in self.yours for name in called)
        return f"{yours} of the {len(called)} pieces that were called are yours"

    def __repr__(self) -> str:
        return "\n".join([self.heading, text_table(self.rows()), *self.notes])

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return html_table(self.rows(), self.heading) + notes


def gathered(lab: str, namespace: Mapping[str, Any], folder: Path | None = None) -> Gathered:
    """Every piece written so far: of `lab` ("lab3") from `namespace`, of earlier labs from their notebooks.

    folder: the one that holds the folders of the labs; by default that around the current one.
    """
    around = (folder or Path.cwd().parent).resolve()
    mine: dict[str, tuple[str, Function]] = {}
    notes = []
    for name in FOLDERS:
        short = name.partition("_")[0]
        here = namespace if short == lab else _written(around / name / f"{name}.ipynb")
        if here is None:
            notes.append(f"{short}: no notebook at {around.name}/{name}, so its pieces are the framework's.")
            continue
        for task in catalogue.tasks(short).values():
            if task.piece is None and task.function not in ADAPTED:
                continue
            found, why = _right(task, here.get(task.function))
            if found is not None:
                mine |= {piece: (f"yours ({short})", made) for piece, made in as_pieces(found).items()}
            elif why:
                notes.append(f"{task.id}: {why}")
        if short == lab:
            break
    return Gathered(mine, notes)


def _right(task: Task, function: Any) -> tuple[Function | None, str]:
    """The function if it passes its open check, else why it is not taken; "" where it is not written yet."""
    if not callable(function):
        return None, ""
    with contextlib.redirect_stdout(io.StringIO()):
        checked = try_out(task, function)
    if checked.passed and function.__name__ == task.function:
        return function, ""
    return None, "" if checked.untouched else "written, but not all of its properties hold yet"


def _written(notebook: Path) -> dict[str, Any] | None:
    """The namespace after the learner's cells of a notebook have run; None where there is no such notebook."""
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    namespace: dict[str, Any] = {"__name__": notebook.stem}
    for cell in cells:
        record = cell.get("metadata", {}).get("nbgrader", {})
        if cell.get("cell_type") != "code" or not record.get("solution"):
            continue
        with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
            exec(compile("".join(cell["source"]), notebook.name, "exec"), namespace)
    return namespace
