"""Seeing a case: which of its layouts can be drawn, and how easy it is to see there what went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..records import StorageView
from .model import Task
from .plain import freeze

DRAWN, REACH = 400, 1_000_000
"""Layouts of more cells, over more storage, or of more than four dimensions, are told, not drawn."""


def view(name: str, task: Task, case: Sequence[Any], value: Any) -> StorageView | None:
    """The layout that `value` says, or the case's own for None; None where there is nothing to draw."""
    if task.views is None:
        return None
    try:
        layout = task.views(tuple(case), freeze(value))
        if layout is None:
            return None
        found = StorageView.of_layout(name, **layout)
        small = found.ndim <= 4 and found.numel <= DRAWN and found.size <= REACH
        return found if small and found.span()[0] >= 0 else None
    except Exception:  # a learner's value may be of any shape; the words beside the picture say what it was
        return None


def effort(task: Task, case: Sequence[Any], value: Any) -> tuple[Any, ...]:
    """What it takes to see a case whose right answer is `value` (None: an error); the least comes first.

    A picture before none, two elements or more before a single one or nothing, few dimensions (one is as
    easy as two), a value before an error, few cells, a short call.
    """
    drawn = [drawn for given in (None, value) if (drawn := view("", task, case, given)) is not None]
    if drawn:
        ndim, numel = max(one.ndim for one in drawn), max(one.numel for one in drawn)
        bare = numel < 2
    else:
        ndim, numel = max((len(part) for part in case if isinstance(part, tuple)), default=0), 0
        bare = ndim == 0
    return not drawn, bare, max(ndim, 2), value is None, numel, len(repr(case))
