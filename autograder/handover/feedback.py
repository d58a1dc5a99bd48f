"""Feedback on its way back: each attempt's page lies under a name that only its student can know."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

from nbgrader.exchange import default
from nbgrader.utils import notebook_hash

from . import places
from .base import Careful, notebooks, visible
from .submit import SECRET

HIDDEN = 0o711


class ReleaseFeedback(Careful, default.ExchangeReleaseFeedback):
    """nbgrader's release_feedback, which goes on where a submission came without the exchange."""

    way_out = "release a lab first, or hand the pages in feedback/ over yourself"

    def init_src(self) -> None:
        """Finds the pages."""
        who = self.coursedir.student_id or "*"
        left_out = set(self.coursedir.student_id_exclude.split(","))
        known = {Path(name).stem for name in notebooks(self.step("release"))}
        self.pages = [
            page
            for student in visible(Path(self.coursedir.root, self.coursedir.feedback_directory))
            if fnmatchcase(student.name, who) and student.name not in left_out
            for page in visible(student / self.lab)
            if page.suffix == ".html" and (not known or page.stem in known)
        ]
        if not self.pages:
            self.fail(f"There is no feedback on {self.lab} to release yet: generate it first.")

    def init_dest(self) -> None:
        """Makes the folder for feedback in the exchange, which nobody else can list."""
        if not self.place.is_dir():
            self.fail(f"There is no {self.place} to put feedback into: {self.way_out}.")
        folder = self.place / "feedback"
        folder.mkdir(exist_ok=True)
        folder.chmod(HIDDEN | (0o2060 if self.coursedir.groupshared else 0))

    def copy_files(self) -> None:
        """Puts the pages out."""
        by_hand = []
        for page in self.pages:
            student = page.parents[1].name
            secret = key(page.parent)
            if secret is None:
                by_hand.append(page)
                continue
            places.write(page_of(self.place, secret, page.stem), page.read_bytes(), 0o644)
            self.log.info(f"Released to {student}: the feedback on {page.stem}.")
        for page in by_hand:
            self.log.warning(
                f"{page.parents[1].name}'s came without the exchange: hand the feedback over yourself: {page}"
            )


class FetchFeedback(Careful, default.ExchangeFetchFeedback):
    """nbgrader's fetch_feedback: a folder for each attempt, by its time."""

    def init_src(self) -> None:
        """Finds the feedback on all that was handed in."""
        who = self.coursedir.student_id
        handed_in = [(item.name.split("+"), item) for item in visible(self.kept)]
        attempts = sorted(
            (parts[2], item)
            for parts, item in handed_in
            if len(parts) == 3 and parts[1] == self.lab and who in ("*", parts[0])
        )
        if not attempts:
            self.fail(
                f"You have handed in no {self.lab} through the exchange, so there is no feedback on it."
            )
        self.found = [
            (time, page, Path(name).stem)
            for time, attempt in attempts
            for name in notebooks(attempt)
            if (secret := key(attempt)) and (page := page_of(self.place, secret, Path(name).stem)).is_file()
        ]
        if not self.found:
            self.fail(
                f"There is no feedback on your {self.lab} yet: it comes when your instructor has graded it; "
                "try again later."
            )
        last, newest = attempts[-1][0], self.found[-1][0]
        if last != newest:
            self.log.warning(
                f"There is no feedback yet on what you handed in last, at {last[:16]}; the newest is on your "
                f"attempt of {newest[:16]}."
            )

    def init_dest(self) -> None:
        """Finds where the feedback goes."""
        self.target = self.mine / "feedback"

    def copy_files(self) -> None:
        """Copies the feedback."""
        for time, page, notebook in self.found:
            place = self.target / time / f"{notebook}.html"
            place.parent.mkdir(parents=True, exist_ok=True)
            places.write(place, page.read_bytes(), 0o644)
            self.log.info(f"Fetched feedback: {place}")


def key(folder: Path) -> str | None:
    """The key that a submission carries; None where it came without the exchange."""
    try:
        secret = (folder / SECRET).read_text()
    except (OSError, ValueError):
        return None
    return secret if secret.strip() else None


def page_of(place: Path, secret: str, notebook: str) -> Path:
    """Where the exchange keeps the page on a notebook of the submission with this key."""
    return place / "feedback" / f"{notebook_hash(secret=secret, notebook_id=notebook)}.html"
