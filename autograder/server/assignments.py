"""What Assignment List shows and does: nbgrader's exchange, each failure in one sentence."""

from __future__ import annotations

from os.path import relpath
from pathlib import Path
from typing import Any

from nbgrader.auth import Authenticator
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange import ExchangeError, ExchangeFactory
from traitlets.config import Config, LoggingConfigurable

from .. import exchanging, labs
from ..errors import PlainError
from ..handover.release import due_by
from ..settings import configure
from ..stamps import read, span

NO_EXCHANGE = (
    "This copy of the course knows of no exchange folder. Hand your notebook in as your instructor says; "
    "if your class has such a folder, start the course with: python3 course.py lab --exchange FOLDER"
)


def when(item: dict[str, Any], timestamp: str) -> str:
    """The time of a submission as the list shows it, with a word where it was late."""
    moment = read(timestamp)
    if moment is None:
        return timestamp
    due = due_by(exchanging.folder(labs.ROOT) / item["course_id"] / "outbound", item["assignment_id"])
    late = f", {span((moment - due).total_seconds())} late" if due and moment > due else ""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC{late}"


class Assignments(LoggingConfigurable):
    """The manager behind nbgrader's handlers. Its answers are theirs: `success`, and a `value` that is a list
    of labs or a sentence.
    """

    def __init__(self, served: Path, **options: Any) -> None:
        super().__init__(**options)
        self.served = served

    def list_courses(self) -> dict[str, Any]:
        """The courses that there is something of."""
        found = self.list_assignments()
        if found["success"]:
            found["value"] = sorted({item["course_id"] for item in found["value"]})
        return found

    def list_assignments(self, course_id: str | None = None) -> dict[str, Any]:
        """What can be fetched, what was fetched, what was handed in, with its feedback."""
        return self._try(self._list, course_id)

    def fetch_assignment(self, course_id: str, assignment_id: str) -> dict[str, Any]:
        """Copies a released lab to the learner."""
        return self._try(self._start, "FetchAssignment", course_id, assignment_id)

    def submit_assignment(self, course_id: str, assignment_id: str) -> dict[str, Any]:
        """Hands a lab in."""
        return self._try(self._start, "Submit", course_id, assignment_id)

    def fetch_feedback(self, course_id: str, assignment_id: str) -> dict[str, Any]:
        """Copies the feedback on a lab to the learner. Where there is none, the list says so beside what was
        handed in: a failure would take the whole list's place.
        """
        fetched = self._try(self._start, "FetchFeedback", course_id, assignment_id)
        listed = self.list_assignments(course_id)
        if not fetched["success"] and listed["success"]:
            for item in listed["value"]:
                if item["status"] == "submitted" and item["assignment_id"] == assignment_id:
                    item["submissions"][-1]["timestamp"] += f" – {fetched['value']}"
        return listed

    def _try(self, action: Any, *arguments: Any) -> dict[str, Any]:
        try:
            if not labs.SOLUTIONS.is_dir() and exchanging.chosen(labs.ROOT) is None:
                raise PlainError(NO_EXCHANGE)
            return {"success": True, "value": action(*arguments)}
        except (ExchangeError, PlainError) as problem:
            return {"success": False, "value": str(problem)}
        except Exception as problem:
            self.log.exception("Assignment List failed")
            line = f"{type(problem).__name__}: {problem}"
            return {"success": False, "value": f"This did not work ({line}); the server's log tells more."}

    def _list(self, course_id: str | None) -> list[dict[str, Any]]:
        released = self._start("List", course_id)
        for item in released:
            if item["status"] == "fetched":
                for place in (item, *item["notebooks"]):
                    place["path"] = relpath(place["path"], self.served)
        handed_in = self._start("List", course_id, cached=True)
        for item in handed_in:
            item["submissions"].sort(key=lambda one: one["timestamp"])
            for one in item["submissions"]:
                one["timestamp"] = when(item, one["timestamp"])
                if one["local_feedback_path"]:
                    one["local_feedback_path"] = relpath(one["local_feedback_path"], self.served)
        return [
            *sorted(released, key=lambda item: (item["course_id"], item["assignment_id"])),
            *sorted(handed_in, key=lambda item: item["assignment_id"]),
        ]

    def _start(
        self, action: str, course_id: str | None, assignment_id: str = "", cached: bool = False
    ) -> list[dict[str, Any]]:
        config = configure(Config(), labs.ROOT)
        if course_id:
            config.CourseDirectory.course_id = course_id
        config.CourseDirectory.assignment_id = assignment_id
        config.ExchangeList.cached = cached
        factory = ExchangeFactory(config=config)
        start = getattr(factory, action)(
            coursedir=CourseDirectory(config=config),
            authenticator=Authenticator(config=config),
            config=config,
        )
        start.log = self.log
        return start.start() or []
