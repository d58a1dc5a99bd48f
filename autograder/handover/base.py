"""What all steps of the exchange share: where things lie, how they are carried, how a failure is told."""

from __future__ import annotations

import errno
import os
import time
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.exchange import ExchangeError, default
from nbgrader.utils import find_all_notebooks, get_username

from .. import gradebook
from .carrying import Bounds, Carried, carry

ANOTHER_WAY = "ask your instructor, or hand your notebook in in another way"
KILOBYTE = 1000
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
NO_RIGHT = (errno.EACCES, errno.EPERM, errno.EROFS)


class Careful(default.Exchange):
    """A step of the exchange whose every failure is an ExchangeError of one sentence."""

    way_out: ClassVar[str] = ANOTHER_WAY

    def start(self) -> Any:
        """Takes the step. ExchangeError where it cannot be taken; then nothing was changed."""
        try:
            return super().start()
        except OSError as error:
            where = error.filename2 or error.filename or self.root
            if error.errno in NO_ROOM:
                self.fail(f"There is no room left on the disk of {where}: make some, then try again.")
            if error.errno in NO_RIGHT:
                self.fail(f"You have no right to change or read {where}: {self.way_out}.")
            self.fail(f"{where} could not be read or written ({error.strerror or error}): {self.way_out}.")

    def fail(self, msg: str) -> NoReturn:
        """Logs and raises ExchangeError."""
        self.log.fatal(msg)
        raise ExchangeError(msg)

    def ensure_root(self) -> None:
        """Fails where there is no exchange folder that can be entered."""
        root = Path(self.root)
        if not root.exists():
            self.fail(f"The exchange folder {root} is not there: {self.way_out}.")
        if not root.is_dir():
            self.fail(f"The exchange folder {root} is a file, not a folder: {self.way_out}.")
        if not os.access(root, os.X_OK):
            self.fail(f"You may not enter the exchange folder {root}: {self.way_out}.")

    @property
    def lab(self) -> str:
        """The lab that the step is about."""
        return str(self.coursedir.assignment_id)

    @property
    def place(self) -> Path:
        """The course's folder in the exchange."""
        if not self.coursedir.course_id:
            self.fail("It is not said which course is meant: add --course=NAME.")
        return Path(self.root, self.coursedir.course_id)

    @property
    def outbox(self) -> Path:
        """Where released labs lie."""
        return self.place / "outbound"

    @property
    def inbox(self) -> Path:
        """Where submissions lie."""
        return self.place / "inbound"

    @property
    def mine(self) -> Path:
        """The learner's own folder of the lab."""
        course = self.coursedir.course_id if self.path_includes_course else ""
        return Path(self.assignment_dir, course, self.lab).absolute()

    @property
    def kept(self) -> Path:
        """Where the learner's copies of what was handed in lie."""
        return Path(self.cache, self.place.name)

    def step(self, name: str, student: str = ".") -> Path:
        """The instructor's folder of the lab in a step, such as "release"."""
        folder = getattr(self.coursedir, f"{name}_directory")
        return Path(self.coursedir.format_path(folder, student, self.lab))

    def private_folders(self) -> list[Path]:
        """The course's folders that hold what students handed in, and what became of it."""
        steps = ("submitted", "autograded", "feedback")
        return [Path(self.coursedir.root, getattr(self.coursedir, f"{name}_directory")) for name in steps]

    def make_private_folders(self) -> None:
        """Makes those that are missing, closed to others before nbgrader makes them open."""
        for folder in self.private_folders():
            if not folder.exists():
                folder.mkdir(parents=True)
                folder.chmod(0o2770 if self.coursedir.groupshared else 0o700)

    def student(self) -> str:
        """Who hands in. ExchangeError for a name that no folder can have."""
        name = self.coursedir.student_id
        if name == "*":
            try:
                name = get_username()
            except KeyError:
                self.fail("This system has no name for you: say who hands in, with --student=NAME.")
        if not proper(name):
            self.fail(
                f"{name!r} cannot be a student's name: give one without any of / + * ? [ ] {{ }} and comma."
            )
        return str(name)

    @property
    def bounds(self) -> Bounds:
        """How much is carried."""
        return Bounds(self.coursedir.max_file_size * KILOBYTE, self.coursedir.max_dir_size * KILOBYTE)

    def carried(self, source: int, target: Path, first: list[str], whose: str) -> Carried:
        """Copies an open folder into `target`, and tells what was left out of it."""
        done = carry(source, target, self.bounds, self._ignored, first)
        if done.left_out:
            self.log.warning(f"Left out of {whose}: {done.told()}.")
        return done

    def _ignored(self, name: str) -> bool:
        return name.startswith(".") or any(fnmatch(name, pattern) for pattern in self.coursedir.ignore)

    def give_modes(self, folder: Path, files: int, folders: int) -> None:
        """Gives a folder and all in it these modes; with groupshared the group may write too."""
        shared = self.coursedir.groupshared
        self.set_perms(str(folder), files | (0o020 if shared else 0), folders | (0o2020 if shared else 0))

    def due(self) -> datetime | None:
        """When the lab is due by the gradebook, in UTC without saying so. ExchangeError where the gradebook
        cannot be used.
        """
        url = self.coursedir.db_url
        problem = gradebook.check(url, self.coursedir.course_id)
        if problem:
            self.fail(problem)
        file = gradebook.file_of(url)
        if file and not file.exists():
            return None
        with Gradebook(url, self.coursedir.course_id) as book:
            try:
                return book.find_assignment(self.lab).duedate
            except MissingEntry:
                return None


def proper(name: str) -> bool:
    """Whether a student may be called so: the name leads out of no folder, and no pattern is seen in it."""
    return (
        0 < len(name) <= 100
        and name[0] not in ".-"
        and name == name.strip()
        and name.isprintable()
        and not set(name) & set("/+*?[]{},")
    )


def notebooks(folder: Path) -> list[str]:
    """The notebooks in a lab's folder, as paths in it; checkpoints are none."""
    found = map(str, find_all_notebooks(str(folder)))
    return [name for name in found if not any(part.startswith(".") for part in Path(name).parts)]


def visible(folder: Path) -> list[Path]:
    """What lies in a folder and is not hidden, by name; nothing where there is no folder."""
    return sorted(item for item in folder.iterdir() if item.name[0] != ".") if folder.is_dir() else []


def now() -> datetime:
    """The time in UTC, without saying so, as nbgrader keeps times."""
    return moment(time.time())


def moment(seconds: float) -> datetime:
    """The same for seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
