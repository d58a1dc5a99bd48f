"""Validate: the judge on the open cases, in the learner's words, in the dialog and in the terminal."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder import grading, labs, validating
from autograder.__main__ import main
from autograder.execute import GradedExecute
from autograder.validating import FRESH, UNANSWERED, validate
from glassbox.tasks import catalogue
from glassbox.tasks.check import PUBLIC_SEED

from .conftest import LAB, Desk, named

HALF = """def contiguous_strides(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return tuple(strides)"""

Save = Callable[[Any], Path]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Writes a notebook to a file in a folder of its own."""

    def write(notebook: Any) -> Path:
        path = tmp_path / "mine" / "lab.ipynb"
        path.parent.mkdir(exist_ok=True)
        nbformat.write(notebook, path)
        return path

    return write


@pytest.fixture(autouse=True)
def log_of_attempts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data" / "glassbox" / "attempts.jsonl"


def answered(notebook: Any) -> Any:
    named(notebook, "written_view_or_reshape").source = "A view shares the storage."
    return notebook


def report(path: Path) -> tuple[str, str]:
    """The dialog's two texts: the summary, and the HTML below it."""
    answer = validate(path)
    assert answer["success"] is True
    (entry,) = answer["value"]["failed"]
    assert set(answer["value"]) == {"failed"}
    assert set(entry) == {"source", "error"}
    return entry["source"], entry["error"]


def words(page: str) -> str:
    """What a page says, without its style and marks."""
    return re.sub(r"\s+", " ", re.sub("<style>.*?</style>|<[^>]*>", " ", page, flags=re.S))


def told(task: grading.TaskGrade) -> grading.TaskGrade:
    """A task's grade without the names that each drawing gives to its parts."""
    return replace(task, html=re.sub("gb[0-9a-z-]+", "gb", task.html))


def test_the_lab_is_made_as_nbgrader_hands_it_out(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def graded(notebook: Any) -> list[Any]:
        cells = [cell for cell in notebook.cells if "nbgrader" in cell.metadata]
        return [(cell.cell_type, cell.source, dict(cell.metadata.nbgrader)) for cell in cells]

    assert graded(grading.released(LAB)) == graded(desk.untouched())
    monkeypatch.setattr(labs, "SOLUTIONS", tmp_path / "none")
    monkeypatch.setattr(labs, "MASTERS", desk.classroom.root / "labs")
    assert graded(grading.released(LAB)) == graded(desk.untouched())


@pytest.mark.slow
def test_it_finds_what_a_grade_on_the_open_cases_finds(desk: Desk, save: Save, log_of_attempts: Path) -> None:
    notebook = answered(desk.solved())
    named(notebook, "contiguous_strides").source = HALF
    named(notebook, "unfold").source = "def unfold(:"
    named(notebook, "permute").source = named(desk.untouched(), "permute").source
    named(notebook, "expand").source += "\nimport os\nos._exit(1)"
    named(notebook, "check_diagonal").source = "_check = print"
    notebook.cells.remove(named(notebook, "check_view_dtype"))
    path = save(notebook)
    rehearsed, ran = grading.rehearse(LAB, notebook, grading.released(LAB))
    assert not log_of_attempts.exists()
    assert [cell.id for cell in ran.cells[: len(notebook.cells)]] == [cell.id for cell in notebook.cells]
    graded = grading.grade(LAB, path, seed=PUBLIC_SEED)
    assert log_of_attempts.exists()
    assert [told(task) for task in rehearsed.tasks] == [told(task) for task in graded.tasks]
    assert (rehearsed.score, rehearsed.written) == (graded.score, graded.written)
    assert 0 < graded.score < 100


@pytest.mark.slow
def test_all_right_and_answered_is_nbgraders_success(desk: Desk, save: Save, log_of_attempts: Path) -> None:
    path = save(answered(desk.solved()))
    before = path.read_bytes()
    assert validate(path) == {"success": True, "value": {}}
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
    assert not log_of_attempts.exists()


@pytest.mark.slow
def test_an_unanswered_question_is_a_word_and_no_failure(desk: Desk, save: Save) -> None:
    path = save(desk.solved())
    summary, page = report(path)
    assert summary == "Success: all 13 pieces hold on the open cases"
    assert words(page).split() == f"{UNANSWERED} {FRESH.replace('`', ' ')}".split()
    assert "<section>" not in page
    assert main(["nbgrader", "validate", str(path)]) == 0


@pytest.mark.slow
def test_an_untouched_lab_is_told_where_to_begin(
    desk: Desk, save: Save, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save(desk.untouched())
    summary, page = report(path)
    assert summary == "Nothing is written yet"
    assert "Begin with “Strides of a fresh tensor”: write contiguous_strides" in re.sub(
        " +", " ", words(page)
    )
    assert "points" not in words(page)
    assert main(["nbgrader", "validate", str(path)]) == 1
    assert capsys.readouterr().out.startswith(f"{LAB}: Nothing is written yet\n\nBegin with")


@pytest.mark.slow
def test_what_is_wrong_comes_first_and_each_thing_is_named(
    desk: Desk, save: Save, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook = desk.solved()
    named(notebook, "contiguous_strides").source = HALF
    named(notebook, "unfold").source = "def unfold(shape, stride, dim, size, step):\n    return shape +"
    named(
        notebook, "expand"
    ).source = (
        "import torch\ndef expand(shape, stride, size):\n    return torch.empty(shape).expand(size).stride()"
    )
    named(notebook, "is_contiguous").source = "def is_contiguous(shape, stride):\n    while True: pass"
    notebook.cells = [cell for cell in notebook.cells if cell.id != "play_is_contiguous"]
    named(notebook, "reshape").source = "import os\ndef reshape(shape, stride, size):\n    os._exit(3)"
    named(notebook, "permute").source = named(desk.untouched(), "permute").source
    named(notebook, "check_diagonal").source = "_check = print"
    notebook.cells.remove(named(notebook, "check_view_dtype"))
    notebook.cells.insert(0, nbformat.v4.new_code_cell("helper = (1,"))
    path = save(notebook)
    summary, page = report(path)
    said = words(page)
    assert summary == "7 of 13 pieces hold on the open cases"
    in_order = [
        *("Strides of a fresh tensor", "tried", "contiguous_strides((0, 0, 0))", "expected", "(1, 1, 1)"),
        *("yours", "(0, 0, 1)", "Is it contiguous?", "no answer in time"),
        *("Repeating without memory", "torch.empty is unplugged", "A view or a copy", "the process died"),
        *("Sliding windows", "SyntaxError: invalid syntax (line 2 of the cell)"),
        *("Not written yet:", "permute", "These hold:", "address", "view_dtype"),
        *("Changed: the cell", "check_diagonal", "Deleted: the cell", "check_view_dtype"),
        *("helper = (1,", "raised SyntaxError", UNANSWERED, "A grade draws fresh cases"),
    ]
    place = 0
    for text in in_order:
        assert text in said[place:], (text, said[place:])
        place = said.index(text, place) + len(text)
    assert "the product becomes 0 once it has met a size of 0" in said
    assert page.count("<section>") == 5
    assert "<svg" in page
    assert main(["nbgrader", "validate", str(path)]) == 1
    printed = re.sub(r"\s+", " ", capsys.readouterr().out.replace("`", ""))
    place = 0
    for text in (f"{LAB}: {summary}", *in_order):
        assert text in printed[place:], (text, printed[place:])
        place = printed.index(text, place) + len(text)


@pytest.mark.slow
def test_cells_that_end_or_block_the_kernel_are_named_and_cost_only_themselves(
    desk: Desk, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GradedExecute.timeout, "default_value", 1)
    notebook = answered(desk.solved())
    named(notebook, "unfold").source = "while True:\n    pass"
    named(notebook, "diagonal").source = "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)"
    next(cell for cell in notebook.cells if cell.id == "play_expand").source = "import os\nos._exit(1)"
    notebook.cells.remove(named(notebook, "address"))
    summary, page = report(save(notebook))
    said = re.sub(" +", " ", words(page))
    assert summary == "10 of 13 pieces hold on the open cases"
    assert re.search(
        r"Sliding windows: 0 of 9 points.{0,9}the cell of your function did not end in time", said
    )
    assert re.search(
        r"A diagonal is a view: 0 of 9 points.{0,9}the cell of your function ended the process", said
    )
    assert "The cell that begins with import os ended the process that it ran in." in said
    assert "Not in your notebook: the cell address , so there is nothing to try." in said
    assert f"python3 course.py reset {LAB}" in said


@pytest.mark.slow
def test_an_old_output_says_nothing_of_a_cell_that_is_empty_now(desk: Desk, save: Save) -> None:
    notebook = answered(desk.solved())
    named(notebook, "unfold").source = "def unfold(:"
    notebook.cells.insert(0, nbformat.v4.new_code_cell("  \n"))
    error = {"ename": "ValueError", "evalue": "long gone", "traceback": ["long gone"]}
    notebook.cells[0].outputs = [nbformat.v4.new_output("error", **error)]
    summary, page = report(save(notebook))
    assert summary == "12 of 13 pieces hold on the open cases"
    assert "long gone" not in page
    assert "SyntaxError" in page


@pytest.mark.slow
def test_what_is_too_large_to_be_graded_is_too_large_here(
    desk: Desk, save: Save, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook = desk.untouched()
    notebook.cells += [nbformat.v4.new_code_cell("") for _ in range(2000)]
    path = save(notebook)
    answer = validate(path)
    assert answer["success"] is False
    assert answer["value"].startswith(f"{path} is too large to be graded (2,056 cells")
    assert main(["grade", LAB, str(path)]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == answer["value"]


@pytest.mark.slow
def test_a_notebook_of_an_older_lab_is_judged_as_the_present_one(desk: Desk, save: Save) -> None:
    notebook = answered(desk.solved())
    for name in ("diagonal", "check_diagonal"):
        notebook.cells.remove(named(notebook, name))
    for cell in notebook.cells:
        cell.pop("id")
        if "nbgrader" in cell.metadata:
            cell.metadata.nbgrader |= {"schema_version": 1, "points": 2}
    notebook.nbformat_minor = 4
    summary, page = report(save(notebook))
    assert summary == "12 of 13 pieces hold on the open cases"
    assert "Not in your notebook: the cell diagonal ," in re.sub(" +", " ", words(page))


@pytest.mark.slow
def test_a_module_beside_the_notebook_is_there_as_in_a_grade(desk: Desk, save: Save) -> None:
    notebook = answered(desk.solved())
    named(notebook, "unfold").source = "with open('sliding.py') as file:\n    exec(file.read())"
    path = save(notebook)
    (path.parent / "sliding.py").write_text(named(desk.solved(), "unfold").source)
    assert validate(path) == {"success": True, "value": {}}


class Watch(HTMLParser):
    """Keeps what in a page could do something."""

    def __init__(self) -> None:
        super().__init__()
        self.live: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in {"script", "iframe", "img", "i", "b", "object", "link", "form"}:
            self.live.append(tag)
        self.live += [name for name, _ in attrs if name.startswith("on") or name in ("href", "src")]


@pytest.mark.slow
def test_what_a_notebook_holds_is_inert_in_the_dialog(desk: Desk, save: Save) -> None:
    notebook = desk.solved()
    named(notebook, "unfold").source = (
        "def unfold(shape, stride, dim, size, step):\n"
        "    raise ValueError('<script>alert(1)</script><img src=x onerror=alert(2)>')"
    )
    named(notebook, "diagonal").source = "raise ValueError('</section><img src=x onerror=alert(3)>')"
    source = "'`<i onclick=1>`'; raise Exception('</style><b onclick=alert(4)>')"
    notebook.cells.insert(0, nbformat.v4.new_code_cell(source))
    _, page = report(save(notebook))
    watch = Watch()
    watch.feed(page)
    assert watch.live == []
    for text in ("&lt;script&gt;", "onerror=alert(3)", "onclick=1", "onclick=alert(4)"):
        assert text in page


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "There is no notebook at"),
        (b"", "holds no notebook's JSON"),
        (b"no notebook", "holds no notebook's JSON"),
        (b"\xff\xfe\x00", "could not be read"),
        (b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": 3}', "is not a valid notebook"),
    ],
)
def test_what_is_no_notebook_is_a_sentence(
    tmp_path: Path, content: bytes | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.ipynb"
    if content is not None:
        path.write_bytes(content)
    answer = validate(path)
    assert answer["success"] is False
    assert said in answer["value"]
    assert "\n" not in answer["value"]
    assert main(["nbgrader", "validate", str(path)]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == answer["value"]


def test_a_folder_is_a_sentence(tmp_path: Path) -> None:
    assert validate(tmp_path) == {
        "success": False,
        "value": f"{tmp_path} is a folder; give the notebook that lies in it.",
    }


def test_what_nobody_thought_of_is_a_sentence_too(
    desk: Desk, save: Save, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError("No space left on device\nsecond line")

    monkeypatch.setattr(grading, "rehearse", full)
    answer = validate(save(desk.untouched()))
    assert answer["success"] is False
    assert "stopped (OSError: No space left on device); your notebook is unchanged." in answer["value"]
    assert "second line" in capsys.readouterr().err


def of_another_course(schema: int) -> Any:
    record = {"grade": True, "grade_id": "t", "locked": True, "points": 1, "schema_version": schema}
    record |= {"solution": False, "task": False, "cell_type": "code"}
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "P"}})
    notebook.cells = [nbformat.v4.new_code_cell("assert 1 == 2", metadata={"nbgrader": record})]
    return notebook


@pytest.mark.slow
def test_notebooks_of_other_courses_are_nbgraders(save: Save) -> None:
    answer = validate(save(of_another_course(3)))
    assert answer["success"] is True
    (entry,) = answer["value"]["failed"]
    assert entry["source"] == "assert 1 == 2"
    assert "AssertionError" in entry["raw_error"]
    answer = validate(save(of_another_course(1)))
    assert answer["success"] is False
    assert "older nbgrader" in answer["value"]
    assert "\n" not in answer["value"]


def test_options_and_other_courses_go_to_nbgrader(
    save: Save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[list[str]] = []
    monkeypatch.setattr(subprocess, "call", lambda argv, **_: calls.append(argv[2:]) or 0)
    assert main(["nbgrader", "validate", "--invert", "x.ipynb"]) == 0
    assert main(["nbgrader", "validate"]) == 0
    other = save(of_another_course(3))
    assert main(["nbgrader", "validate", str(other.parent / "*.ipynb"), str(tmp_path / "none.ipynb")]) == 2
    assert calls == [
        ["nbgrader", "validate", "--invert", "x.ipynb"],
        ["nbgrader", "validate"],
        ["nbgrader", "validate", str(other)],
    ]
    assert "There is no notebook at" in capsys.readouterr().err


LEFT_RUNNING = """
import os, time
os.write(1, b"a cell writes\\n")
os.write(2, b"a cell complains\\n")
if not os.fork():
    os.setsid()
    while os.path.exists({marker!r}):
        time.sleep(0.1)
    os._exit(0)
"""


@pytest.mark.slow
def test_the_command_prints_the_json_alone_and_waits_for_nothing(
    desk: Desk, save: Save, tmp_path: Path
) -> None:
    marker = tmp_path / "marker"
    marker.touch()
    notebook = answered(desk.solved())
    notebook.cells.insert(0, nbformat.v4.new_code_cell(LEFT_RUNNING.format(marker=str(marker))))
    command = [sys.executable, "-m", "autograder.validating", str(save(notebook))]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    finally:
        marker.unlink()
    assert json.loads(done.stdout) == {"success": True, "value": {}}
    assert (done.returncode, done.stderr) == (0, "")


def test_a_piece_that_has_no_task_keeps_its_name(desk: Desk) -> None:
    task = grading.TaskGrade(
        "check_new", "check_new", 0.0, 4.0, "the judge has no record", (), "t", "<p>t</p>"
    )
    held = grading.TaskGrade("lab1.expand", "Repeating", 7.0, 7.0, "", (), "t", "<p>t</p>")
    found = validating.Finding(LAB, (task,), (task,), (held,), ())
    assert found.sentences()[:2] == ["Not written yet: `check_new`.", "These hold: `expand`."]
    assert catalogue.find("lab1.expand").function == "expand"


def test_a_notebook_that_is_no_lab_is_not_called_a_success(tmp_path: Path) -> None:
    path = tmp_path / "mine.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 + 1")]), path)
    assert validating.validate(path) == {
        "success": False,
        "value": "mine.ipynb is no lab: there is nothing in it to validate.",
    }
