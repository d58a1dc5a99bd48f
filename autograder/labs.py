"""Where the labs are: the source in solutions/, what is handed out in labs/, and in a student's copy the
masters.
"""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any

from .errors import PlainError

ROOT = Path(__file__).resolve().parent.parent
SOLUTIONS = ROOT / "solutions"
LABS = ROOT / "labs"
MASTERS = ROOT / "autograder" / "masters"
RESULTS = ROOT / "results"


def known() -> list[str]:
    """The names of the labs that this copy of the course holds, such as "lab1_storage"."""
    source = SOLUTIONS if SOLUTIONS.is_dir() else MASTERS
    if not source.is_dir():
        return []
    return sorted(folder.name for folder in source.iterdir() if (folder / f"{folder.name}.ipynb").is_file())


def require(lab: str) -> str:
    """Returns `lab` where there is such a lab; PlainError with the known names otherwise."""
    names = known()
    if lab in names:
        return lab
    if not names:
        raise PlainError(
            f"There are no labs in {ROOT}: run this from a clone or a student's copy of the course."
        )
    close = difflib.get_close_matches(lab, names, n=1, cutoff=0.4)
    hint = f"did you mean {close[0]}?" if close else f"the labs are {', '.join(names)}."
    raise PlainError(f"There is no lab called {lab!r}; {hint}")


def source(lab: str) -> Path:
    """The folder that a gradebook is made from: the solutions, or in a student's copy the released master."""
    folder = SOLUTIONS / lab
    return folder if folder.is_dir() else MASTERS / lab


def grade_ids(notebook: dict[str, object]) -> set[str]:
    """The names under which cells of a notebook, given as JSON data, may be graded: grade ids, and cell ids,
    by which a cell is still known when its metadata got lost.
    """
    found: set[str] = set()
    cells = notebook.get("cells")
    for cell in cells if isinstance(cells, list) else []:
        metadata = cell.get("metadata", {}) if isinstance(cell, dict) else {}
        record = metadata.get("nbgrader") if isinstance(metadata, dict) else None
        names = [cell.get("id") if isinstance(cell, dict) else None]
        names.append(record.get("grade_id") if isinstance(record, dict) else None)
        found.update(name for name in names if isinstance(name, str))
    return found


def _graded(source: dict[str, Any]) -> set[str]:
    records = [cell["metadata"].get("nbgrader") for cell in source["cells"]]
    return {record["grade_id"] for record in records if record}


def lab_of(notebook: dict[str, object]) -> str | None:
    """The lab that most of a notebook's graded cells belong to; None where there is none."""
    mine = grade_ids(notebook)
    shared = {}
    for lab in known():
        path = source(lab) / f"{lab}.ipynb"
        shared[lab] = len(mine & _graded(json.loads(path.read_text(encoding="utf-8"))))
    best = max(shared, key=lambda lab: shared[lab], default=None)
    return best if best is not None and shared[best] else None
