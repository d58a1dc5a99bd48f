"""What the notebook tests read: cells, headings, links, asserts, predictions. No test lives here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)")
_PASTED = re.compile(r"^\s*(>>>|In \[|Out\[|Traceback \(most recent|tensor\(|\w*Error: )", re.MULTILINE)


@dataclass(frozen=True)
class Prediction:
    """One `predict(...)` call: its expression, its choices (None: a text field) and its reason."""

    cell: str
    expression: str
    choices: tuple[Any, ...] | None
    because: str


def load(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=nbformat.NO_CONVERT)


def code(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def prose(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "markdown"]


def answers(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """Cells that hold the answer to a puzzle which the reader is to solve first."""
    return [cell for cell in code(notebook) if cell.id.endswith("-answer")]


def lines_of_code(source: str) -> int:
    return sum(1 for line in source.splitlines() if line.strip())


def headings(notebook: nbformat.NotebookNode) -> list[tuple[int, str]]:
    """(level, text) of every heading in order; what stands in a code fence is none."""
    text = "\n".join(_FENCE.sub("", cell.source) for cell in prose(notebook))
    return [(len(marks), title) for marks, title in re.findall(r"^(#+) +(.+)$", text, re.MULTILINE)]


def links(notebook: nbformat.NotebookNode) -> list[str]:
    """Targets of links and pictures in the prose."""
    return [target for cell in prose(notebook) for target in _LINK.findall(_FENCE.sub("", cell.source))]


def pasted_output(text: str) -> bool:
    """Whether prose holds what looks like a cell's output or a session's prompt."""
    return bool(_PASTED.search(text))


def asserts(source: str) -> Iterator[ast.Assert]:
    return (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assert))


def cannot_fail(test: ast.expr) -> bool:
    """Whether the condition of an assert is true by its form alone."""
    if isinstance(test, ast.BoolOp):
        parts = [cannot_fail(value) for value in test.values]
        return any(parts) if isinstance(test.op, ast.Or) else all(parts)
    if isinstance(test, ast.Tuple | ast.List | ast.Set):
        return bool(test.elts)
    if isinstance(test, ast.Compare):
        sides = [ast.dump(side) for side in (test.left, *test.comparators)]
        return len(set(sides)) < len(sides)
    if isinstance(test, ast.Lambda | ast.JoinedStr):
        return True
    return not any(isinstance(node, ast.Name | ast.Call | ast.Attribute) for node in ast.walk(test))


def predictions(notebook: nbformat.NotebookNode) -> list[Prediction]:
    """Every prediction in order. ValueError where its arguments are no plain literals."""
    return [p for cell in code(notebook) for p in _in_cell(cell)]


def _in_cell(cell: nbformat.NotebookNode) -> Iterator[Prediction]:
    for node in ast.walk(ast.parse(cell.source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "predict":
            given = {k.arg: ast.literal_eval(k.value) for k in node.keywords}
            choices = given.get("choices")
            yield Prediction(
                cell.id,
                ast.literal_eval(node.args[0]),
                None if choices is None else tuple(choices),
                given.get("because", ""),
            )


def sections(notebook: nbformat.NotebookNode) -> list[list[nbformat.NotebookNode]]:
    """The cells between two headings of level 2, the part before the first one included."""
    found: list[list[nbformat.NotebookNode]] = [[]]
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and cell.source.startswith("## "):
            found.append([])
        found[-1].append(cell)
    return found


def own_cells(executed: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """The executed code cells without the probes."""
    return [cell for cell in code(executed) if "prediction" not in cell.metadata]
