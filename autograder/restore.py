"""Repairing a submission: its cells become again what was handed out; what the learner wrote is kept."""

from __future__ import annotations

import copy
import json
from typing import Any

from nbformat.notebooknode import NotebookNode, from_dict
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor

from glassbox.tasks.plain import writable


class RestoreCells(NbGraderPreprocessor):
    """Brings a submission's cells back to what was handed out, whatever was done to their metadata.

    Cells are known by their grade id, or by their cell id where the metadata is gone. Check cells get their
    source, place in the gradebook and points back; a missing one is put at the end; of several copies the
    last one stays. Tags go, since one of them would keep a cell from running.
    """

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """Repairs the notebook."""
        nb = from_dict(json.loads(writable(json.dumps(nb, ensure_ascii=False))))
        place = resources["nbgrader"]
        with Gradebook(place["db_url"]) as gradebook:
            notebook = gradebook.find_notebook(place["notebook"], place["assignment"])
            points = {cell.name: float(cell.max_score) for cell in notebook.grade_cells}
            solutions = {cell.name for cell in notebook.solution_cells}
            known = {
                source.name: {
                    "source": source.source,
                    "cell_type": source.cell_type,
                    "metadata": {
                        "schema_version": 3,
                        "grade_id": source.name,
                        "grade": source.name in points,
                        "solution": source.name in solutions,
                        "locked": bool(source.locked),
                        "task": False,
                        "cell_type": source.cell_type,
                        "checksum": source.checksum,
                        **({"points": points[source.name]} if source.name in points else {}),
                    },
                }
                for source in notebook.source_cells
            }
        self.restore(nb, known)
        return nb, resources

    def restore(self, nb: NotebookNode, known: dict[str, dict[str, Any]]) -> None:
        """The repair itself; `known` maps grade ids to source, cell type and metadata as handed out."""
        seen: set[str] = set()
        for place in range(len(nb.cells) - 1, -1, -1):
            cell = nb.cells[place]
            cell.metadata.pop("tags", None)
            cell.source = cell.source.replace("\r\n", "\n")
            name = _name(cell, known)
            cell.metadata.pop("nbgrader", None)
            if name is None or name in seen:
                continue
            seen.add(name)
            given = known[name]
            if given["metadata"]["locked"] or cell.cell_type != given["cell_type"]:
                source = given["source"] if given["metadata"]["locked"] else cell.source
                cell = _new_cell(given["cell_type"], source, cell.get("id"))
                nb.cells[place] = cell
            cell.metadata["nbgrader"] = copy.deepcopy(given["metadata"])
        for name, given in known.items():
            if name not in seen and given["metadata"]["grade"]:
                self.log.warning("The cell %s was missing; it is put back at the end.", name)
                cell = _new_cell(given["cell_type"], given["source"], None)
                cell.metadata["nbgrader"] = copy.deepcopy(given["metadata"])
                nb.cells.append(cell)


def _name(cell: NotebookNode, known: dict[str, dict[str, Any]]) -> str | None:
    metadata = cell.metadata.get("nbgrader")
    name = metadata.get("grade_id") if isinstance(metadata, dict) else None
    for candidate in (name, cell.get("id")):
        if isinstance(candidate, str) and candidate in known:
            return candidate
    return None


def _new_cell(cell_type: str, source: str, identity: str | None) -> NotebookNode:
    make = new_code_cell if cell_type == "code" else new_markdown_cell
    return make(source, id=identity) if identity else make(source)
