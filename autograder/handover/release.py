"""Releasing a lab: a copy of labs/LAB for all to fetch, and the date by which it is due."""

from __future__ import annotations

import errno
import shlex
from datetime import datetime
from pathlib import Path

from nbgrader.exchange import default

from .. import gradebook
from ..stamps import read
from . import places
from .base import Careful, notebooks, visible
from .carrying import opened
from .rights import closed_to_others, open_to_others

OPEN = 0o755
DROP_BOX = 0o2733  # whoever hands in may put something there, and see nothing of what the others did


class ReleaseAssignment(Careful, default.ExchangeReleaseAssignment):
    """nbgrader's release_assignment; students never see half a lab."""

    way_out = "see to its rights, or choose another folder with python3 course.py lab --exchange FOLDER"

    def ensure_root(self) -> None:
        """Makes the exchange folder where there is none; leaves the rights of one that is there."""
        root = Path(self.root)
        if not root.exists():
            root.mkdir(parents=True)
            root.chmod(OPEN)
        super().ensure_root()

    def init_src(self) -> None:
        """Finds the lab that was generated."""
        self.source = self.step("release")
        if notebooks(self.source):
            return
        lab = self.lab
        if self.step("source").is_dir():
            self.fail(
                f"{lab} has not been generated yet: press Generate in Formgrader, or run python3 course.py "
                f"nbgrader generate_assignment {lab}."
            )
        there = ", ".join(item.name for item in visible(self.source.parent) if notebooks(item)) or "none"
        self.fail(f"There is no lab called {lab!r} in {self.source.parent}; there is {there}.")

    def init_dest(self) -> None:
        """Makes the course's folders in the exchange, with the right modes."""
        self.make_private_folders()
        shared = 0o2020 if self.coursedir.groupshared else 0
        for folder, mode in (
            (self.place, OPEN | shared),
            (self.outbox, OPEN | shared),
            (self.inbox, DROP_BOX | (0o040 if shared else 0)),
        ):
            folder.mkdir(exist_ok=True)
            if folder.stat().st_mode & 0o7777 != mode:
                folder.chmod(mode)

    def copy_files(self) -> None:
        """Puts the lab out."""
        target = self.outbox / self.lab
        places.recover(target)
        with places.scratch(target) as fresh, opened(self.source, link=True) as source:
            self.carried(source, fresh, notebooks(self.source), f"the release of {self.lab}")
            self.give_modes(fresh, 0o644, OPEN)
            try:
                if self.force:
                    places.put(fresh, target)
                else:
                    fresh.rename(target)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                self._out_already(target)
        keep_due(self.outbox, self.lab, self.due())
        self.log.info(f"{self.lab} is out: {target}")
        self._warn_of_rights()

    def _out_already(self, target: Path) -> None:
        self.fail(
            f"{self.lab} is out already, in {target}, and was left as it is: add --force to put the present "
            "one in its place; who has fetched it keeps the old one until they move it away and fetch again."
        )

    def _warn_of_rights(self) -> None:
        root, course = Path(self.root).resolve(), Path(self.coursedir.root).resolve()
        closed = [] if root.is_relative_to(course) else closed_to_others(root)  # else one person's own
        if closed:
            self.log.warning(
                f"Students with accounts of their own may not enter {_listed(closed)}: put the exchange "
                "where all can enter, such as in /srv, with python3 course.py lab --exchange FOLDER; opening "
                "a folder of yours instead would open what else lies in it."
            )
        readable = [path for path in self._private() if open_to_others(path)]
        if readable:
            self.log.warning(
                f"Others on this machine can read {_listed(readable)}: close that to them with chmod o-rwx "
                f"{shlex.join(map(str, readable))}."
            )

    def _private(self) -> list[Path]:
        book = gradebook.file_of(self.coursedir.db_url)
        solutions = Path(self.coursedir.root, self.coursedir.source_directory)
        return [solutions, *([book] if book else []), *self.private_folders()]


def _listed(paths: list[Path]) -> str:
    return ", ".join(map(str, paths))


def due_file(outbound: Path, lab: str) -> Path:
    """Where the exchange keeps the date by which a lab is due."""
    return outbound / f".{lab}.due"


def keep_due(outbound: Path, lab: str, due: datetime | None) -> None:
    """Tells students, through the exchange, by when a lab is due."""
    file = due_file(outbound, lab)
    if due is None:
        file.unlink(missing_ok=True)
    else:
        places.write(file, due.isoformat().encode(), 0o644)


def due_by(outbound: Path, lab: str) -> datetime | None:
    """By when a lab is due, as the exchange has it."""
    try:
        return read(due_file(outbound, lab).read_text())
    except (OSError, ValueError):
        return None
