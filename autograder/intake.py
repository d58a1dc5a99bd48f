"""Reading a submission for nbgrader's Autograde, whose own reading stops at metadata of a wrong kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nbconvert.exporters import NotebookExporter
from nbformat.notebooknode import NotebookNode

from .submission import opened

CELL_TEXT = 20_000
"""Characters of a cell of text that are kept: a page shows them, and the time that takes may grow with the
square of the length.
"""


class SubmissionExporter(NotebookExporter):
    """Reads what was handed in with repairs. Long texts are cut, and say so."""

    def from_filename(
        self, filename: str, resources: dict[str, Any] | None = None, **kw: Any
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Converts the notebook in a file. Autograde gives each one twice: as handed in, and as repaired."""
        path = Path(filename)
        notebook = opened(path, bounded=False)
        for cell in notebook.cells:
            if cell.cell_type != "code" and len(cell.source) > CELL_TEXT:
                told = f"*Cut for grading: {len(cell.source):,} characters are too many.*\n\n"
                cell.source = told + cell.source[: CELL_TEXT - len(told)]
        place = {"name": path.stem, "path": str(path.parent)}
        return self.from_notebook_node(notebook, {**(resources or {}), "metadata": place}, **kw)
