"""Validate: the judge on the open cases, told to the learner in the notebook's dialog or in the terminal.

`python -m autograder.validating NOTEBOOK` prints what the Validate button's dialog reads, and nothing else.
"""

from __future__ import annotations

import html
import json
import os
import re
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbformat.notebooknode import NotebookNode

from glassbox.tasks import catalogue

from . import grading, labs
from .cells import runs
from .errors import PlainError
from .grading import TaskGrade

STYLE = """
#validation-message > div > p { display: none; }
#validation-message > .jp-RenderedText {
  padding: 0; font-family: var(--jp-ui-font-family); line-height: 1.5;
}
#validation-message > .jp-RenderedText > pre {
  border: none; margin: 0; padding: 0; white-space: normal; font-family: inherit;
  font-size: var(--jp-content-font-size1, 14px); color: var(--jp-ui-font-color1);
}
#validation-message > .jp-RenderedText:nth-child(2) > pre { font-size: 1.2em; font-weight: 600; }
#validation-message .glassbox-validation p { margin: .6em 0; padding: 0; }
#validation-message .glassbox-validation section {
  margin: 1em 0; padding-top: .5em; border-top: 1px solid var(--jp-border-color2); overflow-x: auto;
}
#validation-message .glassbox-validation section + p {
  padding-top: 1em; border-top: 1px solid var(--jp-border-color2);
}
#validation-message .glassbox-validation code { font-family: var(--jp-code-font-family); font-size: .93em; }
.jp-Dialog-content:has(#validation-message .glassbox-validation section) {
  width: min(60rem, 92vw); max-height: 88vh;
}
"""
"""nbgrader's dialog opens with a sentence on one failed cell and shows what follows as code: not so here."""

UNANSWERED = (
    "The written question: not answered yet. It is graded by hand and counted apart; the pieces do not "
    "depend on it."
)
FRESH = (
    "These are the open cases, the ones that `check` shows. A grade draws fresh cases, so a piece that fits "
    "only these will not hold there."
)


@dataclass(frozen=True)
class Finding:
    """What was found in a notebook of a lab; `words` are sentences that are no failure of a piece."""

    lab: str
    failing: tuple[TaskGrade, ...]
    unwritten: tuple[TaskGrade, ...]
    holding: tuple[TaskGrade, ...]
    words: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """True where every piece holds."""
        return not self.failing and not self.unwritten

    @property
    def begun(self) -> bool:
        """True where any piece was written."""
        return bool(self.failing or self.holding)

    @property
    def summary(self) -> str:
        """How it stands, in one line."""
        if not self.begun:
            return "Nothing is written yet"
        count = len(self.failing) + len(self.unwritten) + len(self.holding)
        if self.holds:
            return f"Success: all {count} pieces hold on the open cases"
        return f"{len(self.holding)} of {count} pieces hold on the open cases"

    def sentences(self) -> list[str]:
        """What there is to say after the reports on what fails."""
        if not self.begun:
            first = self.unwritten[0]
            begin = f"Begin with “{first.title}”: write `{_function(first)}` and run the check below it."
            return [begin, *self.words]
        said = []
        if self.unwritten:
            said.append(f"Not written yet: {_names(self.unwritten)}.")
        if self.holding and not self.holds:
            said.append(f"These hold: {_names(self.holding)}.")
        return [*said, *self.words, FRESH]


def examine(path: Path) -> Finding | None:
    """Tries the pieces of a notebook on the open cases; None where it is a notebook of none of the labs.

    PlainError where there is no such file, or no notebook in it.
    """
    notebook = grading.opened(path)
    lab = labs.lab_of(notebook)
    if lab is None:
        return None
    given = grading.released(lab)
    grade, ran = grading.rehearse(lab, notebook, given, sorted(path.parent.glob("*.py")))
    holding = tuple(task for task in grade.tasks if task.score == task.max_score)
    unwritten = tuple(task for task in grade.tasks if task.note == "not written yet")
    failing = tuple(task for task in grade.tasks if task not in holding and task not in unwritten)
    words = [*_repaired(lab, notebook, ran, given), *_troubles(ran, given, bool(failing))]
    if any(not item.answered for item in grade.written):
        words.append(UNANSWERED)
    return Finding(lab, failing, unwritten, holding, tuple(words))


def validate(path: Path) -> dict[str, Any]:
    """What the dialog of the Validate button reads: {"success": True, "value": {...}}, or False with a
    sentence, whatever went wrong.

    A notebook that is none of our labs' is left to nbgrader's own Validator.
    """
    try:
        found = examine(path)
        return {"success": True, "value": _by_nbgrader(path) if found is None else _dialog(found)}
    except PlainError as error:
        return {"success": False, "value": str(error)}
    except Exception as error:  # for the server's log; the dialog is owed a sentence
        traceback.print_exc()
        line = (str(error).splitlines() or [""])[0][:200]
        said = f"Validating {path} stopped ({type(error).__name__}: {line}); your notebook is unchanged."
        return {"success": False, "value": f"{said} Try again; if it stays so, tell your instructor."}


