"""The learner's panels: Assignment List, and the Validate button of a notebook."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jupyter_server.serverapp import ServerApp
from jupyter_server.utils import url_path_join
from nbgrader.server_extensions.assignment_list import handlers as lists
from nbgrader.server_extensions.validate_assignment import handlers as validation
from tornado import web

from .assignments import Assignments
from .running import python


class ActionHandler(lists.BaseAssignmentHandler):
    """Fetch, submit, fetch feedback. Tells of each failure: nbgrader's handler keeps two of them quiet."""

    @web.authenticated
    def post(self, action: str) -> None:
        """Does it, and answers with the list as it is then."""
        asked = self.get_json_body()
        where = asked["course_id"], asked["assignment_id"]
        act = {
            "fetch": self.manager.fetch_assignment,
            "submit": self.manager.submit_assignment,
            "fetch_feedback": self.manager.fetch_feedback,
        }[action]
        outcome = act(*where)
        if outcome["success"]:
            outcome = self.manager.list_assignments(course_id=where[0])
        self.finish(json.dumps(outcome))


class ValidateHandler(validation.ValidateAssignmentHandler):
    """Validate, by the judge on the open cases, in a process of its own."""

    @web.authenticated
    async def post(self) -> None:
        """Answers with what nbgrader's dialog shows."""
        asked = self.get_json_body() or {}
        path = self.get_argument("path", asked.get("path", ""))
        root = Path(self.root_dir).resolve()
        notebook = (root / path).resolve()
        if not notebook.is_relative_to(root):
            raise web.HTTPError(403, "That notebook lies outside the course.")
        ended = await python("autograder.validating", str(notebook))
        try:
            answer = json.loads(ended.out)
        except ValueError:
            self.log.error("Validating %s failed:\n%s", notebook, ended.log)
            answer = {"success": False, "value": "Validating failed; the server's log tells why."}
        self.finish(json.dumps(answer))


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": __name__}]


def _load_jupyter_server_extension(server: ServerApp) -> None:
    app = server.web_app
    app.settings["assignment_list_manager"] = Assignments(Path(server.root_dir), parent=server)
    app.settings["root_dir"] = server.root_dir
    ours: list[tuple[str, Any]] = [
        (r"/assignments", lists.AssignmentListHandler),
        (r"/assignments/(?P<action>fetch|submit|fetch_feedback)", ActionHandler),
        (r"/assignments/validate", ValidateHandler),
        (r"/courses", lists.CourseListHandler),
        (r"/nbgrader_version", lists.NbGraderVersionHandler),
    ]
    base = app.settings["base_url"]
    app.add_handlers(".*$", [(url_path_join(base, address), handler) for address, handler in ours])
