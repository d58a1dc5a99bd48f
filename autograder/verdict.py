"""The verdict in a check cell: a score where nbgrader looks for one, and the report behind it."""

from __future__ import annotations

import json
from typing import Any

from nbformat import validate
from nbformat.notebooknode import NotebookNode, from_dict
from nbgrader.preprocessors import NbGraderPreprocessor

from glassbox.tasks.plain import writable

from .cells import ANSI, is_check
from .execute import CELL_BYTES
from .judge import judge
from .report import Verdict


class Judge(NbGraderPreprocessor):
    """Writes the verdict on each check cell into its outputs, where nbgrader looks for a partial score. Fails
    closed.
    """

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict[str, Any], cell_index: int
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Replaces the outputs of a check cell by the score with its report, then what was printed."""
        if cell.cell_type != "code":
            return cell, resources
        cell.outputs = _sound(cell.outputs)
        if type(cell.execution_count) is not int:
            cell.execution_count = None
        if not is_check(cell):
            return cell, resources
        grade_id = cell.metadata.nbgrader["grade_id"]
        held = resources.get("glassbox", {})
        asked = held.get("sheets", {}).get(grade_id)
        problem = held.get("problems", {}).get(grade_id, "")
        printed = _printed(cell.outputs)
        if asked is None:
            verdict = Verdict.unknown(grade_id, problem or "the judge has no record of this cell")
            self.log.error("No record of the check cell %s; it scores 0.", grade_id)
        else:
            verdict = Verdict.of(judge(asked, held["attempt"], problem, printed))
        cell.outputs = verdict.outputs(float(cell.metadata.nbgrader["points"]))
        return cell, resources


def _sound(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """The outputs that a notebook may hold: valid, writable, and each within the limit on size.

    An update of a display, for one, does not pass where outputs are counted as they arrive.
    """
    kept = []
    for output in outputs:
        try:
            text = writable(json.dumps(output, ensure_ascii=False))
            fresh = from_dict(json.loads(text))
            validate(fresh, ref="output", version=4)
        except Exception:  # a kernel may send anything; what cannot be kept is left out
            continue
        if len(text) <= CELL_BYTES:
            kept.append(fresh)
    return kept


def _printed(outputs: list[NotebookNode]) -> str:
    """What a check cell printed, and its traceback, as text."""
    parts = [output.text for output in outputs if output.output_type == "stream"]
    parts += ["\n".join(output.traceback) for output in outputs if output.output_type == "error"]
    return ANSI.sub("", "".join(parts))[:4000]
