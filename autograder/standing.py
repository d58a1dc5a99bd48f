"""Which grades stand: whether a submission was graded whole, and for the points that there are now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, MissingEntry

from .report import KEY
from .stamps import STAMP

NONE = "is not autograded yet"
CUT = "was not graded to its end"
POINTS = "was graded for other points than the lab has now"
AGAIN = "was handed in again since it was graded"


@dataclass(frozen=True)
class Ledger:
    """What the gradebook holds of a lab: the points of its checks, and what the judge gave each student."""

    lab: str
    points: Mapping[str, float] = field(default_factory=dict)
    given: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)


def ledger(book: Path, lab: str) -> Ledger:
    """Reads the gradebook in a file; one that is not there, or does not have the lab, holds nothing."""
    if not book.exists():
        return Ledger(lab)
    with Gradebook(f"sqlite:///{book}") as gradebook:
        try:
            notebook = gradebook.find_notebook(lab, lab)
        except MissingEntry:
            return Ledger(lab)
        by_hand = {cell.name for cell in notebook.solution_cells}
        checks = [cell for cell in notebook.grade_cells if cell.cell_type == "code"]
        return Ledger(
            lab,
            {cell.name: float(cell.max_score) for cell in checks if cell.name not in by_hand},
            {
                one.student.id: {grade.name: grade.auto_score for grade in one.grades}
                for one in notebook.submissions
            },
        )


def doubt(root: Path, student: str, held: Ledger) -> str:
    """Why there is no grade that counts of a student's submission, as words to be read after it: one of the
    constants above, or "" where the grade stands.

    A grading writes the judge's reports last, so they are what tells a whole one from one that was cut short.
    """
    graded, handed = (root / step / student / held.lab for step in ("autograded", "submitted"))
    given = held.given.get(student)
    if given is None or not graded.exists():
        return NONE
    records = _records(graded / f"{held.lab}.ipynb")
    judged = {name: record for name, record in records.items() if name in held.points}
    if any(given.get(name) != record.get("points") for name, record in judged.items()):
        return CUT
    if held.points and not judged:
        return CUT
    if {name: record.get("of") for name, record in judged.items()} != held.points:
        return POINTS
    return AGAIN if handed.exists() and _stamp(handed) != _stamp(graded) else ""


def _records(path: Path) -> dict[str, dict[str, Any]]:
    """The judge's reports in an autograded notebook, by the name of their cell."""
    found = {}
    try:
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            name = cell["metadata"].get("nbgrader", {}).get("grade_id")
            record = (cell.get("outputs") or [{}])[0].get("metadata", {}).get(KEY)
            if isinstance(name, str) and isinstance(record, dict):
                found[name] = record
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        return {}  # a file that was not written to its end, or by another program
    return found


def _stamp(folder: Path) -> str:
    try:
        return (folder / STAMP).read_text(encoding="utf-8").strip()
    except OSError:
        return ""
