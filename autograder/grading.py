"""Grading one notebook: nbgrader's own steps in a temporary course, the judge inside them, the outcome as
data.
"""

from __future__ import annotations

import copy
import logging
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
from nbformat.notebooknode import NotebookNode

from glassbox.tasks.check import PUBLIC_SEED

from . import labs, report
from .errors import PlainError
from .submission import opened

if TYPE_CHECKING:
    from .classroom import Classroom


@dataclass(frozen=True)
class TaskGrade:
    """One task of a graded notebook. `properties` are dicts with name, weight, won, wrong and cases."""

    id: str
    title: str
    score: float
    max_score: float
    note: str
    properties: tuple[dict[str, Any], ...]
    text: str
    html: str


@dataclass(frozen=True)
class Written:
    """A question that is answered in words and graded by hand; counted apart."""

    id: str
    max_score: float
    answered: bool


@dataclass(frozen=True)
class Grade:
    """A graded notebook. `score` and `max_score` are the automatic points; written ones are counted apart."""

    lab: str
    score: float
    max_score: float
    tasks: tuple[TaskGrade, ...]
    written: tuple[Written, ...]
    time: str

    @property
    def percent(self) -> float:
        """The automatic points won, in percent of all of them."""
        return 100 * self.score / self.max_score if self.max_score else 0.0

    def as_dict(self) -> dict[str, Any]:
        """The grade as plain data, in the form of a results file."""
        return {
            "lab": self.lab,
            "score": self.score,
            "max_score": self.max_score,
            "time": self.time,
            "tasks": [
                {
                    "id": task.id,
                    "title": task.title,
                    "score": task.score,
                    "max_score": task.max_score,
                    "note": task.note,
                    "properties": list(task.properties),
                }
                for task in self.tasks
            ],
            "written": [
                {"id": item.id, "max_score": item.max_score, "answered": item.answered}
                for item in self.written
            ],
        }


def locate(lab: str, notebook: str | os.PathLike[str] | None) -> Path:
    """The path of the notebook that is meant: a file, a folder that holds it, or by default the one in labs/.

    PlainError where there is no such file.
    """
    path = Path(notebook) if notebook is not None else labs.LABS / lab / f"{lab}.ipynb"
    try:
        path = path / f"{lab}.ipynb" if path.is_dir() else path
        found = path.is_file()
    except (OSError, ValueError):  # a name that no file can have
        found = False
    if not found:
        way = f"`python3 course.py reset {lab}` makes a fresh one." if notebook is None else "check its path."
        raise PlainError(f"There is no notebook at {str(path)[:300]}; {way}")
    return path


def read(lab: str, notebook: str | os.PathLike[str] | None) -> str:
    """The text of a notebook of `lab`, in nbformat 4.5. PlainError where it is missing, no notebook, or of
    another lab.
    """
    path = locate(lab, notebook)
    parsed = opened(path)
    owner = labs.lab_of(parsed)
    if owner != lab:
        whose = f"it belongs to {owner}" if owner else "it has none of the lab's cells"
        raise PlainError(f"{path} is not a notebook of {lab}: {whose}; give the notebook of {lab}.")
    return str(nbformat.writes(parsed))


def grade(lab: str, notebook: str | os.PathLike[str] | None = None, *, seed: str | None = None) -> Grade:
    """Grades one notebook of `lab`; without a path, the one in labs/.

    `seed` replays an attempt; without it each grade draws fresh cases. Nothing but a temporary folder and the
    private log of attempts is written. Raises PlainError for an unknown lab and for a file that is not a
    notebook of it.
    """
    labs.require(lab)
    text = read(lab, notebook)
    from .classroom import Classroom  # after the checks, since importing nbgrader takes seconds

    with Classroom(lab, seed) as classroom:
        classroom.generate()
        return grade_in(classroom, text, modules=sorted(locate(lab, notebook).parent.glob("*.py")))


