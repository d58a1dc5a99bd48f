"""Collecting: the newest submission of each student, from a folder that anybody may write to."""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path

from nbgrader.exchange import default

from ..stamps import read, span
from . import places
from .base import NO_ROOM, Careful, moment, notebooks, now, proper
from .carrying import UnfitError, opened
from .release import keep_due
from .submit import FORMAT, SECRET, STAMP

if sys.platform != "win32":
    import pwd

CLOCKS_DIFFER = timedelta(minutes=5)


@dataclass(frozen=True)
class Record:
    """A submission as its folder's name gives it."""

    student: str
    time: datetime
    path: Path


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
        self.found: dict[str, list[Record]] = defaultdict(list)
        for path in sorted(self.inbox.iterdir()):
            record = self._record(path)
            if record:
                self.found[record.student].append(record)
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
        if not self.found:
            self.log.warning(f"Nobody has handed in {self.lab} yet.")

    def _record(self, path: Path) -> Record | None:
        """The submission of this lab at `path`; None, with a word, for what only looks like one."""
        parts = path.name.split("+")
        if path.name.startswith(".") or self.lab not in parts[1:-1]:
            return None
        student = parts[0]
        if parts[1] != self.lab or len(parts) not in (3, 4) or not proper(student):
            self._leave(path, "its name is not one that submit gives")
            return None
        if not fnmatchcase(student, self.coursedir.student_id or "*"):
            return None
        try:
            written = moment(path.lstat().st_mtime)
        except (ValueError, OverflowError, OSError):
            self._leave(path, "when it was written cannot be told")
            return None
        time = read(parts[2])
        if time is None:
            self._leave(path, "its name holds no time")
            return None
        if time > now() + CLOCKS_DIFFER:
            time = min(written, now())
            self.log.warning(f"{path.name!r} is from the future: it counts as of {time:%Y-%m-%d %H:%M} UTC.")
        return Record(student, time, path)

    def _rank(self) -> Callable[[Record], tuple[bool, datetime]]:
        due = self.duedate if self.before_duedate else None
        return lambda record: (due is None or record.time <= due, record.time)

    def _collect(self, student: str, records: list[Record]) -> None:
        target = self.step("submitted", student)
        target.parent.mkdir(parents=True, exist_ok=True)
        places.recover(target)
        for record in records:
            try:
                with opened(record.path) as source:
                    self._check_owner(record, os.fstat(source).st_uid)
                    if not self._wanted(target, record):
                        return
                    with places.scratch(target) as fresh:
                        self._fill(source, fresh, record)
                        places.put(fresh, target)
            except UnfitError as error:
                self._leave(record.path, str(error))
                continue
            except PermissionError as error:
                if error.filename != str(record.path):
                    raise
                self._leave(record.path, "it may not be read")
                continue
            self._tell(record)
            return
        self.log.warning(f"Nothing of what was handed in as {student}'s could be collected.")

    def _check_owner(self, record: Record, uid: int) -> None:
        """UnfitError where the folder is another known user's; who collects may put in what they like."""
        if not self.check_owner or uid == os.getuid():
            return
        try:
            owner = pwd.getpwuid(uid).pw_name
        except KeyError:
            self.log.warning(
                f"{record.path.name!r} is of a user without a name here, {uid}: taken as it says."
            )
            return
        if owner != record.student:
            raise UnfitError(
                f"it says that it is {record.student}'s and belongs to {owner}; to take it all the same, add "
                "--ExchangeCollect.check_owner=False"
            )

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
        wanted = there is None or there < record.time or (self.before_duedate and there != record.time)
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

    def _tell(self, record: Record) -> None:
        self.log.info(f"Collected what {record.student} handed in at {record.time:%Y-%m-%d %H:%M} UTC.")
        if self.duedate and record.time > self.duedate:
            late = span((record.time - self.duedate).total_seconds())
            self.log.warning(f"{record.student}'s came {late} after the date by which {self.lab} was due.")

    def _leave(self, path: Path, why: str) -> None:
        self.log.warning(f"Left out {path.name!r}: {why}.")


def collected_at(folder: Path) -> datetime | None:
    """The time of a collected submission; None where it has none that can be read."""
    try:
        return read((folder / STAMP).read_text())
    except (OSError, ValueError):
        return None
