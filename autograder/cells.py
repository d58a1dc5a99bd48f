"""The cells of a lab: which ones are checks, which ones run, and which task stands behind a check."""

from __future__ import annotations

import re

from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_grade, is_solution

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def task_id(assignment: str, grade_id: str) -> str:
    """The task behind a check cell: "lab1.expand" for the cell "check_expand" of "lab1_storage"."""
    return f"{assignment.partition('_')[0]}.{grade_id.removeprefix('check_')}"


def is_check(cell: NotebookNode) -> bool:
    """True for a locked code cell that is worth points."""
    return cell.cell_type == "code" and is_grade(cell) and not is_solution(cell)


def runs(cell: NotebookNode) -> bool:
    """True for a code cell with something in it."""
    return cell.cell_type == "code" and bool(cell.source.strip())
