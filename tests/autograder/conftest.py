"""A classroom for lab 1, and notebooks to hand in to it."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.classroom import Classroom, environment_kept
from autograder.grading import Grade, grade_in
from autograder.labs import SOLUTIONS

LAB = "lab1_storage"
SOLUTION = SOLUTIONS / LAB / f"{LAB}.ipynb"


def named(notebook: Any, grade_id: str) -> Any:
    """The cell of a notebook with this grade id."""
    return next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == grade_id)


class Desk:
    """Hands out notebooks and grades what comes back, in one course."""

    def __init__(self, classroom: Classroom, released: Path) -> None:
        self.classroom = classroom
        self._untouched = nbformat.read(released / f"{LAB}.ipynb", as_version=4)
        self._solution = nbformat.read(SOLUTION, as_version=4)
        self._number = itertools.count()

    def untouched(self) -> Any:
        """The lab as it is handed out."""
        return copy.deepcopy(self._untouched)

    def solved(self, *only: str) -> Any:
        """The lab with the pieces called `only` solved; all of them without arguments."""
        notebook = self.untouched()
        for cell in notebook.cells:
            record = cell.metadata.get("nbgrader", {})
            name = record.get("grade_id")
            if record.get("solution") and cell.cell_type == "code" and (not only or name in only):
                cell.source = named(self._solution, name).source
        return notebook

    def grade(self, notebook: Any) -> Grade:
        """Grades a notebook through nbgrader."""
        return grade_in(self.classroom, json.dumps(notebook), f"s{next(self._number)}")

    def graded_path(self) -> Path:
        """Where the notebook graded last lies."""
        return max(
            (self.classroom.root / "autograded").glob("*/*/*.ipynb"), key=lambda path: path.stat().st_mtime_ns
        )


@pytest.fixture(autouse=True)
def _environment() -> Iterator[None]:
    """Takes nbgrader's marks away that a failed step leaves where a test calls nbgrader itself."""
    with environment_kept():
        yield


@pytest.fixture(scope="session")
def desk() -> Iterator[Desk]:
    with Classroom(LAB) as classroom:
        yield Desk(classroom, classroom.generate())


@pytest.fixture
def first_cell() -> Callable[[Any, str], Any]:
    """Puts a cell with code in front of a notebook."""

    def insert(notebook: Any, source: str) -> Any:
        notebook.cells.insert(0, nbformat.v4.new_code_cell(source))
        return notebook

    return insert
