"""The feedback page: the judge's reports, the gradebook's points, a person's comments, the learner's work."""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path
from typing import Any

from nbconvert.exporters import Exporter
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_solution
from traitlets import default

from glassbox.start import in_words

from . import gradesheet, pages, prose
from .cells import ANSI, is_check, task_id
from .gradesheet import GradeSheet, Mark
from .grading import TaskGrade
from .report import KEY
from .stamps import span

STALE = "graded before the points were changed; ask your instructor to grade it again"
CELL = 4_000
REST = 60_000
"""Characters that the page shows of one cell outside the tasks, and of all of them together."""


class FeedbackExporter(Exporter):
    """Turns an autograded notebook into its feedback page; nbgrader's GenerateFeedback calls it.

    It is no HTMLExporter, so that the template which Formgrader asks for does not matter.
    """

    output_mimetype = "text/html"

    @default("file_extension")
    def _file_extension_default(self) -> str:
        return ".html"

    def from_notebook_node(
        self, nb: NotebookNode, resources: Any = None, **kw: Any
    ) -> tuple[str, dict[str, Any]]:
        """Returns the page, and the resources that nbgrader's writer needs."""
        resources = self._init_resources(resources)
        place = resources["nbgrader"]
        self._make_room(place)
        return page(nb, gradesheet.read(place), place["assignment"]), resources

    def _make_room(self, place: dict[str, str]) -> None:
        """Takes away what a learner handed in under the page's name: nbgrader has just copied it, closed to
        writing, to where the page goes.
        """
        if self.parent is None:
            return
        folder = self.parent.coursedir.format_path(
            self.parent.coursedir.feedback_directory, place["student"], place["assignment"]
        )
        found = Path(folder, f"{place['notebook']}{self.file_extension}")
        if found.is_dir():
            shutil.rmtree(found)
        else:
            found.unlink(missing_ok=True)


def page(notebook: NotebookNode, sheet: GradeSheet, lab: str) -> str:
    """The feedback on an autograded notebook of `lab` as one HTML page that needs nothing else."""
    cells = {_name(cell): cell for cell in notebook.cells if _name(cell)}
    master = pages.master(lab)
    order = [_name(cell) for cell in (master or notebook).cells]
    names = sorted(cells, key=lambda name: order.index(name) if name in order else len(order))
    graded = [name for name in names if name in sheet.marks]
    checks = {name: task(cells[name], sheet.marks[name], lab) for name in graded if is_check(cells[name])}
    answers = [name for name in graded if is_solution(cells[name])]
    pieces = {name: name.removeprefix("check_") for name in checks}
    told = {*answers, *checks, *pieces.values()}
    tasks = list(checks.values())
    return pages.document(
        pages.title(lab),
        " · ".join([f"Feedback for {sheet.student}", *_handed_in(sheet)]),
        _late(sheet),
        _scores(sheet, tasks, answers),
        pages.standing(tasks),
        pages.contents(tasks, "".join(_entry(name, sheet.marks[name]) for name in answers)),
        *(
            pages.section(
                checks[name],
                _comment(sheet, name, piece),
                _printed(cells[name]) + _work(cells.get(piece), checks[name]),
            )
            for name, piece in pieces.items()
        ),
        *(_answer(cells[name], sheet, _question(master or notebook, name)) for name in answers),
        *(
            pages.remark(text, f"From your instructor, on {name}")
            for name, text in sheet.comments.items()
            if name not in told
        ),
        _rest([cell for cell in notebook.cells if _name(cell) not in told]),
    )


def task(cell: NotebookNode, mark: Mark, lab: str) -> TaskGrade:
    """One task as the judge reported it in its check cell, with the points that the gradebook counts.

    Only a report that is worth what the gradebook has from the judge is taken for the judge's.
    """
    name = _name(cell)
    output = cell.outputs[0] if cell.outputs else {}
    record = output.get("metadata", {}).get(KEY)
    identity = task_id(lab, name)
    if not isinstance(record, dict) or record.get("points") != mark.auto:
        note = "the judge's report is missing; ask your instructor to autograde it again"
        about = pages.known(identity)
        title, most = about.title if about else name, max(mark.top, mark.auto or 0.0)
        return TaskGrade(identity, title, mark.score, most, note, (), "", "")
    notes = [record["note"]] if record["note"] else []
    if mark.manual is not None:
        earlier = " for an earlier version" if mark.pending else ""
        notes.insert(
            0, f"{mark.manual:g} points given by your instructor{earlier}, {mark.auto:g} by the judge"
        )
    if mark.score != (mark.auto if mark.manual is None else mark.manual):
        notes.insert(0, "with extra points from your instructor")
    most = max(float(record["of"]), mark.manual or 0.0)
    if most != mark.most:
        notes.insert(0, STALE)
    return TaskGrade(
        identity,
        record["title"],
        mark.score,
        most,
        "; ".join(notes),
        tuple(record["properties"]),
        record["text"],
        output["data"]["text/html"],
    )


def _name(cell: NotebookNode) -> str:
    return str(cell.metadata.get("nbgrader", {}).get("grade_id", ""))


def _handed_in(sheet: GradeSheet) -> list[str]:
    if sheet.handed_in is None:
        return []
    return [f"handed in on {in_words(sheet.handed_in.isoformat())} {sheet.handed_in.astimezone():%Z}".strip()]


def _late(sheet: GradeSheet) -> str:
    if not sheet.late:
        return ""
    cost = (
        f" {sheet.penalty:g} points are taken off for that." if sheet.penalty else " No points are taken off."
    )
    return f'<p class="late">Handed in {span(sheet.late)} after the due date.{cost}</p>'


