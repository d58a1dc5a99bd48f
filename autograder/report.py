"""The verdict in the form in which nbgrader keeps and shows it: a score that it reads, a report that people
read.
"""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_output

from glassbox.tasks import show

from .judge import Report

KEY = "glassbox"


def heading(report: Report) -> str:
    """One line: the task, its points, and what is to be said first."""
    line = f"{report.task.title}: {report.points:g} of {report.of:g} points"
    return f"{line} ({report.note})" if report.note else line


def as_text(report: Report) -> str:
    """The report for a terminal."""
    if not report.answered:
        return heading(report)
    return show.as_text(report.task, report.results, heading(report))


def as_html(report: Report) -> str:
    """The report as HTML without scripts; all that came from the submission is escaped."""
    if not report.answered:
        return f"<p><strong>{html.escape(heading(report))}</strong></p>"
    return show.as_html(report.task, report.results, heading(report))


@dataclass(frozen=True)
class Verdict:
    """What goes into a check cell's outputs."""

    points: float
    html: str
    record: dict[str, Any]
    printed: str

    @classmethod
    def of(cls, report: Report) -> Verdict:
        """The verdict on a task that the judge knows."""
        return cls(
            report.points, as_html(report), {**report.as_dict(), "text": as_text(report)}, report.printed
        )

    @classmethod
    def unknown(cls, grade_id: str, why: str) -> Verdict:
        """The verdict on a cell of which there is no record: nothing."""
        line = f"{grade_id}: 0 points ({why})"
        record = {
            "v": 1,
            "task": grade_id,
            "title": grade_id,
            "points": 0.0,
            "note": why,
            "properties": [],
            "text": line,
        }
        return cls(0.0, f"<p><strong>{html.escape(line)}</strong></p>", record, "")

    def outputs(self, points: float) -> list[NotebookNode]:
        """The cell's outputs: nbgrader reads the first result's text as the score, and refuses one above
        `points`.
        """
        known = float(self.record.get("of", points))
        score = points if self.points >= known else min(max(self.points * points / known, 0.0), points)
        result = new_output(
            "execute_result",
            data={"text/plain": repr(round(score, 4)), "text/html": self.html},
            metadata={KEY: {**self.record, "points": round(score, 4), "of": points}},
            execution_count=None,
        )
        stream = [new_output("stream", name="stdout", text=self.printed)] if self.printed else []
        return [result, *stream]