def grade_in(classroom: Classroom, text: str, student: str = "you", modules: Sequence[Path] = ()) -> Grade:
    """Hands in a notebook, given as text, in a classroom whose assignment is made, and grades it.

    `modules` are the learner's Python files that lie beside it.
    """
    classroom.submit(student, text, modules)
    graded = nbformat.read(classroom.autograde(student), as_version=4)
    return _outcome(classroom.lab, graded, classroom.scores(student))


def released(lab: str) -> NotebookNode:
    """The notebook of `lab` as it is handed out, made from its source without a gradebook."""
    from nbgrader.preprocessors import ClearSolutions, ComputeChecksums
    from traitlets.config import Config

    from .settings import configure

    config = configure(Config(), labs.ROOT)
    source = labs.source(lab)
    notebook = nbformat.read(source / f"{lab}.ipynb", as_version=4)
    # In a student's copy the source is a released notebook: its stubs are no solutions to take out.
    if source.is_relative_to(labs.SOLUTIONS):
        notebook, _ = ClearSolutions(config=config).preprocess(notebook, {})
    return ComputeChecksums(config=config).preprocess(notebook, {})[0]


def rehearse(
    lab: str, notebook: NotebookNode, given: NotebookNode, modules: Sequence[Path] = ()
) -> tuple[Grade, NotebookNode]:
    """Grades a notebook on the open cases, without gradebook and log: the steps of a grade that look at the
    notebook, run on it directly, since making a gradebook takes as long as they do.

    `given` is the lab as `released`, `modules` the learner's Python files that lie beside the notebook. Also
    returns the notebook as it was run: its cells stay in their places, what was missing stands at the end.
    """
    from nbgrader.utils import determine_grade, is_grade

    from .classroom import MODULE_BYTES
    from .execute import GradedExecute
    from .restore import RestoreCells
    from .verdict import Judge

    log = logging.getLogger("glassbox.rehearsal")
    log.addHandler(logging.NullHandler())
    log.propagate = False  # what these steps log is meant for an instructor
    known = {
        cell.metadata.nbgrader.grade_id: {
            "source": cell.source,
            "cell_type": cell.cell_type,
            "metadata": cell.metadata.nbgrader,
        }
        for cell in given.cells
        if "nbgrader" in cell.metadata
    }
    ran = copy.deepcopy(notebook)
    RestoreCells(log=log).restore(ran, known)
    with tempfile.TemporaryDirectory(prefix="glassbox-open-", ignore_cleanup_errors=True) as folder:
        for module in modules:
            if module.is_file() and module.stat().st_size <= MODULE_BYTES:
                shutil.copy(module, folder)
        beside = shutil.ignore_patterns("*.ipynb", ".*", "__pycache__")
        shutil.copytree(labs.source(lab), folder, ignore=beside, dirs_exist_ok=True)
        resources: dict[str, Any] = {
            "nbgrader": {"assignment": lab, "notebook": lab, "student": "you"},
            "metadata": {"path": folder},
        }
        for step in (GradedExecute(log=log, seed=PUBLIC_SEED, attempt_log=""), Judge(log=log)):
            ran, resources = step.preprocess(ran, resources)
    graded = [cell for cell in ran.cells if is_grade(cell)]
    scores = {cell.metadata.nbgrader.grade_id: determine_grade(cell, log) for cell in graded}
    return _outcome(lab, ran, scores), ran


def _outcome(lab: str, graded: Any, scores: dict[str, tuple[float | None, float]]) -> Grade:
    tasks = []
    written = []
    for cell in graded.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name not in scores:
            continue
        score, most = scores[name]
        if cell.cell_type != "code" or cell.metadata.nbgrader.get("solution"):
            written.append(Written(name, most, answered=score is None))
            continue
        output = cell.outputs[0]
        record = output.metadata[report.KEY]
        tasks.append(
            TaskGrade(
                record["task"],
                record["title"],
                float(score or 0.0),
                most,
                record["note"],
                tuple(dict(item) for item in record["properties"]),
                record["text"],
                output.data["text/html"],
            )
        )
    return Grade(
        lab,
        round(sum(task.score for task in tasks), 2),
        sum(task.max_score for task in tasks),
        tuple(tasks),
        tuple(written),
        datetime.now(UTC).isoformat(timespec="seconds"),
    )
