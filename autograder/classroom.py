"""A course folder of its own: nbgrader's own steps, run in a temporary place, so that nothing else is
touched.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from nbgrader.apps import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from . import labs
from .settings import configure

HAND_OUT_ONLY = {"ClearSolutions", "ClearMarkScheme"}
MODULE_BYTES = 1_000_000
MARKS = ("NBGRADER_EXECUTION", "NBGRADER_VALIDATING")


class StepError(RuntimeError):
    """A step of nbgrader failed; the message holds its log."""


class Classroom:
    """A temporary course with one lab in its gradebook; use it as a context manager."""

    def __init__(self, lab: str, seed: str | None = None) -> None:
        self.lab = lab
        self._folder = tempfile.TemporaryDirectory(prefix="glassbox-course-", ignore_cleanup_errors=True)
        self.root = Path(self._folder.name).resolve()
        config = configure(Config(), self.root)
        config.NbGraderAPI.log_level = "ERROR"
        if seed:
            config.GradedExecute.seed = seed
        source = labs.source(lab)
        if not source.is_relative_to(labs.SOLUTIONS):
            # A released notebook becomes an assignment as it is: its stubs are no solutions to take out.
            config.GenerateAssignment.preprocessors = _without_clearing()
        shutil.copytree(
            source, self.root / "solutions" / lab, ignore=shutil.ignore_patterns(".*", "__pycache__")
        )
        self._api = NbGraderAPI(CourseDirectory(config=config), config=config)

    def __enter__(self) -> Classroom:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()

    def generate(self) -> Path:
        """Makes the assignment; returns the folder with what students get."""
        self._do("generate_assignment", self._api.generate_assignment(self.lab))
        return self.root / "labs" / self.lab

    def submit(self, student: str, notebook: str, modules: Sequence[Path] = ()) -> None:
        """Hands in a notebook, given as text, for `student`, with the Python files that lie beside it."""
        folder = self.root / "submitted" / student / self.lab
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.lab}.ipynb").write_text(notebook, encoding="utf-8")
        for module in modules:
            if module.is_file() and module.stat().st_size <= MODULE_BYTES:
                shutil.copy(module, folder)

    def autograde(self, student: str) -> Path:
        """Grades the submission of `student`; returns the graded notebook."""
        with environment_kept():
            self._do("autograde", self._api.autograde(self.lab, student))
        return self.root / "autograded" / student / self.lab / f"{self.lab}.ipynb"

    def scores(self, student: str) -> dict[str, tuple[float | None, float]]:
        """What the gradebook holds for each graded cell: the automatic score (None: by hand) and the most
        there is.
        """
        with self._api.gradebook as gradebook:
            submission = gradebook.find_submission_notebook(self.lab, self.lab, student)
            return {
                grade.name: (None if grade.needs_manual_grade else grade.auto_score, float(grade.max_score))
                for grade in submission.grades
            }

    def _do(self, step: str, result: dict[str, Any]) -> None:
        if result["success"]:
            return
        log = result.get("log") or result.get("error") or ""
        if "Canceled" in log or "KeyboardInterrupt" in log:
            raise KeyboardInterrupt  # nbgrader takes an interrupt for a failure of its own
        raise StepError(f"nbgrader {step} failed for {self.lab}:\n{log}")


@contextmanager
def environment_kept() -> Iterator[None]:
    """Afterwards this process's environment is as it was: nbgrader leaves marks in it where a step fails, by
    which a later `check` would take itself for one that is graded.
    """
    before = {name: os.environ.get(name) for name in MARKS}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _without_clearing() -> list[type]:
    from nbgrader.converters import GenerateAssignment

    return [step for step in GenerateAssignment.preprocessors.default() if step.__name__ not in HAND_OUT_ONLY]
