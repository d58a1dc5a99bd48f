"""The gradebook's check: what it stops, what it lets through, and that it changes nothing."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.gradebook import check
from autograder.settings import find_scripts

from .school import Elsewhere

COURSE = "glassbox"


def filled(path: Path, course: str, *labs: str) -> Path:
    """A gradebook of nbgrader's own, with labs."""
    find_scripts()
    with Gradebook(f"sqlite:///{path}", course) as book:
        for lab in labs:
            book.add_assignment(lab, course_id=course)
    return path


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A gradebook of this course, as bytes."""
    return filled(tmp_path_factory.mktemp("ours") / "gradebook.db", COURSE, "lab1_storage").read_bytes()


@pytest.fixture
def book(tmp_path: Path, ours: bytes) -> Path:
    """A gradebook of this course, as a file."""
    path = tmp_path / "gradebook.db"
    path.write_bytes(ours)
    return path


@contextmanager
def unchanged(path: Path) -> Iterator[None]:
    """Asserts that neither the file nor its folder is changed."""

    def state() -> tuple[str, int, list[str]]:
        return (
            hashlib.sha256(path.read_bytes()).hexdigest(),
            path.stat().st_mtime_ns,
            sorted(item.name for item in path.parent.iterdir()),
        )

    before = state()
    yield
    assert state() == before


def one_sentence(text: str) -> str:
    assert text.endswith(".")
    assert "\n" not in text
    return text


def edit(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        for statement in statements:
            database.execute(statement)


@pytest.mark.parametrize("form", ["{}", "sqlite:///{}"])
def test_this_courses_gradebook_is_let_through_and_left_alone(book: Path, form: str) -> None:
    with unchanged(book):
        assert check(form.format(book), COURSE) == ""


def test_what_nbgrader_makes_itself_is_let_through(tmp_path: Path) -> None:
    assert check(tmp_path / "gradebook.db", COURSE) == ""
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "gradebook.db").touch()
    assert check(tmp_path / "gradebook.db", COURSE) == ""
    # Another process may be half-way through making it.
    edit(tmp_path / "gradebook.db", "CREATE TABLE course (id VARCHAR)", "CREATE TABLE student (id VARCHAR)")
    assert check(tmp_path / "gradebook.db", COURSE) == ""


@pytest.mark.parametrize("url", ["postgresql://host/grades", "sqlite://", "sqlite:///:memory:"])
def test_a_database_that_is_no_file_is_not_looked_at(url: str) -> None:
    assert check(url, COURSE) == ""


def test_another_courses_gradebook_is_named_with_its_labs(tmp_path: Path) -> None:
    path = filled(tmp_path / "gradebook.db", "statistics", "ps1", "ps2")
    with unchanged(path):
        said = one_sentence(check(path, COURSE))
    assert all(word in said for word in (str(path), "'statistics'", "ps1, ps2", "'glassbox'", "move it"))


def test_one_lab_of_another_course_among_ours_is_enough(book: Path) -> None:
    edit(book, "INSERT INTO course VALUES ('statistics')")
    assert check(book, COURSE) == ""
    edit(book, "INSERT INTO assignment (id, name, course_id) VALUES ('1', 'ps1', 'statistics')")
    said = check(book, COURSE)
    assert "'statistics', with ps1" in said
    assert "lab1_storage" not in said


def test_a_gradebook_of_an_older_nbgrader_is_to_be_upgraded(book: Path) -> None:
    edit(book, "UPDATE alembic_version SET version_num = '282d30a0218e'")
    with unchanged(book):
        said = one_sentence(check(book, COURSE))
    assert "nbgrader db upgrade" in said


def test_a_gradebook_from_before_courses_is_to_be_upgraded(tmp_path: Path) -> None:
    path = tmp_path / "gradebook.db"
    edit(path, "CREATE TABLE assignment (id VARCHAR, name VARCHAR, duedate DATETIME)")
    assert "nbgrader db upgrade" in check(path, COURSE)


def test_a_gradebook_whose_making_was_cut_short_before_its_version_is_let_through(book: Path) -> None:
    edit(book, "DROP TABLE alembic_version")
    assert check(book, COURSE) == ""


def test_a_gradebook_of_a_newer_nbgrader_is_refused(book: Path) -> None:
    edit(book, "UPDATE alembic_version SET version_num = 'ffffffffffff'")
    assert "newer nbgrader" in one_sentence(check(book, COURSE))


@pytest.mark.parametrize("how", ["text", "cut", "page"])
def test_a_damaged_gradebook_is_told(book: Path, ours: bytes, how: str) -> None:
    middle = len(ours) // 2
    damaged = {
        "text": b"once upon a time\n" * 300,
        "cut": ours[: middle + 100],
        "page": ours[:8192] + os.urandom(8192) + ours[16384:],
    }
    book.write_bytes(damaged[how])
    with unchanged(book):
        said = one_sentence(check(book, COURSE))
    assert "damaged" in said
    assert "backup" in said


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "gradebook.db"
    edit(path, "CREATE TABLE moz_bookmarks (id INTEGER)")
    with unchanged(path):
        assert "database of something else" in one_sentence(check(path, COURSE))


def test_a_folder_or_a_missing_folder_in_its_place_is_told(tmp_path: Path) -> None:
    (tmp_path / "gradebook.db").mkdir()
    assert "is a folder" in one_sentence(check(tmp_path / "gradebook.db", COURSE))
    assert "no folder" in one_sentence(check(tmp_path / "nowhere" / "gradebook.db", COURSE))


def test_a_gradebook_that_may_not_be_written_is_told(book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system is asked for the right; since root has every right, its answer is set here."""

    def without(place: Path) -> None:
        monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != place)

    without(book)
    assert "may not be read and written by you" in one_sentence(check(book, COURSE))
    without(book.parent)
    assert f"may not write to {book.parent}" in one_sentence(check(book, COURSE))


