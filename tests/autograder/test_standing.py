"""No grade is wrong or lost: what is graded again, what is left out, and what an instructor is told of it."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbgrader.apps import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from autograder import labs, steps
from autograder.classroom import Classroom
from autograder.errors import PlainError
from autograder.report import KEY
from autograder.settings import configure
from autograder.standing import AGAIN, CUT, NONE, POINTS, Ledger, doubt, ledger

from .conftest import LAB, SOLUTION, Desk, named
from .school import Elsewhere

pytestmark = pytest.mark.slow
NOTEBOOK = f"{LAB}.ipynb"
UNTOUCHED = labs.LABS / LAB / NOTEBOOK
NOBODY = 65534


@dataclass
class Course:
    """A copy of the course in a folder, with commands of its own."""

    root: Path

    def hand_in(self, student: str, content: bytes, stamp: str = "") -> Path:
        folder = self.root / "submitted" / student / LAB
        folder.mkdir(parents=True, exist_ok=True)
        (folder / NOTEBOOK).write_bytes(content)
        if stamp:
            (folder / "timestamp.txt").write_text(stamp)
        return folder

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "autograder", "nbgrader", *words]
        return subprocess.Popen(
            command, cwd=self.root, stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    def nbgrader(self, *words: str, code: int = 0) -> str:
        """Runs a step; returns its log, in which there must be no traceback."""
        running = self.start(*words)
        _, log = running.communicate()
        assert running.returncode == code, log
        assert "Traceback" not in log
        return log

    def cut_short(self, student: str) -> None:
        """Kills a grading when nbgrader has written the notebook that is to be graded."""
        running = self.start("autograde", LAB, "--student", student)
        while not self.graded(student).exists():
            assert running.poll() is None
            time.sleep(0.02)
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate()

    def graded(self, student: str) -> Path:
        return self.root / "autograded" / student / LAB / NOTEBOOK

    def page(self, student: str) -> Path:
        return self.root / "feedback" / student / LAB / f"{LAB}.html"

    def scores(self) -> dict[str, float]:
        """What `export` writes."""
        with (self.root / "grades.csv").open() as file:
            return {row["student_id"]: float(row["raw_score"]) for row in csv.DictReader(file)}

    def doubts(self) -> dict[str, str]:
        held = ledger(self.root / "gradebook.db", LAB)
        students = sorted(path.name for path in (self.root / "submitted").iterdir())
        return {student: doubt(self.root, student, held) for student in students}


def edited(source: Path, **changes: str) -> bytes:
    """A notebook with other sources in the cells of these names."""
    notebook = nbformat.read(source, as_version=4)
    for name, text in changes.items():
        named(notebook, name).source = text
    return nbformat.writes(notebook).encode()


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """Ann has everything right and is graded."""
    root = tmp_path_factory.mktemp("class") / "a course"
    for name in ("autograder", "solutions", "labs"):
        ignore = shutil.ignore_patterns("__pycache__", "masters")
        shutil.copytree(labs.ROOT / name, root / name, ignore=ignore)
    shutil.copy(labs.ROOT / "nbgrader_config.py", root)
    made = Course(root)
    made.nbgrader("generate_assignment", LAB, "--force")
    made.hand_in("ann", SOLUTION.read_bytes(), "2026-11-30 09:00:00 UTC")
    made.nbgrader("autograde", LAB)
    return made


def test_a_grading_cut_short_is_none_and_is_done_again(course: Course) -> None:
    course.hand_in("bob", SOLUTION.read_bytes())
    course.cut_short("bob")
    assert course.doubts() == {"ann": "", "bob": CUT}
    log = course.nbgrader("generate_feedback", LAB, code=1)
    assert "[autograder | ERROR] bob gets no feedback: the submission of lab1_storage was not graded" in log
    assert (course.page("ann").exists(), course.page("bob").exists()) == (True, False)
    assert "bob gets no feedback" in course.nbgrader(
        "generate_feedback", LAB, "--force", "--student", "bob", code=1
    )
    log = course.nbgrader("export")
    assert "lab1_storage of bob was not graded to its end: the points exported for it" in log
    before = course.graded("ann").stat().st_mtime_ns
    log = course.nbgrader("autograde", LAB)
    assert "bob's submission of lab1_storage was not graded to its end: it is graded again." in log
    assert course.graded("ann").stat().st_mtime_ns == before
    assert course.doubts() == {"ann": "", "bob": ""}
    assert "not graded" not in course.nbgrader("export")
    assert course.scores() == {"ann": 100, "bob": 100}
    course.nbgrader("generate_feedback", LAB)
    assert course.page("bob").exists()


def test_a_submission_that_cannot_be_graded_stops_no_other_and_is_no_zero(course: Course) -> None:
    data = json.loads(edited(UNTOUCHED, contiguous_strides=FOUR))
    deep: Any = {}
    for _ in range(300):
        deep = {"a": deep}
    data["metadata"] = {"language_info": [], "kernelspec": "x", "language": 3, "jupyter": "x", "deep": deep}
    for cell in data["cells"]:
        cell["metadata"]["jupyter"] = deep
    course.hand_in("cid", json.dumps(data).encode())
    course.hand_in("dan", b"")
    course.hand_in("eve", b"[]")
    course.hand_in("fay", json.dumps({**data, "cells": data["cells"] * 50}).encode())
    (course.hand_in("gus", b"") / NOTEBOOK).rename(course.root / "submitted" / "gus" / LAB / "lab1 (1).ipynb")
    log = course.nbgrader("autograde", LAB, code=1)
    told = [line for line in log.splitlines() if "ERROR" in line]
    for student, why in (
        ("dan", "is not a notebook"),
        ("eve", "is not a notebook"),
        ("fay", "is too large to be graded (2,800 cells"),
        ("gus", "There is no notebook at"),
    ):
        (sentence,) = [line for line in told if f"{student}'s submission of {LAB} is not graded" in line]
        assert why in sentence
        assert not (course.root / "autograded" / student).exists()
    assert len(told) == 4
    log = course.nbgrader("export")
    assert "lab1_storage of dan, eve, fay, gus is not autograded yet: the points exported" in log
    assert course.scores()["cid"] == 4
    # By Formgrader's button there is only this one.
    log = course.nbgrader("autograde", LAB, "--force", "--student", "dan", code=1)
    assert [line for line in log.splitlines() if line] == [line for line in told if "dan's" in line]
    # What cannot be graded takes nothing away from what was.
    course.hand_in("cid", b"{}", "2026-12-01 09:00:00 UTC")
    before = course.graded("cid").read_bytes()
    assert "cid's submission" in course.nbgrader("autograde", LAB, "--student=cid", "--force", code=1)
    assert course.graded("cid").read_bytes() == before
    assert "lab1_storage of cid was handed in again" in course.nbgrader("export")
    assert course.scores()["cid"] == 4


FOUR = (
    "def contiguous_strides(shape):\n    strides, step = [], 1\n    for size in reversed(shape):\n"
    "        strides.insert(0, step)\n        step *= max(size, 1)\n    return tuple(strides)"
)


def test_other_points_are_told_and_graded_anew(course: Course) -> None:
    for step in ("submitted", "autograded", "feedback"):
        shutil.rmtree(course.root / step, ignore_errors=True)
    course.hand_in("ann", SOLUTION.read_bytes(), "2026-11-30 09:00:00 UTC")
    course.hand_in("hal", edited(UNTOUCHED, contiguous_strides=FOUR))
    course.nbgrader("autograde", LAB)
    source = course.root / "solutions" / LAB / NOTEBOOK
    notebook = nbformat.read(source, as_version=4)
    named(notebook, "check_contiguous_strides").metadata.nbgrader.points = 1
    named(notebook, "check_address").metadata.nbgrader.points = 20
    nbformat.write(notebook, source)
    course.nbgrader("generate_assignment", LAB, "--force")
    assert course.doubts() == {"ann": POINTS, "hal": POINTS}
    assert "lab1_storage of ann, hal was graded for other points" in course.nbgrader("export")
    course.nbgrader("generate_feedback", LAB, "--force")
    shown = course.page("hal").read_text()
    assert "of 1<" not in shown
    assert "Graded before the points were changed; ask your instructor to grade it again" in shown
    assert '<span class="won">4</span> of 105' in shown
    log = course.nbgrader("autograde", LAB)
    for student in ("ann", "hal"):
        assert f"{student}'s submission of {LAB} was graded for other points" in log
    assert course.doubts() == {"ann": "", "hal": ""}
    course.nbgrader("export")
    assert course.scores() | {"bob": 0, "cid": 0} == {"ann": 113, "hal": 1, "bob": 0, "cid": 0}
    course.nbgrader("generate_feedback", LAB, "--force")
    assert "the points were changed" not in course.page("hal").read_text()


@pytest.fixture
def whole(tmp_path: Path) -> Iterator[Path]:
    """A submission of Ann's that was graded whole: two checks, 3 of 4 and 2 of 2 points."""
    for step in ("submitted", "autograded"):
        (tmp_path / step / "ann" / LAB).mkdir(parents=True)
        (tmp_path / step / "ann" / LAB / "timestamp.txt").write_text("2026-11-30 09:00:00 UTC\n")
    write(tmp_path, one=(3, 4), two=(2, 2))
    yield tmp_path


