"""Collecting: the newest submission of each student, from a folder that anybody may write to."""

from __future__ import annotations

import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path

from nbgrader.exchange import default

from ..stamps import read, span
from . import places
from .base import NO_ROOM, Careful, moment, notebooks, now, proper
from .carrying import UnfitError, megabytes, opened, regular
from .release import keep_due
from .submit import FORMAT, SECRET, STAMP

if sys.platform != "win32":
    import pwd

CLOCKS_DIFFER = timedelta(minutes=5)
ALIKE = 10
"""Of how many things of a kind it is told that they were left out."""
TRIES = 5
"""How many of a student's submissions are looked into, the newest first."""


@dataclass(frozen=True)
class Record:
    """A submission: the time that its folder's name says, the time that counts, and why they differ."""

    student: str
    path: Path
    said: datetime
    time: datetime
    why: str = ""


class Collect(Careful, default.ExchangeCollect):
    """nbgrader's collect. What cannot be trusted is left out with a word, and an older submission taken."""

    way_out = "see to its rights, then collect again"

    def init_src(self) -> None:
        """Finds the submissions."""
        if not self.inbox.is_dir():
            self.fail(
                f"Nothing can have been handed in: {self.inbox} is not there; release {self.lab} first."
            )
        if not os.access(self.inbox, os.R_OK | os.X_OK):
            self.fail(f"You may not read {self.inbox}: {self.way_out}.")
        self.duedate = self.due()
        if (self.outbox / self.lab).is_dir():
            keep_due(self.outbox, self.lab, self.duedate)  # it may have been set since the release
        self.known = notebooks(self.step("release"))
        self.left: Counter[str] = Counter()
        self.found: dict[str, list[Record]] = defaultdict(list)
        for path in sorted(self.inbox.iterdir()):
            with self._leaving(path):
                if self.lab in path.name.split("+")[1:-1] and path.name[0] != ".":
                    self._find(path)
        for records in self.found.values():
            records.sort(key=self._rank(), reverse=True)

    def init_dest(self) -> None:
        """Makes the folder for submissions."""
        self.make_private_folders()
        self.submitted = Path(self.coursedir.root, self.coursedir.submitted_directory)

    def copy_files(self) -> None:
        """Collects for each student; what goes wrong with one is told, and the others are collected."""
        try:
            with places.alone(self.submitted):
                for student, records in sorted(self.found.items()):
                    try:
                        self._collect(student, records)
                    except OSError as error:
                        if error.errno in NO_ROOM:
                            raise
                        self.log.error(f"What {student} handed in could not be collected: {error}.")
        except places.BusyError:
            self.fail("Another collect is under way: wait until it has ended, then collect again.")
        for why, count in self.left.items():
            if count > ALIKE:
                self.log.warning(f"Left out {count - ALIKE} more: {why}.")
        if not self.found and not self.left:
            self.log.warning(f"Nobody has handed in {self.lab} yet.")

    def _find(self, path: Path) -> None:
        """Notes the submission at `path`. UnfitError for what only looks like one."""
        student, lab, *rest = path.name.split("+")
        if lab != self.lab or len(rest) not in (1, 2) or not proper(student):
            raise UnfitError("its name is not one that submit gives")
        if not fnmatchcase(student, self.coursedir.student_id or "*"):
            return
        # First of all: what others put here must not stand in the way of the student's own.
        self._check_owner(student, path.lstat().st_uid)
        said = read(rest[0])
        if said is None:
            raise UnfitError("its name holds no time")
        self.found[student].append(self._dated(student, path, said))

    def _dated(self, student: str, path: Path, said: datetime) -> Record:
        """The record of a submission. A name that says another time than that of its coming gains nothing."""
        came = self._came(path)
        if said > now() + CLOCKS_DIFFER:
            why = f"{path.name!r} is from the future: it counts as of {came:%Y-%m-%d %H:%M} UTC."
            return Record(student, path, came, came, why)
        if self.duedate and said <= self.duedate < came and came - said > CLOCKS_DIFFER:
            stamp = self.step("submitted", student) / STAMP
            why = (
                f"{path.name!r} came, or was changed, at {came:%Y-%m-%d %H:%M} UTC and counts as of then. So "
                "does all that was copied or restored with the exchange: to take it as its name says, write "
                f"{said.strftime(FORMAT)} into {stamp}."
            )
            return Record(student, path, said, came, why)
        return Record(student, path, said, said)

    def _came(self, path: Path) -> datetime:
        """When a submission or a notebook in it was changed last, by the one time that nobody can set."""
        changed = [path.lstat().st_ctime]
        for name in self.known:
            with suppress(OSError):
                changed.append((path / name).lstat().st_ctime)
        return min(moment(max(changed)), now())

    def _rank(self) -> Callable[[Record], tuple[bool, datetime]]:
        due = self.duedate if self.before_duedate else None
        return lambda record: (due is None or record.time <= due, record.said)

    def _collect(self, student: str, records: list[Record]) -> None:
        target = self.step("submitted", student)
        target.parent.mkdir(parents=True, exist_ok=True)
        places.recover(target)
        for record in records[:TRIES]:
            with self._leaving(record.path), opened(record.path) as source:
                word = self._check_owner(student, os.fstat(source).st_uid)
                if self._wanted(target, record):
                    self._check_notebooks(source)
                    with places.scratch(target) as fresh:
                        self._fill(source, fresh, record)
                        places.put(fresh, target)
                    self._tell(record, word)
                return
        more = f"; only the newest {TRIES} of {len(records)} were tried" if len(records) > TRIES else ""
        self.log.warning(f"Nothing of what was handed in as {student}'s could be collected{more}.")

    def _check_owner(self, student: str, uid: int) -> str:
        """UnfitError where what has this owner is not the student's; who collects may put in what they like.

        Returns a word on what cannot be known.
        """
        if not self.check_owner or uid == os.getuid():
            return ""
        try:
            owner = pwd.getpwuid(uid).pw_name
        except KeyError:
            if not _has_account(student):
                return (
                    f"What is {student}'s by its name belongs to a user without a name here, {uid}: taken as "
                    f"it says, since {student} has no account here either."
                )
            owner = f"a user without a name here, {uid}"
        if owner != student:
            raise UnfitError(
                "it is another user's",
                f", for it says that it is {student}'s and belongs to {owner}; to take it all the same, add "
                "--ExchangeCollect.check_owner=False",
            )
        return ""

    def _check_notebooks(self, source: int) -> None:
        """UnfitError where an open submission has nothing in it that is worth a copy."""
        most = self.bounds.file
        if self.known and not any(size <= most for _, size in regular(source, self.known)):
            raise UnfitError(f"it holds no {' or '.join(self.known)} of at most {megabytes(most)}")

    def _wanted(self, target: Path, record: Record) -> bool:
        if not target.is_dir():
            return True
        there = collected_at(target)
        if there is None and not (target / SECRET).exists():
            self.log.warning(
                f"{record.student}'s {self.lab} was put into {target} by hand and stays; what came through "
                "the exchange was not collected: move that folder away to have it."
            )
            return False
        same = there in (record.said, record.time)
        wanted = not same and (there is None or there < record.time or self.before_duedate)
        if not wanted:
            self.log.info(f"{record.student} has handed in nothing newer than what is collected.")
        elif not self.update and not self.before_duedate:
            self.log.info(f"{record.student} has handed in something newer: add --update to collect it.")
            return False
        return wanted

    def _fill(self, source: int, fresh: Path, record: Record) -> None:
        done = self.carried(source, fresh, [*self.known, SECRET], f"what {record.student} handed in")
        if self.known and not set(self.known) & set(done.files):
            raise UnfitError(f"it holds no {' or '.join(self.known)}")
        # What the folder itself says of its time is the student's to write.
        (fresh / STAMP).unlink(missing_ok=True)
        (fresh / STAMP).write_text(record.time.strftime(FORMAT))
        if self.coursedir.groupshared:
            self.give_modes(fresh, 0o664, 0o775)

    def _tell(self, record: Record, word: str) -> None:
        self.log.info(f"Collected what {record.student} handed in at {record.time:%Y-%m-%d %H:%M} UTC.")
        for remark in filter(None, (word, record.why)):
            self.log.warning(remark)
        if self.duedate and record.time > self.duedate:
            late = span((record.time - self.duedate).total_seconds())
            self.log.warning(f"{record.student}'s came {late} after the date by which {self.lab} was due.")

    @contextmanager
    def _leaving(self, path: Path) -> Iterator[None]:
        """Leaves out, with a word, what turns out to be unfit meanwhile."""
        try:
            yield
        except UnfitError as error:
            why, *more = error.args
        except (PermissionError, FileNotFoundError) as error:
            if error.filename != str(path):
                raise
            why, more = "it may not be read", []
        else:
            return
        self.left[why] += 1
        if self.left[why] <= ALIKE:
            self.log.warning(f"Left out {path.name!r}: {why}{''.join(more)}.")


def _has_account(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def collected_at(folder: Path) -> datetime | None:
    """The time of a collected submission; None where it has none that can be read."""
    try:
        return read((folder / STAMP).read_text())
    except (OSError, ValueError):
        return None