@pytest.mark.parametrize("lock", ["EXCLUSIVE", "IMMEDIATE"])
def test_a_gradebook_that_another_process_holds_is_told(book: Path, lock: str) -> None:
    code = (
        "import sqlite3, sys\n"
        f"book = sqlite3.connect({str(book)!r}, isolation_level=None)\n"
        f"book.execute('BEGIN {lock}')\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert "held by another program" in one_sentence(check(book, COURSE, wait=0.1))
        holder.communicate()
    with unchanged(book):
        assert check(book, COURSE) == ""


def test_the_check_takes_no_lock_from_a_gradebook_open_in_this_process(book: Path) -> None:
    with closing(sqlite3.connect(book, isolation_level=None)) as mine:
        mine.execute("BEGIN IMMEDIATE")
        check(book, COURSE, wait=0.1)
        code = (
            "import sqlite3\n"
            f"book = sqlite3.connect({str(book)!r}, timeout=0.1, isolation_level=None)\n"
            "try:\n    book.execute('BEGIN IMMEDIATE')\n"
            "except sqlite3.OperationalError as error:\n    print(error)\n"
        )
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert found.stdout == "database is locked\n"


def test_a_crash_of_a_writer_is_left_to_sqlite(book: Path) -> None:
    journal = book.with_name("gradebook.db-journal")
    journal.write_bytes(b"")
    with unchanged(book):
        assert check(book, COURSE) == ""


def test_a_gradebook_is_good_while_it_is_made_and_while_two_write_to_it(tmp_path: Path) -> None:
    find_scripts()
    path = tmp_path / "gradebook.db"

    def enrol(who: str) -> str:
        with Gradebook(f"sqlite:///{path}", COURSE) as book:
            for number in range(20):
                book.add_student(f"{who}{number}")
        return "done"

    for names in (["ada"], ["bob", "cleo"]):
        running = [Elsewhere(lambda who=who: enrol(who)) for who in names]
        while any(process.running() for process in running):
            assert check(path, COURSE, wait=10) == ""
        assert [process.answer() for process in running] == ["done"] * len(names)
    with Gradebook(f"sqlite:///{path}", COURSE) as book:
        assert len(book.students) == 60
