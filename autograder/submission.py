"""A notebook file as a learner left it: bounded, repaired where that is possible, without outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
from nbformat.notebooknode import NotebookNode

from glassbox.tasks.plain import writable

from .errors import PlainError

FILE_BYTES = 100_000_000
"""The most that is read of a file; nbgrader's exchange takes no larger one."""
MOST_CHARACTERS = 10_000_000
MOST_CELLS = 2_000
"""What a notebook may hold, outputs apart. A lab is 50,000 characters in 60 cells; pictures pasted into text
count.
"""
MOST_NESTED = 50
METADATA = {
    "kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"},
    "language_info": {"name": "python"},
}


def opened(path: Path, bounded: bool = True) -> NotebookNode:
    """The notebook in a file, in nbformat 4.5, without outputs and without metadata other than nbgrader's.

    PlainError where the file is missing, holds no notebook, or, if `bounded`, one that is too large to grade.
    """
    data = _data(path)
    cells = [cell for cell in _cells(data) if isinstance(cell, dict)]
    for cell in cells:
        cell["metadata"] = _known(cell.get("metadata"))
        if cell.get("cell_type") == "code":
            cell.update(outputs=[], execution_count=None)
    data["metadata"] = dict(METADATA)
    try:
        text = writable(json.dumps(data, ensure_ascii=False))
        if bounded and (len(text) > MOST_CHARACTERS or len(cells) > MOST_CELLS):
            raise PlainError(
                f"{path} is too large to be graded ({len(cells):,} cells, {len(text):,} characters without "
                f"outputs): keep it below {MOST_CELLS:,} cells and {MOST_CHARACTERS:,} characters, then save "
                "it again."
            )
        _flat(data)
        parsed = nbformat.reads(text, as_version=4)
        nbformat.validator.normalize(parsed)
        nbformat.validate(parsed)
    except PlainError:
        raise
    except Exception as error:  # nbformat raises many kinds for the many ways in which a file is no notebook
        line = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise PlainError(
            f"{path} is not a valid notebook ({line}); save it again from JupyterLab."
        ) from error
    return parsed


def _data(path: Path) -> dict[str, Any]:
    name = str(path)[:300]
    try:
        if path.is_dir():
            raise PlainError(f"{path} is a folder; give the notebook that lies in it.")
        if not path.is_file():
            raise PlainError(f"There is no notebook at {name}; check its path.")
        size = path.stat().st_size
        if size > FILE_BYTES:
            raise PlainError(
                f"{name} is too large to be read ({size // 1_000_000} MB): clear its outputs, then save it "
                "again."
            )
        text = writable(path.read_bytes().decode("utf-8-sig"))
    except (OSError, ValueError) as error:
        raise PlainError(f"{name} could not be read ({error}); save it again from JupyterLab.") from error
    try:
        data = json.loads(text)
        if not isinstance(data, dict):
            raise ValueError("not an object")
    except (ValueError, RecursionError):
        raise PlainError(
            f"{path} is not a notebook: it holds no notebook's JSON; save it again from JupyterLab."
        ) from None
    return data


def _cells(data: dict[str, Any]) -> list[Any]:
    sheets = data.get("worksheets")  # where old notebooks have their cells
    first = sheets[0] if isinstance(sheets, list) and sheets else None
    cells = data.get("cells", first.get("cells") if isinstance(first, dict) else None)
    return cells if isinstance(cells, list) else []


def _known(metadata: Any) -> dict[str, Any]:
    """What counts of a cell's metadata: nbgrader's record, which holds nothing but plain values."""
    record = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    plain = isinstance(record, dict) and not any(isinstance(value, dict | list) for value in record.values())
    return {"nbgrader": record} if plain else {}


def _flat(data: Any) -> None:
    """ValueError where data is nested so deeply that nbgrader's recursions would not come to its end."""
    level = [data]
    for _ in range(MOST_NESTED):
        level = [
            item
            for value in level
            if isinstance(value, dict | list)
            for item in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return
    raise ValueError("it is nested too deeply")