def _scores(sheet: GradeSheet, tasks: list[TaskGrade], answers: list[str]) -> str:
    marks = [sheet.marks[name] for name in answers]
    waiting = any(mark.pending for mark in marks)
    known = [mark.score for mark in marks if not (mark.pending and mark.manual is None)]
    written = pages.worth(
        "Written answer" if len(marks) == 1 else "Written answers",
        sum(known) if known else None,
        sum(mark.top for mark in marks),
        _state(marks[0]) if len(marks) == 1 else "not all graded yet" if waiting else "",
    )
    stale = any(STALE in one.note for one in tasks) or any(mark.top > mark.most for mark in marks)
    most = sum(one.max_score for one in tasks) + sum(mark.top for mark in marks) if stale else sheet.most
    late = (
        f"{sheet.total + sheet.penalty:g} less {sheet.penalty:g} for handing in late" if sheet.penalty else ""
    )
    remark = ", ".join(part for part in (STALE if stale else "", late, "so far" if waiting else "") if part)
    return pages.scores(
        pages.worth("Automatic points", sum(one.score for one in tasks), sum(one.max_score for one in tasks)),
        written if marks else "",
        pages.worth("Total", sheet.total, most, remark),
    )


def _state(mark: Mark) -> str:
    """How a written answer stands, in words; "" where it was read and graded."""
    if mark.top > mark.most:
        return STALE
    if mark.manual is not None:
        return "points for an earlier version; this one is still to be read" if mark.pending else ""
    return "not graded yet" if mark.pending or mark.auto is None else "not answered"


def _entry(name: str, mark: Mark) -> str:
    kind = "soft" if mark.manual is None else "good" if mark.score >= mark.top else "part"
    sign = pages.sign("✎", _state(mark) or "read and graded", kind)
    return pages.entry(name, "Written answer", sign, _known(mark), mark.top, _state(mark))


def _known(mark: Mark) -> float | None:
    return None if mark.manual is None and mark.pending else mark.score


def _question(notebook: NotebookNode, name: str) -> tuple[str, str]:
    """The heading and the text of the question before an answer's cell."""
    before = ""
    for cell in notebook.cells:
        if _name(cell) == name:
            break
        if cell.cell_type == "markdown":
            before = cell.source
    found = re.match(r"#+ +(.+?)(?: *\(.*\))?\n", before)
    return (found[1], before[found.end() :]) if found else ("Written answer", before)


def _answer(cell: NotebookNode, sheet: GradeSheet, question: tuple[str, str]) -> str:
    name = _name(cell)
    mark, state = sheet.marks[name], _state(sheet.marks[name])
    if state == "not answered":
        answer = '<p class="soft">You left this one unanswered.</p>'
    elif not cell.source.strip():
        answer = '<p class="soft">Your answer is empty.</p>'
    else:
        words = prose.code(cell.source) if cell.cell_type == "code" else prose.markdown(cell.source)
        answer = f'<p class="soft">Your answer</p><div class="words">{words}</div>'
    told = mark.pending or state == STALE
    waiting = f'<p class="soft">{html.escape(state.capitalize())}.</p>' if told else ""
    kind = "soft" if mark.manual is None else "good" if mark.score >= mark.top else "part"
    return pages.part(
        name,
        pages.sign("✎", "written answer", kind),
        question[0],
        _known(mark),
        mark.top,
        prose.markdown(question[1]) + answer + waiting + _comment(sheet, name),
    )


def _comment(sheet: GradeSheet, *names: str) -> str:
    return "".join(pages.remark(sheet.comments[name]) for name in names if name in sheet.comments)


def _printed(cell: NotebookNode) -> str:
    text = "".join(output.text for output in cell.outputs[1:] if output.output_type == "stream")
    return pages.folded("What your code printed while it was checked", prose.printed(text)) if text else ""


def _work(cell: NotebookNode | None, graded: TaskGrade) -> str:
    if cell is None or graded.note == pages.UNWRITTEN:
        return ""
    said = _said(cell)
    return pages.folded("Your code", prose.code(cell.source) + (prose.printed(said) if said else ""))


def _said(cell: NotebookNode) -> str:
    """What a cell printed, showed as text and raised."""
    parts = []
    for output in cell.outputs:
        if output.output_type == "stream":
            parts.append(output.text)
        elif output.output_type == "error":
            parts.append("\n".join(output.traceback) or f"{output.ename}: {output.evalue}")
        else:
            parts.append(output.data.get("text/plain", ""))
    return prose.cut(ANSI.sub("", "\n".join(part.rstrip("\n") for part in parts if part)), CELL)


def _rest(cells: list[NotebookNode]) -> str:
    """The notebook's other code as it ran, as far as there is room for it."""
    ran = [cell for cell in cells if cell.cell_type == "code" and cell.source.strip()]
    failed = sum(any(output.output_type == "error" for output in cell.outputs) for cell in ran)
    room, parts = REST, []
    for cell in ran:
        source, said = prose.cut(cell.source, CELL), _said(cell)
        room -= len(source) + len(said)
        if room < 0:
            parts.append('<p class="soft">The cells after this one are left out, to keep the page short.</p>')
            break
        parts.append(prose.code(source) + (prose.printed(said) if said else ""))
    if not ran:
        return ""
    count = f"{len(ran)} cells" if len(ran) > 1 else "1 cell"
    errors = f", {failed} with an error" if failed else ""
    shown = pages.folded(f"The rest of your notebook as it ran: {count}{errors}", "".join(parts))
    return f"<section>{shown}</section>"
