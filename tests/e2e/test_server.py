"""The server behind the panels, over HTTP: who gets which, and how it tells of what goes wrong."""

import json
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import Jupyter, copy_course

from autograder import exchanging, labs, stamps
from autograder.server.instructor import said
from autograder.server.running import Ended

LAB = "lab1_storage"
BOOK = "gradebook.db"


def ask(server: Jupyter, path: str, body: Any = None, token: bool = True) -> tuple[int, str]:
    """The status and the text of an answer; a request with a body is a POST."""
    return server.ask(path, None if body is None else json.dumps(body).encode(), token)[:2]


def step(server: Jupyter, path: str) -> dict[str, Any]:
    """What Formgrader hears when it asks for a step."""
    status, text = ask(server, f"/formgrader/api/{path}", {})
    assert status == 200
    return json.loads(text)


@pytest.fixture(scope="module")
def instructor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    folder = copy_course(tmp_path_factory.mktemp("class") / "glassbox")
    with Jupyter(folder, tmp_path_factory.mktemp("instructor"), instructor=True) as running:
        yield running


@pytest.fixture(scope="module")
def learner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    folder = copy_course(tmp_path_factory.mktemp("learner") / "glassbox")
    with Jupyter(folder, tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture
def book(instructor: Jupyter) -> Iterator[Path]:
    """Where the gradebook lies; what a test puts there is gone afterwards."""
    path = instructor.folder / BOOK
    kept = path.read_bytes() if path.exists() else None
    yield path
    path.unlink(missing_ok=True)
    if kept is not None:
        path.write_bytes(kept)


# Who gets which


@pytest.mark.parametrize("path", ["/formgrader/", "/formgrader/api/assignments", "/instructor"])
def test_a_learner_has_no_formgrader(learner: Jupyter, path: str) -> None:
    assert ask(learner, path)[0] == 404


def test_an_instructor_comes_in_with_formgrader_open(instructor: Jupyter) -> None:
    keeps_cookies = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with keeps_cookies.open(instructor.address("/instructor"), timeout=60) as answer:
        assert answer.url.endswith("/lab?formgrader=true")
        assert "<title>JupyterLab</title>" in answer.read().decode()
    assert [lab["name"] for lab in instructor.get("/formgrader/api/assignments")] == labs.known()


@pytest.mark.parametrize(
    "path", ["/assignments/validate", "/assignments/submit", f"/formgrader/api/assignment/{LAB}/assign"]
)
def test_nobody_comes_in_without_the_token(instructor: Jupyter, path: str) -> None:
    assert ask(instructor, path, {"path": "x"}, token=False)[0] in (401, 403)


def test_the_exchange_is_made_and_closed_to_others_writing(instructor: Jupyter) -> None:
    folder = exchanging.folder(instructor.folder)
    assert folder == instructor.folder / "exchange"
    assert folder.stat().st_mode & 0o777 == 0o755


# Validate


@pytest.mark.parametrize("path", ["../secret.ipynb", "/etc/passwd", "labs/../../x.ipynb"])
def test_validate_stays_in_the_course(learner: Jupyter, path: str) -> None:
    assert ask(learner, "/assignments/validate", {"path": path})[0] == 403


def test_validate_tells_of_a_file_that_is_not_there(learner: Jupyter) -> None:
    status, text = ask(learner, "/assignments/validate", {"path": "labs/none.ipynb"})
    answer = json.loads(text)
    assert (status, answer["success"]) == (200, False)
    assert "none.ipynb" in answer["value"] and "Traceback" not in answer["value"]


@pytest.mark.slow
def test_the_server_answers_while_it_validates(learner: Jupyter) -> None:
    done: list[tuple[int, str]] = []
    path = f"labs/{LAB}/{LAB}.ipynb"
    work = threading.Thread(target=lambda: done.append(ask(learner, "/assignments/validate", {"path": path})))
    work.start()
    answered = 0
    while not done:
        assert learner.get("/api/status")["started"]
        answered += 1
    work.join()
    assert answered > 20
    answer = json.loads(done[0][1])
    assert answer["success"] and "Nothing is written yet" in answer["value"]["failed"][0]["source"]


# The steps of an instructor


def test_a_step_that_fails_says_why_and_nothing_else(instructor: Jupyter) -> None:
    shutil.move(instructor.folder / "labs", instructor.folder / "away")
    try:
        answer = step(instructor, f"assignment/{LAB}/release")
    finally:
        shutil.move(instructor.folder / "away", instructor.folder / "labs")
    assert answer["success"] is False
    assert "generate" in answer["log"] and len(answer["log"].splitlines()) == 1


def test_the_log_of_a_failure_is_its_sentences() -> None:
    log = "[A | INFO] x\n[A | CRITICAL] This.\n[A | ERROR] This.\n[A | ERROR] nbgrader release failed\n"
    assert said(Ended(1, "", log)) == "This."
    assert said(Ended(1, "", "Traceback ...\n")) == "Traceback ..."
    assert said(Ended(0, "", log)).startswith("[A | INFO] x")


def test_a_name_with_a_star_means_one_student(instructor: Jupyter) -> None:
    for name in ("ada", "ben"):
        folder = instructor.folder / "submitted" / name / LAB
        folder.mkdir(parents=True)
        shutil.copy(instructor.folder / "labs" / LAB / f"{LAB}.ipynb", folder)
    answer = step(instructor, f"submission/{LAB}/*/autograde")
    assert answer["success"] is False
    assert not (instructor.folder / "autograded").exists()


def test_a_time_that_cannot_be_read_does_not_hide_the_class(instructor: Jupyter) -> None:
    folder = instructor.folder / "submitted" / "eve" / LAB
    folder.mkdir(parents=True)
    (folder / stamps.STAMP).write_text("soon")
    shutil.copy(instructor.folder / "labs" / LAB / f"{LAB}.ipynb", folder)
    assert "eve" in [one["student"] for one in instructor.get(f"/formgrader/api/submissions/{LAB}")]
    assert (folder / stamps.ASIDE).read_text() == "soon"


@pytest.mark.parametrize("text", ["2026-11-30 11:24:15.898217 UTC", "2026-01-01T00:00:00+05:00"])
def test_a_time_that_can_be_read_stays(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ada" / LAB / stamps.STAMP
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert stamps.set_aside(tmp_path) == []
    assert path.read_text() == text


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"soon",
        b"\xff\xfe",
        b"0001-01-01 00:00:00 +14:00",
        b"9999-12-31 23:59:59 UTC",
        b"9" * 400,
        b"12:" + b"9" * 30,
        b"2026-01-01 00:00:00 99999999999999",
    ],
)
def test_a_time_that_cannot_be_read_is_set_aside(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "ada" / LAB / stamps.STAMP
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    (sentence,) = stamps.set_aside(tmp_path)
    assert str(path) in sentence
    assert not path.exists() and path.with_name(stamps.ASIDE).read_bytes() == content


def test_a_gradebook_of_another_course_is_left_alone(instructor: Jupyter, book: Path) -> None:
    command = [sys.executable, "-m", "autograder", "nbgrader"]
    options = {"cwd": instructor.folder, "env": instructor.environment.variables(), "text": True}
    made = subprocess.run([*command, "generate_assignment", LAB, "--force"], capture_output=True, **options)
    assert made.returncode == 0, made.stderr
    theirs = book.with_suffix(".theirs")
    shutil.copy(book, theirs)
    with sqlite3.connect(theirs) as other:
        other.execute("UPDATE course SET id = 'bio101' WHERE id = 'glassbox'")
        other.execute("UPDATE assignment SET course_id = 'bio101'")
    other.close()
    theirs.replace(book)
    before = book.read_bytes()
    for path in ("/formgrader/", "/formgrader/api/assignments"):
        status, text = ask(instructor, path)
        assert status == 500
        assert "belongs to another course" in text and "bio101" in text
    refused = subprocess.run([*command, "autograde", LAB], capture_output=True, **options)
    assert refused.returncode == 2
    assert "belongs to another course" in refused.stderr and "Traceback" not in refused.stderr
    assert book.read_bytes() == before


@pytest.mark.slow
def test_a_grade_that_was_cut_short_is_made_anew(instructor: Jupyter) -> None:
    assert step(instructor, f"assignment/{LAB}/assign")["success"]
    folder = instructor.folder / "submitted" / "zoe" / LAB
    folder.mkdir(parents=True)
    shutil.copy(instructor.folder / "solutions" / LAB / f"{LAB}.ipynb", folder)
    ended: list[Exception] = []

    def grade() -> None:
        try:
            step(instructor, f"submission/{LAB}/zoe/autograde")
        except OSError as error:
            ended.append(error)

    work = threading.Thread(target=grade)
    work.start()
    while not (instructor.folder / "autograded" / "zoe" / LAB).exists():
        time.sleep(0.05)
    instructor.stop()  # with all that it had started
    work.join()
    assert len(ended) == 1
    instructor.start()
    assert step(instructor, f"submission/{LAB}/zoe/autograde")["success"]
    (mine,) = [one for one in instructor.get(f"/formgrader/api/submissions/{LAB}") if one["student"] == "zoe"]
    assert mine["score"] == 100
