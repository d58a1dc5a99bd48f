"""Fetching a lab: whole, and over nothing that is there."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

from nbgrader.exchange import default

from . import places
from .base import Careful, notebooks, visible
from .carrying import UnfitError, opened

TRIES = 5
PAUSE_SECONDS = 0.2


class FetchAssignment(Careful, default.ExchangeFetchAssignment):
    """nbgrader's fetch_assignment."""

    def init_src(self) -> None:
        """Finds the released lab."""
        if not self.authenticator.has_access(self.coursedir.student_id, self.coursedir.course_id):
            self.fail(f"You are not in the course {self.coursedir.course_id}: ask your instructor.")
        self.src_path = released(self)

    def init_dest(self) -> None:
        """Fails where the lab is there already."""
        self.dest_path = str(self.mine)
        if os.path.lexists(self.mine) and not (self.replace_missing_files and self.mine.is_dir()):
            self._there_already()

    def copy_files(self) -> None:
        """Copies the lab."""
        if self.mine.is_dir():
            super().copy_files()  # with replace_missing_files: only what is missing
            return
        self.mine.parent.mkdir(parents=True, exist_ok=True)
        places.clear(self.mine)
        for _ in range(TRIES):
            with places.scratch(self.mine) as fresh:
                if self._copied(fresh):
                    break
            time.sleep(PAUSE_SECONDS)
        else:
            self.fail(f"{self.lab} is being put out anew just now: try again in a moment.")
        self.log.info(f"Fetched {self.lab}: {self.mine}")

    def _copied(self, fresh: Path) -> bool:
        """Whether `fresh` became the lab; not so where the lab was replaced meanwhile."""
        out = Path(self.src_path)
        try:
            with opened(out) as source:
                self.carried(source, fresh, notebooks(out), f"your copy of {self.lab}")
                if not os.path.samestat(os.fstat(source), out.stat()):
                    return False
        except (FileNotFoundError, UnfitError):
            return False
        try:
            fresh.rename(self.mine)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            self._there_already()
        return True

    def _there_already(self) -> None:
        self.fail(
            f"You have {self.lab} already, in {self.mine}, and it was left as it is: to start over, move "
            "that folder away and fetch again."
        )


def released(step: Careful) -> str:
    """The released lab that a learner's step is about. ExchangeError where it is not out."""
    out = step.outbox / step.lab
    if not out.is_dir():
        others = [item.name for item in visible(step.outbox)]
        known = f"these are: {', '.join(others)}" if others else "no lab is"
        step.fail(f"{step.lab!r} is not out at present; {known}. Ask your instructor about it.")
    if not os.access(out, os.R_OK | os.X_OK):
        step.fail(f"You may not read {out}: {step.way_out}.")
    return str(out)
