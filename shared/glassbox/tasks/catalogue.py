"""Which tasks there are: one module a lab, found by the first part of a task's id."""

from __future__ import annotations

import importlib
import importlib.util

from .model import Task


def tasks(lab: str) -> dict[str, Task]:
    """The tasks of a lab ("lab1", or its folder's name "lab1_storage") by id, in order. Raises KeyError where
    there are none.
    """
    short = lab.partition("_")[0]
    name = f"{__package__}.{short}"
    if not (short.isidentifier() and short.startswith("lab") and importlib.util.find_spec(name)):
        raise KeyError(f"there is no lab {lab!r}")
    return {task.id: task for task in importlib.import_module(name).TASKS}


def uses_torch(lab: str) -> bool:
    """Whether a lab is about PyTorch itself, so that its tasks are tried where PyTorch is. False where there is no
    such lab.
    """
    try:
        known = tasks(lab)
    except KeyError:
        return False
    return not any("torch" in task.unplugged for task in known.values())


def find(task: str) -> Task:
    """The task with this id, such as "lab1.expand". Raises KeyError with the known ids."""
    known = tasks(task.partition(".")[0])
    if task not in known:
        raise KeyError(f"there is no task {task!r}; this lab has {', '.join(known)}")
    return known[task]
