"""What a request may not do: act before its sender is known, run a student's work, break a page."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import Jupyter, copy_course

from autograder import stamps

LAB = "lab1_storage"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    folder = copy_course(tmp_path_factory.mktemp("class") / "glassbox")
    with Jupyter(folder, tmp_path_factory.mktemp("instructor"), instructor=True) as running:
        yield running


@pytest.fixture(scope="module")
def graded(server: Jupyter) -> str:
    """A graded submission, with files beside its notebook; its id."""
    assert json.loads(server.ask(f"/formgrader/api/assignment/{LAB}/assign", b"{}")[1])["success"]
    folder = server.folder / "submitted" / "ada" / LAB
    folder.mkdir(parents=True)
    shutil.copy(server.folder / "labs" / LAB / f"{LAB}.ipynb", folder)
    (folder / "plot.html").write_text("<script>alert(1)</script>")
    assert json.loads(server.ask(f"/formgrader/api/submission/{LAB}/ada/autograde", b"{}")[1])["success"]
    (submission,) = server.get(f"/formgrader/api/submitted_notebooks/{LAB}/{LAB}")
    return str(submission["id"])


# Names in addresses


@pytest.mark.parametrize("name", ['x";alert(1);', "<b>", "a\\b", "`x`", "--help", "a\nb"])
@pytest.mark.parametrize(
    "page", ["manage_submissions/{}", "gradebook/{}", f"gradebook/{LAB}/{{}}", "manage_students/{}"]
)
def test_no_page_is_made_with_a_name_that_would_change_it(server: Jupyter, page: str, name: str) -> None:
    status, text, _ = server.ask(f"/formgrader/{page.format(name)}")
    assert status == 404
    assert name not in text


def test_a_step_takes_no_option_for_a_lab(server: Jupyter) -> None:
    assert server.ask("/formgrader/api/assignment/--help/assign", b"{}")[0] == 404


def test_a_name_with_an_apostrophe_is_a_name(server: Jupyter) -> None:
    assert server.ask("/formgrader/manage_students/O'Neil")[0] == 200


# A student's work


@pytest.mark.slow
def test_a_file_that_was_handed_in_acts_nowhere(server: Jupyter, graded: str) -> None:
    status, text, headers = server.ask(f"/formgrader/submissions/{graded}/plot.html")
    assert (status, text) == (200, "<script>alert(1)</script>")
    assert headers["Content-Security-Policy"] == "sandbox"
    assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.slow
def test_the_page_to_grade_by_hand_is_served(server: Jupyter, graded: str) -> None:
    status, text, _ = server.ask(f"/formgrader/submissions/{graded}/")
    assert status == 200
    assert "YOUR ANSWER HERE" in text and "not written yet" in text


# Before somebody is known


def test_nothing_is_done_for_somebody_without_the_token(server: Jupyter) -> None:
    path = server.folder / "submitted" / "eve" / LAB / stamps.STAMP
    path.parent.mkdir(parents=True)
    path.write_text("soon")
    server.ask(f"/formgrader/api/submissions/{LAB}", token=False)
    assert path.exists()
    server.ask(f"/formgrader/api/submissions/{LAB}")
    assert not path.exists()


def test_a_stranger_learns_nothing_of_the_gradebook(server: Jupyter) -> None:
    book = server.folder / "gradebook.db"
    kept = book.read_bytes() if book.exists() else b""
    book.write_bytes(b"no gradebook at all, and longer than a header of one would be" * 20)
    try:
        assert "gradebook" in server.ask("/formgrader/")[1]
        assert str(server.folder) not in server.ask("/formgrader/", token=False)[1]
    finally:
        book.write_bytes(kept)


@pytest.mark.slow
def test_a_gradebook_that_is_written_over_is_noticed(server: Jupyter, graded: str) -> None:
    book = server.folder / "gradebook.db"
    kept = book.read_bytes()
    assert server.ask("/formgrader/api/assignments")[0] == 200
    other = book.with_suffix(".other")
    shutil.copy(book, other)
    with sqlite3.connect(other) as theirs:
        theirs.execute("UPDATE course SET id = 'bio101' WHERE id = 'glassbox'")
        theirs.execute("UPDATE assignment SET course_id = 'bio101'")
    theirs.close()
    try:
        book.write_bytes(other.read_bytes())
        assert "bio101" in server.ask("/formgrader/api/assignments")[1]
    finally:
        book.write_bytes(kept)


# Requests that no panel sends


@pytest.mark.parametrize(
    "body", [b"", b"[1]", b"{}", b'{"path": 5}', b'{"path": "a\\u0000b"}', b"{", b"\xff"]
)
@pytest.mark.parametrize("action", ["validate", "fetch", "submit", "fetch_feedback"])
def test_a_request_that_asks_for_nothing_is_told_so(server: Jupyter, action: str, body: bytes) -> None:
    assert server.ask(f"/assignments/{action}", body)[0] == 400


def as_json(words: dict[str, Any]) -> bytes:
    return json.dumps(words).encode()


def test_a_lab_that_is_no_lab_is_a_sentence(server: Jupyter) -> None:
    for name in ("../../etc", "*", "nothing"):
        body = as_json({"course_id": "glassbox", "assignment_id": name})
        for action in ("fetch", "submit"):
            status, text, _ = server.ask(f"/assignments/{action}", body)
            answer = json.loads(text)
            assert (status, answer["success"]) == (200, False)
            assert "Traceback" not in answer["value"] and "did not work" not in answer["value"]
    assert not Path("/etc/lab1_storage").exists()