def write(root: Path, **reports: tuple[float, float]) -> None:
    cells = [nbformat.v4.new_markdown_cell("words")]
    for name, (points, of) in reports.items():
        output = nbformat.v4.new_output("execute_result", metadata={KEY: {"points": points, "of": of}})
        cell = nbformat.v4.new_code_cell("check", outputs=[output], metadata={"nbgrader": {"grade_id": name}})
        cells.append(cell)
    nbformat.write(nbformat.v4.new_notebook(cells=cells), root / "autograded" / "ann" / LAB / NOTEBOOK)


HELD = Ledger(LAB, {"one": 4.0, "two": 2.0}, {"ann": {"one": 3.0, "two": 2.0, "gone": 1.0}})


def test_what_a_gradebook_and_the_reports_say_together(whole: Path) -> None:
    folder, handed = whole / "autograded" / "ann" / LAB, whole / "submitted" / "ann" / LAB
    assert doubt(whole, "ann", HELD) == ""
    assert doubt(whole, "bob", HELD) == NONE
    assert doubt(whole, "ann", Ledger(LAB, HELD.points)) == NONE
    assert doubt(whole, "ann", Ledger(LAB, {"one": 4.0}, HELD.given)) == ""
    assert doubt(whole, "ann", Ledger(LAB, {"one": 4.0, "two": 1.0}, HELD.given)) == POINTS
    assert doubt(whole, "ann", Ledger(LAB, {**HELD.points, "new": 3.0}, HELD.given)) == POINTS
    assert doubt(whole, "ann", Ledger(LAB, HELD.points, {"ann": {"one": 3.0, "two": 1.0}})) == CUT
    (handed / "timestamp.txt").write_text("2026-12-01 09:00:00 UTC")
    assert doubt(whole, "ann", HELD) == AGAIN
    (handed / "timestamp.txt").unlink()
    assert doubt(whole, "ann", HELD) == AGAIN
    shutil.rmtree(handed)
    assert doubt(whole, "ann", HELD) == ""
    for half in (b"", b'{"cells": [', b"[]", b"{}"):
        (folder / NOTEBOOK).write_bytes(half)
        assert doubt(whole, "ann", HELD) == CUT
    (folder / NOTEBOOK).unlink()
    assert doubt(whole, "ann", HELD) == CUT
    shutil.rmtree(folder)
    assert doubt(whole, "ann", HELD) == NONE


