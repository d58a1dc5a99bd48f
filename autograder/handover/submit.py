"""Handing in: a submission arrives whole or not at all, and keeps the earlier ones."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from nbgrader.exchange import default

from ..stamps import STAMP, span
from . import places
from .base import Careful, notebooks, now, visible
from .carrying import Carried, UnfitError, opened
from .fetch import released
from .release import due_by

FORMAT = "%Y-%m-%d %H:%M:%S.%f UTC"
SECRET = "submission_secret.txt"
ARRIVING = ".arriving"
"""Where a copy that is being made keeps the name of the one in the exchange, which no learner can list."""


class Submit(Careful, default.ExchangeSubmit):
    """nbgrader's submit. The learner keeps a copy of what was handed in, with the key to its feedback."""

    def init_src(self) -> None:
        """Finds the learner's lab."""
        mine = self.mine
        self.coursedir.assignment_id = mine.name
        if mine.is_dir():
            return
        others = [item.name for item in visible(mine.parent) if notebooks(item)]
        there = f"there is {', '.join(others)}" if others else "there is no lab"
        self.fail(f"There is no {self.lab} to hand in in {mine.parent} ({there}): fetch it first.")

    def init_dest(self) -> None:
        """Finds where to hand in."""
        if not self.authenticator.has_access(self.coursedir.student_id, self.coursedir.course_id):
            self.fail(f"You are not in the course {self.coursedir.course_id}: ask your instructor.")
        self.release_path = released(self)
        if not self.inbox.is_dir() or not os.access(self.inbox, os.W_OK | os.X_OK):
            self.fail(f"You may not hand anything in at {self.inbox}: {self.way_out}.")

    def copy_files(self) -> None:
        """Hands in."""
        student = self.student()
        wanted = notebooks(Path(self.release_path))
        self._complain_of_missing(wanted)
        self.kept.mkdir(parents=True, exist_ok=True)
        self._clear()
        kept = self._reserved(student)
        try:
            with places.scratch(self.inbox / kept.name.lstrip(".")) as fresh:
                (kept / ARRIVING).write_text(fresh.name)
                done = self._filled(fresh, wanted)
                key = secrets.token_hex(64)
                for name, text in ((STAMP, self.timestamp), (SECRET, key)):
                    (fresh / name).write_text(text)
                with opened(fresh) as whole:
                    self.carried(whole, kept, wanted, "your own copy")
                self.give_modes(fresh, 0o644, 0o755)
                # The collector may take it away; others do not find it, for they cannot know its name.
                fresh.chmod(0o777)
                fresh.rename(self.inbox / f"{kept.name.lstrip('.')}+{secrets.token_urlsafe(9)}")
            (kept / ARRIVING).unlink()
            kept.rename(kept.with_name(kept.name.lstrip(".")))
        finally:
            places.remove(kept)
        more = len(done.files) - len(wanted)
        self.log.info(
            f"Handed in {self.lab} for {student} at {self.timestamp}: {', '.join(wanted)}"
            + (f" and {more} other files" if more else "")
        )
        due = due_by(self.outbox, self.lab)
        if due and now() > due:
            late = span((now() - due).total_seconds())
            self.log.warning(f"{self.lab} was due on {due:%Y-%m-%d at %H:%M} UTC: it was taken, {late} late.")

    def _complain_of_missing(self, wanted: list[str]) -> None:
        missing = [name for name in wanted if not (self.mine / name).is_file()]
        if not missing:
            return
        others = [name for name in notebooks(self.mine) if name not in wanted]
        here = f"{self.mine} has {', '.join(others) or 'no notebook'} instead"
        self.fail(
            f"Nothing was handed in: your notebook must be called {' and '.join(missing)}, and {here}; "
            "give it that name, then hand in again."
        )

    def _clear(self) -> None:
        """Clears away what submissions left behind that were cut short long ago."""
        for hidden in filter(places.stale, self.kept.glob(".*+*")):
            arriving = hidden / ARRIVING
            name = arriving.read_text(errors="replace") if arriving.is_file() else ""
            if name.startswith(hidden.name[:101]) and (self.inbox / name).is_dir():
                places.remove(self.inbox / name)
            elif (hidden / SECRET).is_file():  # it had arrived, and its key opens the feedback
                arriving.unlink(missing_ok=True)
                hidden.rename(hidden.with_name(hidden.name[1:]))
            places.remove(hidden)

    def _reserved(self, student: str) -> Path:
        """A hidden folder for the learner's own copy, at a time that no other submission has."""
        while True:
            self.timestamp = now().strftime(FORMAT)
            name = f"{student}+{self.lab}+{self.timestamp}"
            hidden = self.kept / f".{name}"
            try:
                hidden.mkdir(mode=0o700)  # it will hold the key
            except FileExistsError:
                continue
            if not (self.kept / name).exists():
                return hidden
            hidden.rmdir()

    def _filled(self, fresh: Path, wanted: list[str]) -> Carried:
        try:
            with opened(self.mine, link=True) as source:
                done = self.carried(source, fresh, wanted, "what you handed in")
        except UnfitError:
            self.fail(f"{self.mine} went away while it was handed in: try again.")
        missing = [name for name in wanted if name not in done.files]
        if missing:
            self.fail(
                f"Nothing was handed in, since the notebook was left out: {done.told()}; see to that first."
            )
        return done
