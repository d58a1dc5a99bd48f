"""Whether a gradebook file is this course's and can be written, found out without changing it."""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing
from functools import cache
from importlib.util import find_spec
from pathlib import Path

LOCK_SECONDS = 2.0
TABLES = {
    "alembic_version",
    "assignment",
    "base_cell",
    "comment",
    "course",
    "grade",
    "grade_cells",
    "notebook",
    "solution_cells",
    "source_cell",
    "student",
    "submitted_assignment",
    "submitted_notebook",
    "task_cells",
}
AWAY = "move it out of the way and generate the labs again, which starts a new one"
RESTORE = f"put your backup in its place, or {AWAY}"


def check(url_or_path: str | os.PathLike[str], course_id: str, wait: float = LOCK_SECONDS) -> str:
    """What keeps a gradebook from being used for the course `course_id`: one sentence, or "" for nothing.

    A gradebook that is not there yet is no hindrance, and one that is no SQLite file is not looked at. `wait`
    is how many seconds another program may hold the file before that is told.
    """
    path = file_of(str(url_or_path))
    if path is None:
        return ""
    name = f"The gradebook {path}"
    try:
        return _file(path, name) or _read(path, name, course_id, wait)
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return f"{name} is held by another program, such as a grading run: wait for it, then try again."
        return f"{name} is damaged ({error}): {RESTORE}."
    except OSError as error:
        return f"{name} cannot be read ({error.strerror or error}): see to that first."


def _file(path: Path, name: str) -> str:
    folder = path.parent
    if path.is_dir():
        return f"{name} is a folder, not a file: {AWAY}."
    if not folder.is_dir():
        return f"{name} has no place: there is no folder {folder}; make it, or correct the setting db_url."
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"{name} cannot be written, since you may not write to {folder}: get the right to it."
    if path.exists() and not os.access(path, os.R_OK | os.W_OK):
        return f"{name} may not be read and written by you: get the right to it from its owner."
    return ""


def file_of(place: str) -> Path | None:
    """The file of an SQLite address or path; None for another kind of database."""
    if place.startswith("sqlite:///"):
        place = place.removeprefix("sqlite:///").partition("?")[0]
    elif "://" in place:
        return None
    return Path(place).absolute() if place and place != ":memory:" else None


def _read(path: Path, name: str, course_id: str, wait: float) -> str:
    if not path.exists() or not path.stat().st_size:
        return ""  # nbgrader makes it
    # Only SQLite opens the file: closing it in another way would take the locks of this process from it.
    with closing(_open(path, "ro", wait)) as book:
        wrong = _contents(book, name, course_id)
    if wrong or path.with_name(f"{path.name}-journal").exists():
        return wrong  # a journal left by a crash is SQLite's to undo, which would change the file
    with closing(_open(path, "rw", wait)) as book:
        book.execute("BEGIN IMMEDIATE")
        book.execute("ROLLBACK")
    return ""


def _open(path: Path, mode: str, wait: float) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?mode={mode}", uri=True, timeout=wait, isolation_level=None)


def _contents(book: sqlite3.Connection, name: str, course_id: str) -> str:
    tables = {row[0] for row in book.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "assignment" not in tables:
        # nbgrader completes a gradebook that is only just being made.
        if tables <= TABLES:
            return ""
        return f"{name} is a database of something else, not of nbgrader: {AWAY}."
    problem = book.execute("PRAGMA quick_check(1)").fetchone()[0]
    if problem != "ok":
        return f"{name} is damaged ({' '.join(str(problem).split())}): {RESTORE}."
    known, newest = _revisions()
    found = (
        book.execute("SELECT version_num FROM alembic_version").fetchone()
        if "alembic_version" in tables
        else None
    )
    columns = {row[1] for row in book.execute("PRAGMA table_info(assignment)")}
    if (found and found[0] in known - {newest}) or "course_id" not in columns:
        return (
            f"{name} was made by an older nbgrader: run python3 course.py nbgrader db upgrade, "
            "which keeps a copy of the old one beside it."
        )
    if found and found[0] not in known:
        return (
            f"{name} was made by a newer nbgrader than this course has: use it with that course, or {AWAY}."
        )
    rows = book.execute("SELECT name, course_id FROM assignment ORDER BY name").fetchall()
    others = sorted({str(course) for _, course in rows if course != course_id})
    if others:
        held = ", ".join(str(lab) for lab, course in rows if course != course_id)
        return (
            f"{name} belongs to another course ({', '.join(map(repr, others))}, with {held}), not to "
            f"{course_id!r}: put it back where it came from, or {AWAY}."
        )
    return ""


@cache
def _revisions() -> tuple[frozenset[str], str]:
    """The names of all forms that a gradebook has had, and of the newest one, as this nbgrader knows them."""
    spec = find_spec("nbgrader")
    known: set[str] = set()
    followed: set[str] = set()
    for place in (spec.submodule_search_locations if spec else None) or ():
        for file in sorted(Path(place, "alembic", "versions").glob("*.py")):
            text = file.read_text(encoding="utf-8")
            known.update(re.findall(r"^revision = '(\w+)'", text, re.MULTILINE))
            followed.update(re.findall(r"^down_revision = '(\w+)'", text, re.MULTILINE))
    return frozenset(known), next(iter(known - followed), "")
