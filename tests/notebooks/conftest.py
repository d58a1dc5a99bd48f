"""Each notebook, read once and executed once, for all tests in this folder."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

sys.path.insert(0, str(Path(__file__).parent))
from reading import NOTEBOOKS, ROOT, Prediction, load, predictions  # noqa: E402

SECONDS = 180  # many times what a notebook may take, since other work may share the machine

# evaluates a prediction as the widget does after a commit, and prints what came and which choices say so
PROBE = """
def _probe(expression, choices, ns):
    import ast, json
    from glassbox.widgets.answers import same_answer
    *setup, last = ast.parse(expression).body
    try:
        exec(compile(ast.Module(setup, []), "<predict>", "exec"), ns)
        answer = eval(compile(ast.Expression(last.value), "<predict>", "eval"), ns)
        right = [c for c in choices if same_answer(c, answer)]
        print(json.dumps({"raised": None, "right": right}))
    except Exception as error:
        name = type(error).__name__
        print(json.dumps({"raised": name, "right": [c for c in choices if c == name]}))
_probe(EXPRESSION, CHOICES, dict(globals()))
"""


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem, scope="session")
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture(scope="session")
def notebook(path: Path) -> nbformat.NotebookNode:
    return load(path)


@pytest.fixture(scope="session")
def executed(path: Path, run: Callable[[Path], nbformat.NotebookNode]) -> nbformat.NotebookNode:
    return run(path)


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], nbformat.NotebookNode]:
    """Executes a notebook in a course folder of its own, so that nobody's results are read or replaced.

    After each cell with a prediction comes a probe cell, whose metadata name the prediction's place.
    """
    done: dict[Path, nbformat.NotebookNode] = {}

    def execute(path: Path) -> nbformat.NotebookNode:
        if path not in done:
            course = tmp_path_factory.mktemp("course")
            (course / "course.py").touch()
            shutil.copytree(ROOT / "notebooks", course / "notebooks")
            shutil.copytree(ROOT / "labs", course / "labs")
            probed = with_probes(load(path))
            deadline = time.monotonic() + SECONDS
            NotebookClient(
                probed,
                timeout_func=lambda cell: max(1, int(deadline - time.monotonic())),
                kernel_name="python3",
                allow_errors=True,
                resources={"metadata": {"path": str(course / "notebooks")}},
            ).execute()
            done[path] = probed
        return done[path]

    return execute


def with_probes(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    asked = list(enumerate(predictions(notebook)))
    cells = []
    for cell in notebook.cells:
        cells.append(cell)
        for number, prediction in asked:
            if prediction.cell == cell.id:
                cells.append(_probe(number, prediction))
    notebook.cells = cells
    return notebook


def _probe(number: int, prediction: Prediction) -> nbformat.NotebookNode:
    shown = [c if isinstance(c, str) else repr(c) for c in prediction.choices or ()]
    source = PROBE.replace("EXPRESSION", repr(prediction.expression)).replace("CHOICES", repr(shown))
    return nbformat.v4.new_code_cell(source, metadata={"prediction": number})
