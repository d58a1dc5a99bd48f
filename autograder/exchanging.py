"""Where a class exchanges its labs: one folder that all its members can reach, kept in classroom.json.

Standard library only: course.py uses it before anything is installed.
"""

from __future__ import annotations

import json
from pathlib import Path

from .errors import PlainError

FILE = "classroom.json"
DEFAULT = "exchange"


def chosen(root: Path) -> Path | None:
    """The folder that was chosen for the course in `root`; None where none was.

    PlainError where the choice cannot be read.
    """
    path = root / FILE
    try:
        folder = Path(json.loads(path.read_text(encoding="utf-8"))["exchange"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        folder = Path()
    if not folder.is_absolute():
        raise PlainError(
            f"{path} does not name the class's exchange folder: choose it again with "
            "python3 course.py lab --exchange FOLDER"
        )
    return folder


def folder(root: Path) -> Path:
    """The exchange folder of the course in `root`: the chosen one, or one in the course itself."""
    return chosen(root) or root / DEFAULT


def choose(root: Path, place: Path | None) -> None:
    """Keeps `place` as the exchange folder of the course in `root`; None goes back to the course's own.

    The folder need not be there yet: the first release makes it. PlainError where it is a file or the choice
    cannot be kept.
    """
    path = root / FILE
    try:
        if place is None:
            path.unlink(missing_ok=True)
            return
        if place.exists() and not place.is_dir():
            raise PlainError(f"{place} is a file: name a folder for the exchange.")
        fresh = path.with_suffix(".part")
        fresh.write_text(json.dumps({"exchange": str(place.absolute())}) + "\n", encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        raise PlainError(f"{path} could not be written: {error.strerror or error}.") from None


def make(root: Path) -> str:
    """Makes the exchange folder where it is missing; returns "" or a sentence about why it could not.

    Others may enter it and not write to it: a release makes the one place in it that all may write to.
    """
    place = folder(root)
    try:
        if not place.is_dir():
            place.mkdir(parents=True)
            place.chmod(0o755)
    except OSError as error:
        return f"The exchange folder {place} could not be made ({error.strerror or error}): choose another."
    return ""
