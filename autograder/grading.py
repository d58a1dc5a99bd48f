"""Grading one notebook: nbgrader's own steps in a temporary course, the judge inside them, the outcome as
data.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat

from glassbox.tasks.plain import writable

from . import labs, report
from .errors import PlainError

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
    try:
        text = writable(path.read_bytes().decode("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise PlainError(f"{path} could not be read ({error}); save it again from JupyterLab.") from error
    try:
        data = json.loads(text)
        if not isinstance(data, dict):
            raise ValueError("not an object")
    except (ValueError, RecursionError):
        raise PlainError(
            f"{path} is not a notebook: it holds no notebook's JSON; save it again from JupyterLab."
        ) from None
    try:
        parsed = nbformat.reads(writable(json.dumps(data, ensure_ascii=False)), as_version=4)
        nbformat.validator.normalize(parsed)
        nbformat.validate(parsed)
    except Exception as error:  # nbformat raises many kinds for the many ways in which a file is no notebook
        line = (str(error).splitlines() or [type(error).__name__])[0]
        raise PlainError(
            f"{path} is not a valid notebook ({line}); save it again from JupyterLab."
        ) from error
    owner = labs.lab_of(data)
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
