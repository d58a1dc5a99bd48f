"""`grade`, as a learner uses it: from Python and from the command line."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from autograder import grade, grading, labs, pages
from autograder.__main__ import main
from autograder.classroom import Classroom, StepError
from autograder.errors import PlainError
from autograder.verdict import Judge
from glassbox.tasks import catalogue

from .conftest import LAB, SOLUTION, Desk, named


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(labs, "RESULTS", tmp_path / "results")
    return tmp_path / "results"


@pytest.mark.slow
def test_the_solution_is_all_right_and_says_so(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grade", LAB, str(SOLUTION)]) == 0
    printed = capsys.readouterr().out
    assert "100 / 100  100 %" in printed
    written = json.loads((results / f"{LAB}.json").read_text())
    assert (written["score"], written["max_score"]) == (100, 100)
    assert [task["id"] for task in written["tasks"]] == list(catalogue.tasks(LAB))
    assert written["written"] == [{"id": "written_view_or_reshape", "max_score": 5.0, "answered": True}]
    page = (results / f"{LAB}.html").read_text()
    assert all(task.title in page for task in catalogue.tasks(LAB).values())


@pytest.mark.slow
def test_the_untouched_lab_is_nothing_and_says_so(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grade", LAB]) == 0
    printed = capsys.readouterr().out
    assert "0 / 100  0 %" in printed
    assert printed.count("not written yet") == 13
    assert "no answer yet" in printed


@pytest.mark.slow
def test_from_python_it_gives_score_max_score_and_tasks(tmp_path: Path) -> None:
    path = tmp_path / "renamed (1).ipynb"
    path.write_bytes(b"\xef\xbb\xbf" + SOLUTION.read_bytes())
    outcome = grade(LAB, path, seed="11" * 16)
    assert (outcome.score, outcome.max_score, len(outcome.tasks)) == (100, 100, 13)
    assert path.read_bytes()[3:] == SOLUTION.read_bytes()


@pytest.mark.slow
def test_a_half_right_notebook_is_told_what_failed_and_why(desk: Desk) -> None:
    notebook = desk.solved()
    cell = next(c for c in notebook.cells if c.id == "contiguous_strides")
    cell.source = (
        "def contiguous_strides(shape):\n    strides, step = [], 1\n    for size in reversed(shape):\n"
        "        strides.insert(0, step)\n        step *= size\n    return tuple(strides)"
    )
    outcome = desk.grade(notebook)
    task = outcome.tasks[0]
    assert 0 < task.score < task.max_score
    assert outcome.score == 96 + task.score
    lost = [item["name"] for item in task.properties if not item["won"]]
    table = pages.table(outcome)
    assert f"lost: {'; '.join(lost)}" in table
    for word in ("tried", "expected", "yours", "likely slip"):
        assert word in table


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def unfold(:", "the cell of your function raised SyntaxError"),
        ("unfold = no_such_name", "the cell of your function raised NameError: name 'no_such_name'"),
        ("unfolded = 3", "the check cell raised NameError: name 'unfold' is not defined"),
    ],
)
def test_a_cell_that_fails_itself_is_named_as_the_reason(desk: Desk, source: str, words: str) -> None:
    notebook = desk.solved()
    next(c for c in notebook.cells if c.id == "unfold").source = source
    outcome = desk.grade(notebook)
    task = next(task for task in outcome.tasks if task.id == "lab1.unfold")
    assert outcome.score == 100 - task.max_score
    assert words in task.note
    assert words in pages.table(outcome)
    assert "\n" not in task.text


def test_an_interrupt_in_the_middle_of_grading_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from nbgrader.converters import GenerateAssignment

    def interrupted(self: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(GenerateAssignment, "convert_single_notebook", interrupted)
    monkeypatch.setattr(GenerateAssignment, "start", interrupted)
    assert main(["grade", LAB]) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "Stopped; nothing was changed."


def broken(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "x.ipynb"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "holds no notebook's JSON"),
        (b"{", "holds no notebook's JSON"),
        (b"[1, 2]", "holds no notebook's JSON"),
        (b"[" * 100_000, "holds no notebook's JSON"),
        (b"\xff\xfe\x00", "could not be read"),
        (b'{"nbformat": 5, "nbformat_minor": 0, "metadata": {}, "cells": []}', "is not a valid notebook"),
        (b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": 3}', "is not a valid notebook"),
        (
            b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}',
            "it has none of the lab's cells",
        ),
    ],
)
def test_what_is_no_notebook_of_the_lab_is_one_line_and_code_2(
    tmp_path: Path, content: bytes, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["grade", LAB, str(broken(tmp_path, content))]) == 2
    said = capsys.readouterr().err.splitlines()
    assert words in said[-1]


def test_a_notebook_of_another_lab_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = nbformat.v4.new_notebook()
    cell = nbformat.v4.new_code_cell("1")
    cell.metadata["nbgrader"] = {"grade_id": "check_table", "grade": True}
    other.cells.append(cell)
    for lab, notebook in ((LAB, nbformat.read(SOLUTION, as_version=4)), ("lab2_dispatcher", other)):
        (tmp_path / "solutions" / lab).mkdir(parents=True)
        nbformat.write(notebook, tmp_path / "solutions" / lab / f"{lab}.ipynb")
    monkeypatch.setattr(labs, "SOLUTIONS", tmp_path / "solutions")
    with pytest.raises(PlainError, match="it belongs to lab2_dispatcher"):
        grading.read(LAB, tmp_path / "solutions" / "lab2_dispatcher" / "lab2_dispatcher.ipynb")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["grade", "lab9"], "There is no lab called 'lab9'"),
        (["grade", LAB, "missing.ipynb"], "There is no notebook at missing.ipynb"),
        (["reset", "lab9"], "There is no lab called 'lab9'"),
        (["grade"], "the following arguments are required: LAB; see python3 course.py grade --help"),
        (["grade", LAB, "a", "b"], "unrecognized arguments: b"),
        (["labs", "--force"], "unrecognized arguments: --force"),
    ],
)
def test_a_wrong_name_is_one_line_and_code_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr().err.splitlines()
    assert words in said[-1]


@pytest.mark.slow
def test_nbgraders_own_commands_grade_with_the_judge_and_leave_the_released_lab_as_it_is(
    tmp_path: Path,
) -> None:
    course = tmp_path / "a course"
    for name in ("autograder", "solutions", "labs"):
        ignore = shutil.ignore_patterns("__pycache__", "masters")
        shutil.copytree(labs.ROOT / name, course / name, ignore=ignore)
    shutil.copy(labs.ROOT / "nbgrader_config.py", course)
    released = (course / "labs" / LAB / f"{LAB}.ipynb").read_text()

    def nbgrader(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "autograder", "nbgrader", *arguments],
            capture_output=True,
            text=True,
            cwd=course,
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    nbgrader("generate_assignment", LAB, "--force")
    assert (course / "labs" / LAB / f"{LAB}.ipynb").read_text() == released
    for student, notebook in (("ann", SOLUTION), ("bob", labs.LABS / LAB / f"{LAB}.ipynb")):
        (course / "submitted" / student / LAB).mkdir(parents=True)
        shutil.copy(notebook, course / "submitted" / student / LAB)
    said = nbgrader("autograde", LAB)
    assert "SAWarning" not in said
    nbgrader("generate_feedback", LAB)
    nbgrader("export")
    with (course / "grades.csv").open() as file:
        scores = {row["student_id"]: float(row["raw_score"]) for row in csv.DictReader(file)}
    assert scores == {"ann": 100, "bob": 0}
    shown = (course / "feedback" / "ann" / LAB / f"{LAB}.html").read_text()
    for prop in catalogue.find("lab1.expand").properties:
        assert prop.name in shown


def test_nbgraders_exit_code_passes_through() -> None:
    assert main(["nbgrader", "--version"]) == 0
    assert main(["nbgrader", "autograde", "--no-such-option"]) != 0


def test_a_saved_grade_is_whole_or_not_there(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = grading.Grade(LAB, 1, 2, (), (), "now")
    pages.save(outcome, results)
    before = (results / f"{LAB}.json").read_text()

    def full(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="no space"):
        pages.save(grading.Grade(LAB, 2, 2, (), (), "later"), results)
    assert (results / f"{LAB}.json").read_text() == before


@pytest.mark.slow
def test_a_module_beside_the_notebook_is_the_learners_to_use(desk: Desk, tmp_path: Path) -> None:
    notebook = desk.untouched()
    cell = named(notebook, "contiguous_strides")
    solution = named(desk.solved(), "contiguous_strides").source
    (tmp_path / "sliding.py").write_text(solution.replace("def contiguous_strides", "def strides"))
    # One that has the name of what the kernel itself uses takes nobody's place.
    (tmp_path / "json.py").write_text("raise SystemExit\n")
    (tmp_path / "ipykernel.py").write_text("raise SystemExit\n")
    cell.source = "from sliding import strides as contiguous_strides"
    modules = sorted(tmp_path.glob("*.py"))
    outcome = grading.grade_in(desk.classroom, json.dumps(notebook), "with-module", modules)
    assert outcome.score == 4


@pytest.mark.slow
def test_a_step_that_fails_leaves_no_mark_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object) -> None:
        raise RuntimeError("in the middle of a grade")

    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    monkeypatch.setattr(Judge, "preprocess_cell", fail)
    with Classroom(LAB) as classroom:
        classroom.generate()
        classroom.submit("ada", SOLUTION.read_text(encoding="utf-8"))
        with pytest.raises(StepError):
            classroom.autograde("ada")
    assert "NBGRADER_EXECUTION" not in os.environ
