"""What the tests of the tasks share: lab 1's solutions as text and as functions, tried on a seed."""

import functools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from glassbox.tasks import answering
from glassbox.tasks.compare import PropertyResult, compare
from glassbox.tasks.lab1 import TASKS
from glassbox.tasks.model import Task, cases

NOTEBOOK = Path(__file__).parents[2] / "solutions" / "lab1_storage" / "lab1_storage.ipynb"


@pytest.fixture(scope="session")
def notebook() -> dict[str, Any]:
    return json.loads(NOTEBOOK.read_text())


@pytest.fixture(scope="session")
def sources(notebook: dict[str, Any]) -> dict[str, str]:
    """The solution cells by the name of the function that they define."""
    return {
        cell["metadata"]["nbgrader"]["grade_id"]: "".join(cell["source"])
        for cell in notebook["cells"]
        if cell["cell_type"] == "code" and cell["metadata"].get("nbgrader", {}).get("solution")
    }


@pytest.fixture(scope="session")
def solved(sources: dict[str, str]) -> dict[str, Any]:
    """The namespace after all solution cells have run."""
    namespace: dict[str, Any] = {}
    for source in sources.values():
        exec(source, namespace)
    return namespace


def _remembering(task: Task) -> Task:
    """The task with an oracle that is asked once a case, since many functions are tried on the same ones."""
    return replace(task, oracle=functools.lru_cache(1 << 16)(task.oracle))


@pytest.fixture(scope="session")
def lab1() -> dict[str, Task]:
    """Lab 1's tasks by the name of their function."""
    return {task.function: _remembering(task) for task in TASKS}


@functools.lru_cache(4096)
def _drawn(task: Task, seed: str) -> list[list[Any]]:
    return cases(task, seed)


def _tried(task: Task, function: Callable[..., Any], seed: str) -> tuple[PropertyResult, ...]:
    drawn = _drawn(task, seed)
    return compare(task, drawn, [[answering.answer(function, case) for case in group] for group in drawn])


@pytest.fixture(scope="session")
def tried() -> Callable[[Task, Callable[..., Any], str], tuple[PropertyResult, ...]]:
    """tried(task, function, seed): how each property comes out."""
    return _tried