@pytest.mark.parametrize(
    ("words", "graded"),
    [
        (["autograde", LAB], ["ann", "bob"]),
        (["autograde", "--force", f"--assignment={LAB}"], ["ann", "bob"]),
        (["autograde", "--student", "a*", LAB], ["ann"]),
        (["autograde", LAB, "--student=[b]ob"], ["bob"]),
        (["autograde", LAB, '--student="bob"'], ["bob"]),
        (["autograde", "lab9"], []),
        (["autograde", LAB, "--help"], []),
        (["generate_assignment", LAB], []),
    ],
)
def test_only_what_a_command_is_about_is_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], graded: list[str]
) -> None:
    for student in ("ann", "bob"):
        for step in ("submitted", "autograded"):
            (tmp_path / step / student / LAB).mkdir(parents=True)
        (tmp_path / "submitted" / student / LAB / NOTEBOOK).write_bytes(UNTOUCHED.read_bytes())
    monkeypatch.setattr(steps, "ledger", lambda book, lab: HELD)
    plan = steps.plan(words, tmp_path)
    assert (plan.left, plan.others) == ({}, bool(graded))
    away = [name for name in ("ann", "bob") if not (tmp_path / "autograded" / name / LAB).exists()]
    assert away == graded
    assert len(plan.said) == len(graded)


def test_who_is_left_out_is_told_to_nbgrader() -> None:
    plan = steps.Plan({"ann": "Ann.", "bob": "Bob."}, others=True)
    assert plan.words(["autograde", LAB, f"{steps.EXCLUDE}=eve"]) == [
        "autograde",
        LAB,
        f"{steps.EXCLUDE}=eve,ann,bob",
    ]
    assert (steps.Plan().idle, plan.idle, steps.Plan({"ann": "Ann."}).idle) == (False, False, True)
    with pytest.raises(PlainError, match="Ann. Then rename the folder 'Lee, Ann'"):
        steps.Plan({"Lee, Ann": "Ann."}).words(["autograde", LAB])


def test_a_page_of_the_learners_own_makes_room_for_the_feedback() -> None:
    """As another user where this is root, who may write what is closed to writing."""
    with Classroom(LAB) as classroom:
        desk = Desk(classroom, classroom.generate())
        classroom.submit("ann", json.dumps(desk.untouched()))
        page = classroom.root / "submitted" / "ann" / LAB / f"{LAB}.html"
        page.write_text("mine")
        copy = classroom.autograde("ann").with_suffix(".html")
        assert copy.read_text() == "mine"
        assert copy.stat().st_mode & 0o777 == 0o444
        written = classroom.root / "feedback" / "ann" / LAB / f"{LAB}.html"

        def give() -> str:
            config = configure(Config(), classroom.root)
            done = NbGraderAPI(CourseDirectory(config=config), config=config).generate_feedback(LAB)
            return str(done)

        give()  # so that all is imported that another user may not be able to read
        shutil.rmtree(classroom.root / "feedback")
        root = os.getuid() == 0
        for path in (classroom.root, *classroom.root.rglob("*")) if root else ():
            os.chown(path, NOBODY, NOBODY)
        told = Elsewhere(give, (NOBODY, NOBODY) if root else None, classroom.root).answer()
        assert written.is_file(), told
        assert "Feedback for ann" in written.read_text()
