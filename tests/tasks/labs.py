"""The labs under test: for each its tasks, its solutions as text and as functions, and its table of what is tried.

A lab is tested as soon as tables/labN.py is there; what such a table holds is written in tables/README.md.
"""

import functools
import importlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from glassbox.tasks import answering, catalogue
from glassbox.tasks.building import built
from glassbox.tasks.compare import PropertyResult, compare
from glassbox.tasks.model import Task, cases

TABLES = Path(__file__).parent / "tables"
SOLUTIONS = Path(__file__).parents[2] / "solutions"


class Lab:
    """One lab. `name` is the short one, "lab1"."""

    def __init__(self, name: str) -> None:
        self.name = name
        (self.folder,) = (path for path in SOLUTIONS.iterdir() if path.name.startswith(f"{name}_"))
        self.tasks = tuple(catalogue.tasks(name).values())
        self.names = [task.function for task in self.tasks]
        self.core = self.names[: self.table.CORE]
        self.extensions = self.names[self.table.CORE :]

    @functools.cached_property
    def table(self) -> ModuleType:
        """The table of what is tried on this lab."""
        return importlib.import_module(f".tables.{self.name}", __package__)

    def seeds(self, full: bool, most: int = 200, least: int = 4) -> int:
        """How many seeds to try: `least` in the quick run, or in proportion to what the table says of this lab."""
        return most if full else max(1, least * getattr(self.table, "SEEDS", 4) // 4)

    @functools.cached_property
    def notebook(self) -> dict[str, Any]:
        """The solutions notebook as data."""
        return json.loads((self.folder / f"{self.folder.name}.ipynb").read_text())

    @functools.cached_property
    def imports(self) -> set[str]:
        """The import lines of the solutions notebook."""
        return {
            line.strip()
            for cell in self.notebook["cells"]
            if cell["cell_type"] == "code"
            for line in "".join(cell["source"]).splitlines()
            if line.strip().startswith(("import ", "from "))
        }

    @functools.cached_property
    def sources(self) -> dict[str, str]:
        """The solution cells by the name of the function that they define."""
        return {
            cell["metadata"]["nbgrader"]["grade_id"]: "".join(cell["source"])
            for cell in self.notebook["cells"]
            if cell["cell_type"] == "code" and cell["metadata"].get("nbgrader", {}).get("solution")
        }

    @functools.cached_property
    def solved(self) -> dict[str, Any]:
        """The namespace after all solution cells have run."""
        namespace = self.imported()
        for source in self.sources.values():
            exec(source, namespace)
        return namespace

    @functools.cached_property
    def remembering(self) -> dict[str, Task]:
        """The tasks by function, with oracles asked once a case, since many functions are tried on the same ones."""
        return {task.function: replace(task, oracle=remembered(task.oracle)) for task in self.tasks}

    def imported(self) -> dict[str, Any]:
        """The names that a solution finds: those of the notebook's imports that the lab's solutions need."""
        return dict(getattr(self.table, "NAMES", {}))

    def planted(self, name: str, slip: str) -> Callable[..., Any]:
        """The solution with a slip of the table in it, in a namespace where all the other solutions are right."""
        texts = next(row[2:] for row in self.table.SLIPS if row[:2] == (name, slip))
        source = self.sources[name]
        for old, new in zip(texts[::2], texts[1::2], strict=True):
            assert old in source, f"the solution of {name} no longer holds {old!r}"
            source = source.replace(old, new)
        namespace = dict(self.solved)
        exec(source, namespace)
        return namespace[name]

    def __repr__(self) -> str:
        return self.name


def remembered(oracle: Callable[..., Any]) -> Callable[..., Any]:
    """The oracle asked once a case; what it raises is kept as well."""

    @functools.lru_cache(1 << 16)
    def outcome(*case: Any) -> tuple[Any, Exception | None]:
        try:
            return oracle(*case), None
        except Exception as error:
            return None, error

    def asked(*case: Any) -> Any:
        value, error = outcome(*case)
        if error is not None:
            raise error
        return value

    return asked


@functools.lru_cache(4096)
def drawn(task: Task, seed: str) -> list[list[Any]]:
    """The cases of a seed."""
    return cases(task, seed)


def tried(task: Task, function: Callable[..., Any], seed: str) -> tuple[PropertyResult, ...]:
    """How each property comes out for a function."""
    asked, names = drawn(task, seed), task.builds
    # Built anew each time: a program may have a state, and a slip may leave something on a model.
    answers = [[answering.answer(function, built(names, case), names) for case in group] for group in asked]
    return compare(task, asked, answers)


LABS = [Lab(path.stem) for path in sorted(TABLES.glob("lab[0-9].py"))]
EACH_TASK = [(lab, name) for lab in LABS for name in lab.names]
EACH_CORE = [(lab, name) for lab in LABS for name in lab.core]
EACH_EXTENSION = [(lab, name) for lab in LABS for name in lab.extensions]
EACH_SLIP = [(lab, *row[:2]) for lab in LABS for row in lab.table.SLIPS]
