"""The whole way without a browser, through nbgrader's own interface: from Generate to feedback read twice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from nbgrader.apps import NbGraderAPI
from nbgrader.coursedir import CourseDirectory

from autograder.labs import SOLUTIONS

from .conftest import Desk
from .school import COURSE, LAB, NOTEBOOK, School, names


class Office:
    """The instructor's steps; each must succeed."""

    def __init__(self, school: School) -> None:
        config = school.instructor.config()
        self.api = NbGraderAPI(CourseDirectory(config=config), config=config)

    def __getattr__(self, step: str) -> Any:
        def taken(*arguments: Any) -> str:
            outcome = getattr(self.api, step)(*arguments)
            assert outcome["success"], outcome
            return str(outcome.get("log", ""))

        return taken

    def score(self, student: str) -> float:
        with self.api.gradebook as book:
            return float(book.find_submission(LAB, student).score)


@pytest.mark.slow
def test_from_generate_to_the_feedback_on_a_second_attempt(tmp_path: Path, desk: Desk) -> None:
    school = School(tmp_path)
    shutil.rmtree(school.instructor.course / "labs")
    shutil.copytree(SOLUTIONS / LAB, school.instructor.course / "solutions" / LAB, dirs_exist_ok=True)
    office = Office(school)
    assert not office.api.exchange_missing
    office.generate_assignment(LAB)
    office.release_assignment(LAB)
    assert office.api.get_assignment(LAB)["status"] == "released"

    ada = school.learner("ada")
    assert names(ada.lab) == [NOTEBOOK]
    assert ada.result("List")[1][0]["status"] == "fetched"
    (ada.lab / NOTEBOOK).write_text(json.dumps(desk.solved("contiguous_strides")))
    ada.do("Submit")
    mailed = school.submitted("bob")
    mailed.mkdir(parents=True)
    (mailed / NOTEBOOK).write_text(json.dumps(desk.untouched()))

    office.collect(LAB)
    assert office.api.get_submitted_students(LAB) == {"ada", "bob"}
    for student in ("ada", "bob"):
        office.autograde(LAB, student)
    first = office.score("ada")
    assert 0 < first < 100
    assert office.score("bob") == 0
    assert office.api.get_autograded_students(LAB) == {"ada", "bob"}

    office.generate_feedback(LAB)
    log = office.release_feedback(LAB)
    assert "Released to ada" in log
    assert "bob's came without the exchange" in log
    assert (school.instructor.course / "feedback" / "bob" / LAB / f"{LAB}.html").is_file()
    ada.do("FetchFeedback")
    pages = sorted((ada.lab / "feedback").glob("*/*.html"))
    assert len(pages) == 1

    (ada.lab / NOTEBOOK).write_text(json.dumps(desk.solved()))
    ada.do("Submit")
    office.collect(LAB)
    assert office.api.get_autograded_students(LAB) == {"bob"}
    office.autograde(LAB, "ada")
    assert office.score("ada") == 100
    office.generate_feedback(LAB, "ada")
    office.release_feedback(LAB, "ada")
    ada.do("FetchFeedback")
    again = sorted((ada.lab / "feedback").glob("*/*.html"))
    assert again[0] == pages[0]
    assert len({page.read_text() for page in again}) == len(again) == 2
    attempts = ada.result("List", cached=True)[1][0]["submissions"]
    assert [item["has_local_feedback"] for item in attempts] == [True, True]
    assert len(names(school.exchange / COURSE / "feedback")) == 2
