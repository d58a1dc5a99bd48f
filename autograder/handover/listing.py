"""Listing what is out and what was handed in; taking a lab back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nbgrader.exchange import default

from . import places
from .base import Careful
from .release import due_file


class ListLabs(Careful, default.ExchangeList):
    """nbgrader's list; a course that has released nothing yet lists nothing, and is not in error."""

    def ensure_root(self) -> None:
        """Fails for a learner where there is no exchange folder; an instructor's first release makes it."""
        if Path(self.root).exists() or not self._is_instructors():
            super().ensure_root()

    def remove_files(self) -> Any:
        """Takes released labs back, each at once and as a whole; other things as nbgrader does."""
        if self.inbound or self.cached:
            return super().remove_files()
        listed = self.parse_assignments()
        for path in map(Path, self.assignments):
            places.take_away(path)
            due_file(path.parent, path.name).unlink(missing_ok=True)
            self.log.info(f"{path.name} is no longer out; who has fetched it keeps it.")
        return listed

    def _is_instructors(self) -> bool:
        return Path(self.coursedir.root, self.coursedir.source_directory).is_dir()