def _dialog(found: Finding) -> dict[str, Any]:
    if found.holds and not found.words:
        return {}
    return {"failed": [{"source": found.summary, "error": as_html(found)}]}


def as_html(found: Finding) -> str:
    """The finding as HTML without scripts, to be put into the dialog; all that came from the notebook is
    escaped.
    """
    sections = "".join(f"<section>{task.html}</section>" for task in found.failing)
    said = [re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(text)) for text in found.sentences()]
    paragraphs = "".join(f"<p>{text}</p>" for text in said)
    return f'<div class="glassbox-validation"><style>{STYLE}</style>{sections}{paragraphs}</div>'


def as_text(found: Finding) -> str:
    """The finding for a terminal."""
    parts = [f"{found.lab}: {found.summary}", *(task.text for task in found.failing)]
    return "\n\n".join([*parts, "\n".join(found.sentences())])


def _function(task: TaskGrade) -> str:
    try:
        return catalogue.find(task.id).function
    except KeyError:
        return task.id


def _names(tasks: tuple[TaskGrade, ...]) -> str:
    return ", ".join(f"`{_function(task)}`" for task in tasks)


def _repaired(lab: str, notebook: NotebookNode, ran: NotebookNode, given: NotebookNode) -> list[str]:
    """What the judge put back, and which pieces' cells are gone: it cannot know what stood in those."""
    count = len(notebook.cells)
    changed = [
        _grade_id(after)
        for before, after in zip(notebook.cells, ran.cells, strict=False)
        if (before.cell_type, before.source.replace("\r\n", "\n")) != (after.cell_type, after.source)
    ]
    added = [_grade_id(cell) for cell in ran.cells[count:]]
    there = {_grade_id(cell) for cell in ran.cells}
    gone = [name for cell in given.cells if (name := _grade_id(cell)) and name not in there]
    said = []
    if changed:
        said.append(f"Changed: {_cells(changed)}; the judge reads what was handed out instead.")
    if added:
        said.append(f"Deleted: {_cells(added)}; the judge puts back what was handed out.")
    if gone:
        said.append(
            f"Not in your notebook: {_cells(gone)}, so there is nothing to try. Put it back, or get the "
            f"present lab with `python3 course.py reset {lab}`, which keeps your copy aside."
        )
    return said


def _cells(names: list[str]) -> str:
    return ("the cell " if len(names) == 1 else "the cells ") + ", ".join(f"`{name}`" for name in names)


def _grade_id(cell: NotebookNode) -> str:
    return str(cell.metadata.get("nbgrader", {}).get("grade_id", ""))


def _troubles(ran: NotebookNode, given: NotebookNode, failing: bool) -> list[str]:
    """What happened to cells that are no pieces: what stopped them, and what the learner's own ones raised
    where that may explain a failure.
    """
    from .execute import STOPPED, trouble

    ours = {cell.source for cell in given.cells}
    said = []
    for cell in ran.cells:
        if not runs(cell) or _grade_id(cell):
            continue
        kind, what = trouble(cell)
        explains = failing and cell.source not in ours and kind != "UnpluggedError"
        if what and (kind in STOPPED or explains):
            line = cell.source.strip().splitlines()[0].replace("`", "'")[:80]
            said.append(f"The cell that begins with `{line}` {what[:300]}.")
    return said


def _by_nbgrader(path: Path) -> dict[str, Any]:
    from nbgrader.apps import NbGrader
    from nbgrader.nbgraderformat import SchemaTooNewError, SchemaTooOldError
    from nbgrader.validator import Validator

    if not any(cell.metadata.get("nbgrader") for cell in grading.opened(path).cells):
        raise PlainError(f"{path.name} is no lab: there is nothing in it to validate.")
    app = NbGrader()
    app.load_config_file()
    try:
        return dict(Validator(config=app.config).validate(str(path.resolve())))
    except SchemaTooOldError as error:
        way = f"keep a copy, then run `python3 course.py nbgrader update {path}`."
        raise PlainError(f"{path} was made for an older nbgrader; {way}") from error
    except SchemaTooNewError as error:
        raise PlainError(f"{path} was made for a newer nbgrader; update the course.") from error


def main(arguments: list[str] | None = None) -> int:
    """Prints the dialog's JSON for one notebook; returns 0. What anything else prints goes to stderr."""
    (path,) = sys.argv[1:] if arguments is None else arguments
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answer:
        os.dup2(2, 1)
        json.dump(validate(Path(path)), answer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
