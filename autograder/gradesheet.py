"""What the gradebook knows about one submitted notebook: points, a person's comments, when it came in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from nbgrader.api import Gradebook, MissingEntry

from .errors import PlainError


@dataclass(frozen=True)
class Mark:
    """The points of one cell. `auto` and `manual` are None where the judge, or a person, gave none; `pending`
    says that a person is still to read it.
    """

    auto: float | None
    manual: float | None
    score: float
    most: float
    pending: bool

    @property
    def top(self) -> float:
        """The points that there are, or were when a person gave more."""
        return max(self.most, self.manual or 0.0)


@dataclass(frozen=True)
class GradeSheet:
    """A submission as the gradebook has it. `total` is what counts, `penalty` points for lateness taken off
    it already; `late` is in seconds; `comments` are a person's, by the name of the cell they are on.
    """

    student: str
    total: float
    most: float
    penalty: float
    handed_in: datetime | None
    late: float
    marks: Mapping[str, Mark]
    comments: Mapping[str, str]


def read(place: Mapping[str, Any]) -> GradeSheet:
    """Reads the gradebook. `place` names db_url, assignment, notebook and student, as nbgrader's steps do.

    PlainError where the gradebook does not have this submission.
    """
    with Gradebook(place["db_url"]) as gradebook:
        try:
            notebook = gradebook.find_submission_notebook(
                place["notebook"], place["assignment"], place["student"]
            )
        except MissingEntry:
            raise PlainError(
                f"The gradebook has no submission of {place['assignment']} by {place['student']}; "
                "autograde it first."
            ) from None
        submission = notebook.assignment
        due = submission.assignment.duedate  # a submission's own property fails where there is none
        penalty = float(notebook.late_submission_penalty or 0)
        handed_in = submission.timestamp
        return GradeSheet(
            student=place["student"],
            total=float(notebook.score) - penalty,
            most=float(notebook.max_score),
            penalty=penalty,
            handed_in=handed_in.replace(tzinfo=UTC) if handed_in else None,
            late=float(submission.total_seconds_late) if due else 0.0,
            marks={
                grade.name: Mark(
                    grade.auto_score,
                    grade.manual_score,
                    float(grade.score),
                    float(grade.max_score),
                    bool(grade.needs_manual_grade),
                )
                for grade in notebook.grades
            },
            comments={
                comment.name: comment.manual_comment
                for comment in notebook.comments
                if (comment.manual_comment or "").strip()
            },
        )
